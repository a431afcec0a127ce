// Building blocks of the f32 functions. Only operations with equal results on every target and vector length: no
// conversions of values that may be out of range, no reciprocal estimates, fused multiply-add only where written.
#pragma once
#include "codegen/scalar/math/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace burin::codegen {

/// c[0] + c[1] x + c[2] x^2 …
Scalar polynomial(Scalar x, llvm::ArrayRef<double> c);

/// An integer k with |k| < 2^22, as float and as integer.
struct WholeNumber {
  Scalar value; // k
  Scalar bits;  // i32 whose low 22 bits are those of k; unspecified for NaN
};
/// x * factor, rounded to the nearest integer.
WholeNumber roundedProduct(Scalar x, double factor);

/// 2^k from the low 9 bits of an i32; k in [-126, 127].
Scalar powerOfTwo(Scalar k);

/// exp(x) as mantissa * 2^exponent for |x| < 200, the mantissa in [0.7, 1.5].
struct Exponential {
  Scalar mantissa;
  WholeNumber exponent;
};
Exponential splitExp(Scalar x);

/// x * 2^k with one rounding, even if the result is denormal or overflows; |k| <= 250.
Scalar timesPowerOfTwo(Scalar x, const WholeNumber &k);

/// The entry of a table of 16 that the low 4 bits of an i32 select.
Scalar lookup(Scalar index, llvm::ArrayRef<float> table);

/// Declares that the target of `module` has AVX-512; that changes no results.
void declareAvx512(mlir::ModuleOp module);
/// Declares that the target of `module` is a GPU.
void declareGpu(mlir::ModuleOp module);

bool isOnGpu(Scalar);
/// For GPUs: 2^x and 1 / x, within 2 units in the last place. Subnormal results are 0, and so are subnormal x.
Scalar exp2Approximately(Scalar);
Scalar reciprocalApproximately(Scalar);
/// Whether the results are rounded to 16 bits, on a GPU.
bool mayApproximate(Scalar);
/// x / y where x is at most a few times y, which is normal, at least 1/2 and at most 2^120. Rounded as IEEE 754 says,
/// except that GPUs give the other neighbour of a few quotients.
Scalar quotient(Scalar x, Scalar y);

/// Clamps x to at most, or at least, a constant; NaN is preserved. One instruction.
Scalar atMost(Scalar x, double bound);
Scalar atLeast(Scalar x, double bound);

/// `fast`, except in lanes where `isSlow`: these call libm, which is skipped if there are none.
Scalar exceptWhere(Scalar isSlow, Scalar fast, llvm::StringRef libmName, llvm::ArrayRef<Scalar> args);

} // namespace burin::codegen
