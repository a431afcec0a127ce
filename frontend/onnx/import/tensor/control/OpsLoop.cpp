// Loop and Scan. Those whose length is a size become loops of the graph, or are unrolled if that is not possible.
#include "burin/graph/control.h"
#include "burin/graph/loops.h"
#include "burin/graph/vmap.h"
#include "frontend/onnx/import/tensor/control/Control.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <functional>

namespace burin::onnx {

namespace {

constexpr int64_t kMaxIterations = 1024;        // unrolled
constexpr int64_t kMaxTurns = int64_t(1) << 31; // of a loop of the graph

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

/// The number of iterations, if the condition is always true; else nullopt. If the number is data and the loop collects
/// outputs, it becomes a size that the run computes.
std::optional<Dim> tripCount(Node &n, bool collects) {
  const bool goesOn = !n.has(1) || knownCondition(n.value(1)).value_or(false);
  if (!n.has(0) || !goesOn)
    return std::nullopt;
  const std::optional<Contents> count = contentsOf(n.value(0));
  if (count ? count->elements.size() != 1 : !collects)
    return std::nullopt;
  Dim turns = count ? max(count->elements[0], 0) : sizeFrom(maximum(reshape(n[0], {}), 0));
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

/// Thrown for a body that may end its loop.
struct EndsByData {};

/// A loop of `count` iterations. `isWhole`: the condition is true in all of them, whatever it is computed as.
std::optional<Values> loopOf(Node &n, const GraphProto &body, const std::vector<Value> &carried, const Dim &count,
                             bool isWhole) {
  auto step = [&](const std::vector<Value> &states, const std::vector<Tensor> &elements) {
    std::vector<Value> results = runTurn(n, body, elements[0], whole(1, DType::boolean), states);
    if (!isWhole && !knownCondition(results[0]).value_or(false))
      throw EndsByData();
    std::vector<Tensor> tensors = tensorsOf({results.begin() + 1, results.end()});
    auto end = tensors.begin() + std::ptrdiff_t(states.size());
    return ScanResult{{tensors.begin(), end}, {end, tensors.end()}};
  };
  return asLoop({carried, {iota({count}, DType::i64)}, count}, step);
}

bool collectsOutputs(const GraphProto &body, const std::vector<Value> &carried) {
  return body.outputs.size() > 1 + carried.size();
}

std::optional<Values> countedLoop(Node &n, const GraphProto &body, const std::vector<Value> &carried) {
  std::optional<Dim> count = tripCount(n, collectsOutputs(body, carried));
  try {
    return count ? loopOf(n, body, carried, *count, false) : std::nullopt;
  } catch (EndsByData) {
    return std::nullopt;
  }
}

/// Whether two runs of the graph with the same inputs may differ.
bool drawsRandomNumbers(const GraphProto &graph) {
  return std::ranges::any_of(graph.nodes, [](const NodeProto &node) {
    constexpr std::string_view ops[] = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"};
    auto begins = [&](std::string_view op) { return node.op.starts_with(op); };
    auto inside = [](const AttributeProto &a) { return a.graph && drawsRandomNumbers(*a.graph); };
    return std::ranges::any_of(ops, begins) || std::ranges::any_of(node.attributes, inside);
  });
}

/// A loop of the graph that ends depending on data. Nullopt if its length does not depend on data, or if carried values
/// cannot change between iterations of a graph. If it collects outputs, a first loop counts the iterations, and a
/// second one, whose length is that size, repeats them and collects.
std::optional<Values> dataLoop(Node &n, const GraphProto &body, const std::vector<Value> &carried) {
  for (const Value &value : carried)
    if (value.sequence || !value.defined())
      return std::nullopt;
  auto one = [](const Tensor &x) { return reshape(x, {}); };
  std::optional<Tensor> limit;
  if (n.has(0) && !(contentsOf(n.value(0)) && n.sizes(0) == Shape{INT64_MAX}))
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
    endsByData |= !knownCondition(after[0]);
    std::vector<Tensor> next{values[0] + 1, one(tensorOf(after[0]))};
    for (const Tensor &value : tensorsOf({after.begin() + 1, after.begin() + 1 + std::ptrdiff_t(before.size())}))
      next.push_back(value);
    return next;
  };
  std::vector<Tensor> last;
  try {
    last = detail::whileLoop(goesOn, turn, initial, std::nullopt, detail::inScope({}));
  } catch (const Error &) {
    return std::nullopt;
  }
  if (!endsByData)
    return std::nullopt;
  if (!collectsOutputs(body, carried))
    return Values(std::vector<Tensor>(last.begin() + 2, last.end()));
  if (drawsRandomNumbers(body))
    n.unsupported("collected outputs of a loop that ends depending on data and draws random numbers");
  return loopOf(n, body, carried, sizeFrom(last[0]), true);
}

/// Unrolls a loop with a known trip count. A condition that depends on data is computed in every iteration; once it is
/// false, the loop's values do not change.
Values unrolledLoop(Node &n, const GraphProto &body, std::vector<Value> carried) {
  int64_t count = n.has(0) ? n.integer(0) : INT64_MAX;
  Value condition = n.has(1) ? n.value(1) : whole(1, DType::boolean);
  std::vector<std::vector<Tensor>> scanned(body.outputs.size() - std::min(body.outputs.size(), 1 + carried.size()));
  Tensor active; // if the condition is data
  for (int64_t i = 0; i < count; ++i) {
    std::optional<bool> goesOn = knownCondition(condition);
    if (goesOn && !*goesOn)
      break;
    if (i >= kMaxIterations || (!goesOn && !n.has(0)))
      n.unsupported("a loop whose length depends on the data, or is more than " + std::to_string(kMaxIterations));
    if (!goesOn) {
      if (!scanned.empty() && i == 0)
        n.integer(1); // throws, with advice
      if (!scanned.empty())
        n.unsupported("a loop that ends depending on data, collects outputs, and is in a branch or loop, or carries "
                      "sequences or values that change in shape");
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

constexpr OpEntry table[] = {
    {"Loop", loop},
    {"Scan", scan},
};

} // namespace

std::span<const OpEntry> loopOps() { return table; }

} // namespace burin::onnx
