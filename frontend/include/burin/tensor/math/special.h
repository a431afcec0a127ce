// Special functions, as in torch.special: of floats, integers become f32. f16 and bf16 are computed in f32. All are
// differentiable; docs/numerics.md has their errors.
#pragma once
#include "burin/ops.h"
#include "burin/tensor.h"
#include <optional>

namespace burin {

// ---- the error function and the normal distribution

/// 1 - erf(x), without cancellation for large x. As torch.erfc.
BURIN_API Tensor erfc(const Tensor &x, Location where = Location::current());
/// The inverse of erf: infinite at -1 and 1, NaN beyond. As torch.erfinv.
BURIN_API Tensor erfinv(const Tensor &x, Location where = Location::current());

// ---- the gamma function

/// log(|gamma(x)|): infinite at 0, -1, -2, … As torch.lgamma.
BURIN_API Tensor lgamma(const Tensor &x, Location where = Location::current());
/// The derivative of lgamma: NaN at -1, -2, …, -infinity at 0. As torch.digamma.
BURIN_API Tensor digamma(const Tensor &x, Location where = Location::current());
/// The n-th derivative of digamma, n >= 0. As torch.polygamma.
BURIN_API Tensor polygamma(int64_t n, const Tensor &x, Location where = Location::current());
/// The logarithm of the multivariate gamma function of dimension p >= 1, for x > (p - 1) / 2. As torch.mvlgamma.
BURIN_API Tensor mvlgamma(const Tensor &x, int64_t p, Location where = Location::current());

// ---- products with logarithms, and others

/// x * log(y) and x * log(1 + y), and 0 where x is 0 and y is not NaN. As torch.xlogy, torch.special.xlog1py.
BURIN_API Tensor xlogy(const Tensor &x, const Tensor &y, Location where = Location::current());
BURIN_API Tensor xlog1py(const Tensor &x, const Tensor &y, Location where = Location::current());
/// log(x / (1 - x)); with `eps` of x limited to [eps, 1 - eps]. As torch.logit.
BURIN_API Tensor logit(const Tensor &x, std::optional<double> eps = std::nullopt, Location where = Location::current());
/// sin(pi x) / (pi x), 1 at 0. As torch.sinc.
BURIN_API Tensor sinc(const Tensor &x, Location where = Location::current());
/// The modified Bessel function of order 0. As torch.i0.
BURIN_API Tensor i0(const Tensor &x, Location where = Location::current());

/// The names of torch.special.
namespace special {
using burin::digamma, burin::erf, burin::erfc, burin::erfinv, burin::expm1, burin::i0, burin::log1p, burin::logit,
    burin::polygamma, burin::sinc, burin::xlog1py, burin::xlogy;
/// exp(x²) erfc(x). As torch.special.erfcx.
BURIN_API Tensor erfcx(const Tensor &x, Location where = Location::current());
/// The part of the standard normal distribution below x. As torch.special.ndtr.
BURIN_API Tensor ndtr(const Tensor &x, Location where = Location::current());
/// log(ndtr(x)), also where ndtr(x) is 0. As torch.special.log_ndtr.
BURIN_API Tensor log_ndtr(const Tensor &x, Location where = Location::current());
/// The inverse of ndtr: infinite at 0 and 1, NaN outside. As torch.special.ndtri.
BURIN_API Tensor ndtri(const Tensor &x, Location where = Location::current());
/// exp(-|x|) i0(x). As torch.special.i0e.
BURIN_API Tensor i0e(const Tensor &x, Location where = Location::current());
/// The modified Bessel function of order 1. As torch.special.i1.
BURIN_API Tensor i1(const Tensor &x, Location where = Location::current());
/// exp(-|x|) i1(x). As torch.special.i1e.
BURIN_API Tensor i1e(const Tensor &x, Location where = Location::current());
/// sigmoid(x). As torch.special.expit.
inline Tensor expit(const Tensor &x, Location where = Location::current()) { return sigmoid(x, where); }
/// lgamma(x). As torch.special.gammaln.
inline Tensor gammaln(const Tensor &x, Location where = Location::current()) { return lgamma(x, where); }
/// digamma(x). As torch.special.psi.
inline Tensor psi(const Tensor &x, Location where = Location::current()) { return digamma(x, where); }
/// mvlgamma(x, p). As torch.special.multigammaln.
inline Tensor multigammaln(const Tensor &x, int64_t p, Location where = Location::current()) {
  return mvlgamma(x, p, where);
}
} // namespace special

} // namespace burin
