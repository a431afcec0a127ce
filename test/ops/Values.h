// Random tensors, and when two of them are equal enough.
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

/// What Mood::Special puts into an operand.
enum class Specials {
  None,
  Modest, // no numbers whose sums and products overflow
  All
};

/// What the elements of an operand are drawn from.
struct Draw {
  double low = -4, high = 4; // integers too; limited to the range of the type
  Specials specials = Specials::All;
};

ir::RefTensor randomTensor(DType, std::vector<int64_t> shape, const Draw &, Mood, Random &);

/// How far a compiled result may be from the interpreter's, which is computed in f64 and not rounded.
struct Tolerance {
  double ulps = 0;        // of the exact result in the result's type; 0 means correctly rounded
  double epsilons = 0;    // absolute, in units of the type's epsilon
  double sumEpsilons = 0; // in epsilons of the accumulator, times the sum of the absolute terms; for linear ops
  double roundings = 0;   // of partial sums to the type of the result, on the way to it
  bool zeroSigns = true;  // whether the sign of a zero counts
  double absolute = 0;
};

/// How far each element, of a float type, may be from `want`; see difference().
std::vector<double> marginsOf(const ir::RefTensor &want, const Tolerance &tolerance, const ir::RefTensor *scale);

/// Compares with `want`; `scale` holds the sums of the absolute terms when sumEpsilons is set. The text describes the
/// first difference, "" if there is none.
std::string difference(const ir::RefTensor &got, const ir::RefTensor &want, const Tolerance &tolerance,
                       const ir::RefTensor *scale = nullptr);

/// "[2, 3]"
std::string str(const std::vector<int64_t> &sizes);

} // namespace burin::test
