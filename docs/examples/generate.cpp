// Text generation: one artifact reads a prompt and goes on from it, with a cache that it updates in place.
#include <burin/burin.h>
#include <burin/graph/program.h>
#include <burin/nn/transformer.h>
#include <iostream>
using namespace burin;

constexpr int64_t words = 50, size = 32, heads = 4, length = 64;

struct Gpt : nn::Layer<Gpt> {
  nn::Embedding table = register_module("table", nn::Embedding(words, size));
  nn::Linear qkv = register_module("qkv", nn::Linear(size, 3 * size));
  nn::KVCache cache = register_module("cache", nn::KVCache(/*batch=*/1, heads, length, size / heads));

  /// Logits [n, words] of the next word after tokens [n, m], which begin at positions [n].
  Tensor forward(const Tensor &tokens, const Tensor &positions) const {
    const Dim n = tokens.size(0), m = tokens.size(1);
    Tensor x = table(tokens), all = qkv(x).reshape({n, m, 3, heads, size / heads}).transpose({2, 0, 3, 1, 4});
    Tensor sees = cache.mask(positions, m);
    auto [keys, values] = cache.update(all(1), all(2), positions);
    Tensor y = scaled_dot_product_attention(all(0), keys, values, sees);
    x = x + y.transpose({0, 2, 1, 3}).reshape({n, m, size});
    return matmul(x(Slice(), -1), table.weight->t());
  }
};

int main() {
  manual_seed(2);
  Gpt model;
  Program program(model);
  program.add("prefill", model, {{i64, {1, Dim("length")}}, {i64, {1}}}, {"tokens", "positions"}, {"logits"});
  program.add("decode", model, {{i64, {1, 1}}, {i64, {1}}}, {"tokens", "positions"}, {"logits"});
  Artifact prefill = compile(program.graph()), decode = prefill.function("decode");

  Tensor prompt = tensor({{3, 1, 4, 1, 5}}), at = tensor({5});
  Tensor logits = prefill(prompt, tensor({0}));
  for (int i = 0; i < 10; ++i) {
    Tensor word = default_generator().categorical(logits * 0.1);
    std::cout << word.item<int64_t>() << " ";
    logits = decode(word.reshape({1, 1}), at);
    at = at + 1;
  }
  std::cout << "\ncache " << str(prefill.state("cache.keys").spec()) << "\n";
}
