// Generators: keys, and distributions composed of the random ops.
#include "burin/tensor/random.h"
#include "burin/graph/graph.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/execute/EagerKernel.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/Trace.h"
#include "ir/infer/Infer.h"
#include "ir/reference/ops/ReferenceRandom.h"
#include <cmath>
#include <unordered_map>

namespace burin {

using namespace detail;

/// It goes where the function runs that draws.
static Tensor generatorState(uint64_t seed, uint64_t draws) {
  int64_t numbers[]{int64_t(seed), int64_t(draws)};
  return following(copyOf(numbers, {DType::i64, {2}}, {}));
}

Generator::Generator(uint64_t seed)
    : place(Parameter::state(
          [&] {
            NoTrace scope;
            return generatorState(seed, 0);
          }(),
          "generator")) {}

void Generator::manual_seed(uint64_t seed) { place.set(generatorState(seed, 0), placeOfTrace()); }

Tensor Generator::key(Location where) const {
  const Location at = inScope(where);
  if (Trace::active()) {
    Tensor now = place.value(), next = add(now, generatorState(0, 1), at);
    Parameter(place).set(next, at);
    return random_key(now, at);
  }
  std::lock_guard lock(place.cell->mutex);
  std::vector<int64_t> now = place.cell->value().to_vector<int64_t>(at);
  if (detail::cellChanges)
    detail::cellChanges->emplace_back(place.cell, place.cell->value());
  place.cell->commit(generatorState(uint64_t(now[0]), uint64_t(now[1]) + 1));
  int64_t key = int64_t(ir::ref::drawKey(uint64_t(now[0]), uint64_t(now[1])));
  return copyOf(&key, {DType::i64, {}}, at);
}

std::vector<Generator> Generator::split(int64_t count, Location where) const {
  const Location at = inScope(where);
  if (count < 0 || Trace::active())
    throw Error(at, "split",
                count < 0 ? std::to_string(count) + " generators are asked for"
                          : "generators cannot be made in a traced function; split outside, and use them inside");
  std::vector<Generator> result;
  for (int64_t i = 0; i < count; ++i)
    result.emplace_back(uint64_t(key(at).item<int64_t>(at)));
  return result;
}

namespace {

/// Calls a random op: op(shape, key).
using Record = std::function<Tensor(const Shape &shape, const Tensor &key, const Location &where)>;

/// Code for any number of elements, compiled once: the size is that of an input without elements. `key` is the shape of
/// the key.
ExecutableRef flatKernel(const std::string &name, const Record &record, const Shape &key, Device device,
                         const Location &where) {
  static auto *mutex = new std::mutex;
  static auto *known = new std::unordered_map<std::string, ExecutableRef>;
  std::lock_guard lock(*mutex);
  ExecutableRef &kernel = (*known)[device.str() + name];
  if (!kernel) {
    std::string problem;
    auto make = [&] {
      auto function = [&](const Tensor &size, const Tensor &key) { return record({size.shape()[0]}, key, where); };
      return trace(function, {TensorSpec{DType::i8, {Dim("n"), 0}}, TensorSpec{DType::i64, key}}).shared();
    };
    kernel = compileCached(name, make, problem, device, where);
    if (!kernel)
      throw Error(where, "random", "internal error: the compiler refused " + name + ": " + problem);
  }
  return kernel;
}

/// An eager draw. `name` identifies the op with its attributes.
Tensor drawEagerly(const Tensor &key, const std::string &name, const Shape &shape, DType dtype, const Record &record,
                   const Location &where) {
  requireSizes(shape, "random", where);
  int64_t count = elementCount(shape);
  Tensor size = copyOf(nullptr, {DType::i8, {count, 0}}, where);
  const std::optional<Device> device = scopedDevice();
  const Tensor *inputs[]{&size, &key};
  TensorSpec result{dtype, {count}};
  constexpr auto atOnce = std::chrono::microseconds(50);
  ExecutableRef kernel = flatKernel(name, record, key.shape(), device.value_or(cpu), where);
  Tensor flat = launch(kernel, 0, inputs, {}, {&result, 1}, atOnce, "random", where).front();
  return reshape(device ? flat : following(flat), shape, where);
}

/// A draw as an op of the trace, or an eager call.
Tensor draw(const Generator &generator, const std::string &name, const Shape &shape, DType dtype, const Record &record,
            const Location &where) {
  Tensor key = generator.key(where);
  return Trace::active() ? record(shape, key, where) : drawEagerly(key, name, shape, dtype, record, where);
}

constexpr uint64_t kMostOfAny = uint64_t(1) << 31;
constexpr int64_t kFewElements = 1 << 13;
bool isFew(const Shape &shape) {
  const Dim count = elements(shape);
  return count.isStatic() && count.value() <= kFewElements;
}

/// The integers of random_integers, of bounds that are operands, so that a draw with other bounds needs no other code.
/// It takes 1.6 times as long, and is used for few elements. `key` is [key, low, high - low], where the difference is
/// at most kMostOfAny. Integers of 64 bits show the word w that they are made of, but for 0, which counts as 1; low +
/// floor(w * (high - low) / 2^64) is computed from its halves.
Tensor integersOfAny(const Shape &shape, const Tensor &key, DType dtype, const Location &where) {
  Tensor w = random_integers(shape, 0, INT64_MIN, INT64_MAX, DType::i64, key(0), where) + 1; // w - 2^63
  Tensor high = (w >> 32) + (int64_t(1) << 31), low = w & 0xffffffff, count = key(2);
  return (key(1) + ((high * count + ((low * count) >> 32)) >> 32)).to(dtype);
}

void requireFloats(DType dtype, const char *op, const Location &where) {
  if (!isFloat(dtype) || isFloat8(dtype))
    throw Error(where, op,
                "random numbers are f32, f64, f16 or bf16, not " + std::string(name(dtype)) +
                    (isFloat8(dtype) ? "; convert them" : "; use randint"));
}

/// The inverse of erf: Giles 2012, with Newton steps for f64.
Tensor inverseErf(const Tensor &x) {
  constexpr double central[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double tails[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                              -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  Tensor w = -log((1 - x) * (1 + x));
  auto polynomial = [](const double (&coefficients)[9], const Tensor &at) {
    Tensor sum = coefficients[0] * at + coefficients[1];
    for (int i = 2; i < 9; ++i)
      sum = sum * at + coefficients[i];
    return sum;
  };
  Tensor result = x * burin::where(w < 5, polynomial(central, w - 2.5), polynomial(tails, sqrt(w) - 3));
  for (int step = 0; step < (x.dtype() == DType::f64 ? 2 : 0); ++step)
    result = result - (erf(result) - x) * exp(result * result) * (1 / M_2_SQRTPI);
  return result;
}

// ---- tails of the normal distribution
// Q(x) is the probability of a number above x, phi(x) the density, and M(x) = Q(x) / phi(x) Mills' ratio.

/// How a tail is computed. The errors are those of M at `from`.
struct TailMethod {
  double from; // for limits at least so many deviations from the mean; erf loses too many digits there
  int terms;   // of the continued fraction
  int steps;   // of Newton's method
};
TailMethod tailMethod(DType dtype) {
  if (dtype == DType::f64)
    return {3, 40, 4}; // 8e-15
  return {2, 24, 2};   // 7e-8
}

/// M(x) = 1 / (x + 1 / (x + 2 / (x + 3 / ...))).
template <class T> T millsRatio(const T &x, int terms) {
  T sum = x;
  for (int i = terms; i > 0; --i)
    sum = x + double(i) / sum;
  return 1.0 / sum;
}

/// The distance from `near` of normal numbers in [near, far], for uniform ones in [0, 1): solves
/// Q(near + t) = Q(near) - unit (Q(near) - Q(far)) as log Q(near + t) = log Q(near) + log1p(unit (Q(far) / Q(near) -
/// 1)), so that nothing underflows. The derivative of -log Q(near + t) = t (2 near + t) / 2 - log M(near + t) +
/// constant is 1 / M(near + t).
Tensor beyondInTail(const Tensor &unit, double near, double far) {
  const TailMethod method = tailMethod(unit.dtype());
  const double atNear = millsRatio(near, method.terms), atFar = millsRatio(far, method.terms);
  const double part = std::isinf(far) ? -1 : std::expm1((near - far) * (near + far) / 2 + std::log(atFar / atNear));
  Tensor logPart = log1p(unit * part);
  Tensor t = -2 * logPart / (near + sqrt(near * near - 2 * logPart)); // as if M were constant
  for (int step = 0; step < method.steps; ++step) {
    Tensor mills = millsRatio(near + t, method.terms);
    t = t - (t * (2 * near + t) / 2 - log(mills / atNear) + logPart) * mills;
  }
  return t;
}

/// -log of a uniform number in (0, 1), never 0 or infinite.
Tensor standardExponential(const Tensor &unit) {
  double least = unit.dtype() == DType::f64 ? 0x1p-54 : 0x1p-25;
  return -log(unit * (1 - 2 * least) + least);
}

DType computedIn(DType dtype) { return dtype == DType::f64 ? dtype : DType::f32; }

} // namespace

Tensor Generator::rand(const Shape &shape, DType dtype, Location where) const {
  const Location at = inScope(where);
  requireFloats(dtype, "rand", at);
  auto record = [dtype](const Shape &shape, const Tensor &key, const Location &where) {
    return random_uniform(shape, 0, dtype, key, 0, 1, where);
  };
  return draw(*this, "random_uniform " + std::string(name(dtype)), shape, dtype, record, at);
}

Tensor Generator::uniform(const Shape &shape, double low, double high, DType dtype, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  if (!std::isfinite(low) || !std::isfinite(high))
    throw Error(at, "uniform",
                "the limits " + std::to_string(low) + " and " + std::to_string(high) + " must be finite");
  if (low > high)
    throw Error(at, "uniform",
                "low is " + std::to_string(low) + ", above high, which is " + std::to_string(high) + "; swap them");
  requireFloats(dtype, "uniform", at);
  // 16-bit numbers are computed in f32, and rounded once.
  DType computed = computedIn(dtype);
  Tensor x = (rand(shape, computed) * (high - low) + low).to(dtype);
  if (!(low < high))
    return x;
  double below = ir::roundTo(dtype, high); // rounding may give `high`, which is not in the interval
  for (double step = std::max(std::fabs(high) * 0x1p-54, 0x1p-1074); below >= high; step *= 2)
    below = ir::roundTo(dtype, high - step);
  return minimum(x, below);
}

Tensor Generator::randn(const Shape &shape, DType dtype, Location where) const {
  const Location at = inScope(where);
  requireFloats(dtype, "randn", at);
  auto record = [dtype](const Shape &shape, const Tensor &key, const Location &where) {
    return random_normal(shape, 0, dtype, key, 0, 1, where);
  };
  return draw(*this, "random_normal " + std::string(name(dtype)), shape, dtype, record, at);
}

Tensor Generator::normal(const Shape &shape, double mean, double deviation, DType dtype, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  requireFloats(dtype, "normal", at);
  if (!(deviation >= 0))
    throw Error(at, "normal", "the deviation " + std::to_string(deviation) + " must not be negative");
  return (randn(shape, computedIn(dtype)) * deviation + mean).to(dtype);
}

Tensor Generator::truncated_normal(const Shape &shape, double mean, double deviation, double low, double high,
                                   DType dtype, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  requireFloats(dtype, "truncated_normal", at);
  if (!(low < high) || !(deviation > 0) || !std::isfinite(mean) || !std::isfinite(deviation))
    throw Error(at, "truncated_normal",
                "needs a finite mean, a positive deviation and low < high, got mean " + std::to_string(mean) +
                    ", deviation " + std::to_string(deviation) + ", low " + std::to_string(low) + " and high " +
                    std::to_string(high));
  const double from = (low - mean) / deviation, to = (high - mean) / deviation;
  Tensor unit = rand(shape, computedIn(dtype)), x;
  if (const double tail = tailMethod(unit.dtype()).from; from >= tail || to <= -tail) {
    x = from > 0 ? low + beyondInTail(unit, from, to) * deviation : high - beyondInTail(unit, -to, -from) * deviation;
  } else {
    const double first = std::erf(from * M_SQRT1_2), last = std::erf(to * M_SQRT1_2);
    x = inverseErf(unit * (last - first) + first) * (deviation * M_SQRT2) + mean;
  }
  return minimum(maximum(x, low), high).to(dtype);
}

Tensor Generator::exponential(const Shape &shape, double rate, DType dtype, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  requireFloats(dtype, "exponential", at);
  if (!(rate > 0))
    throw Error(at, "exponential", "the rate " + std::to_string(rate) + " must be positive");
  return (standardExponential(rand(shape, computedIn(dtype))) / rate).to(dtype);
}

Tensor Generator::gamma(const Tensor &concentration, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  DType dtype = concentration.dtype(at);
  requireFloats(dtype, "gamma", at);
  Beside beside(concentration, at);
  constexpr int64_t kAttempts = 16;
  Tensor a = concentration.to(computedIn(dtype));
  a = check(a > 0, a, "gamma: a concentration is not positive");
  Tensor isSmall = a < 1;
  Shape shape = a.shape(), attempts = shape;
  attempts.insert(attempts.begin(), kAttempts);
  Tensor d = burin::where(isSmall, a + 1, a) - 1.0 / 3, c = 1 / sqrt(9 * d);
  Tensor x = randn(attempts, a.dtype()), u = rand(attempts, a.dtype()), root = 1 + c * x;
  Tensor v = root * root * root, isPositive = root > 0, safe = burin::where(isPositive, v, 1.0);
  Tensor isTaken = logical_and(isPositive, log(u) < 0.5 * x * x + d * (1 - v + log(safe)));
  Tensor first = argmax(isTaken.to(DType::i32), 0, /*keepdims=*/true);
  Tensor result = d * squeeze(gather(safe, first, 0), {0});
  // X(a) = X(a + 1) U^(1 / a) for a < 1
  Tensor shrunk = result * exp(-standardExponential(rand(shape, a.dtype())) / a);
  return burin::where(isSmall, shrunk, result).to(dtype);
}

Tensor Generator::randint(int64_t low, int64_t high, const Shape &shape, DType dtype, Location where) const {
  const Location at = inScope(where);
  if (low >= high)
    throw Error(at, "randint", "there is no integer in [" + std::to_string(low) + ", " + std::to_string(high) + ")");
  const uint64_t count = uint64_t(high) - uint64_t(low);
  if (count <= kMostOfAny && isInteger(dtype) && !Trace::active() && isFew(shape)) {
    const int64_t numbers[]{key(at).item<int64_t>(at), low, int64_t(count)};
    auto record = [=](const Shape &shape, const Tensor &key, const Location &where) {
      return integersOfAny(shape, key, dtype, where);
    };
    return drawEagerly(copyOf(numbers, {DType::i64, {3}}, at), "random_integers " + std::string(name(dtype)), shape,
                       dtype, record, at);
  }
  auto record = [=](const Shape &shape, const Tensor &key, const Location &where) {
    return random_integers(shape, 0, low, high, dtype, key, where);
  };
  std::string text =
      "random_integers " + std::string(name(dtype)) + " " + std::to_string(low) + " " + std::to_string(high);
  return draw(*this, text, shape, dtype, record, at);
}

Tensor Generator::bernoulli(const Tensor &probability, Location where) const {
  const Location at = inScope(where);
  DType dtype = probability.dtype(at);
  requireFloats(dtype, "bernoulli", at);
  Beside beside(probability, at);
  LocationScope scope(at);
  Tensor p = probability.to(computedIn(dtype));
  p = check((p >= 0) & (p <= 1), p, "bernoulli: a probability is not in [0, 1]");
  return (rand(probability.shape(), p.dtype()) < p).to(dtype);
}

Tensor Generator::randperm(int64_t n, Location where) const {
  const Location at = inScope(where);
  requireSizes({n}, "randperm", at);
  return argsort(randint(INT64_MIN, INT64_MAX, {n}, DType::i64, at), 0, false, at);
}

Tensor Generator::categorical(const Tensor &logits, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  requireFloats(logits.dtype(at), "categorical", at);
  Beside beside(logits, at);
  if (logits.rank() == 0 || logits.shape().back() == Dim(0))
    throw Error(at, "categorical", "there is nothing to choose from in " + str(logits.spec()));
  Tensor scores = logits.to(computedIn(logits.dtype()));
  return argmax(scores - log(standardExponential(rand(scores.shape(), scores.dtype()))), -1); // Gumbel's distribution
}

Tensor Generator::multinomial(const Tensor &weights, int64_t count, bool replacement, Location where) const {
  const Location at = inScope(where);
  LocationScope scope(at);
  requireFloats(weights.dtype(at), "multinomial", at);
  Beside beside(weights, at);
  Shape shape = weights.shape();
  if (shape.empty() || shape.size() > 2 || count < 1 ||
      (!replacement && shape.back().isStatic() && shape.back().value() < count))
    throw Error(at, "multinomial",
                std::to_string(count) + " numbers cannot be drawn from " + str(weights.spec()) +
                    "; give weights [k] or [rows, k], and at most k draws without replacement");
  Tensor w = weights.to(computedIn(weights.dtype()));
  w = check((w >= 0) & (w < INFINITY), w, "multinomial: a weight is negative or not finite");
  const int64_t fewest = replacement ? 1 : count;
  w = check((w > 0).to(DType::i64).sum({-1}, true) >= fewest, w,
            "multinomial: fewer than " + std::to_string(fewest) + " weights of a row are positive");
  Tensor scores = log(w);
  if (replacement) {
    shape.insert(shape.end() - 1, count);
    return categorical(broadcast_to(unsqueeze(scores, {-2}), shape));
  }
  scores = scores - log(standardExponential(rand(shape, scores.dtype())));
  Shape starts(shape.size(), Dim(0)), stops = shape;
  stops.back() = count;
  return slice(argsort(scores, -1, /*descending=*/true), starts, stops, std::vector<int64_t>(shape.size(), 1));
}

// ---- the default generator

Generator default_generator() {
  // Created outside of any trace, which it outlives, even if a traced function draws first.
  static const auto *generator = [] {
    NoTrace scope;
    return new Generator(0);
  }();
  return *generator;
}
void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

Tensor rand(const Shape &shape, DType dtype, Location where) { return default_generator().rand(shape, dtype, where); }
Tensor uniform(const Shape &shape, double low, double high, DType dtype, Location where) {
  return default_generator().uniform(shape, low, high, dtype, where);
}
Tensor randn(const Shape &shape, DType dtype, Location where) { return default_generator().randn(shape, dtype, where); }
Tensor normal(const Shape &shape, double mean, double deviation, DType dtype, Location where) {
  return default_generator().normal(shape, mean, deviation, dtype, where);
}
Tensor randint(int64_t low, int64_t high, const Shape &shape, DType dtype, Location where) {
  return default_generator().randint(low, high, shape, dtype, where);
}
Tensor randperm(int64_t n, Location where) { return default_generator().randperm(n, where); }
Tensor multinomial(const Tensor &weights, int64_t count, bool replacement, Location where) {
  return default_generator().multinomial(weights, count, replacement, where);
}

Tensor rand_like(const Tensor &x, std::optional<DType> dtype, Location where) {
  Beside scope(x, inScope(where));
  return rand(x.shape(where), dtype.value_or(x.dtype(where)), where);
}
Tensor randint_like(const Tensor &x, int64_t low, int64_t high, Location where) {
  Beside scope(x, inScope(where));
  return randint(low, high, x.shape(where), x.dtype(where), where);
}
Tensor randn_like(const Tensor &x, std::optional<DType> dtype, Location where) {
  Beside scope(x, inScope(where));
  return randn(x.shape(where), dtype.value_or(x.dtype(where)), where);
}

Tensor bernoulli(const Tensor &probability, Location where) {
  return default_generator().bernoulli(probability, where);
}
Tensor normal(const Tensor &mean, const Tensor &deviation, Location where) {
  const Location at = inScope(where);
  LocationScope scope(at);
  const DType dtype = result_type(mean, deviation);
  requireFloats(dtype, "normal", at);
  const auto shape = ir::broadcastShapes(mean.shape(), deviation.shape());
  if (!shape)
    throw Error(at, "normal",
                "the shapes of the mean, " + str(mean.spec()) + ", and of the deviation, " + str(deviation.spec()) +
                    ", do not broadcast");
  Beside beside(mean, at);
  return mean + check(deviation >= 0, deviation, "normal: a deviation is negative") * randn(*shape, dtype);
}

// ---- in-place methods of tensors

Tensor &Tensor::uniform_(double low, double high, Location where) & {
  Beside scope(*this, inScope(where));
  return *this = uniform(shape(where), low, high, dtype(where), where);
}
Tensor &Tensor::normal_(double mean, double deviation, Location where) & {
  Beside scope(*this, inScope(where));
  return *this = normal(shape(where), mean, deviation, dtype(where), where);
}
Tensor &Tensor::exponential_(double rate, Location where) & {
  Beside scope(*this, inScope(where));
  return *this = default_generator().exponential(shape(where), rate, dtype(where), where);
}
Tensor &Tensor::random_(int64_t low, int64_t high, Location where) & {
  Beside scope(*this, inScope(where));
  const DType type = dtype(where);
  return *this = randint(low, high, shape(where), isInteger(type) ? type : DType::i64, where).to(type, where);
}
Tensor &Tensor::bernoulli_(double p, Location where) & {
  const Location at = inScope(where);
  if (!(p >= 0 && p <= 1))
    throw Error(at, "bernoulli_", "the probability " + std::to_string(p) + " is not in [0, 1]");
  Beside scope(*this, at);
  const DType type = dtype(at);
  return *this = (rand(shape(at), isFloat(type) ? computedIn(type) : DType::f32, at) < p).to(type, at);
}

} // namespace burin
