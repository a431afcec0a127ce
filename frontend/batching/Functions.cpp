// vmap and functions based on it.
#include "burin/graph/vmap.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/batching/Batching.h"
#include "frontend/tensor/context/LocationScope.h"

namespace burin {

using detail::inScope;

namespace {

using Axis = BatchAxes::Axis;

/// Returns one axis per tensor.
std::vector<Axis> axesFor(const BatchAxes &axes, size_t count, const char *name, const char *what,
                          const Location &where) {
  if (axes.isForAll)
    return std::vector<Axis>(count, axes.list[0]);
  if (axes.list.size() != count)
    throw Error(where, "vmap",
                std::string(name) + " has " + std::to_string(axes.list.size()) + " entries, but the function has " +
                    std::to_string(count) + " " + what + "; give one for each, or one number for all");
  return axes.list;
}

int64_t canonical(int64_t axis, size_t rank, const std::string &tensor, const char *name, const Location &where) {
  const int64_t size = int64_t(rank);
  if (axis < -size || axis >= size)
    throw Error(where, "vmap", std::string(name) + ": there is no dimension " + std::to_string(axis) + " in " + tensor);
  return axis < 0 ? axis + size : axis;
}

/// The number of examples of an input.
Dim examplesOf(const Tensor &input, size_t index, int64_t axis, const Location &where) {
  const Shape shape = input.shape(where);
  return shape[size_t(canonical(axis, shape.size(), "input " + std::to_string(index) + ", " + str(input.spec(where)),
                                "in_axes", where))];
}

/// The number of examples, which must be equal for all inputs with an axis.
Dim commonExamples(const std::vector<Tensor> &inputs, const std::vector<Axis> &axes, const Location &where) {
  std::optional<size_t> first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!axes[i])
      continue;
    const Dim count = examplesOf(inputs[i], i, *axes[i], where);
    if (!first)
      first = i;
    if (const Dim known = examplesOf(inputs[*first], *first, *axes[*first], where); known != count)
      throw Error(where, "vmap",
                  "the inputs have different numbers of examples: " + known.str() + " in input " +
                      std::to_string(*first) + ", " + str(inputs[*first].spec(where)) + ", along dimension " +
                      std::to_string(*axes[*first]) + ", but " + count.str() + " in input " + std::to_string(i) + ", " +
                      str(inputs[i].spec(where)) + ", along dimension " + std::to_string(*axes[i]));
  }
  if (!first)
    throw Error(where, "vmap",
                "no input has a dimension of examples; give in_axes a dimension for at least one of the " +
                    std::to_string(inputs.size()) + " inputs");
  return examplesOf(inputs[*first], *first, *axes[*first], where);
}

} // namespace

std::vector<Tensor> Trace::vmap(Trace *trace, const detail::Function &function, const std::vector<Tensor> &inputs,
                                const BatchAxes &inAxes, const BatchAxes &outAxes, Randomness randomness,
                                const Location &where) {
  const std::vector<Axis> axes = axesFor(inAxes, inputs.size(), "in_axes", "arguments", where);
  const Dim examples = commonExamples(inputs, axes, where);
  std::optional<Trace> recorder; // unless inside of a trace
  if (!trace) {
    recorder.emplace(std::span<const Input>(), std::vector<std::string>(), detail::TensorNames(), where);
    recorder->isReplayed = true;
  }
  std::vector<Batching::Batched> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t at = axes[i] ? canonical(*axes[i], inputs[i].shape().size(), "", "in_axes", where) : 0;
    given.push_back({at ? movedim(inputs[i], at, 0, where) : inputs[i], axes[i].has_value()});
  }
  Batching batching(trace ? *trace : *recorder, !trace, examples, randomness);
  std::vector<Batching::Batched> made = batching.call(function, given, where);
  const std::vector<Axis> places = axesFor(outAxes, made.size(), "out_axes", "results", where);
  std::vector<Tensor> results;
  for (size_t i = 0; i < made.size(); ++i) {
    LocationScope scope(where);
    Tensor x = made[i].tensor;
    const std::string text = "result " + std::to_string(i) + ", " + str(x.spec());
    if (places[i] && !made[i].isBatched) // the same result of every example
      x = batching::expand(unsqueeze(x, {0}), examples);
    else if (!places[i] && made[i].isBatched)
      throw Error(where, "vmap", text + ", differs between examples, so its out axis cannot be None");
    if (int64_t at = places[i] ? canonical(*places[i], x.shape().size(), text, "out_axes", where) : 0)
      x = movedim(x, 0, at);
    results.push_back(x);
  }
  return results;
}

std::vector<Tensor> detail::vmap(const Function &function, const std::vector<Tensor> &inputs, const BatchAxes &inAxes,
                                 const BatchAxes &outAxes, Randomness randomness, const Location &where) {
  return Trace::vmap(Trace::active(), function, inputs, inAxes, outAxes, randomness, inScope(where));
}

// ---- gradients as functions

static void checkArgument(int64_t argument, size_t count, const char *op, const Location &where) {
  if (argument < 0 || size_t(argument) >= count)
    throw Error(where, op, "there is no argument number " + std::to_string(argument) + " of " + std::to_string(count));
}

/// A separate value for an input of the derivative.
static Tensor variable(const Tensor &input, const Location &where) {
  if (Trace *trace = Trace::active())
    return trace->copy(input, where);
  return detail::withoutEdge(input).requires_grad_(true, where);
}

static Tensor single(std::vector<Tensor> results, const char *op, const Location &where) {
  if (results.size() != 1)
    throw Error(where, op, "the function returns " + std::to_string(results.size()) + " tensors instead of one");
  return results[0];
}

Tensor detail::gradOf(const Function &function, std::vector<Tensor> inputs, int64_t argument, const Location &where) {
  const Location place = inScope(where);
  checkArgument(argument, inputs.size(), "grad", place);
  EnableGrad enabled;
  Tensor x = inputs[size_t(argument)] = variable(inputs[size_t(argument)], place);
  return burin::grad(single(function(inputs, place), "grad", place), {x}, std::nullopt, {}, place)[0];
}

/// The unit vectors of a shape, stacked along a new first dimension.
static Tensor unitVectors(const TensorSpec &spec, const Location &where) {
  const Dim count = elements(spec.shape);
  Tensor rows = iota({count, count}, DType::i64, 0, where), columns = iota({count, count}, DType::i64, 1, where);
  return reshape(eq(rows, columns, where).to(spec.dtype, where), batching::inFront(count, spec.shape), where);
}

Tensor detail::jacobian(const Function &function, const std::vector<Tensor> &inputs, int64_t argument, bool forward,
                        const Location &where) {
  const Location place = inScope(where);
  const char *op = forward ? "jacfwd" : "jacrev";
  checkArgument(argument, inputs.size(), op, place);
  const size_t at = size_t(argument);
  const TensorSpec x = inputs[at].spec(place);
  auto of = [&](const Tensor &changed) {
    std::vector<Tensor> list = inputs;
    list[at] = changed;
    return list;
  };
  if (forward) {
    auto column = [&](std::span<const Tensor> tangent, const Location &) {
      auto ofVariable = [&](const std::vector<Tensor> &list) {
        return std::vector{single(function(of(list[0]), place), op, place)};
      };
      return jvp(ofVariable, {variable(inputs[at], place)}, {tangent[0]}, place).second;
    };
    Tensor columns = vmap(column, {unitVectors(x, place)}, 0, -1, Randomness::Same, place)[0];
    Shape shape = columns.shape();
    shape.pop_back();
    shape.insert(shape.end(), x.shape.begin(), x.shape.end());
    return reshape(columns, shape, place);
  }
  TensorSpec y;
  {
    NoGrad off;
    y = single(function(inputs, place), op, place).spec(place);
  }
  auto row = [&](std::span<const Tensor> weights, const Location &) {
    Tensor changed = variable(inputs[at], place);
    Tensor result = single(function(of(changed), place), op, place);
    return burin::grad(result, {changed}, weights[0], {}, place);
  };
  Tensor rows = vmap(row, {unitVectors(y, place)}, 0, 0, Randomness::Same, place)[0];
  Shape shape = y.shape;
  shape.insert(shape.end(), x.shape.begin(), x.shape.end());
  return reshape(rows, shape, place);
}

} // namespace burin
