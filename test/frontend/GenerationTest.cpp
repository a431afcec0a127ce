// Text generation: two functions over the same weights and caches, in one artifact.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include <burin/nn.h>
#include <burin/program.h>
#include <burin/transformer.h>
#include <set>

using test::Folder;

namespace {

constexpr int64_t kWords = 101, kSize = 32, kHeads = 4, kLayers = 2, kLength = 48, kBatch = 3;

struct Block : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(kSize)),
                norm2 = register_module("norm2", nn::LayerNorm(kSize));
  nn::Linear qkv = register_module("qkv", nn::Linear(kSize, 3 * kSize)),
             out = register_module("out", nn::Linear(kSize, kSize));
  nn::Linear up = register_module("up", nn::Linear(kSize, 4 * kSize)),
             down = register_module("down", nn::Linear(4 * kSize, kSize));
  nn::KVCache cache = register_module("cache", nn::KVCache(kBatch, kHeads, kLength, kSize / kHeads));

  /// x [n, m, size]; without positions, whole texts without a cache.
  Tensor operator()(Tensor x, const std::optional<Tensor> &positions) const {
    const Dim n = x.shape()[0], m = x.shape()[1];
    Tensor all = transpose(reshape(qkv(norm1(x)), {n, m, 3, kHeads, kSize / kHeads}), {2, 0, 3, 1, 4});
    Tensor q = all(0), k = all(1), v = all(2), y;
    if (positions) {
      Tensor sees = cache.mask(*positions, m);
      auto [keys, values] = cache.update(k, v, *positions);
      y = scaled_dot_product_attention(q, keys, values, sees);
    } else {
      y = scaled_dot_product_attention(q, k, v, std::nullopt, /*is_causal=*/true);
    }
    x = x + out(reshape(transpose(y, {0, 2, 1, 3}), {n, m, kSize}));
    return x + down(gelu(up(norm2(x))));
  }
};

struct Gpt : nn::Module {
  Gpt() {
    for (int64_t i = 0; i < kLayers; ++i)
      blocks.push_back(Block());
  }
  nn::Embedding words = register_module("words", nn::Embedding(kWords, kSize)),
                places = register_module("places", nn::Embedding(2 * kLength, kSize));
  nn::ModuleList<Block> blocks = register_module("blocks", nn::ModuleList<Block>());
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(kSize));

  /// Logits [n, m, words] of tokens [n, m] that begin at positions [n].
  Tensor logits(const Tensor &tokens, const std::optional<Tensor> &positions) const {
    Tensor at = unsqueeze(iota({tokens.shape()[1]}, i64), {0});
    if (positions)
      at = at + unsqueeze(*positions, {1});
    Tensor x = words(tokens) + places(at);
    for (const Block &block : blocks)
      x = block(x, positions);
    return matmul(norm(x), words.weight->t());
  }
  /// Logits of the word behind prompts [n, m], of which the first `lengths` [n] tokens count.
  Tensor prefill(const Tensor &prompts, const Tensor &lengths) const {
    Tensor all = logits(prompts, lengths * 0);
    Tensor last = reshape(lengths - 1, {lengths.shape()[0], 1, 1});
    return squeeze(gather(all, broadcast_to(last, {lengths.shape()[0], 1, kWords}), 1), {1});
  }
  /// Logits of the word behind tokens [n] at positions [n].
  Tensor decode(const Tensor &tokens, const Tensor &positions) const {
    return squeeze(logits(unsqueeze(tokens, {1}), positions), {1});
  }
};

Artifact compiled(const Gpt &model) {
  Program program(model);
  Dim n("batch"), m("length");
  program.add("prefill", [&](const Tensor &prompts, const Tensor &lengths) { return model.prefill(prompts, lengths); },
              {{i64, {n, m}}, {i64, {n}}});
  program.add("decode", [&](const Tensor &tokens, const Tensor &positions) { return model.decode(tokens, positions); },
              {{i64, {n}}, {i64, {n}}});
  return compile(program.graph());
}

} // namespace

TEST_CASE("prefill and decode share weights and caches in one artifact") {
  manual_seed(12);
  Gpt model;
  Folder folder;
  compiled(model).save(folder / "gpt.plate");
  Artifact artifact = load(folder / "gpt.plate"), decode = artifact.function("decode");
  CHECK(artifact.states().size() == 2 * kLayers);

  for (int64_t batch : {kBatch, int64_t(1), int64_t(2)}) {
    // Prompts of mixed lengths.
    std::vector<std::vector<int64_t>> texts;
    std::vector<int64_t> padded, lengths;
    const int64_t longest = 4 + 2 * batch;
    for (int64_t b = 0; b < batch; ++b) {
      lengths.push_back(longest - 2 * b);
      texts.push_back(ints(randint(0, kWords, {lengths.back()})));
      padded.insert(padded.end(), texts.back().begin(), texts.back().end());
      padded.resize(size_t(longest * (b + 1)), 0);
    }
    Tensor positions = from_vector(lengths);
    Tensor got = artifact(from_vector(padded, Shape{batch, longest}), positions);
    std::set<int64_t> distinct;
    for (int step = 0; step < 30; ++step) {
      // Each text alone, as a whole, without a cache.
      for (int64_t b = 0; b < batch; ++b) {
        Tensor text = from_vector(texts[size_t(b)], Shape{1, int64_t(texts[size_t(b)].size())});
        CHECK(largestDifference(got(b), model.logits(text, std::nullopt)(0, -1)) < 2e-4);
      }
      Tensor next = argmax(got * 0.02 + randn({batch, kWords}), 1);
      for (int64_t b = 0; b < batch; ++b) {
        texts[size_t(b)].push_back(next(b).item<int64_t>());
        distinct.insert(texts[size_t(b)].back());
      }
      got = decode(next, positions);
      positions = positions + 1;
    }
    CHECK(distinct.size() > 10);
  }
}

TEST_CASE("one artifact serves every batch and length") {
  manual_seed(15);
  const nn::Embedding words(31, 16);
  const nn::Linear first(16, 24), second(24, 5);
  auto model = [&](const Tensor &tokens) { // [batch, length]
    Tensor x = words(tokens);
    Tensor y = scaled_dot_product_attention(x, x, x, std::nullopt, /*is_causal=*/true);
    return second(gelu(first(x + y))).mean({1});
  };
  Artifact artifact = compile(trace(model, {{i64, {Dim("batch"), Dim("length")}}}));
  auto jitted = jit(model, {.dynamic = {{0, 0}, {0, 1}}});
  std::vector<int64_t> sizes = ints(randint(1, 258, {60, 2}));
  for (size_t i = 0; i < sizes.size(); i += 2) {
    const int64_t batch = i < 6 ? int64_t(i) / 2 + 1 : std::min<int64_t>(sizes[i], 4000 / sizes[i + 1] + 1);
    Tensor tokens = randint(0, 31, {batch, sizes[i + 1]}), want = model(tokens);
    INFO(batch << ", " << sizes[i + 1]);
    CHECK(largestDifference(artifact(tokens), want) < 1e-4);
    CHECK(floats(jitted(tokens)) == floats(artifact(tokens)));
  }
  CHECK(jitted.traces() == 2); // sizes of 1, which may broadcast, and others
}

TEST_CASE("a full cache is an error that leaves it as it was") {
  manual_seed(13);
  Gpt model;
  Artifact artifact = compiled(model), decode = artifact.function("decode");
  Tensor prompt = randint(0, kWords, {1, 5}), length = tensor({5});
  artifact(prompt, length).wait();
  std::vector<float> before = floats(artifact.state("blocks.1.cache.keys"));
  CHECK(contains(messageOf([&] { decode(tensor({1}), tensor({kLength})).wait(); }),
                 "is beyond the 48 tokens of the cache"));
  CHECK(contains(messageOf([&] { decode(tensor({kWords}), tensor({5})).wait(); }), "an index of take is out of range"));
  CHECK(floats(artifact.state("blocks.1.cache.keys")) == before);
  Tensor next = decode(tensor({7}), tensor({5}));
  CHECK(largestDifference(next(0), model.logits(concat({prompt, tensor({{7}})}, 1), std::nullopt)(0, -1)) < 2e-4);
}

TEST_CASE("eager and jitted generation give the artifact's bits") {
  manual_seed(14);
  Gpt model;
  Artifact artifact = compiled(model), decode = artifact.function("decode");
  Tensor prompts = randint(0, kWords, {kBatch, 6}), lengths = tensor({6, 4, 5});
  auto prefillJit = jit([&](const Tensor &p, const Tensor &l) { return model.prefill(p, l); });
  auto decodeJit = jit([&](const Tensor &t, const Tensor &p) { return model.decode(t, p); });
  auto generate = [&](auto &&first, auto &&next) {
    std::vector<std::vector<float>> all;
    Tensor logits = first(prompts, lengths), positions = lengths;
    for (int i = 0; i < 12; ++i) {
      all.push_back(floats(logits));
      logits = next(argmax(logits, 1), positions);
      positions = positions + 1;
    }
    return all;
  };
  auto compiledText = generate(artifact, decode);
  CHECK(generate(prefillJit, decodeJit) == compiledText);
  auto eagerText = generate([&](const Tensor &p, const Tensor &l) { return model.prefill(p, l); },
                            [&](const Tensor &t, const Tensor &p) { return model.decode(t, p); });
  for (size_t i = 0; i < eagerText.size(); ++i)
    CHECK(std::ranges::equal(eagerText[i], compiledText[i], [](float a, float b) { return std::fabs(a - b) < 1e-4; }));
}
