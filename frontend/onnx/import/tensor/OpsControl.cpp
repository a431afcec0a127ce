// Control flow and sequences. Loops whose length is a size become loops of the graph, or are unrolled if that is not
// possible; branches with a known condition are selected; sequences are lists of values during import.
#include "burin/graph/control.h"
#include "burin/graph/loops.h"
#include "burin/graph/vmap.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <functional>

namespace burin::onnx {

namespace {

constexpr int64_t kMaxIterations = 1024, kMaxSequence = 1024; // unrolled
constexpr int64_t kMaxTurns = int64_t(1) << 31;               // of a loop of the graph

/// A sequence value.
Values sequenceOf(Node &n, std::vector<Value> values) {
  if (int64_t(values.size()) > kMaxSequence)
    n.unsupported("a sequence of more than " + std::to_string(kMaxSequence) + " tensors");
  for (const Value &value : values)
    if (value.sequence)
      n.fail("a sequence holds tensors, not sequences");
  return Value::sequenceOf(std::move(values));
}

/// A condition that is known during import; nullopt if it depends on data.
std::optional<bool> known(const Value &condition) {
  if (condition.contents && condition.contents->elements.size() == 1 && condition.contents->elements[0].isStatic())
    return condition.contents->elements[0] != Dim(0);
  std::optional<Tensor> constant = constantOf(condition);
  return constant ? std::optional(constant->item<bool>()) : std::nullopt;
}

std::vector<Tensor> tensorsOf(const std::vector<Value> &values) {
  std::vector<Tensor> tensors;
  for (const Value &value : values) {
    if (value.sequence || !value.defined())
      throw Error(detail::inScope({}), "", "a branch or loop of the graph gives tensors, not sequences or nothing");
    tensors.push_back(tensorOf(value));
  }
  return tensors;
}

/// Computes both branches and selects, for branches that cannot be functions of the graph, for example because a size
/// in them depends on data.
Values selectedBranch(Node &n, const Values &yes, const Values &no) {
  Values results;
  Tensor condition = reshape(n[0], {});
  for (size_t i = 0; i < yes.size() && i < no.size(); ++i) {
    bool areTensors = !yes[i].sequence && !no[i].sequence && yes[i].defined() && no[i].defined();
    if (!areTensors || tensorOf(yes[i]).spec() != tensorOf(no[i]).spec())
      n.integer(0); // throws for branches that select() does not support, with advice about the condition
    results.push_back(where(condition, tensorOf(yes[i]), tensorOf(no[i])));
  }
  return results;
}

/// If the condition is data, the branches become functions of the graph, of which one runs. If it is a comparison of
/// sizes and the branches differ in shape, one is selected, and every run checks the condition.
Values ifElse(Node &n) {
  const GraphProto &thenBranch = n.attributeGraph("then_branch"), &elseBranch = n.attributeGraph("else_branch");
  auto run = [&](const GraphProto &branch) {
    std::vector<Value> results = n.run(branch, {});
    return Values(results.begin(), results.end());
  };
  if (std::optional<bool> condition = known(n.value(0)))
    return run(*condition ? thenBranch : elseBranch);
  auto branch = [&](const GraphProto &graph) { return [&] { return tensorsOf(run(graph)); }; };
  try {
    return detail::cond(reshape(n[0], {}), branch(thenBranch), branch(elseBranch), detail::inScope({}));
  } catch (const Error &) {
    std::optional<Contents> sizes = contentsOf(n.value(0));
    if (!sizes || sizes->elements.size() != 1)
      return selectedBranch(n, run(thenBranch), run(elseBranch));
    bool isTrue = n.decide();
    requireEqual(sizes->elements[0], int64_t(isTrue));
    return run(isTrue ? thenBranch : elseBranch);
  }
}

Value whole(int64_t number, DType dtype = DType::i64) { return Contents{dtype, {}, {number}}; }

/// The operands of a loop.
struct LoopParts {
  std::vector<Value> carried;   // values passed from iteration to iteration
  std::vector<Tensor> elements; // sliced along dimension 0, one slice per iteration
  Dim length = 0;
  bool reverse = false;
};
using LoopBody = std::function<ScanResult(const std::vector<Value> &carried, const std::vector<Tensor> &elements)>;

/// A loop of the graph; nullopt if the body must be unrolled: it may need numbers that are known in each iteration,
/// carry other values than tensors, or change shapes.
std::optional<Values> asLoop(const LoopParts &loop, const LoopBody &body) {
  for (const Value &value : loop.carried)
    if (value.sequence || !value.defined())
      return std::nullopt;
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    return body(std::vector<Value>(states.begin(), states.end()), elements);
  };
  bool canUnroll = loop.length.isStatic() && loop.length.value() <= kMaxIterations;
  try {
    ScanResult all = scan(step, tensorsOf(loop.carried), loop.elements, loop.reverse);
    Values results(all.states);
    results.insert(results.end(), all.outputs.begin(), all.outputs.end());
    return results;
  } catch (const Error &) {
    if (!canUnroll)
      throw;
    return std::nullopt;
  }
}

/// The number of iterations, if the condition is always true and the number is a size; else nullopt.
std::optional<Dim> tripCount(Node &n) {
  std::optional<Contents> count = n.has(0) ? contentsOf(n.value(0)) : std::nullopt;
  bool goesOn = !n.has(1) || known(n.value(1)).value_or(false);
  if (!count || count->elements.size() != 1 || !goesOn)
    return std::nullopt;
  Dim turns = max(count->elements[0], 0);
  return turns.isStatic() && turns.value() > kMaxTurns ? std::nullopt : std::optional(turns);
}

/// The results of the body of a Loop for an iteration: the condition, followed by the values.
std::vector<Value> runTurn(Node &n, const GraphProto &body, const Value &turn, const Value &goesOn,
                           const std::vector<Value> &carried) {
  std::vector<Value> arguments{turn, goesOn};
  arguments.insert(arguments.end(), carried.begin(), carried.end());
  std::vector<Value> results = n.run(body, arguments);
  if (results.size() < 1 + carried.size())
    n.fail("its body gives " + std::to_string(results.size()) + " values, but takes " +
           std::to_string(arguments.size()));
  return results;
}

std::optional<Values> countedLoop(Node &n, const GraphProto &body, const std::vector<Value> &carried) {
  std::optional<Dim> count = tripCount(n);
  if (!count)
    return std::nullopt;
  auto step = [&](const std::vector<Value> &states, const std::vector<Tensor> &elements) {
    std::vector<Value> results = runTurn(n, body, elements[0], whole(1, DType::boolean), states);
    if (!known(results[0]).value_or(false))
      n.unsupported("a loop whose length depends on the data");
    std::vector<Tensor> tensors = tensorsOf({results.begin() + 1, results.end()});
    auto end = tensors.begin() + std::ptrdiff_t(states.size());
    return ScanResult{{tensors.begin(), end}, {end, tensors.end()}};
  };
  return asLoop({carried, {iota({*count}, DType::i64)}, *count}, step);
}

/// A loop of the graph that ends depending on data. Nullopt if its length does not depend on data, or if it collects
/// outputs, whose number a graph must know, or if carried values cannot change between iterations of a graph.
std::optional<Values> dataLoop(Node &n, const GraphProto &body, const std::vector<Value> &carried) {
  if (body.outputs.size() > 1 + carried.size())
    return std::nullopt;
  for (const Value &value : carried)
    if (value.sequence || !value.defined())
      return std::nullopt;
  auto one = [](const Tensor &x) { return reshape(x, {}); };
  std::optional<Tensor> limit;
  if (n.has(0) && !(contentsOf(n.value(0)) && n.integer(0) == INT64_MAX))
    limit = one(n[0]);
  Tensor first = n.has(1) ? one(n[1]) : ones({}, DType::boolean);
  std::vector<Tensor> initial{zeros({}, DType::i64), first};
  for (const Tensor &value : tensorsOf(carried))
    initial.push_back(value);
  bool isCounted = limit && !contentsOf(n.value(0)), endsByData = isCounted;
  auto goesOn = [&](const std::vector<Tensor> &values) {
    return limit ? logical_and(values[1], values[0] < *limit) : values[1];
  };
  auto turn = [&](const std::vector<Tensor> &values) {
    std::vector<Value> before(values.begin() + 2, values.end());
    std::vector<Value> after = runTurn(n, body, values[0], whole(1, DType::boolean), before);
    endsByData |= !known(after[0]);
    std::vector<Tensor> next{values[0] + 1, one(tensorOf(after[0]))};
    for (const Tensor &value : tensorsOf({after.begin() + 1, after.end()}))
      next.push_back(value);
    return next;
  };
  try {
    std::vector<Tensor> last = detail::whileLoop(goesOn, turn, initial, std::nullopt, detail::inScope({}));
    if (!endsByData)
      return std::nullopt;
    return Values(std::vector<Tensor>(last.begin() + 2, last.end()));
  } catch (const Error &) {
    return std::nullopt;
  }
}

/// Unrolls a loop with a known trip count. A condition that depends on data is computed in every iteration; once it is
/// false, the loop's values do not change.
Values unrolledLoop(Node &n, const GraphProto &body, std::vector<Value> carried) {
  int64_t count = n.has(0) ? n.integer(0) : INT64_MAX;
  Value condition = n.has(1) ? n.value(1) : whole(1, DType::boolean);
  std::vector<std::vector<Tensor>> scanned(body.outputs.size() - std::min(body.outputs.size(), 1 + carried.size()));
  Tensor active; // if the condition is data
  for (int64_t i = 0; i < count; ++i) {
    std::optional<bool> goesOn = known(condition);
    if (goesOn && !*goesOn)
      break;
    if (i >= kMaxIterations || (!goesOn && !n.has(0)))
      n.unsupported("a loop whose length depends on the data, or is more than " + std::to_string(kMaxIterations));
    if (!goesOn) {
      if (!scanned.empty() && i == 0)
        n.integer(1); // throws, with advice
      if (!scanned.empty())
        n.unsupported("a loop whose number of outputs depends on the data");
      Tensor here = reshape(tensorOf(condition), {});
      active = active.defined() ? logical_and(active, here) : here;
    }
    std::vector<Value> results = runTurn(n, body, whole(i), condition, carried);
    condition = results[0];
    for (size_t k = 0; k < carried.size(); ++k)
      if (!active.defined()) {
        carried[k] = results[1 + k];
      } else {
        if (results[1 + k].sequence)
          n.unsupported("sequences in a loop whose length depends on the data");
        carried[k] = where(active, tensorOf(results[1 + k]), tensorOf(carried[k]));
      }
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(tensorOf(results[1 + carried.size() + k]));
  }
  Values outputs(carried.begin(), carried.end());
  for (const std::vector<Tensor> &list : scanned) {
    if (list.empty())
      n.unsupported("a loop without iterations that gives outputs");
    outputs.push_back(stack(list));
  }
  return outputs;
}

Values loop(Node &n) {
  const GraphProto &body = n.attributeGraph("body");
  std::vector<Value> carried;
  for (size_t i = 2; i < n.inputCount(); ++i)
    carried.push_back(n.has(i) ? n.value(i) : Value());
  for (auto asGraph : {countedLoop, dataLoop})
    if (std::optional<Values> results = asGraph(n, body, carried))
      return *std::move(results);
  return unrolledLoop(n, body, std::move(carried));
}

/// Moves dimension `from` to `to`.
Tensor moveAxis(const Tensor &x, int64_t from, int64_t to) {
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != from)
      perm.push_back(axis);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

/// Iterations one by one, each with its known values.
Values unrolledScan(Node &n, const LoopParts &loop, const LoopBody &body) {
  std::vector<Value> carried = loop.carried;
  std::vector<std::vector<Tensor>> scanned;
  for (int64_t turn = 0, length = loop.length.value(); turn < length; ++turn) {
    int64_t at = loop.reverse ? length - 1 - turn : turn;
    std::vector<Tensor> elements;
    for (const Tensor &x : loop.elements)
      elements.push_back(squeeze(part(x, 0, at, at + 1), {0}));
    ScanResult given = body(carried, elements);
    carried.assign(given.states.begin(), given.states.end());
    scanned.resize(given.outputs.size(), std::vector<Tensor>(size_t(length)));
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k][size_t(at)] = given.outputs[k];
  }
  if (loop.length.value() == 0)
    n.unsupported("a scan over no elements whose body cannot be a loop of the graph");
  Values results(carried.begin(), carried.end());
  for (const std::vector<Tensor> &list : scanned)
    results.push_back(stack(list));
  return results;
}

/// What a Scan's attributes say about each scanned input and output.
struct ScanOrder {
  std::vector<int64_t> inAxes, inDirections, outAxes, outDirections;
};

/// One iteration per element of the scanned inputs.
Values scanOver(Node &n, const GraphProto &body, std::vector<Value> carried, const std::vector<Tensor> &inputs,
                const ScanOrder &order) {
  auto isBackward = [](int64_t direction) { return direction != 0; };
  size_t states = carried.size(), outputs = order.outAxes.size();
  LoopParts loop;
  loop.reverse = std::ranges::all_of(order.inDirections, isBackward); // inputs of the other direction are reversed
  loop.carried = std::move(carried);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor x = moveAxis(inputs[i], n.axis(order.inAxes[i], inputs[i].rank()), 0);
    loop.elements.push_back(isBackward(order.inDirections[i]) == loop.reverse ? x : flip(x, {0}));
    requireEqual(x.shape()[0], loop.elements[0].shape()[0]);
  }
  loop.length = loop.elements[0].shape()[0];
  auto step = [&](const std::vector<Value> &carried, const std::vector<Tensor> &elements) {
    std::vector<Value> arguments = carried;
    arguments.insert(arguments.end(), elements.begin(), elements.end());
    std::vector<Value> results = n.run(body, arguments);
    if (results.size() != states + outputs)
      n.fail("its body gives " + std::to_string(results.size()) + " values, not " + std::to_string(states + outputs));
    std::vector<Tensor> tensors = tensorsOf(results);
    auto end = tensors.begin() + std::ptrdiff_t(states);
    return ScanResult{{tensors.begin(), end}, {end, tensors.end()}};
  };
  std::optional<Values> results = asLoop(loop, step);
  if (!results)
    results = unrolledScan(n, loop, step);
  for (size_t k = 0; k < outputs; ++k) {
    Tensor y = tensorOf((*results)[states + k]);
    y = isBackward(order.outDirections[k]) == loop.reverse ? y : flip(y, {0});
    (*results)[states + k] = moveAxis(y, 0, n.axis(order.outAxes[k], y.rank()));
  }
  return *std::move(results);
}

/// Scan of opset 8: its first input may give lengths, and all others have a batch dimension that the body does not see.
Values scanOverBatch(Node &n, const GraphProto &body, size_t states, const ScanOrder &order) {
  if (n.has(0))
    n.unsupported("Scan of opset 8 with the lengths of its sequences");
  std::vector<Tensor> inputs;
  for (size_t i = 1; i < n.inputCount(); ++i)
    inputs.push_back(n[i]);
  auto ofExample = [&](std::span<const Tensor> example, const Location &) {
    std::vector<Value> carried(example.begin(), example.begin() + std::ptrdiff_t(states));
    std::vector<Tensor> scanned(example.begin() + std::ptrdiff_t(states), example.end());
    return tensorsOf(scanOver(n, body, std::move(carried), scanned, order));
  };
  return detail::vmap(ofExample, inputs, 0, 0, Randomness::Different, detail::inScope({}));
}

Values scan(Node &n) {
  using Ints = std::vector<int64_t>;
  const GraphProto &body = n.attributeGraph("body");
  const bool isBatched = n.opset() < 9;
  auto inputs = size_t(n.attribute("num_scan_inputs", int64_t(0)));
  if (inputs + isBatched > n.inputCount() || inputs == 0)
    n.fail("num_scan_inputs does not fit its inputs");
  size_t states = n.inputCount() - inputs - isBatched;
  size_t outputs = body.outputs.size() - std::min(body.outputs.size(), states);
  ScanOrder order{n.attribute("scan_input_axes", Ints(inputs, 0)),
                  n.attribute(isBatched ? "directions" : "scan_input_directions", Ints(inputs, 0)),
                  n.attribute("scan_output_axes", Ints(outputs, 0)),
                  n.attribute("scan_output_directions", Ints(outputs, 0))};
  if (order.inAxes.size() != inputs || order.inDirections.size() != inputs || order.outAxes.size() != outputs ||
      order.outDirections.size() != outputs)
    n.fail("its axes and directions do not fit its inputs and outputs");
  if (isBatched)
    return scanOverBatch(n, body, states, order);
  std::vector<Value> carried;
  for (size_t i = 0; i < states; ++i)
    carried.push_back(n.value(i));
  std::vector<Tensor> scanned;
  for (size_t i = states; i < n.inputCount(); ++i)
    scanned.push_back(n[i]);
  return scanOver(n, body, std::move(carried), scanned, order);
}

// ---- sequences

/// A position in a list of `size`; negative ones count from the end. `mayEnd`: one past the last element is allowed.
int64_t positionOf(Node &n, size_t input, int64_t size, bool mayEnd = false) {
  int64_t at = n.integer(input);
  at += at < 0 ? size : 0;
  if (at < 0 || at >= size + mayEnd)
    n.fail("the position " + std::to_string(n.integer(input)) + " is out of range of " + std::to_string(size) +
           " elements");
  return at;
}

Values sequenceConstruct(Node &n) {
  std::vector<Value> values;
  for (size_t i = 0; i < n.inputCount(); ++i)
    values.push_back(n.value(i));
  return sequenceOf(n, std::move(values));
}
Values sequenceEmpty(Node &) { return Value::sequenceOf({}); }
Values sequenceAt(Node &n) {
  const std::vector<Value> &list = n.sequence(0);
  return list[size_t(positionOf(n, 1, int64_t(list.size())))];
}
Values sequenceLength(Node &n) { return whole(int64_t(n.sequence(0).size())); }
Values sequenceInsert(Node &n) {
  std::vector<Value> list = n.sequence(0);
  auto size = int64_t(list.size());
  list.insert(list.begin() + (n.has(2) ? positionOf(n, 2, size, true) : size), n.value(1));
  return sequenceOf(n, std::move(list));
}
Values sequenceErase(Node &n) {
  std::vector<Value> list = n.sequence(0);
  auto size = int64_t(list.size());
  if (list.empty())
    n.fail("the sequence is empty");
  list.erase(list.begin() + (n.has(1) ? positionOf(n, 1, size) : size - 1));
  return Value::sequenceOf(std::move(list));
}
Values concatFromSequence(Node &n) {
  std::vector<Tensor> tensors;
  for (const Value &value : n.sequence(0))
    tensors.push_back(tensorOf(value));
  int64_t axis = n.attribute("axis", int64_t(0));
  return n.attribute("new_axis", int64_t(0)) ? stack(tensors, axis) : concat(tensors, axis);
}
Values splitToSequence(Node &n) {
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  Dim whole = n.shape()[size_t(axis)];
  bool keeps = n.has(1) || n.attribute("keepdims", int64_t(1));
  if (!whole.isStatic())
    n.unsupported("a split", whole);
  std::vector<int64_t> sizes;
  if (n.has(1) && n.rank(1) == 1) {
    sizes = n.integers(1);
  } else {
    int64_t part = std::max<int64_t>(n.has(1) ? n.integer(1) : 1, 1);
    if (whole.value() / part > kMaxSequence)
      n.unsupported("a sequence of more than " + std::to_string(kMaxSequence) + " tensors");
    for (int64_t left = whole.value(); left > 0; left -= part)
      sizes.push_back(std::min(part, left));
  }
  std::vector<Value> parts;
  for (const Tensor &part : split(n[0], sizes, axis))
    parts.push_back(keeps ? part : squeeze(part, {axis}));
  return Value::sequenceOf(std::move(parts));
}

// ---- optional values: their presence is known during import

Values optionalOf(Node &n) { return n.inputCount() ? n.value(0) : Value(); }
Values optionalHasElement(Node &n) { return whole(n.has(0), DType::boolean); }
Values optionalGetElement(Node &n) { return n.value(0); }

constexpr OpEntry table[] = {
    {"ConcatFromSequence", concatFromSequence},
    {"If", ifElse},
    {"Loop", loop},
    {"Optional", optionalOf},
    {"OptionalGetElement", optionalGetElement},
    {"OptionalHasElement", optionalHasElement},
    {"Scan", scan},
    {"SequenceAt", sequenceAt},
    {"SequenceConstruct", sequenceConstruct},
    {"SequenceEmpty", sequenceEmpty},
    {"SequenceErase", sequenceErase},
    {"SequenceInsert", sequenceInsert},
    {"SequenceLength", sequenceLength},
    {"SplitToSequence", splitToSequence},
};

} // namespace

std::span<const OpEntry> controlOps() { return table; }

} // namespace burin::onnx
