// Memory limits: a training step with the smallest limit possible has the same bits as one without.
#include "test/frontend/Check.h"
#include "test/training/Networks.h"
#include <regex>

namespace {

using namespace burin::test;

Graph stepOf(Training &t) {
  auto [x, target] = t.batch(0);
  return trace([&](const Tensor &in, const Tensor &classes) { return trainStep(t, in, classes); },
               {x.to(isFloat(x.dtype()) ? f32 : x.dtype()).spec(), target.spec()});
}

/// Returns the smallest number of bytes for which a step compiles, from the message that refuses less.
uint64_t leastBytes(const Graph &graph) {
  std::smatch found;
  std::string message = messageOf([&] { compile(graph, {.memory_limit = 1}); });
  INFO(message);
  REQUIRE(std::regex_search(message, found, std::regex("at least ([0-9.]+) MB are needed")));
  CHECK(contains(message, "Then are held"));
  return uint64_t(std::stod(found[1]) * 1e6) + 1000; // the message has three digits after the decimal point
}

/// Returns the losses of some steps and all final states.
std::vector<std::vector<float>> train(const Training &t, const Artifact &step) {
  std::vector<std::vector<float>> all;
  for (int i = 0; i < 4; ++i) {
    auto [x, target] = t.batch(i);
    all.push_back(step(isFloat(x.dtype()) ? x.to(f32) : x, target).to_vector<float>());
  }
  for (const NamedSpec &state : step.states())
    all.push_back(step.state(state.name).to(f32).to_vector<float>());
  return all;
}

void check(Training t, bool isAgain = true) {
  Graph graph = stepOf(t);
  const uint64_t least = leastBytes(graph);
  Artifact free = compile(graph), tight = compile(graph, {.memory_limit = least});
  if (isAgain)
    CHECK(contains(tight.memory_report(), "again: "));
  CHECK(free.memory_report().empty());
  auto wanted = train(t, free), got = train(t, tight);
  REQUIRE(wanted.size() == got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    CHECK(std::equal(wanted[i].begin(), wanted[i].end(), got[i].begin(), got[i].end(),
                     [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }));
}

} // namespace

TEST_CASE("steps in the least memory have the bits of others: GPT") { check(gpt(f32)); }
TEST_CASE("steps in the least memory have the bits of others: residual network") { check(residual(f32, 4, 3)); }
TEST_CASE("steps in the least memory have the bits of others: LSTM") { check(lstm(f32)); }
TEST_CASE("steps in the least memory have the bits of others: MLP and LeNet") {
  check(mlp(f32), /*isAgain=*/false); // the peak may be a single kernel
  check(leNet(f32), false);
}

namespace {

/// A transformer whose activations take more memory than its weights and the optimiser's states.
Training deepGpt() {
  struct Net : nn::Module {
    nn::Embedding token = register_module("token", nn::Embedding(64, 64));
    nn::TransformerEncoder blocks = register_module("blocks", nn::TransformerEncoder(makeLayer, 4, nn::LayerNorm(64)));
    nn::Linear head = register_module("head", nn::Linear(64, 64, {.bias = false}));
    static nn::TransformerEncoderLayer makeLayer() {
      return {
          64, 4, {.dim_feedforward = 256, .dropout = 0, .activation = "gelu", .batch_first = true, .norm_first = true}};
    }
    Tensor operator()(const Tensor &x) { return head(blocks(token(x), {.is_causal = true})); }
  } net;
  setWeights(net, f32);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  auto loss = [=](const Tensor &x, const Tensor &target) mutable {
    return cross_entropy(net(x).flatten(0, 1), target);
  };
  auto batch = [](int step) {
    return std::make_pair(classes(512, 64, step).reshape({8, 64}), classes(512, 64, step + 1));
  };
  return {net, optimizer, loss, batch};
}

/// Bytes of a run without limit, from the report with a limit that changes nothing.
uint64_t mostBytes(const Graph &graph) {
  std::smatch found;
  const std::string report = compile(graph, {.memory_limit = uint64_t(1) << 40}).memory_report();
  INFO(report);
  REQUIRE(std::regex_search(report, found, std::regex("limit [0-9.]+ MB: ([0-9.]+) MB .* and ([0-9.]+) MB")));
  return uint64_t((std::stod(found[1]) + std::stod(found[2])) * 1e6);
}

} // namespace

TEST_CASE("a GPT step in half of its memory has the same bits") {
  Training t = deepGpt();
  Graph graph = stepOf(t);
  const uint64_t half = mostBytes(graph) / 2;
  Artifact free = compile(graph), tight = compile(graph, {.memory_limit = half});
  CHECK(contains(tight.memory_report(), "again: "));
  auto wanted = train(t, free), got = train(t, tight);
  REQUIRE(wanted.size() == got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    CHECK(std::equal(wanted[i].begin(), wanted[i].end(), got[i].begin(), got[i].end(),
                     [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }));
}

TEST_CASE("the gradient of what all iterations use has one buffer") {
  auto gradientOver = [](int64_t iterations) {
    auto f = [](const Tensor &w, const Tensor &x) {
      auto step = [&](const std::vector<Tensor> &state, const std::vector<Tensor> &element) {
        return ScanResult{{tanh(w * state[0] * element[0]).mean()}, {}};
      };
      return grad(scan(step, {ones({})}, {x}).states[0], {w})[0];
    };
    return std::make_pair(f, trace(f, {{f32, {64, 64}}, {f32, {iterations}}}));
  };
  auto [few, fewTurns] = gradientOver(10);
  auto [many, manyTurns] = gradientOver(100);
  const uint64_t less = mostBytes(fewTurns), more = mostBytes(manyTurns);
  INFO(less << " bytes for 10 iterations, " << more << " bytes for 100");
  CHECK(more - less < 4 * 64 * 64); // carries and elements only
  Tensor w = uniform({64, 64}, 0.5, 1.5), x = uniform({100}, 0.9, 1.1), leaf = w * 1;
  CHECK(largestDifference(compile(manyTurns)(w, x), many(leaf.requires_grad_(), x)) < 1e-6);
}

TEST_CASE("a loop's gradient computes again what remat() or a limit of memory names") {
  auto gradientOf = [](bool isRemat) {
    return [=](const Tensor &first, const Tensor &second, const Tensor &x) {
      auto iteration = [&](const Tensor &h) { return tanh(matmul(gelu(matmul(h, first)), second)); };
      auto step = [&](const std::vector<Tensor> &state, const std::vector<Tensor> &element) {
        Tensor h = isRemat ? remat(iteration)(state[0]) : iteration(state[0]);
        return ScanResult{{h + element[0]}, {}};
      };
      Tensor last = scan(step, {zeros({4, 8})}, {x}).states[0];
      std::vector<Tensor> found = grad(last.sum(), {first, second});
      return std::make_tuple(found[0], found[1]);
    };
  };
  const std::vector<TensorSpec> specs{{f32, {8, 32}}, {f32, {32, 8}}, {f32, {200, 4, 8}}};
  Graph plain = trace(gradientOf(false), specs), again = trace(gradientOf(true), specs);
  const uint64_t kept = mostBytes(plain), recomputed = mostBytes(again);
  INFO(kept << " bytes, with remat " << recomputed);
  CHECK(recomputed + 32 * 1024 < kept); // without the products of 200 iterations, 100 KB; the peak is elsewhere then
  Tensor first = randn({8, 32}) * 0.3, second = randn({32, 8}) * 0.1, x = randn({200, 4, 8});
  auto wanted = compile(plain).run({first, second, x});
  for (const Artifact &lean : {compile(again), compile(plain, {.memory_limit = recomputed + 1000})}) {
    auto got = lean.run({first, second, x});
    for (size_t i = 0; i < wanted.size(); ++i)
      CHECK(all(wanted[i] == got[i]).item<bool>());
  }
}

TEST_CASE("loops without states are run again to keep a limit of memory") {
  auto f = [](const Tensor &x) {
    auto row = [](const std::vector<Tensor> &, const std::vector<Tensor> &part) {
      return ScanResult{{}, {cumsum(exp(part[0]), 0)}};
    };
    Tensor y = scan(row, {}, {x}).outputs[0], z = cumsum(cumsum(cumsum(y, 0), 0), 0);
    return z + y;
  };
  Tensor x = uniform({16, 64}, -1e-3, 0);
  Artifact tight = compile(trace(f, {x.spec()}), {.memory_limit = 4 * 4096 + 300});
  CHECK(contains(tight.memory_report(), "again: scan"));
  CHECK(all(tight(x) == jit(f)(x)).item<bool>());
}

TEST_CASE("a jitted function keeps a limit of memory, or says why it cannot") {
  auto f = [](const Tensor &x) {
    Tensor y = exp(cumsum(x, 0)), z = cumsum(cumsum(cumsum(y, 0), 0), 0);
    return z + y;
  };
  Tensor x = uniform({1024}, -1e-3, 0);
  auto tight = jit(f, {.memory_limit = 4 * 4096 + 100});
  CHECK(all(tight(x) == jit(f)(x)).item<bool>());
  auto impossible = jit(f, {.memory_limit = 8192});
  std::string message = messageOf([&] { impossible(x); });
  CHECK(contains(message, "cannot run in 0.008 MB"));
  CHECK(contains(message, "MemoryTest.cpp:"));
  CHECK(contains(message, "0.008 MB for weights, states, inputs and outputs"));
}

TEST_CASE("a limit of memory needs sizes with bounds") {
  auto f = [](const Tensor &x) { return cumsum(exp(x), 0); };
  Graph free = trace(f, {{f32, {Dim("n")}}}), ranged = trace(f, {{f32, {Dim("n", 1, 100)}}});
  CHECK(contains(messageOf([&] { compile(free, {.memory_limit = 1000000}); }), "has no upper bound"));
  CHECK(compile(ranged, {.memory_limit = 1300}).memory_report().size() > 0);
  CHECK(contains(messageOf([&] { compile(ranged, {.memory_limit = 1200}); }), "cannot run in"));
}

TEST_CASE("values are kept in bf16 where that is allowed only") {
  // The first value cannot be recomputed, as an index may be out of range.
  auto f = [](const Tensor &x, const Tensor &i) {
    Tensor y = take(x, i, 0);
    return cumsum(cumsum(cumsum(cumsum(y, 0), 0), 0), 0) + y;
  };
  Graph graph = trace(f, {{f32, {1024}}, {i64, {1024}}});
  const CompileOptions tight{.memory_limit = 4 * 4096 + 2 * 4096 + 2048 + 100};
  CHECK(contains(messageOf([&] { compile(graph, tight); }), "cannot run in"));
  CompileOptions narrow = tight;
  narrow.memory_allow_bf16 = true;
  Artifact artifact = compile(graph, narrow);
  CHECK(contains(artifact.memory_report(), "kept in bf16: take"));
  Tensor x = uniform({1024}, 1, 2), i = arange(1024), wanted = f(x, i), got = artifact(x, i);
  CHECK(largestDifference(got, wanted) > 0);
  CHECK((abs(got - wanted) / abs(wanted)).max().item() < 1.0 / 256);
}
