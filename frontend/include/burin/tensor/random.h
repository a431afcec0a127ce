// Random numbers.
#pragma once
#include "burin/nn/module.h"

namespace burin {

/// A random number generator: Philox 4x32-10 (Salmon et al. 2011) with a seed and a counter of draws. Each call draws
/// one tensor, whose element i depends only on the seed, the number of the draw and i: not on threads or the machine. A
/// handle: copies share the state.
///
/// The generator is state like a parameter (docs/state.md): a jitted function draws new numbers on each call, the same
/// as eager code would. Errors: shapes with negative sizes; symbolic sizes outside of a trace; draws within one step of
/// a loop of a trace.
class BURIN_API Generator {
public:
  explicit Generator(uint64_t seed = 0);
  /// Starts the sequence of this seed.
  void manual_seed(uint64_t seed);
  /// Independent generators for concurrent work, with seeds drawn from this one. Not in a trace.
  std::vector<Generator> split(int64_t count, Location where = Location::current()) const;
  /// Makes one draw and returns its key (i64[]), for random_uniform and related ops.
  Tensor key(Location where = Location::current()) const;
  /// The seed and the number of draws, i64[2], to save and restore.
  Parameter state() const { return place; }

  /// Uniform in [0, 1). torch.rand
  Tensor rand(const Shape &shape, DType dtype = f32, Location where = Location::current()) const;
  /// Uniform in [low, high).
  Tensor uniform(const Shape &shape, double low, double high, DType dtype = f32,
                 Location where = Location::current()) const;
  /// Normal, with mean 0 and deviation 1. torch.randn
  Tensor randn(const Shape &shape, DType dtype = f32, Location where = Location::current()) const;
  Tensor normal(const Shape &shape, double mean, double deviation, DType dtype = f32,
                Location where = Location::current()) const;
  /// Normal, truncated to [low, high] by drawing from that part of the distribution only.
  Tensor truncated_normal(const Shape &shape, double mean = 0, double deviation = 1, double low = -2, double high = 2,
                          DType dtype = f32, Location where = Location::current()) const;
  /// With density rate * exp(-rate * x).
  Tensor exponential(const Shape &shape, double rate = 1, DType dtype = f32,
                     Location where = Location::current()) const;
  /// One number per element of `concentration`, a float tensor of positive numbers, with density proportional to
  /// x^(concentration - 1) exp(-x). Marsaglia and Tsang 2000, with at most 16 attempts per element: the last one is
  /// used if all fail, with a probability below 1e-20.
  Tensor gamma(const Tensor &concentration, Location where = Location::current()) const;
  /// Integers in [low, high). torch.randint
  Tensor randint(int64_t low, int64_t high, const Shape &shape, DType dtype = i64,
                 Location where = Location::current()) const;
  /// 1 with the given probabilities (a float tensor), else 0, in their type. torch.bernoulli
  Tensor bernoulli(const Tensor &probability, Location where = Location::current()) const;
  /// The numbers 0 … n-1 in random order, i64. torch.randperm
  Tensor randperm(int64_t n, Location where = Location::current()) const;
  /// An index (i64) along the last dimension, which is removed, with probabilities proportional to exp(logits).
  Tensor categorical(const Tensor &logits, Location where = Location::current()) const;
  /// `count` indices for each row of weights ([k] or [rows, k], not negative), with probabilities proportional to them;
  /// all different without `replacement`. torch.multinomial
  Tensor multinomial(const Tensor &weights, int64_t count, bool replacement = false,
                     Location where = Location::current()) const;

private:
  Parameter place; // the seed and the number of draws
};

/// The generator of the functions below, of dropout and of initial weights. Its initial seed is 0.
BURIN_API Generator default_generator();
/// Restarts the default generator.
BURIN_API void manual_seed(uint64_t seed);

// ---- the same from the default generator
BURIN_API Tensor rand(const Shape &shape, DType dtype = f32, Location where = Location::current());
BURIN_API Tensor uniform(const Shape &shape, double low, double high, DType dtype = f32,
                         Location where = Location::current());
BURIN_API Tensor randn(const Shape &shape, DType dtype = f32, Location where = Location::current());
BURIN_API Tensor normal(const Shape &shape, double mean, double deviation, DType dtype = f32,
                        Location where = Location::current());
/// One number per element of the broadcast shape of both. As torch.normal.
BURIN_API Tensor normal(const Tensor &mean, const Tensor &deviation, Location where = Location::current());
BURIN_API Tensor bernoulli(const Tensor &probability, Location where = Location::current());
inline Tensor randint(int64_t high, const Shape &shape, DType dtype = i64, Location where = Location::current());
BURIN_API Tensor randint(int64_t low, int64_t high, const Shape &shape, DType dtype = i64,
                         Location where = Location::current());
BURIN_API Tensor randperm(int64_t n, Location where = Location::current());
BURIN_API Tensor multinomial(const Tensor &weights, int64_t count, bool replacement = false,
                             Location where = Location::current());

/// Random tensors with the shape of x, and its element type unless `dtype` is given. As torch.rand_like, randn_like.
BURIN_API Tensor rand_like(const Tensor &x, std::optional<DType> dtype = std::nullopt,
                           Location where = Location::current());
BURIN_API Tensor randn_like(const Tensor &x, std::optional<DType> dtype = std::nullopt,
                            Location where = Location::current());
/// Integers in [low, high) with the shape and the element type of x. As torch.randint_like.
BURIN_API Tensor randint_like(const Tensor &x, int64_t low, int64_t high, Location where = Location::current());
inline Tensor randint_like(const Tensor &x, int64_t high, Location where = Location::current()) {
  return randint_like(x, 0, high, where);
}
/// The same functions for a shape of plain integers.
template <std::integral T>
Tensor rand(const std::vector<T> &shape, DType dtype = f32, Location where = Location::current()) {
  return rand(Shape(shape.begin(), shape.end()), dtype, where);
}
template <std::integral T>
Tensor randn(const std::vector<T> &shape, DType dtype = f32, Location where = Location::current()) {
  return randn(Shape(shape.begin(), shape.end()), dtype, where);
}

inline Tensor randint(int64_t high, const Shape &shape, DType dtype, Location where) {
  return randint(0, high, shape, dtype, where);
}

} // namespace burin
