#include "burin/nn/recurrent.h"
#include "burin/functional.h"
#include "burin/graph/loops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/indexing.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>

namespace burin::nn {

namespace {

/// The states after a step, from W_ih x + b_ih (`input`), W_hh h + b_hh (`again`) and the states before it. The number
/// of gates selects the kind of layer.
std::vector<Tensor> advance(int64_t gates, const std::string &nonlinearity, const Tensor &input, const Tensor &again,
                            const std::vector<Tensor> &states) {
  if (gates == 1)
    return {nonlinearity == "relu" ? relu(input + again) : tanh(input + again)};
  const int64_t size = int64_t(states[0].size(-1));
  if (gates == 3) {
    std::vector<Tensor> a = split(input, {size, size, size}, -1), b = split(again, {size, size, size}, -1);
    Tensor reset = sigmoid(a[0] + b[0]), update = sigmoid(a[1] + b[1]), next = tanh(a[2] + reset * b[2]);
    return {(1.0 - update) * next + update * states[0]};
  }
  std::vector<Tensor> sums = split(input + again, {size, size, size, size}, -1);
  Tensor cell = sigmoid(sums[1]) * states[1] + sigmoid(sums[0]) * tanh(sums[2]);
  return {sigmoid(sums[3]) * tanh(cell), cell};
}

void requireNonlinearity(const std::string &name, const char *layer, const Location &where) {
  if (name != "tanh" && name != "relu")
    throw Error(detail::inScope(where), layer,
                "the nonlinearity is \"" + name + "\", but must be \"tanh\" or \"relu\"");
}

/// PyTorch's initial values of recurrent layers: all weights are uniform within 1 / sqrt(hidden size).
Tensor initialWeight(const Shape &shape, int64_t hidden, const Location &where) {
  double bound = hidden > 0 ? 1 / std::sqrt(double(hidden)) : 0;
  return uniform(shape, -bound, bound, DType::f32, where);
}

/// One direction of one layer.
class Direction {
public:
  Direction(const RecurrentBase::Weights &weights, int64_t gates, const std::string &nonlinearity, bool isReverse,
            const Location &where)
      : weights(weights), gates(gates), nonlinearity(nonlinearity), isReverse(isReverse), where(where) {}

  /// x [T, N, in]; `counts` [T, N, 1], if defined, are the valid steps. Returns the outputs [T, N, H] and the final
  /// states.
  ScanResult run(const Tensor &x, const std::vector<Tensor> &initial, const Tensor &counts) const {
    std::vector<Tensor> xs{linear(x, weights.weight_ih, optionally(weights.bias_ih), where)};
    // Computed before the loop and passed as operands, so that gradients reach them.
    const Tensor weight = detail::castForProduct(weights.weight_hh.value(), where).t(where);
    const Tensor bias = weights.bias_hh.defined()
                            ? unsqueeze(detail::castForProduct(weights.bias_hh.value(), where), {0}, where)
                            : Tensor();
    if (counts.defined())
      xs.push_back(counts);
    auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
      Tensor again = matmul(states[0], weight, where);
      again = bias.defined() ? again + bias : again;
      std::vector<Tensor> next = advance(gates, nonlinearity, elements[0], again, states);
      Tensor output = next[0];
      if (elements.size() > 1) {
        output = burin::where(elements[1], output, 0.0);
        for (size_t i = 0; i < next.size(); ++i)
          next[i] = burin::where(elements[1], next[i], states[i]);
      }
      return ScanResult{next, {output}};
    };
    return scan(step, initial, xs, isReverse, where);
  }

private:
  const RecurrentBase::Weights &weights;
  int64_t gates;
  const std::string &nonlinearity;
  bool isReverse;
  const Location &where;
};

} // namespace

// ---- layers

RecurrentBase::RecurrentBase(const char *kind, int64_t gates, int64_t input_size, int64_t hidden_size,
                             RecurrentOptions given, const Location &where)
    : Module(kind, where), input_size(input_size), hidden_size(hidden_size), options(std::move(given)), gates(gates) {
  requireProbability(options.dropout, kind, where);
  requireNonlinearity(options.nonlinearity, kind, where);
  requireSize(input_size, 1, "input_size", kind, where);
  requireSize(hidden_size, 1, "hidden_size", kind, where);
  requireSize(options.num_layers, 1, "num_layers", kind, where);
  describe(listed(input_size, hidden_size) +
           (options.num_layers > 1 ? ", num_layers=" + text(options.num_layers) : "") +
           (options.bidirectional ? ", bidirectional" : ""));
  weights = makeWeights(where);
}

std::vector<RecurrentBase::Weights> RecurrentBase::makeWeights(const Location &where) {
  std::vector<Weights> all;
  const int directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + text(layer) + (direction ? "_reverse" : "");
      const int64_t in = layer ? hidden_size * directions : input_size, out = gates * hidden_size;
      auto make = [&](const char *name, const Shape &shape) {
        return register_parameter(name + suffix, initialWeight(shape, hidden_size, where), where);
      };
      Weights w;
      w.weight_ih = make("weight_ih", {out, in});
      w.weight_hh = make("weight_hh", {out, hidden_size});
      if (options.bias) {
        w.bias_ih = make("bias_ih", {out});
        w.bias_hh = make("bias_hh", {out});
      }
      all.push_back(w);
    }
  return all;
}

std::vector<Tensor> RecurrentBase::run(const Tensor &input, const std::vector<std::optional<Tensor>> &states,
                                       const std::optional<Tensor> &lengths, const Location &where) const {
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  const Tensor given = detail::castForProduct(input, place);
  const bool isBatch = given.rank() == 3;
  if ((!isBatch && given.rank() != 2) || given.shape().back() != Dim(input_size))
    throw Error(place, kind(),
                "the input is " + burin::str(given.spec()) + ", but must be " +
                    (options.batch_first ? "[N, T, " : "[T, N, ") + text(input_size) + "], or without N");
  Tensor x = !isBatch ? unsqueeze(given, {1}) : options.batch_first ? transpose(given, {1, 0, 2}) : given;
  const Dim length = x.shape()[0], batch = x.shape()[1];
  const int64_t directions = options.bidirectional ? 2 : 1, rows = options.num_layers * directions;

  std::vector<Tensor> initial; // [rows, N, H]
  for (const auto &state : states) {
    const Shape shape{rows, batch, hidden_size}, single{rows, hidden_size};
    if (state && state->shape() != (isBatch ? shape : single))
      throw Error(place, kind(),
                  "a state is " + burin::str(state->spec()) + ", but must be " + burin::str(isBatch ? shape : single));
    Tensor first = state ? detail::castForProduct(*state, place) : zeros(shape, x.dtype());
    initial.push_back(!state || isBatch ? first : unsqueeze(first, {1}));
  }
  Tensor counts;
  if (lengths) {
    if (lengths->shape() != Shape{batch} || !isInteger(lengths->dtype()))
      throw Error(place, kind(),
                  "lengths are " + burin::str(lengths->spec()) + ", but must be integers [" + batch.str() + "]");
    Tensor valid = lengths->to(DType::i64);
    valid = check((valid >= 1) & (valid <= detail::sizeTensor(length)), valid,
                  kind() + ": a length is not between 1 and the " + length.str() + " steps of the input", place);
    counts = unsqueeze(iota({length, 1}, DType::i64, 0) < unsqueeze(valid, {0}), {2});
  }

  std::vector<std::vector<Tensor>> finals(initial.size());
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t row = layer * directions + d;
      std::vector<Tensor> begin;
      for (const Tensor &state : initial)
        begin.push_back(state[row]);
      ScanResult all =
          Direction(weights[size_t(row)], gates, options.nonlinearity, d == 1, place).run(x, begin, counts);
      outputs.push_back(all.outputs[0]);
      for (size_t i = 0; i < finals.size(); ++i)
        finals[i].push_back(all.states[i]);
    }
    x = outputs.size() > 1 ? concat(outputs, 2) : outputs[0];
    if (layer + 1 < options.num_layers && options.dropout > 0 && is_training())
      x = dropped(x, options.dropout, x.shape(), place);
  }

  std::vector<Tensor> results{!isBatch ? squeeze(x, {1}) : options.batch_first ? transpose(x, {1, 0, 2}) : x};
  for (const std::vector<Tensor> &list : finals)
    results.push_back(isBatch ? stack(list, 0) : squeeze(stack(list, 0), {1}));
  return results;
}

RNN::RNN(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Location where)
    : RecurrentBase("RNN", 1, input_size, hidden_size, std::move(options), where) {}
std::pair<Tensor, Tensor> RNN::operator()(const Tensor &x, const std::optional<Tensor> &hidden,
                                          const std::optional<Tensor> &lengths, Location where) const {
  ModuleScope inModule(*this);
  std::vector<Tensor> results = run(x, {hidden}, lengths, where);
  return {results[0], results[1]};
}

GRU::GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Location where)
    : RecurrentBase("GRU", 3, input_size, hidden_size, std::move(options), where) {}
std::pair<Tensor, Tensor> GRU::operator()(const Tensor &x, const std::optional<Tensor> &hidden,
                                          const std::optional<Tensor> &lengths, Location where) const {
  ModuleScope inModule(*this);
  std::vector<Tensor> results = run(x, {hidden}, lengths, where);
  return {results[0], results[1]};
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options, Location where)
    : RecurrentBase("LSTM", 4, input_size, hidden_size, std::move(options), where) {}
std::tuple<Tensor, Tensor, Tensor> LSTM::operator()(const Tensor &x, const std::optional<Tensor> &hidden,
                                                    const std::optional<Tensor> &cell,
                                                    const std::optional<Tensor> &lengths, Location where) const {
  ModuleScope inModule(*this);
  std::vector<Tensor> results = run(x, {hidden, cell}, lengths, where);
  return {results[0], results[1], results[2]};
}

// ---- cells

RecurrentCellBase::RecurrentCellBase(const char *kind, int64_t gates, int64_t input_size, int64_t hidden_size,
                                     bool bias, const Location &where)
    : Module(kind, where), input_size(input_size), hidden_size(hidden_size) {
  requireSize(input_size, 1, "input_size", kind, where);
  requireSize(hidden_size, 1, "hidden_size", kind, where);
  describe(listed(input_size, hidden_size));
  auto make = [&](const char *name, const Shape &shape) {
    return register_parameter(name, initialWeight(shape, hidden_size, where), where);
  };
  weight_ih = make("weight_ih", {gates * hidden_size, input_size});
  weight_hh = make("weight_hh", {gates * hidden_size, hidden_size});
  if (bias) {
    bias_ih = make("bias_ih", {gates * hidden_size});
    bias_hh = make("bias_hh", {gates * hidden_size});
  }
}

std::vector<Tensor> RecurrentCellBase::step(const Tensor &given, const std::vector<std::optional<Tensor>> &states,
                                            const Location &where) const {
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  const Tensor x = detail::castForProduct(given, place);
  if (x.rank() < 1 || x.rank() > 2 || x.shape().back() != Dim(input_size))
    throw Error(place, kind(),
                "the input is " + burin::str(x.spec()) + ", but must be [N, " + text(input_size) + "], or without N");
  Shape shape = x.shape();
  shape.back() = hidden_size;
  std::vector<Tensor> before;
  for (const auto &state : states) {
    if (state && state->shape() != shape)
      throw Error(place, kind(), "a state is " + burin::str(state->spec()) + ", but must be " + burin::str(shape));
    before.push_back(state ? detail::castForProduct(*state, place) : zeros(shape, x.dtype()));
  }
  Tensor input = linear(x, weight_ih, optionally(bias_ih), place),
         again = linear(before[0], weight_hh, optionally(bias_hh), place);
  const int64_t gates = weight_ih->shape()[0].value() / hidden_size;
  return advance(gates, nonlinearity, input, again, before);
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, bool bias, std::string name, Location where)
    : RecurrentCellBase("RNNCell", 1, input_size, hidden_size, bias, where) {
  requireNonlinearity(name, "RNNCell", where);
  nonlinearity = std::move(name);
}
Tensor RNNCell::operator()(const Tensor &x, const std::optional<Tensor> &hidden, Location where) const {
  ModuleScope inModule(*this);
  return step(x, {hidden}, where)[0];
}
GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, bool bias, Location where)
    : RecurrentCellBase("GRUCell", 3, input_size, hidden_size, bias, where) {}
Tensor GRUCell::operator()(const Tensor &x, const std::optional<Tensor> &hidden, Location where) const {
  ModuleScope inModule(*this);
  return step(x, {hidden}, where)[0];
}
LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, bool bias, Location where)
    : RecurrentCellBase("LSTMCell", 4, input_size, hidden_size, bias, where) {}
std::pair<Tensor, Tensor> LSTMCell::operator()(const Tensor &x, const std::optional<Tensor> &hidden,
                                               const std::optional<Tensor> &cell, Location where) const {
  ModuleScope inModule(*this);
  std::vector<Tensor> next = step(x, {hidden, cell}, where);
  return {next[0], next[1]};
}

} // namespace burin::nn
