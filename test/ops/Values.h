// Random tensors, and comparison with tolerances.
#pragma once
#include "ir/reference/ReferenceTensor.h"
#include <random>
#include <string>

namespace burin::test {

using Random = std::mt19937_64;

enum class Mood {
  Plain,  // numbers of moderate size
  Special // also NaN, infinities, signed zeros, denormals, the ends of the range
};

/// The special values that Mood::Special draws for an operand.
enum class Specials {
  None,
  Modest, // no numbers whose sums and products overflow, or, of bf16, are subnormal: AVX512-BF16 takes these as 0
  All
};

/// The distribution of the elements of an operand.
struct Draw {
  double low = -4, high = 4; // also for integers; limited to the range of the type
  Specials specials = Specials::All;
};

ir::RefTensor randomTensor(DType, std::vector<int64_t> shape, const Draw &, Mood, Random &);

/// The allowed distance of a compiled result from the interpreter's, which is computed in f64 and not rounded.
struct Tolerance {
  double ulps = 0;        // units in the last place of the exact result; 0: correctly rounded
  double epsilons = 0;    // absolute, in units of the type's epsilon
  double sumEpsilons = 0; // epsilons of the accumulator, times the sum of the absolute terms; for linear ops
  double roundings = 0;   // roundings of partial sums to the result's type on the way
  bool zeroSigns = true;  // whether the sign of a zero counts
  double absolute = 0;
};

/// Returns the allowed distance from `want` of each element; see difference(). Only for float types.
std::vector<double> marginsOf(const ir::RefTensor &want, const Tolerance &tolerance, const ir::RefTensor *scale);

/// Compares with `want`. `scale` has the sums of the absolute terms if sumEpsilons is set. Returns a text about the
/// first difference, or "".
std::string difference(const ir::RefTensor &got, const ir::RefTensor &want, const Tolerance &tolerance,
                       const ir::RefTensor *scale = nullptr);

/// "[2, 3]"
std::string str(const std::vector<int64_t> &sizes);

} // namespace burin::test
