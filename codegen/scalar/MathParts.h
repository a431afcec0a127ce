// What the f32 functions are made of. Only operations that mean the same on every target and vector length: no
// conversions of values that may be out of range, no reciprocal estimates, fused multiply-add only where written.
#pragma once
#include "codegen/scalar/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace burin::codegen {

/// c[0] + c[1] x + c[2] x^2 …
Scalar polynomial(Scalar x, llvm::ArrayRef<double> c);

/// An integer k with |k| < 2^22 beside a float computation.
struct WholeNumber {
  Scalar value; // k
  Scalar bits;  // an i32 whose low 22 bits are those of k; for NaN, anything
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

/// x * 2^k, rounded once, where the product may be a denormal or beyond the range; |k| <= 250.
Scalar timesPowerOfTwo(Scalar x, const WholeNumber &k);

/// The entry of a table of 16 that the low 4 bits of an i32 name.
Scalar lookup(Scalar index, llvm::ArrayRef<float> table);

/// Tells all that is built in `module` that the target has AVX-512. It changes no result.
void declareAvx512(mlir::ModuleOp module);
/// The same for a GPU.
void declareGpu(mlir::ModuleOp module);

/// x limited to at most or at least a constant; NaN stays. One instruction.
Scalar atMost(Scalar x, double bound);
Scalar atLeast(Scalar x, double bound);

/// `fast`, except in lanes where `isSlow`: those are what libm says, which is asked only if there are any.
Scalar exceptWhere(Scalar isSlow, Scalar fast, llvm::StringRef libmName, llvm::ArrayRef<Scalar> args);

} // namespace burin::codegen
