// backward() and grad(), and gradients as attributes of tensors.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/training/gradients.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Origins.h"

namespace burin {

using detail::inScope, detail::TapeEdge, detail::TapeLeaf;

// ---- tensors

/// Refuses what a trace does not know: whether gradients flow to a value that is not that of a parameter.
static std::shared_ptr<detail::TapeNode> nodeOf(const Tensor &x, const char *op) {
  std::shared_ptr<detail::TapeNode> node = detail::edgeOf(x).node;
  if (!node && Trace::active() && x.isTraced() && !Trace::active()->isOfCell(x))
    throw Error(Trace::active()->placeOfStart(), op,
                "whether callers take gradients through this value is not known while tracing, and the code after this "
                "would be right for one answer only; decide outside of the traced function");
  return node;
}

bool Tensor::requires_grad() const { return nodeOf(*this, "requires_grad") != nullptr; }

bool Tensor::is_leaf() const {
  auto node = nodeOf(*this, "is_leaf");
  return !node || dynamic_cast<TapeLeaf *>(node.get());
}

Tensor &Tensor::requires_grad_(bool on, Location where) {
  const Location place = inScope(where);
  const detail::TensorState &state = detail::stateOf(*this, place);
  if (isTraced())
    throw Error(place, "requires_grad_", "values of a trace need no mark: give them to grad(y, xs)");
  if (!on) {
    *this = detail::withoutEdge(*this);
    return *this;
  }
  if (!isFloat(state.spec.dtype))
    throw Error(place, "requires_grad_",
                "gradients are of floats, but this is " + burin::str(state.spec) + "; convert it to f32 first");
  if (!is_leaf())
    throw Error(place, "requires_grad_",
                "this tensor was made by a recorded call, through which gradients flow already; use detach() for a "
                "leaf of its own");
  if (!requires_grad())
    *this = detail::withEdge(*this, {std::make_shared<TapeLeaf>(state.spec, place), 0});
  return *this;
}

static TapeLeaf &leafOf(const Tensor &x, const char *op, const Location &where) {
  auto *leaf = dynamic_cast<TapeLeaf *>(detail::edgeOf(x).node.get());
  if (!leaf)
    throw Error(where, op,
                detail::edgeOf(x).node ? "this tensor is no leaf: its gradient is not kept; use a hook, or grad(y, {x})"
                                       : "this tensor requires no gradient; call requires_grad_() on it first");
  return *leaf;
}

Tensor Tensor::grad(Location where) const {
  const Location place = inScope(where);
  if (isTraced() && Trace::active())
    return Trace::active()->gradient(*this, place);
  if (!requires_grad()) // a leaf that no gradient flows to, as a frozen parameter
    return Tensor();
  return leafOf(*this, "grad", place).gradient();
}

void Tensor::set_grad(const Tensor &gradient, Location where) const {
  const Location place = inScope(where);
  if (gradient.defined() && gradient.spec(place) != spec(place))
    throw Error(place, "set_grad",
                "the gradient " + burin::str(gradient.spec(place)) + " is not like its tensor " +
                    burin::str(spec(place)));
  if (isTraced() && Trace::active())
    Trace::active()->setGradient(*this, gradient, place);
  else
    leafOf(*this, "set_grad", place).setGradient(gradient);
}

void Tensor::register_hook(std::function<Tensor(const Tensor &)> hook, Location where) const {
  auto [node, result] = detail::edgeOf(*this);
  if (!node)
    throw Error(inScope(where), "register_hook",
                "this tensor requires no gradient, so its hook would never be called; call requires_grad_() first");
  node->hooks.emplace_back(result, std::move(hook));
}

Tensor Tensor::detach(Location where) const { return burin::detach(*this, where); }

/// The gradient of y with respect to itself.
static Tensor seedOf(const Tensor &y, const std::optional<Tensor> &gradient, const char *op, const Location &where) {
  TensorSpec spec = y.spec(where);
  if (!gradient && elements(spec.shape) != Dim(1))
    throw Error(where, op,
                "y is " + str(spec) + ", of which there are many gradients; sum it first, or give " +
                    "weights for its elements");
  Tensor seed = gradient ? gradient->to(spec.dtype, where) : ones_like(y, where);
  if (seed.shape(where) != spec.shape)
    throw Error(where, op,
                "the given gradient is " + str(seed.spec(where)) + ", but y is " + str(spec) +
                    "; they must have one shape");
  return seed;
}

void Tensor::backward(const std::optional<Tensor> &gradient, const BackwardOptions &options, Location where) const {
  const Location place = inScope(where);
  if (Trace *trace = Trace::active()) {
    std::optional<OriginNotes::Constants> off;
    if (!options.create_graph)
      off.emplace();
    return trace->backward(*this, seedOf(*this, gradient, "backward", place), place);
  }
  TapeEdge root = detail::edgeOf(*this);
  if (!root.node)
    throw Error(place, "backward",
                "no gradient flows from this tensor: nothing that it was made from requires one, or it was made under "
                "NoGrad");
  LocationScope scope(place);
  detail::runBackward({&root, 1}, {seedOf(*this, gradient, "backward", place)}, std::nullopt, options, place);
}

// ---- functions

static std::vector<Tensor> gradEagerly(const Tensor &y, const std::vector<Tensor> &xs,
                                       const std::optional<Tensor> &gradOutput, const BackwardOptions &options,
                                       const Location &where) {
  std::vector<TapeEdge> targets;
  for (const Tensor &x : xs) {
    targets.push_back(detail::edgeOf(x));
    if (!targets.back().node)
      throw Error(where, "grad",
                  str(x.spec(where)) + " requires no gradient; call requires_grad_() on it before it is used");
  }
  TapeEdge root = detail::edgeOf(y);
  std::vector<Tensor> found(xs.size());
  LocationScope scope(where);
  Tensor seed = seedOf(y, gradOutput, "grad", where);
  if (root.node)
    found = detail::runBackward({&root, 1}, {std::move(seed)}, targets, options, where);
  for (size_t i = 0; i < xs.size(); ++i)
    if (!found[i].defined())
      found[i] = zeros_like(xs[i], where);
  return found;
}

std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &grad_output,
                         const BackwardOptions &options, Location where) {
  const Location place = inScope(where);
  Trace *trace = Trace::active();
  if (!trace)
    return gradEagerly(y, xs, grad_output, options, place);
  std::optional<OriginNotes::Constants> off;
  if (!options.create_graph)
    off.emplace();
  return trace->grad(y, xs, grad_output, place);
}

Tensor detach(const Tensor &x, Location where) {
  const Location place = inScope(where);
  Trace *trace = Trace::active();
  return trace ? trace->detach(x, place) : detail::withoutEdge(x);
}

std::pair<Tensor, std::vector<Tensor>> detail::valueAndGrad(const Function &function, std::vector<Tensor> inputs,
                                                            const Location &where) {
  const Location place = inScope(where);
  EnableGrad enabled;
  if (!Trace::active())
    for (Tensor &input : inputs) // a separate leaf: gradients flow no further
      input = withoutEdge(input).requires_grad_(true, place);
  std::vector<Tensor> results = function(inputs, place);
  if (results.size() != 1)
    throw Error(place, "value_and_grad",
                "the function returns " + std::to_string(results.size()) + " tensors; one with one element is needed");
  std::vector<Tensor> gradients = grad(results[0], inputs, std::nullopt, {}, place);
  return {burin::detach(results[0], place), std::move(gradients)};
}

} // namespace burin
