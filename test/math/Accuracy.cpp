// Evaluates the elementary functions over the range of floats and prints the largest error of each; docs/numerics.md
// lists them.
//   Accuracy [--all] [--time] [function…]     --all: every float instead of a sample; --time: ns per element
#include "codegen/scalar/math/Math.h"
#include "test/math/Jit.h"
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

using namespace burin;
using codegen::Scalar;

namespace {

struct Row {
  const char *name;
  double limit; // ulp
  Scalar (*lower)(Scalar);
  double (*exact)(double);
  double from = -std::numeric_limits<double>::infinity(); // smaller inputs are skipped
};

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

#define ROW(name, limit)                                                                                               \
  {#name, limit, [](Scalar x) { return codegen::name(x); }, [](double x) { return std::name(x); }}
const Row rows[] = {
    ROW(exp, 2),
    ROW(expm1, 2),
    ROW(log, 2),
    ROW(log1p, 2),
    ROW(tanh, 2),
    ROW(erf, 2),
    {"sigmoid", 2, [](Scalar x) { return codegen::sigmoid(x); }, sigmoid},
    {"silu", 3, [](Scalar x) { return codegen::silu(x); }, [](double x) { return x * sigmoid(x); }},
    ROW(sin, 2),
    ROW(cos, 2),
    ROW(tan, 2),
    ROW(asin, 2),
    ROW(acos, 2),
    ROW(atan, 2),
    ROW(sinh, 3),
    ROW(cosh, 3),
    ROW(asinh, 3),
    ROW(acosh, 3),
    ROW(atanh, 3),
    ROW(sqrt, 0.5),
    {"softplus", 3, [](Scalar x) { return codegen::softplus(x, 1, 20); },
     [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); }},
    {"gelu", 2, [](Scalar x) { return codegen::gelu(x, false); },
     [](double x) { return x / 2 * std::erfc(-x * M_SQRT1_2); }, 0},
};

/// Returns the distance of `got` from `exact` in units of the last place of an f32 near `exact`; infinity if only one
/// of them is NaN, or if `got` differs from an exact zero or infinity.
double errorInUlp(float got, double exact) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (std::isnan(exact))
    return std::isnan(got) ? 0 : inf;
  if (std::isnan(got))
    return inf;
  if (std::isinf(exact) || exact == 0)
    return got == exact && std::signbit(got) == std::signbit(exact) ? 0 : inf;
  // Values beyond the range and infinity count as the first value beyond the range; a result of 0 keeps its sign.
  exact = std::clamp(exact, -0x1p128, 0x1p128);
  double value = std::isinf(got) ? std::copysign(0x1p128, got) : got;
  if (got == 0 && std::signbit(got) != std::signbit(exact))
    return inf;
  int exponent = std::clamp(static_cast<int>(std::bit_cast<uint64_t>(exact) >> 52 & 0x7ff) - 1023, -126, 127);
  double placesPerUnit = std::bit_cast<double>(static_cast<uint64_t>(1023 + 23 - exponent) << 52);
  return std::fabs(value - exact) * placesPerUnit;
}

constexpr int64_t block = 1 << 14;

struct Worst {
  double ulp = 0;
  float at = 0, got = 0;
};

void judge(const Row &row, const std::vector<float> &x, const std::vector<float> &y, Worst &worst) {
  for (size_t i = 0; i < x.size(); ++i) {
    double ulp = x[i] < row.from ? 0 : errorInUlp(y[i], row.exact(x[i]));
    if (!(ulp <= worst.ulp))
      worst = {ulp, x[i], y[i]};
  }
}

Worst sweep(const Row &row, test::Kernel kernel, uint64_t stride) {
  Worst worst;
  std::vector<float> x(block), y(block);
  for (uint64_t start = 0; start < (1ull << 32); start += stride * block) {
    for (int64_t i = 0; i < block; ++i)
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(start + i * stride));
    const void *in[] = {x.data()};
    kernel(in, y.data(), block);
    judge(row, x, y, worst);
  }
  return worst;
}

Worst specials(const Row &row, test::Kernel kernel) {
  Worst worst;
  std::vector<float> x;
  for (float v :
       {0.0f, 1e-45f, 1.17549421e-38f, 1.17549435e-38f, 1e-20f, 0.5f, 1.0f, 2.0f, 3.402823466e38f, INFINITY, NAN})
    x.insert(x.end(), {v, -v, std::nextafter(v, 0.0f), std::nextafter(v, INFINITY)});
  std::vector<float> y(x.size());
  const void *in[] = {x.data()};
  kernel(in, y.data(), x.size());
  judge(row, x, y, worst);
  return worst;
}

/// Returns whether vectors of `lanes` give the same bits as single elements.
bool sameBits(test::Kernel one, test::Kernel many) {
  std::vector<float> x(block), a(block), b(block);
  for (int64_t i = 0; i < block; ++i)
    x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 262147u));
  const void *in[] = {x.data()};
  one(in, a.data(), block);
  many(in, b.data(), block);
  for (int64_t i = 0; i < block; ++i)
    if (std::memcmp(&a[i], &b[i], 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  return true;
}

double nanosecondsPerElement(test::Kernel kernel) {
  constexpr int64_t n = 4096;
  std::vector<float> x(n), y(n);
  for (int64_t i = 0; i < n; ++i)
    x[i] = 0.05f + 10.0f * i / n;
  const void *in[] = {x.data()};
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 10; ++k)
      kernel(in, y.data(), n);
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / (10 * n));
  }
  return best;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t stride = 1021;
  bool timed = false;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--all")
      stride = 1;
    else if (argument == "--time")
      timed = true;
    else
      wanted.push_back(argument);
  }
  test::Jit jit;
  std::vector<Row> chosen;
  for (const Row &row : rows)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row.name) != wanted.end())
      chosen.push_back(row);
  for (const Row &row : chosen)
    for (int lanes : {1, 8, 16})
      jit.add(row.name + std::to_string(lanes), {f32}, lanes,
              [&](llvm::ArrayRef<Scalar> x) { return row.lower(x[0]); });
  jit.compile();

  int failures = 0;
  for (const Row &row : chosen) {
    std::string name = row.name;
    test::Kernel kernel = jit[name + "16"];
    Worst worst = sweep(row, kernel, stride), special = specials(row, kernel);
    if (!(special.ulp <= worst.ulp))
      worst = special;
    bool same = sameBits(jit[name + "1"], jit[name + "8"]) && sameBits(jit[name + "1"], kernel);
    bool good = worst.ulp <= row.limit && same;
    failures += !good;
    std::printf("%-9s max %.3f ulp at %-14.8g (gives %.8g)%s%s", row.name, worst.ulp, worst.at, worst.got,
                same ? "" : "  DEPENDS ON THE VECTOR LENGTH", good ? "" : "  FAILED");
    if (timed)
      std::printf("  %.2f ns", nanosecondsPerElement(kernel));
    std::printf("\n");
  }
  std::printf("%zu functions, %d failed\n", chosen.size(), failures);
  return failures != 0;
}
