// Symbolic sizes with ranges and factors: Dim("seq", 1, 512), 8 * Dim("n").
#include "burin/burin.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <random>
#include <span>

using namespace burin;

namespace {
std::string messageOf(const auto &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}
std::vector<float> floats(const Tensor &x) { return x.to_vector<float>(); }
bool contains(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }
} // namespace

TEST_CASE("a run outside of a size's range is refused with the range's line") {
  const Dim seq("seq", 2, 8);
  const std::string line = "DimRangeTest.cpp:" + std::to_string(__LINE__ - 1);
  Graph graph = trace([](const Tensor &x) { return x * 2; }, {TensorSpec{f32, {seq, 3}}}, {"x"});
  CHECK(str(graph.inputs()[0]) == "x: f32[seq{2..8}, 3]");
  CHECK(graph.run({ones({2, 3})})[0].shape() == Shape{2, 3});
  CHECK(graph.run({ones({8, 3})})[0].shape() == Shape{8, 3});
  for (int64_t size : {0, 1, 9}) {
    std::string message = messageOf([&] { graph.run({ones({size, 3})}); });
    INFO(message);
    CHECK(contains(message, "seq must be in [2, 8], got " + std::to_string(size)));
    CHECK(contains(message, line));
  }
  CHECK(compile(graph).inputs()[0].spec == graph.inputs()[0].spec);
}

TEST_CASE("a size can be a multiple of a symbol") {
  const Dim n("n", 1, 4);
  auto sums = [](const Tensor &x) { return x.reshape({-1, 8}).sum(1); };
  Graph graph = trace(sums, {TensorSpec{f32, {8 * n + 16}}}, {"x"}, {"y"});
  CHECK(graph.outputs()[0].spec.shape == Shape{n + 2});
  Tensor y = graph.run({ones({32})})[0];
  CHECK(y.shape() == Shape{4});
  CHECK(all(y == 8).item<bool>());
  CHECK(contains(messageOf([&] { graph.run({ones({33})}); }), "axis 0 must be n*8 + 16, got 33"));
  CHECK(contains(messageOf([&] { graph.run({ones({16})}); }),
                 "n must be in [1, 4], got 0, as the size is n*8 + 16 = 16"));
  CHECK(contains(messageOf([&] { graph.run({ones({8})}); }), "n must be in [1, 4], got -1"));
}

TEST_CASE("a run with another size than a multiple is refused with the line of the Dim") {
  const Dim n("n"), seq("seq", 2, 8);
  const std::string line = "DimRangeTest.cpp:" + std::to_string(__LINE__ - 1);
  auto f = [](const Tensor &x, const Tensor &y) { return x.sum() + y.sum(); };
  const Dim m("m");
  const std::string other = "DimRangeTest.cpp:" + std::to_string(__LINE__ - 1);
  Graph graph = trace(f, {TensorSpec{f32, {seq, 8 * n}}, TensorSpec{f32, {m + 1, 2 * n}}}, {"x", "y"});
  auto folder = std::filesystem::temp_directory_path() / "burin-dim-line";
  std::filesystem::create_directories(folder);
  graph.save((folder / "g.burin").string());
  compile(graph).save((folder / "g.plate").string());
  const Graph loaded = Graph::load((folder / "g.burin").string());
  const Artifact artifact = Artifact::load((folder / "g.plate").string());
  auto refused = [&](const Shape &x, const Shape &y, const std::string &what) {
    for (const std::string &message :
         {messageOf([&] { graph.run({ones(x), ones(y)}); }), messageOf([&] { loaded.run({ones(x), ones(y)}); }),
          messageOf([&] { artifact.run({ones(x), ones(y)}); })}) {
      INFO(message);
      CHECK(contains(message, what));
    }
  };
  refused({2, 12}, {2, 4}, line + ": input 0 (x) axis 1 must be n*8, got 12");
  refused({2, 16}, {2, 5}, line + ": input 1 (y) axis 1: expected n*2 = 4, got 5");
  refused({9, 16}, {2, 4}, line + ": input 0 (x) axis 0: seq must be in [2, 8], got 9");
  refused({2, 16}, {0, 4}, other + ": input 1 (y) axis 0: m must be at least 0, got -1");
  std::filesystem::remove_all(folder);
}

TEST_CASE("what a range decides is known in a trace") {
  const Dim n("n", 8, 64);
  Graph graph = trace(
      [](const Tensor &x) {
        CHECK(x.size(0) <= 64);
        CHECK(x.size(0) >= 8);
        CHECK(x.size(0) != 7);
        CHECK_FALSE(x.size(0) < 8);
        CHECK_FALSE(65 < x.size(0));
        CHECK_THROWS_AS(x.size(0) == 8, Error);
        CHECK_THROWS_AS(x.size(0) < 64, Error);
        return x[Slice(None, 8)];
      },
      {TensorSpec{f32, {n}}});
  CHECK(graph.outputs()[0].spec.shape == Shape{8}); // not min(n, 8)
}

TEST_CASE("a border is refused where there is nothing to repeat or mirror") {
  CHECK(contains(messageOf([] { pad(ones({0, 3}), {1, 0}, {0, 0}, "edge"); }), "too small to be padded by 1 and 0"));
  CHECK(contains(messageOf([] { pad(ones({2, 3}), {0, 3}, {0, 0}, "reflect"); }), "too small to be padded by 3 and 0"));
  CHECK(pad(ones({0, 3}), {0, 1}, {0, 0}, "edge").shape() == Shape{0, 4}); // not along the empty axis
  CHECK(pad(ones({0, 3}), {1, 0}, {0, 0}).shape() == Shape{1, 3});
  const std::string first = "DimRangeTest.cpp:" + std::to_string(__LINE__ + 1);
  auto edge = [](const Tensor &x) { return pad(x, {1, 0}, {2, 0}, "edge") * 2; };
  const std::string second = "DimRangeTest.cpp:" + std::to_string(__LINE__ + 1);
  auto mirror = [](const Tensor &x) { return pad(x, {1, 0}, {2, 0}, "reflect"); };
  const TensorSpec rows{f32, {Dim("n"), 2}};
  auto refused = [](auto &compiled, int64_t n, const std::string &what) {
    std::string message = messageOf([&] { compiled.run({ones({n, 2})}); });
    INFO(message);
    CHECK(contains(message, what));
  };
  Graph edges = trace(edge, {rows}), mirrors = trace(mirror, {rows});
  for (int64_t n : {1, 2, 3, 5})
    CHECK(equal(edges.run({iota({n, 2}, f32, 0)})[0], edge(iota({n, 2}, f32, 0))));
  for (int64_t n : {3, 4, 7})
    CHECK(equal(mirrors.run({iota({n, 2}, f32, 0)})[0], mirror(iota({n, 2}, f32, 0))));
  refused(edges, 0, first + ": n must be at least 1, but is 0");
  for (int64_t n : {0, 1, 2})
    refused(mirrors, n, second + ": n must be at least 3, but is " + std::to_string(n));
  Artifact artifact = compile(edges);
  refused(artifact, 0, first + ": n must be at least 1");
  // A range that excludes it needs no check; sizes that a run computes are checked in the run.
  Graph ranged = trace(edge, {TensorSpec{f32, {Dim("n", 1, 9), 2}}});
  refused(ranged, 0, "n must be in [1, 9], got 0");
  Graph kept = trace([](const Tensor &x) { return pad(masked_select(x, x > 0), {1}, {0}, "edge"); }, {rows});
  CHECK(floats(kept.run({tensor({{-1.0f, 2.0f}})})[0]) == std::vector<float>{2, 2});
  std::string message = messageOf([&] { kept.run({zeros({1, 2})})[0].to_vector<float>(); });
  INFO(message);
  CHECK(contains(message, "must be at least 1, but is 0"));
}

TEST_CASE("two ranges of one name do not go into one graph") {
  auto add = [](const Tensor &x, const Tensor &y) { return x.sum() + y.sum(); };
  std::string message =
      messageOf([&] { trace(add, {TensorSpec{f32, {Dim("n", 1, 8)}}, TensorSpec{f32, {Dim("n", 1, 9)}}}); });
  CHECK(contains(message, "n{1..8} and n{1..9}"));
}

TEST_CASE("ranges and factors are kept in files") {
  auto folder = std::filesystem::temp_directory_path() / "burin-dim-range";
  std::filesystem::create_directories(folder);
  Graph graph = trace([](const Tensor &x) { return x + 1; }, {TensorSpec{f32, {4 * Dim("n", 1, 3)}}}, {"x"});
  graph.save((folder / "g.burin").string());
  Graph again = Graph::load((folder / "g.burin").string());
  CHECK(str(again.inputs()[0]) == "x: f32[n{1..3}*4]");
  compile(again).save((folder / "g.plate").string());
  Artifact artifact = Artifact::load((folder / "g.plate").string());
  CHECK(str(artifact.inputs()[0]) == "x: f32[n{1..3}*4]");
  CHECK(artifact.run({ones({12})})[0].shape() == Shape{12});
  CHECK_THROWS_AS(artifact.run({ones({16})}), Error);
  std::filesystem::remove_all(folder);
}

namespace {
/// A causal attention layer over embeddings, then the mean over the sequence, in plain loops over doubles.
class Model {
public:
  static constexpr int64_t kWords = 11, kWidth = 4;
  Tensor table = randn({kWords, kWidth}), query = randn({kWidth, kWidth}), key = randn({kWidth, kWidth}),
         value = randn({kWidth, kWidth});

  Tensor operator()(const Tensor &ids) const {
    Tensor x = take(table, ids, 0);
    Tensor q = unsqueeze(matmul(x, query), {1}), k = unsqueeze(matmul(x, key), {1}),
           v = unsqueeze(matmul(x, value), {1});
    return scaled_dot_product_attention(q, k, v, std::nullopt, true).mean(2).reshape({ids.size(0), kWidth});
  }

  std::vector<double> expected(std::span<const int64_t> ids) const {
    const size_t length = ids.size();
    std::vector<double> q = project(ids, query), k = project(ids, key), v = project(ids, value), result(kWidth);
    for (size_t row = 0; row < length; ++row) {
      std::vector<double> weights(row + 1);
      double most = -INFINITY, sum = 0;
      for (size_t i = 0; i <= row; ++i) {
        for (int64_t c = 0; c < kWidth; ++c)
          weights[i] += q[row * kWidth + size_t(c)] * k[i * kWidth + size_t(c)];
        weights[i] /= std::sqrt(double(kWidth));
        most = std::max(most, weights[i]);
      }
      for (double &weight : weights)
        sum += weight = std::exp(weight - most);
      for (size_t i = 0; i <= row; ++i)
        for (int64_t c = 0; c < kWidth; ++c)
          result[size_t(c)] += weights[i] / sum * v[i * kWidth + size_t(c)] / double(length);
    }
    return result;
  }

private:
  std::vector<double> project(std::span<const int64_t> ids, const Tensor &weight) const {
    auto words = table.to_vector<double>(), w = weight.to_vector<double>();
    std::vector<double> result(ids.size() * kWidth);
    for (size_t row = 0; row < ids.size(); ++row)
      for (int64_t c = 0; c < kWidth; ++c)
        for (int64_t i = 0; i < kWidth; ++i)
          result[row * kWidth + size_t(c)] += words[size_t(ids[row] * kWidth + i)] * w[size_t(i * kWidth + c)];
    return result;
  }
};
} // namespace

TEST_CASE("one artifact is right for 2000 pairs of batch and sequence sizes") {
  manual_seed(7);
  const Model model;
  const TensorSpec ids{i64, {Dim("batch", 1, 257), Dim("seq", 1, 300)}};
  const Artifact artifact = compile(trace(model, {ids}));
  std::mt19937 random(3);
  double worst = 0;
  for (int run = 0; run < 2000; ++run) {
    int64_t batch = run == 0 ? 1 : run == 1 ? 257 : int64_t(random() % 257 + 1);
    int64_t seq = run == 0 ? 1 : run == 1 ? 300 : int64_t(random() % 300 + 1);
    // Two different rows, repeated, as the reference loops are slow.
    std::vector<int64_t> values(size_t(batch * seq));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i < size_t(2 * seq) ? int64_t(random() % Model::kWords) : values[i - size_t(2 * seq)];
    Tensor input = from_vector(values, Shape{batch, seq});
    auto result = artifact.run({input})[0].to_vector<float>();
    REQUIRE(result.size() == size_t(batch * Model::kWidth));
    for (int64_t row = 0; row < std::min<int64_t>(batch, 2); ++row) {
      std::vector<double> expected = model.expected(std::span(values).subspan(size_t(row * seq), size_t(seq)));
      for (int64_t b = row; b < batch; b += 2)
        for (size_t c = 0; c < expected.size(); ++c)
          worst = std::max(worst, std::abs(result[size_t(b * Model::kWidth) + c] - expected[c]));
    }
    INFO(batch << " × " << seq);
    REQUIRE(worst < 1e-5);
  }
  CHECK_THROWS_AS(artifact.run({zeros({258, 2}).to(i64)}), Error);
  CHECK_THROWS_AS(artifact.run({zeros({2, 301}).to(i64)}), Error);
  CHECK_THROWS_AS(artifact.run({zeros({0, 2}).to(i64)}), Error);
}

TEST_CASE("sizes that are too complex for code are an error, not the end of the process") {
  int tooComplex = 0;
  for (int terms : {10, 20, 30, 40, 50, 60}) {
    CAPTURE(terms);
    std::vector<TensorSpec> specs;
    for (int i = 0; i < terms; ++i)
      specs.push_back({f32, {Dim("a_rather_long_name_of_size_" + std::to_string(i)), 8}});
    std::string what;
    try {
      compile(trace(
          [](const std::vector<Tensor> &xs) {
            std::vector<Tensor> parts;
            for (const Tensor &x : xs)
              parts.push_back(x(Slice(0, x.size(0) / 3)));
            Tensor all = concat(parts);
            return matmul(all, all.t()).sum();
          },
          specs));
    } catch (const Error &error) {
      what = error.what();
    }
    INFO(what);
    if (!what.empty())
      CHECK(contains(what, "too large"));
    tooComplex += contains(what, "fix some of them");
  }
  CHECK(tooComplex > 0);
}
