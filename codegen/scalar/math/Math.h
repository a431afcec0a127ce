// Elementary functions on Scalar. The f32 forms of common functions are vector code (Math*.cpp); the others, and all
// f64 forms, call libm per lane.
#pragma once
#include "codegen/scalar/base/Scalar.h"

namespace burin::codegen {

Scalar exp(Scalar);
/// exp(x) of x that are at most 0, or NaN, with fewer instructions on GPUs.
Scalar expOfNonPositive(Scalar);
Scalar expm1(Scalar);
Scalar log(Scalar);
/// log(x) with the same bits, for positive, finite x that are not subnormal: it does not look for others.
Scalar logOfNormal(Scalar);
Scalar log1p(Scalar);
Scalar sin(Scalar);
Scalar cos(Scalar);
Scalar tan(Scalar);
Scalar asin(Scalar);
Scalar acos(Scalar);
Scalar atan(Scalar);
Scalar atan2(Scalar y, Scalar x);
Scalar sinh(Scalar);
Scalar cosh(Scalar);
Scalar tanh(Scalar);
Scalar asinh(Scalar);
Scalar acosh(Scalar);
Scalar atanh(Scalar);
Scalar erf(Scalar);

Scalar sigmoid(Scalar);
/// x * sigmoid(x)
Scalar silu(Scalar);
/// x * Phi(x), or its tanh approximation; 0 at -inf.
Scalar gelu(Scalar, bool tanhForm);
Scalar softplus(Scalar, double beta, double threshold);

/// Calls libm's `name` per lane (the f64 name; f32 arguments use the form with the suffix "f").
Scalar callLibm(llvm::StringRef name, llvm::ArrayRef<Scalar> args);
/// Declares the libm functions that `module` calls. Run once over a finished module: emitters cannot declare functions,
/// because they may emit into a region that is not attached to a module yet.
void declareLibm(mlir::Operation *module);
/// Whether `symbol` is one of the libm functions that kernels may import.
bool isLibmFunction(llvm::StringRef symbol);

} // namespace burin::codegen
