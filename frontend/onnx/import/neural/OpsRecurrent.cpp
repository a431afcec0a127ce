// RNN, GRU and LSTM, position by position.
#include "burin/graph/loops.h"
#include "frontend/onnx/import/neural/Quantized.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <algorithm>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

Tensor at(const Tensor &x, int64_t axis, int64_t index) { return squeeze(part(x, axis, index, index + 1), {axis}); }

/// One of the functions in the attribute "activations".
struct Activation {
  std::string name;
  double alpha, beta;

  Tensor operator()(Node &n, const Tensor &x) const {
    if (name == "sigmoid")
      return sigmoid(x);
    if (name == "tanh")
      return tanh(x);
    if (name == "relu")
      return relu(x);
    if (name == "affine")
      return x * alpha + beta;
    if (name == "leakyrelu")
      return leaky_relu(x, alpha);
    if (name == "thresholdedrelu")
      return where(x >= alpha, x, 0.0);
    if (name == "scaledtanh")
      return tanh(x * beta) * alpha;
    if (name == "hardsigmoid")
      return clamp(x * alpha + beta, 0.0, 1.0);
    if (name == "elu")
      return elu(x, alpha);
    if (name == "softsign")
      return x / (abs(x) + 1.0);
    if (name == "softplus")
      return softplus(x);
    n.fail("the activation \"" + name + "\" is not one of the standard's");
  }
};

/// Defaults of alpha and beta, if the standard has any.
Activation activationOf(const std::string &name) {
  std::string lower;
  for (char c : name)
    lower += char(std::tolower(static_cast<unsigned char>(c)));
  double alpha = lower == "leakyrelu"     ? 0.01
                 : lower == "hardsigmoid" ? 0.2
                                          : 1,
         beta = lower == "hardsigmoid" ? 0.5 : 1;
  return {lower, alpha, beta};
}

struct State {
  Tensor hidden, cell;
};

/// One direction of a recurrent layer.
class Layer {
public:
  Layer(Node &n, int64_t direction, int64_t gates, const std::vector<std::string> &names) : n(n), gates(gates) {
    auto perDirection = int64_t(names.size());
    std::vector<std::string> given = n.attributeStrings("activations");
    std::vector<double> alphas = n.attributeReals("activation_alpha"), betas = n.attributeReals("activation_beta");
    for (int64_t i = 0; i < perDirection; ++i) {
      auto k = size_t(direction * perDirection + i);
      activations.push_back(activationOf(k < given.size() ? given[k] : names[size_t(i)]));
      if (k < alphas.size())
        activations.back().alpha = alphas[k];
      if (k < betas.size())
        activations.back().beta = betas[k];
    }
    Tensor w = at(n[1], 0, direction), r = at(n[2], 0, direction);
    size = n.shape(2)[2];
    weight = transpose(w);
    recurrent = transpose(r);
    if (n.has(3)) {
      Tensor both = at(n[3], 0, direction);
      inputBias = part(both, 0, 0, size * gates);
      recurrentBias = part(both, 0, size * gates, size * (2 * gates));
    }
    if (gates == 4 && n.has(7))
      peepholes = at(n[7], 0, direction);
  }

  /// The input's part of the gates for all positions: x [length, batch, inputs].
  Tensor project(const Tensor &x) const {
    Tensor y = matmul(rounded(x), weight);
    return inputBias.defined() ? y + inputBias : y;
  }
  /// `projected` is the input's part for one position: [batch, gates * size].
  State step(const Tensor &projected, const State &before) const {
    return gates == 1 ? simple(projected, before) : gates == 3 ? gru(projected, before) : lstm(projected, before);
  }

  Dim size;

private:
  Node &n;
  int64_t gates;
  std::vector<Activation> activations;
  Tensor weight, recurrent, inputBias, recurrentBias, peepholes;

  /// DynamicQuantizeLSTM multiplies quantised operands.
  Tensor rounded(const Tensor &x) const {
    if (n.op() != "DynamicQuantizeLSTM")
      return x;
    Rounded all = roundDynamically(x);
    return dequantized(all.x, all.scale, all.zero);
  }
  Tensor activate(size_t which, Tensor x) const {
    if (n.hasAttribute("clip")) {
      double limit = n.attribute("clip", 0.0);
      x = clamp(x, -limit, limit);
    }
    return activations[which](n, x);
  }
  Tensor gate(const Tensor &all, int64_t i) const { return part(all, all.rank() - 1, size * i, size * (i + 1)); }
  /// The hidden state's part of the gates from `first` on.
  Tensor fromHidden(const Tensor &hidden, int64_t first, int64_t last, bool withBias = true) const {
    Tensor y = matmul(rounded(hidden), part(recurrent, 1, size * first, size * last));
    return withBias && recurrentBias.defined() ? y + part(recurrentBias, 0, size * first, size * last) : y;
  }

  State simple(const Tensor &x, const State &s) const { return {activate(0, x + fromHidden(s.hidden, 0, 1)), {}}; }

  State gru(const Tensor &x, const State &s) const {
    Tensor both = part(x, 1, 0, size * 2) + fromHidden(s.hidden, 0, 2);
    Tensor update = activate(0, gate(both, 0)), reset = activate(0, gate(both, 1)), candidate = gate(x, 2);
    if (n.attribute("linear_before_reset", int64_t(0)))
      candidate = activate(1, candidate + reset * fromHidden(s.hidden, 2, 3));
    else
      candidate = activate(1, candidate + fromHidden(reset * s.hidden, 2, 3));
    return {(1.0 - update) * candidate + update * s.hidden, {}};
  }

  State lstm(const Tensor &x, const State &s) const { // gate order: input, output, forget, cell
    Tensor all = x + fromHidden(s.hidden, 0, 4);
    auto looking = [&](int64_t i, const Tensor &cell) {
      return peepholes.defined() ? gate(all, i) + part(peepholes, 0, size * i, size * (i + 1)) * cell : gate(all, i);
    };
    Tensor input = activate(0, looking(0, s.cell));
    Tensor forget = n.attribute("input_forget", int64_t(0)) ? 1.0 - input : activate(0, looking(2, s.cell));
    Tensor cell = forget * s.cell + input * activate(1, gate(all, 3));
    Tensor output = activate(0, looking(1, cell));
    return {output * activations[2](n, cell), cell};
  }
};

/// One direction over all positions, forward or backward: all hidden states [length, batch, size], and the final ones.
/// `lengths` [batch] are those of the sequences, if they differ.
struct Pass {
  Tensor rows;
  State last;
};
Pass run(const Layer &layer, const Tensor &x, const State &initial, const Tensor &lengths, bool reverse) {
  bool hasCell = initial.cell.defined();
  std::vector<Tensor> states{initial.hidden}, elements{layer.project(x)};
  if (hasCell)
    states.push_back(initial.cell);
  if (lengths.defined())
    elements.push_back(iota({x.shape()[0]}, lengths.dtype()));
  auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
    State before{states[0], hasCell ? states[1] : Tensor()};
    State next = layer.step(elements[0], before);
    Tensor row = next.hidden;
    if (lengths.defined()) { // after the end of a sequence, states stay and outputs are 0
      Tensor isInside = unsqueeze(lengths > elements[1], {1});
      row = where(isInside, next.hidden, 0.0);
      next.hidden = where(isInside, next.hidden, before.hidden);
      if (hasCell)
        next.cell = where(isInside, next.cell, before.cell);
    }
    ScanResult result{{next.hidden}, {lengths.defined() ? row : next.hidden}};
    if (hasCell)
      result.states.push_back(next.cell);
    return result;
  };
  ScanResult all = scan(step, states, elements, reverse);
  return {all.outputs[0], {all.states[0], hasCell ? all.states[1] : Tensor()}};
}

/// The common part of all three: directions, layout, lengths of sequences, initial states.
Values recurrence(Node &n, int64_t gates, const std::vector<std::string> &names) {
  for (size_t i = 0; i < 3; ++i)
    if (n.rank(i) != 3)
      n.fail("its input " + std::to_string(i) + " is " + str(n.shape(i)) + ", but must have 3 dimensions");
  bool isBatchFirst = n.attribute("layout", int64_t(0)), hasCell = gates == 4;
  Tensor x = isBatchFirst ? transpose(n[0], {1, 0, 2}) : n[0];
  Dim batch = x.shape()[1];
  std::string direction = n.attribute("direction", "forward");
  Ints backwards = direction == "bidirectional" ? Ints{0, 1} : Ints{direction == "reverse"};
  std::vector<Tensor> outputs, lastHidden, lastCell;
  for (size_t d = 0; d < backwards.size(); ++d) {
    Layer layer(n, int64_t(d), gates, names);
    auto initial = [&](size_t input) {
      Shape shape{batch, layer.size};
      if (!n.has(input))
        return full(shape, 0, x.dtype());
      return Trace::active()->assumeShape(at(n[input], isBatchFirst, int64_t(d)), shape, detail::inScope({}));
    };
    Pass pass = run(layer, x, {initial(5), hasCell ? initial(6) : Tensor()}, n.has(4) ? n[4] : Tensor(), backwards[d]);
    outputs.push_back(pass.rows);
    lastHidden.push_back(pass.last.hidden);
    lastCell.push_back(pass.last.cell);
  }
  // Directions before the batch, or after it.
  Tensor y = stack(outputs, isBatchFirst ? 2 : 1);
  Values results{isBatchFirst ? transpose(y, {1, 0, 2, 3}) : y, stack(lastHidden, isBatchFirst)};
  if (hasCell)
    results.push_back(stack(lastCell, isBatchFirst));
  return results;
}

Values rnn(Node &n) { return recurrence(n, 1, {"Tanh"}); }
Values gru(Node &n) { return recurrence(n, 3, {"Sigmoid", "Tanh"}); }
Values lstm(Node &n) { return recurrence(n, 4, {"Sigmoid", "Tanh", "Tanh"}); }

/// The weights have their columns last, and a scale and a zero point per direction, or per column.
Values dynamicQuantizedLstm(Node &n) {
  n.requireRank(1, 3);
  n.requireRank(2, 3);
  for (size_t i = 0; i < 2; ++i) {
    auto parameter = [&](size_t input) {
      Tensor x = n[input];
      return unsqueeze(x, x.rank() == 1 ? Ints{1, 2} : Ints{1});
    };
    Tensor zero = n.has(9 + 2 * i) ? parameter(9 + 2 * i) : Tensor();
    n.replace(1 + i, transpose(dequantized(n[1 + i], parameter(8 + 2 * i), zero), {0, 2, 1}));
  }
  return lstm(n);
}

constexpr OpEntry table[] = {
    {"DynamicQuantizeLSTM", dynamicQuantizedLstm, {3, 3, 3, 0, 0, 0, 0, 0}, "com.microsoft"},
    {"GRU", gru},
    {"LSTM", lstm},
    {"RNN", rnn},
};

} // namespace

std::span<const OpEntry> recurrentOps() { return table; }

} // namespace burin::onnx
