// GPT-2's network with a key-value cache, for the tests of text generation.
#pragma once
#include <burin/burin.h>
#include <burin/graph/program.h>
#include <burin/nn/transformer.h>

namespace burin::test {

struct GptSizes {
  int64_t words = 101, size = 32, heads = 4, layers = 2;
  int64_t length = 48, batch = 3; // of the cache
  static GptSizes small() { return {50257, 768, 12, 12, 1024, 8}; }
};

struct GptBlock : nn::Module {
  explicit GptBlock(const GptSizes &s) : sizes(s) {}

  GptSizes sizes;
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(sizes.size)),
                norm2 = register_module("norm2", nn::LayerNorm(sizes.size));
  nn::Linear qkv = register_module("qkv", nn::Linear(sizes.size, 3 * sizes.size)),
             out = register_module("out", nn::Linear(sizes.size, sizes.size));
  nn::Linear up = register_module("up", nn::Linear(sizes.size, 4 * sizes.size)),
             down = register_module("down", nn::Linear(4 * sizes.size, sizes.size));
  nn::KVCache cache =
      register_module("cache", nn::KVCache(sizes.batch, sizes.heads, sizes.length, sizes.size / sizes.heads));

  /// x is [n, m, size]; without positions, x is a whole text, and no cache is used.
  Tensor operator()(Tensor x, const std::optional<Tensor> &positions) const {
    const Dim n = x.shape()[0], m = x.shape()[1];
    Tensor all = transpose(reshape(qkv(norm1(x)), {n, m, 3, sizes.heads, sizes.size / sizes.heads}), {2, 0, 3, 1, 4});
    Tensor q = all(0), k = all(1), v = all(2), y;
    if (positions) {
      Tensor sees = cache.mask(*positions, m);
      auto [keys, values] = cache.update(k, v, *positions);
      y = scaled_dot_product_attention(q, keys, values, sees);
    } else {
      y = scaled_dot_product_attention(q, k, v, std::nullopt, /*is_causal=*/true);
    }
    x = x + out(reshape(transpose(y, {0, 2, 1, 3}), {n, m, sizes.size}));
    return x + down(gelu(up(norm2(x))));
  }
};

struct Gpt : nn::Module {
  explicit Gpt(const GptSizes &s = {}) : sizes(s) {
    for (int64_t i = 0; i < sizes.layers; ++i)
      blocks.push_back(GptBlock(sizes));
  }
  GptSizes sizes;
  nn::Embedding words = register_module("words", nn::Embedding(sizes.words, sizes.size)),
                places = register_module("places", nn::Embedding(2 * sizes.length, sizes.size));
  nn::ModuleList<GptBlock> blocks = register_module("blocks", nn::ModuleList<GptBlock>());
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(sizes.size));

  /// Draws random weights with which the most likely word depends on the position and the preceding words. With tied
  /// embeddings, the model would predict the same word again and again.
  void draw() {
    const double deviation = 0.02;
    for (auto &[name, parameter] : named_parameters()) {
      const bool isNorm = name.find("norm") != std::string::npos, isBias = name.ends_with("bias");
      const double scale = name == "places.weight" ? 10 * deviation : deviation;
      parameter.set(isNorm ? ones_like(parameter) * double(!isBias) : randn(parameter->shape()) * scale);
    }
  }

  /// Returns logits [n, m, words] of tokens [n, m] that begin at positions [n].
  Tensor logits(const Tensor &tokens, const std::optional<Tensor> &positions) const {
    return ends(states(tokens, positions));
  }
  /// Returns the logits of the word after prompts [n, m], of which the first `lengths` [n] tokens are valid.
  Tensor prefill(const Tensor &prompts, const Tensor &lengths) const {
    const Dim n = lengths.shape()[0];
    Tensor last = broadcast_to(reshape(lengths - 1, {n, 1, 1}), {n, 1, sizes.size});
    return squeeze(ends(gather(states(prompts, lengths * 0), last, 1)), {1});
  }
  /// Returns the logits of the word after tokens [n] at positions [n].
  Tensor decode(const Tensor &tokens, const Tensor &positions) const {
    return squeeze(logits(unsqueeze(tokens, {1}), positions), {1});
  }

  /// A program of both functions over the same weights and caches, for all batches and lengths up to the size of the
  /// cache.
  Graph program(int64_t longest) const {
    Program both(*this);
    Dim n("batch", 1, sizes.batch), m("length", 1, longest);
    both.add("prefill", [this](const Tensor &prompts, const Tensor &lengths) { return prefill(prompts, lengths); },
             {{i64, {n, m}}, {i64, {n}}}, {"prompts", "lengths"}, {"logits"});
    both.add("decode", [this](const Tensor &tokens, const Tensor &positions) { return decode(tokens, positions); },
             {{i64, {n}}, {i64, {n}}}, {"tokens", "positions"}, {"logits"});
    return both.graph();
  }

private:
  Tensor states(const Tensor &tokens, const std::optional<Tensor> &positions) const {
    Tensor at = unsqueeze(iota({tokens.shape()[1]}, i64), {0});
    if (positions)
      at = at + unsqueeze(*positions, {1});
    Tensor x = words(tokens) + places(at);
    for (const GptBlock &block : blocks)
      x = block(x, positions);
    return x;
  }
  Tensor ends(const Tensor &x) const { return matmul(norm(x), words.weight->t()); }
};

} // namespace burin::test
