// A language model of LSTM cells: a scan over the words, and in it a scan over the layers. Lengths and batches are
// symbolic.
#include "three_ways.h"

constexpr int64_t layers = 3, size = 16, words = 20;

struct Model {
  Tensor embedding = randn({words, size}), weights = randn({layers, 2 * size, 4 * size}) * 0.3,
         out = randn({size, words});

  /// The next output and memory [batch, size] of a cell.
  static std::pair<Tensor, Tensor> cell(const Tensor &x, const Tensor &weight, const Tensor &h, const Tensor &c) {
    Tensor gates = matmul(concat({x, h}, 1), weight);
    auto gate = [&](int64_t i) { return gates.slice(1, i * size, (i + 1) * size); };
    Tensor next = sigmoid(gate(1)) * c + sigmoid(gate(0)) * tanh(gate(2));
    return {sigmoid(gate(3)) * tanh(next), next};
  }

  /// Logits [length, batch, words] of the words after tokens [length, batch].
  Tensor operator()(const Tensor &tokens) const {
    auto layer = [](const Tensors &below, const Tensors &of) {
      auto [h, c] = cell(below[0], of[0], of[1], of[2]);
      return ScanResult{.states = {h}, .outputs = {h, c}};
    };
    auto word = [&](const Tensors &memory, const Tensors &x) {
      ScanResult all = scan(layer, {x[0]}, {weights, memory[0], memory[1]});
      return ScanResult{.states = {all.outputs[0], all.outputs[1]}, .outputs = {all.states[0]}};
    };
    Tensor zero = zeros({layers, tokens.size(1), size});
    return matmul(scan(word, {zero, zero}, {take(embedding, tokens, 0)}).outputs[0], out);
  }
};

int main() {
  manual_seed(5);
  Model model;
  ThreeWays run([&](const Tensors &in) { return Tensors{model(in[0])}; }, {{i64, {Dim("length"), Dim("batch")}}},
                "lstm");
  for (int64_t length : {1, 2, 19})
    std::cout << str(run({randint(0, words, {length, 2})})[0].spec()) << "\n";
  Tensor tokens = randint(0, words, {7, 5});
  save_safetensors("lstm.safetensors", {{"embedding", model.embedding},
                                        {"weights", model.weights},
                                        {"out", model.out},
                                        {"tokens", tokens},
                                        {"logits", run({tokens})[0]}});
}
