#include "frontend/batching/Rules.h"
#include "burin/graph/loops.h"
#include "burin/tensor/composed.h"
#include "frontend/eager/Eager.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"

namespace burin::batching {

using detail::inScope;

Tensors callOp(const ir::OpInfo &info, const Tensors &operands, std::vector<ir::Attr> attrs) {
  llvm::SmallVector<const Tensor *> given;
  for (const Tensor &operand : operands)
    given.push_back(operand.defined() ? &operand : nullptr);
  if (Trace *trace = Trace::active())
    return trace->call(info, given, std::move(attrs), inScope({}));
  return detail::callEagerly(info, given, std::move(attrs), inScope({}));
}

Self Self::with(std::string_view attribute, ir::Attr value) const {
  Self changed = *this;
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attribute == info->attrs[i].name)
      changed.attrs[i] = value;
  return changed;
}

static Tensors batchingIsSame(const BatchingCall &call) { return callOp(call.info, call.operands, call.attrs); }
static Tensors batchingIsRefused(const BatchingCall &call) {
  throw Error(inScope({}), call.info.name,
              "in vmap, the size of the result would differ between examples; keep the size and mask what is not "
              "wanted, or use map()");
}

#include "frontend/batching/rules.inc"

BatchingRule ruleOf(const ir::OpInfo &info) { return batchingRules[&info - ir::opTable().data()]; }

// ---- dimensions

Tensor alone(const Tensor &x) { return x.defined() ? squeeze(x, {0}) : x; }

Tensor expand(const Tensor &x, const Dim &examples) {
  if (!x.defined() || x.shape()[0] == examples)
    return x;
  Shape shape = x.shape();
  shape[0] = examples;
  return broadcast_to(x, shape);
}
Tensors expand(Tensors xs, const Dim &examples) {
  for (Tensor &x : xs)
    x = expand(x, examples);
  return xs;
}

Tensor aligned(const Tensor &x, size_t rank) {
  Shape shape = x.shape();
  if (shape.size() >= rank)
    return x;
  shape.insert(shape.begin() + 1, rank - shape.size(), Dim(1));
  return reshape(x, shape);
}

/// Merges dimensions `at` and at + 1.
static Tensor merged(const Tensor &x, size_t at) {
  Shape shape = x.shape();
  shape[at] = shape[at] * shape[at + 1];
  shape.erase(shape.begin() + ptrdiff_t(at) + 1);
  return reshape(x, shape);
}
/// Splits dimension `at` into [outer, inner].
static Tensor parted(const Tensor &x, size_t at, const Dim &outer, const Dim &inner) {
  Shape shape = x.shape();
  shape[at] = inner;
  shape.insert(shape.begin() + ptrdiff_t(at), outer);
  return reshape(x, shape);
}

// ---- ops

Tensor oneByOne(const Tensors &operands, const Self &self, const Dim &examples) {
  auto isVarying = [](const Tensor &x) { return !isShared(x); };
  Tensors varying;
  std::ranges::copy_if(operands, std::back_inserter(varying), isVarying);
  auto call = [&](const Tensors &elements) {
    Tensors list;
    size_t next = 0;
    for (const Tensor &x : operands)
      list.push_back(isVarying(x) ? elements[next++] : alone(x));
    return self(list);
  };
  if (varying.empty())
    return expand(unsqueeze(call({}), {0}), examples);
  auto step = [&](const Tensors &, const Tensors &elements) { return ScanResult{{}, {call(elements)}}; };
  return scan(step, {}, varying).outputs[0];
}

Tensor reduced(const Tensor &x, const Ints &axes, bool keepdims, const Self &self) {
  if (!axes.empty())
    return self.with("axes", behind(axes))({x});
  return self.with("axes", Ints{1}).with("keepdims", false)({unsqueeze(x, {1})}); // examples are scalars
}

Tensor folded(const Tensor &x, const Self &self) {
  const Shape shape = x.shape();
  return parted(self({merged(x, 0)}), 0, shape[0], shape[1]);
}

Tensor takeOfEach(const Tensor &x, const Tensor &indices, int64_t axis, const Dim &examples) {
  if (isShared(indices))
    return take(expand(x, examples), alone(indices), axis + 1);
  if (isShared(x))
    return movedim(take(alone(x), indices, axis), axis, 0);
  // As a gather along the dimension, with indices repeated along the other dimensions.
  const Shape from = x.shape(), at = indices.shape();
  const Dim count = elements(Shape(at.begin() + 1, at.end()));
  Shape flat(from.size(), Dim(1)), wanted = from;
  flat[0] = wanted[0] = examples;
  flat[size_t(axis) + 1] = wanted[size_t(axis) + 1] = count;
  Tensor given = gather(x, broadcast_to(reshape(indices, flat), wanted), axis + 1);
  wanted.erase(wanted.begin() + axis + 1);
  wanted.insert(wanted.begin() + axis + 1, at.begin() + 1, at.end());
  return reshape(given, wanted);
}

Tensor product(const Tensor &lhs, const Tensor &rhs) {
  if (!isShared(rhs) || rhs.rank() != 3 || lhs.rank() != 3)
    return matmul(lhs, rhs); // broadcasts shared operands
  const Shape rows = lhs.shape();
  return parted(matmul(merged(lhs, 0), alone(rhs)), 0, rows[0], rows[1]);
}

Tensor dotOfEach(const Tensor &lhs, const Tensor &rhs, const Ints &lhsBatch, const Ints &rhsBatch,
                 const Ints &lhsContract, const Ints &rhsContract, const Dim &examples) {
  const int64_t batch = int64_t(lhsBatch.size());
  if (isShared(rhs)) // the first free dimension of lhs, after the batch
    return movedim(
        dot_general(expand(lhs, examples), alone(rhs), behind(lhsBatch), rhsBatch, behind(lhsContract), rhsContract),
        batch, 0);
  if (isShared(lhs))
    return movedim(dot_general(alone(lhs), rhs, lhsBatch, behind(rhsBatch), lhsContract, behind(rhsContract)),
                   int64_t(lhs.rank()) - 1 - int64_t(lhsContract.size()), 0);
  return dot_general(lhs, rhs, inFront(0, behind(lhsBatch)), inFront(0, behind(rhsBatch)), behind(lhsContract),
                     behind(rhsContract));
}

// ---- convolutions and normalisation

/// [examples, N, C, …] as [N, examples * C, …], and back.
static Tensor toChannels(const Tensor &x) { return merged(movedim(x, 0, 1), 1); }
static Tensor fromChannels(const Tensor &x, const Dim &examples, const Dim &channels) {
  return movedim(parted(x, 1, examples, channels), 1, 0);
}

Tensor convolution(const Tensor &x, const Tensor &weight, const Tensor &bias, int64_t groups, bool channelsFirst,
                   const Self &self, const Dim &examples) {
  if (isShared(weight) && isShared(bias)) {
    const Shape shape = x.shape();
    return parted(self({merged(x, 0), alone(weight), alone(bias)}), 0, shape[0], shape[1]);
  }
  if (!channelsFirst || !examples.isStatic() || examples == Dim(0))
    return oneByOne({x, weight, bias}, self, examples);
  auto ofGroups = [&](const Tensor &parameter) {
    return parameter.defined() ? merged(expand(parameter, examples), 0) : parameter;
  };
  Tensor result = self.with("groups", groups * examples.value())(
      {toChannels(expand(x, examples)), ofGroups(weight), ofGroups(bias)});
  return fromChannels(result, examples, floordiv(result.shape()[1], examples.value()));
}

/// Normalises x by `normalize(x, weight, bias)`. If examples have different parameters, these are applied afterwards;
/// `place` gives a parameter the dimensions of x.
template <class Normalize, class Place>
static Tensor scaled(const Tensor &x, const Tensor &weight, const Tensor &bias, Normalize normalize, Place place) {
  if (isShared(weight) && isShared(bias))
    return normalize(alone(weight), alone(bias));
  Tensor result = normalize(Tensor(), Tensor());
  if (weight.defined())
    result = result * place(weight);
  return bias.defined() ? result + place(bias) : result;
}

Tensor layerNorm(const Tensor &given, const Tensor &weight, const std::optional<Tensor> &bias, int64_t axis,
                 const Self &self, const Dim &examples) {
  const Tensor x = expand(given, examples);
  auto normalize = [&](const Tensor &weight, const Tensor &shift) {
    const Self shifted = self.with("axis", axis + 1);
    return bias ? shifted({x, weight, shift}) : shifted({x, weight});
  };
  return scaled(x, weight, bias.value_or(Tensor()), normalize,
                [&](const Tensor &parameter) { return aligned(parameter, x.shape().size()); });
}

Tensor groupNorm(const Tensor &given, const Tensor &weight, const Tensor &bias, const Self &self, const Dim &examples) {
  const Tensor x = expand(given, examples);
  const Shape shape = x.shape();
  auto normalize = [&](const Tensor &weight, const Tensor &bias) {
    return parted(self({merged(x, 0), weight, bias}), 0, shape[0], shape[1]);
  };
  auto perChannel = [&](const Tensor &parameter) { // [examples, C]
    Shape wanted(shape.size(), Dim(1));
    wanted[0] = parameter.shape()[0];
    wanted[2] = shape[2];
    return reshape(parameter, wanted);
  };
  return scaled(x, weight, bias, normalize, perChannel);
}

Tensor batchNorm(const Tensors &operands, const Self &self, const Dim &examples) {
  const Tensor x = expand(operands[0], examples);
  const Shape shape = x.shape();
  Tensors list{x};
  const bool areShared = std::ranges::all_of(operands.begin() + 1, operands.end(), isShared);
  for (size_t i = 1; i < operands.size(); ++i)
    list.push_back(areShared ? alone(operands[i]) : merged(expand(operands[i], examples), 0));
  list[0] = areShared ? merged(x, 0) : toChannels(x);
  Tensor result = self(list);
  return areShared ? parted(result, 0, shape[0], shape[1]) : fromChannels(result, examples, shape[2]);
}

Tensor attention(const Tensors &operands, const Self &self, const Dim &examples) {
  Tensors list = operands;
  list[0] = expand(list[0], examples);
  if (list[3].defined()) // may have fewer dimensions than the scores
    list[3] = aligned(list[3], list[0].shape().size());
  return self(list);
}

Tensor suppressed(const Tensor &boxes, const Tensor &scores, const Self &self, const Dim &examples) {
  Tensors list = expand(Tensors{boxes, scores}, examples);
  const Dim batch = boxes.shape()[1];
  return parted(self({merged(list[0], 0), merged(list[1], 0)}), 0, examples, batch);
}

// ---- random numbers

Tensor drawn(const Tensor &key, const Shape &shape, const Self &self, const Dim &examples) {
  if (!isShared(key))
    return oneByOne({key}, self, examples);
  return self.with("shape", inFront(examples, shape))({alone(key)});
}

Tensor drawnWith(const Tensor &probability, const Tensor &key, const Self &self, const Dim &examples,
                 Randomness randomness) {
  if (key.defined() && isShared(key) && randomness == Randomness::Different)
    return self({expand(probability, examples), alone(key)});
  return oneByOne({probability, key}, self, examples);
}

} // namespace burin::batching
