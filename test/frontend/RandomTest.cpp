// Generators: compiled draws equal eager ones, each call draws new numbers, and distributions are right.
#include "test/frontend/Check.h"
#include <algorithm>
#include <cmath>
#include <set>

namespace {

using Draw = std::function<Tensor(const Generator &)>;

/// Every kind of draw, with odd sizes.
const std::vector<std::pair<const char *, Draw>> &draws() {
  using G = const Generator &;
  static const std::vector<std::pair<const char *, Draw>> list{
      {"rand", [](G g) { return g.rand({37, 5}); }},
      {"rand f64", [](G g) { return g.rand({3, 11}, f64); }},
      {"rand bf16", [](G g) { return g.rand({130}, bf16); }},
      {"uniform", [](G g) { return g.uniform({7, 9}, -2, 5); }},
      {"randn", [](G g) { return g.randn({2, 3, 17}); }},
      {"randn f64", [](G g) { return g.randn({33}, f64); }},
      {"normal f16", [](G g) { return g.normal({65}, 3, 0.5, f16); }},
      {"truncated normal", [](G g) { return g.truncated_normal({129}); }},
      {"truncated normal in the upper tail", [](G g) { return g.truncated_normal({129}, 1, 2, 7, 9); }},
      {"truncated normal in the lower tail", [](G g) { return g.truncated_normal({65}, 0, 1, -INFINITY, -6, f64); }},
      {"exponential", [](G g) { return g.exponential({50}, 3); }},
      {"gamma", [](G g) { return g.gamma(full({21}, 0.7f)); }},
      {"randint", [](G g) { return g.randint(-5, 1000, {9, 9}); }},
      {"randint u8", [](G g) { return g.randint(0, 256, {31}, u8); }},
      {"randint i8", [](G g) { return g.randint(-128, 128, {31}, i8); }},
      {"randint of two numbers", [](G g) { return g.randint(INT64_MAX - 2, INT64_MAX, {100}); }},
      {"many randint", [](G g) { return g.randint(0, 1000, {10'000}); }},
      {"randint of 2^31 numbers", [](G g) { return g.randint(INT64_MIN, INT64_MIN + (int64_t(1) << 31), {901}); }},
      {"randint of 2^31 + 1 numbers", [](G g) { return g.randint(-7, (int64_t(1) << 31) - 6, {901}); }},
      {"bernoulli", [](G g) { return g.bernoulli(full({77}, 0.3f)); }},
      {"randperm", [](G g) { return g.randperm(53); }},
      {"categorical", [](G g) { return g.categorical(zeros({19, 7})); }},
      {"multinomial", [](G g) { return g.multinomial(ones({4, 12}), 5); }},
      {"multinomial with replacement", [](G g) { return g.multinomial(ones({6}), 31, true); }},
      {"nothing", [](G g) { return g.rand({0, 3}); }},
      {"a scalar", [](G g) { return g.randn({}); }},
  };
  return list;
}

std::vector<char> bytesOf(const Tensor &x) {
  auto bytes = x.bytes();
  auto *data = reinterpret_cast<const char *>(bytes.data());
  return {data, data + bytes.size()};
}

double averageOf(const Tensor &x) { return x.to(f64).mean().item(); }
double varianceOf(const Tensor &x) { return x.to(f64).var().item(); }

} // namespace

TEST_CASE("compiled draws are eager draws, and each call draws anew") {
  for (const auto &[name, draw] : draws()) {
    INFO(name);
    Generator eager(7), state(7);
    auto compiled = jit([&] { return std::pair(draw(state), draw(state)); });
    std::set<std::vector<char>> seen;
    for (int call = 0; call < 3; ++call) {
      Tensor a = draw(eager), b = draw(eager);
      auto [x, y] = compiled();
      CHECK(x.spec() == a.spec());
      CHECK(bytesOf(x) == bytesOf(a));
      CHECK(bytesOf(y) == bytesOf(b));
      seen.insert(bytesOf(a));
      seen.insert(bytesOf(b));
    }
    CHECK(compiled.traces() == 1);
    bool isTiny = draw(eager).numel() <= 1;
    if (!isTiny)
      CHECK(seen.size() == 6);
    CHECK(ints(state.state().value()) ==
          std::vector<int64_t>{ints(eager.state().value())[0], ints(state.state().value())[1]});
  }
}

TEST_CASE("a draw is what the op gives for the generator's key") {
  Generator g(11), same(11);
  Tensor drawn = g.rand({5, 7});
  CHECK(bytesOf(drawn) == bytesOf(random_uniform({5, 7}, 0, f32, same.key())));
  Tensor normals = g.randn({301});
  CHECK(bytesOf(normals) == bytesOf(random_normal({301}, 0, f32, same.key())));
  Tensor state = tensor({11, 1}, i64);
  CHECK(bytesOf(normals) == bytesOf(random_normal({301}, 0, f32, random_key(state))));
  // The published first words of Philox 4x32-10 with key and counter 0.
  Tensor first = random_uniform({4}, 0, f32, tensor(0, i64));
  CHECK(floats(first) == std::vector<float>{float((0x6627e8d5 >> 8) * 0x1p-24), float((0xe169c58d >> 8) * 0x1p-24),
                                            float((0xbc57ac4c >> 8) * 0x1p-24), float((0x9b00dbd8 >> 8) * 0x1p-24)});
}

TEST_CASE("manual_seed starts the sequence anew, eagerly and compiled") {
  auto compiled = jit([] { return randn({9}); });
  manual_seed(5);
  Tensor a = randn({9}), b = randn({9});
  manual_seed(5);
  CHECK(bytesOf(compiled()) == bytesOf(a));
  CHECK(bytesOf(randn({9})) == bytesOf(b)); // eager and jitted draws advance one sequence
  manual_seed(6);
  CHECK(bytesOf(compiled()) != bytesOf(a));
  manual_seed(5);
  CHECK(bytesOf(compiled()) == bytesOf(a));
  CHECK(compiled.traces() == 1);
}

TEST_CASE("an artifact's generators are states of its own") {
  auto f = [generator = Generator(11)](const Tensor &x) { return x + generator.normal({4}, 0, 1) + randn({4}); };
  manual_seed(9);
  Graph graph = trace(f, {{f32, {4}}});
  Artifact artifact = compile(graph), other = artifact.with_own_states();
  std::vector<std::vector<float>> eager;
  for (int i = 0; i < 3; ++i)
    eager.push_back(floats(f(zeros({4}))));
  for (int i = 0; i < 3; ++i)
    CHECK(floats(artifact(zeros({4}))) == eager[size_t(i)]);
  CHECK(floats(other(zeros({4}))) == eager[0]);
  std::vector<std::string> names;
  for (const NamedSpec &state : artifact.states())
    names.push_back(state.name);
  CHECK(names == std::vector<std::string>{"generator", "generator#1"});
  artifact.reset_states();
  CHECK(floats(artifact(zeros({4}))) == eager[0]);
}

TEST_CASE("split makes generators whose numbers differ") {
  Generator g(3), same(3);
  std::vector<Generator> parts = g.split(4), again = same.split(4);
  std::set<std::vector<char>> seen{bytesOf(g.rand({8}))};
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor x = parts[i].rand({8});
    CHECK(bytesOf(x) == bytesOf(again[i].rand({8})));
    seen.insert(bytesOf(x));
  }
  CHECK(seen.size() == 5);
  CHECK_ERROR(g.split(-1), "-1 generators");
  CHECK_ERROR(jit([&] { return g.split(2)[0].rand({1}); })(), "split outside");
}

TEST_CASE("a generator's state can be saved and set") {
  Generator g(9);
  g.rand({3});
  Tensor saved = g.state().value();
  Tensor x = g.rand({3});
  Generator other;
  other.state().set(saved);
  CHECK(bytesOf(other.rand({3})) == bytesOf(x));
}

TEST_CASE("elements do not depend on how many are drawn") {
  Generator a(2), b(2);
  CHECK(bytesOf(a.randn({1003})[Slice(0, 5)]) == bytesOf(b.randn({5})));
  CHECK(bytesOf(a.rand({40, 25}).reshape({1000})) == bytesOf(b.rand({1000})));
}

TEST_CASE("draws have the moments and limits of their distributions") {
  Generator g(1);
  const int64_t n = 200000;
  Tensor u = g.uniform({n}, -1, 3);
  CHECK(averageOf(u) == Approx(1).margin(0.01));
  CHECK(varianceOf(u) == Approx(16 / 12.0).margin(0.01));
  CHECK(u.min().item() >= -1);
  CHECK(u.max().item() < 3);
  for (DType dtype : {f32, f64}) {
    Tensor x = g.randn({n}, dtype);
    CHECK(averageOf(x) == Approx(0).margin(0.01));
    CHECK(varianceOf(x) == Approx(1).margin(0.02));
    CHECK(averageOf(pow(x, 4)) == Approx(3).margin(0.1));
    CHECK(averageOf(x[Slice(0, n, 2)] * x[Slice(1, n, 2)]) == Approx(0).margin(0.01));
    // Truncated at two deviations: the variance is 1 - 4 phi(2) / (2 Phi(2) - 1).
    Tensor t = g.truncated_normal({n}, 0, 1, -2, 2, dtype);
    CHECK(averageOf(t) == Approx(0).margin(0.01));
    CHECK(varianceOf(t) == Approx(0.7737).margin(0.01));
    CHECK(t.abs().max().item() <= 2);
    Tensor e = g.exponential({n}, 2, dtype);
    CHECK(averageOf(e) == Approx(0.5).margin(0.01));
    CHECK(varianceOf(e) == Approx(0.25).margin(0.02));
    CHECK(e.min().item() >= 0);
  }
  for (double a : {0.3, 1.0, 4.5}) {
    Tensor x = g.gamma(full({n / 4}, a));
    CHECK(averageOf(x) == Approx(a).epsilon(0.03));
    CHECK(varianceOf(x) == Approx(a).epsilon(0.06));
    CHECK(x.min().item() >= 0);
  }
  Tensor i = g.randint(-2, 3, {n});
  for (int64_t value = -2; value < 3; ++value)
    CHECK(averageOf((i == value).to(f32)) == Approx(0.2).margin(0.005));
  CHECK(averageOf(g.bernoulli(full({n}, 0.3f))) == Approx(0.3).margin(0.005));
  Tensor weights = tensor({1.0, 0.0, 3.0});
  Tensor chosen = g.multinomial(weights, n, true);
  CHECK(averageOf((chosen == 2).to(f32)) == Approx(0.75).margin(0.005));
  CHECK_FALSE((chosen == 1).any().item<bool>());
  CHECK(averageOf((g.categorical(broadcast_to(log(weights), {n, 3})) == 0).to(f32)) == Approx(0.25).margin(0.005));
}

namespace {
/// The part of N(0, 1) in [low, high], by libm in double. Beyond 37 deviations all of it underflows.
struct Truncated {
  double low, high;
  static double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
  static double above(double x) { return std::erfc(x * M_SQRT1_2) / 2; }
  bool isMirrored() const { return high < -low; } // so that probabilities are those of the smaller tail
  Truncated mirrored() const { return isMirrored() ? Truncated{-high, -low} : *this; }
  double part() const { return above(mirrored().low) - above(mirrored().high); }
  /// The distribution function.
  double below(double x) const {
    const Truncated m = mirrored();
    return isMirrored() ? (above(-x) - above(m.high)) / part() : (above(m.low) - above(x)) / part();
  }
  double mean() const { return (density(low) - density(high)) / part(); }
  double variance() const {
    auto term = [](double x) { return std::isinf(x) ? 0 : x * density(x); };
    return 1 + (term(low) - term(high)) / part() - mean() * mean();
  }
};
} // namespace

TEST_CASE("truncated normals are right in the tails") {
  const double inf = INFINITY;
  Generator g(6);
  const int64_t n = 50000;
  for (DType dtype : {f32, f64})
    for (Truncated range : {Truncated{-1, 1.5},
                            {-inf, 0.5},
                            {0.5, 1.875},
                            {1.875, 3},
                            {2, inf},
                            {2.5, 2.625},
                            {3, 4},
                            {4.5, 5.5},
                            {-5.5, -4.5},
                            {4.5, inf},
                            {-inf, -6},
                            {8, 9},
                            {-9, -8},
                            {12, inf},
                            {-inf, -20},
                            {30, inf},
                            {30, 30.015625},
                            {-31, -30}}) {
      INFO("[" << range.low << ", " << range.high << "] " << name(dtype));
      Tensor x = g.truncated_normal({n}, 0, 1, range.low, range.high, dtype);
      CHECK(averageOf(x) == Approx(range.mean()).margin(5 * std::sqrt(range.variance() / double(n))));
      CHECK(x.min().item() >= range.low);
      CHECK(x.max().item() <= range.high);
      std::vector<double> values = x.to(f64).to_vector<double>();
      std::sort(values.begin(), values.end());
      // Of 24 bits, and in f32 as many as there are between the limits.
      const size_t different = std::set<double>(values.begin(), values.end()).size();
      CHECK(different > size_t(n) * (dtype == f64 ? 99 : range.high - range.low < 0.1 ? 8 : 50) / 100);
      // Kolmogorov-Smirnov: the distribution function of the draws is uniform. P(distance > 2 / sqrt(n)) = 7e-4.
      double distance = 0;
      for (size_t i = 0; i < values.size(); ++i)
        distance = std::max(distance, std::fabs(range.below(values[i]) - (double(i) + 0.5) / double(n)));
      CHECK(distance < 2 / std::sqrt(double(n)));
    }
  Tensor shifted = g.truncated_normal({n}, 10, 2, 22, 24); // [6, 7] deviations
  CHECK(averageOf(shifted) == Approx(10 + 2 * Truncated{6, 7}.mean()).margin(0.002));
  // Where even logarithms overflow, all draws are at the limit.
  CHECK(floats(g.truncated_normal({2}, 0, 1, 1e30, 2e30)) == std::vector<float>(2, 1e30f));
}

TEST_CASE("each uniform number gives the truncated normal of its probability") {
  // Draws are rand() through the inverse of the distribution function.
  for (Truncated range :
       {Truncated{-2, 2}, {2, 3}, {3, INFINITY}, {4.5, 5.5}, {12, INFINITY}, {-9, -8}, {30, INFINITY}})
    for (DType dtype : {f32, f64}) {
      INFO("[" << range.low << ", " << range.high << "] " << name(dtype));
      Generator g(3), same(3);
      std::vector<double> x = g.truncated_normal({500}, 0, 1, range.low, range.high, dtype).to(f64).to_vector<double>();
      std::vector<double> unit = same.rand({500}, dtype).to(f64).to_vector<double>();
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i)
        worst = std::max(worst, std::fabs(range.below(x[i]) - (range.high < 0 ? 1 - unit[i] : unit[i])));
      CHECK(worst < (dtype == f64 ? 1e-10 : 1e-4));
    }
}

TEST_CASE("truncated normals in a tail do not depend on threads, compilation or files") {
  for (DType dtype : {f32, f64}) {
    auto draw = [dtype](const Generator &g, int64_t n) { return g.truncated_normal({n}, 0, 1, 5, 9, dtype); };
    const int64_t many = 1 << 17, few = 129; // by several threads, and by one
    Generator eager(9), state(9), kept(9), other(9);
    const Tensor x = draw(eager, many);
    CHECK(bytesOf(x[Slice(0, few)]) == bytesOf(draw(other, few)));
    CHECK(bytesOf(x) == bytesOf(jit([&] { return draw(state, many); })()));
    CHECK(bytesOf(x) == bytesOf(compile(trace([&] { return draw(kept, many); }, {})).run({})[0]));
  }
}

TEST_CASE("permutations and draws without replacement hold each index once") {
  Generator g(4);
  Tensor p = g.randperm(1000);
  CHECK(ints(argsort(p)) != ints(p));
  std::set<int64_t> seen;
  for (int64_t i : ints(p))
    seen.insert(i);
  CHECK(seen.size() == 1000);
  CHECK(*seen.rbegin() == 999);
  for (const Tensor &row : {g.multinomial(ones({8}), 8), g.multinomial(ones({3, 8}), 8)[1]}) {
    std::vector<int64_t> indices = ints(row);
    CHECK(std::set<int64_t>(indices.begin(), indices.end()).size() == 8);
  }
}

TEST_CASE("dropout under jit drops others in each call, and its gradient uses the same mask") {
  manual_seed(8);
  nn::Dropout dropout(0.25);
  Tensor x = full({64, 33}, 2.0f);
  auto f = jit([&](const Tensor &x) {
    Tensor y = dropout(x);
    return std::pair(y, grad((y * y).sum(), {x})[0]);
  });
  std::set<std::vector<char>> seen;
  for (int call = 0; call < 4; ++call) {
    auto [y, dx] = f(x);
    seen.insert(bytesOf(y));
    // y is x / 0.75 where the mask keeps it, so d(y^2)/dx = 2 y / 0.75 there.
    CHECK(largestDifference(dx, y * (2 / 0.75)) < 1e-5);
    CHECK(averageOf((y == 0).to(f32)) == Approx(0.25).margin(0.05));
  }
  CHECK(seen.size() == 4);
  CHECK(f.traces() == 1);
}

TEST_CASE("eager and jitted training with dropout are the same") {
  auto train = [](bool isCompiled) {
    manual_seed(12);
    auto net = nn::Sequential(nn::Linear(5, 16), nn::ReLU(), nn::Dropout(0.5), nn::Linear(16, 1));
    auto loss = [&](const Tensor &x) { return pow(net(x), 2).mean(); };
    auto compiled = jit(loss);
    std::vector<float> losses;
    for (int i = 0; i < 5; ++i) {
      Tensor x = randn({12, 5});
      losses.push_back((isCompiled ? compiled(x) : loss(x)).template item<float>());
    }
    return losses;
  };
  std::vector<float> eager = train(false), compiled = train(true);
  for (size_t i = 0; i < eager.size(); ++i)
    CHECK(compiled[i] == Approx(eager[i]).epsilon(1e-5));
}

TEST_CASE("random functions refuse what they cannot draw") {
  Generator g;
  CHECK_ERROR(g.rand({2}, i32), "use randint");
  CHECK_ERROR(g.rand({-1}), "negative");
  CHECK_ERROR(g.randint(3, 3, {2}), "no integer in [3, 3)");
  CHECK_ERROR(g.exponential({2}, 0), "must be positive");
  CHECK_ERROR(g.truncated_normal({2}, 0, 1, 3, 2), "low < high");
  CHECK_ERROR(g.truncated_normal({2}, 0, -1, 2, 3), "deviation -1");
  CHECK_ERROR(g.uniform({2}, 0, INFINITY), "must be finite");
  CHECK_ERROR(g.uniform({2}, 5, 1), "low is 5");
  CHECK_ERROR(uniform({2}, 5, 1), "RandomTest.cpp");
  CHECK(floats(g.uniform({2}, 3, 3)) == std::vector<float>{3, 3});
  CHECK_ERROR(g.normal({2}, 0, -1), "normal: the deviation -1");
  CHECK_ERROR(g.normal({2}, 0, NAN), "must not be negative");
  CHECK(floats(g.normal({2}, 4, 0)) == std::vector<float>{4, 4});
  CHECK_ERROR(jit([&] { return g.uniform({2}, 5, 1); })(), "low is 5");
  CHECK_ERROR(g.exponential({2}, NAN), "must be positive");
  CHECK_ERROR(g.truncated_normal({2}, NAN, 1, 2, 3), "finite mean");
  CHECK_ERROR(g.randperm(-1), "negative");
  // Values are checked when they are computed.
  CHECK_ERROR(g.bernoulli(tensor({0.5f, 1.5f})).to_vector<float>(), "a probability is not in [0, 1]");
  CHECK_ERROR(g.bernoulli(tensor({-0.1f})).to_vector<float>(), "a probability is not in [0, 1]");
  CHECK_ERROR(g.bernoulli(tensor({float(NAN)})).to_vector<float>(), "a probability is not in [0, 1]");
  CHECK(floats(g.bernoulli(tensor({0.0f, 1.0f}))) == std::vector<float>{0, 1});
  CHECK_ERROR(g.gamma(tensor({1.0f, 0.0f})).to_vector<float>(), "a concentration is not positive");
  CHECK_ERROR(g.multinomial(tensor({1.0f, -1.0f}), 1).to_vector<int64_t>(), "negative or not finite");
  CHECK_ERROR(g.multinomial(tensor({1.0f, float(INFINITY)}), 1, true).to_vector<int64_t>(), "negative or not finite");
  CHECK_ERROR(g.multinomial(tensor({0.0f, 0.0f}), 1, true).to_vector<int64_t>(), "fewer than 1 weights");
  CHECK_ERROR(g.multinomial(tensor({{1.0f, 1.0f}, {0.0f, 1.0f}}), 2).to_vector<int64_t>(), "fewer than 2 weights");
  auto drawn = jit([&](const Tensor &p) { return g.bernoulli(p); });
  CHECK(floats(drawn(tensor({1.0f, 0.0f}))) == std::vector<float>{1, 0});
  CHECK_ERROR(drawn(tensor({1.0f, 2.0f})).to_vector<float>(), "a probability is not in [0, 1]");
  CHECK_ERROR(g.multinomial(ones({3}), 4), "at most k draws");
  CHECK_ERROR(g.categorical(zeros({2, 0})), "nothing to choose from");
}
