// Method forms of the composed functions.
#include "burin/functional.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"

namespace burin {

using detail::Beside;

Tensor Tensor::masked_fill(const Tensor &mask, const Tensor &value, Location where) const {
  return burin::masked_fill(*this, mask, value, where);
}
Tensor Tensor::square(Location where) const { return burin::square(*this, where); }
Tensor Tensor::log2(Location where) const { return burin::log2(*this, where); }
Tensor Tensor::clamp(const Tensor &low, Location where) const { return burin::maximum(*this, low, where); }
Tensor Tensor::clamp(const NoneType &, const Tensor &high, Location where) const {
  return burin::minimum(*this, high, where);
}
Tensor Tensor::clamp(const Tensor &low, const NoneType &, Location where) const {
  return burin::maximum(*this, low, where);
}
Tensor Tensor::add(const Tensor &other, const Tensor &alpha, Location where) const {
  return burin::add(*this, other, alpha, where);
}
Tensor Tensor::sub(const Tensor &other, const Tensor &alpha, Location where) const {
  return burin::sub(*this, other, alpha, where);
}
Tensor Tensor::take(const Tensor &indices, Location where) const { return burin::take(*this, indices, where); }
Tensor Tensor::clamp_min(const Tensor &low, Location where) const { return burin::clamp_min(*this, low, where); }
Tensor Tensor::clamp_max(const Tensor &high, Location where) const { return burin::clamp_max(*this, high, where); }
Tensor Tensor::is_finite(Location where) const { return burin::is_finite(*this, where); }
Tensor Tensor::std(Axes axes, bool keepdims, int64_t correction, Location where) const {
  return burin::stddev(*this, std::move(axes), keepdims, correction, where);
}
Tensor Tensor::argmax(Location where) const { return burin::argmax(*this, where); }
Tensor Tensor::argmin(Location where) const { return burin::argmin(*this, where); }
Tensor Tensor::median(Location where) const { return burin::median(*this, where); }
Tensor Tensor::median(int64_t axis, bool keepdims, Location where) const {
  return burin::median(*this, axis, keepdims, where);
}
Tensor Tensor::quantile(double q, Location where) const { return burin::quantile(*this, q, where); }
Tensor Tensor::quantile(double q, int64_t axis, bool keepdims, Location where) const {
  return burin::quantile(*this, q, axis, keepdims, where);
}
Tensor Tensor::diff(int64_t n, int64_t axis, Location where) const { return burin::diff(*this, n, axis, where); }
Tensor Tensor::nansum(Axes axes, bool keepdims, Location where) const {
  return burin::nansum(*this, std::move(axes), keepdims, where);
}
Tensor Tensor::count_nonzero(Axes axes, Location where) const {
  return burin::count_nonzero(*this, std::move(axes), where);
}
bool Tensor::allclose(const Tensor &other, double rtol, double atol, bool equal_nan, Location where) const {
  return burin::allclose(*this, other, rtol, atol, equal_nan, where);
}
Tensor Tensor::norm(double p, Axes axes, bool keepdims, Location where) const {
  return burin::norm(*this, p, std::move(axes), keepdims, where);
}
Tensor Tensor::expand(const Shape &shape, Location where) const { return burin::expand(*this, shape, where); }
Tensor Tensor::expand_as(const Tensor &other, Location where) const { return burin::expand_as(*this, other, where); }
Tensor Tensor::repeat(const Shape &counts, Location where) const { return burin::repeat(*this, counts, where); }
Tensor Tensor::repeat_interleave(int64_t count, int64_t axis, Location where) const {
  return burin::repeat_interleave(*this, count, axis, where);
}
std::vector<Tensor> Tensor::chunk(int64_t count, int64_t axis, Location where) const {
  return burin::chunk(*this, count, axis, where);
}
std::vector<Tensor> Tensor::unbind(int64_t axis, Location where) const { return burin::unbind(*this, axis, where); }
Tensor Tensor::narrow(int64_t axis, const Dim &start, const Dim &length, Location where) const {
  return burin::narrow(*this, axis, start, length, where);
}
Tensor Tensor::select(int64_t axis, int64_t index, Location where) const {
  return burin::select(*this, axis, index, where);
}
Tensor Tensor::index_select(int64_t axis, const Tensor &indices, Location where) const {
  return burin::index_select(*this, axis, indices, where);
}
Tensor Tensor::permute(const IntList &order, Location where) const { return burin::permute(*this, order, where); }
Tensor Tensor::movedim(int64_t from, int64_t to, Location where) const {
  return burin::movedim(*this, from, to, where);
}
Tensor Tensor::unflatten(int64_t axis, const Shape &sizes, Location where) const {
  return burin::unflatten(*this, axis, sizes, where);
}
Tensor Tensor::roll(const IntList &shifts, const Axes &axes, Location where) const {
  return burin::roll(*this, shifts, axes, where);
}
Tensor Tensor::diagonal(int64_t offset, int64_t axis1, int64_t axis2, Location where) const {
  return burin::diagonal(*this, offset, axis1, axis2, where);
}
Tensor Tensor::masked_select(const Tensor &mask, Location where) const {
  return burin::masked_select(*this, mask, where);
}
Tensor Tensor::masked_scatter(const Tensor &mask, const Tensor &source, Location where) const {
  return burin::masked_scatter(*this, mask, source, where);
}
Tensor Tensor::repeat_interleave(const Tensor &counts, int64_t axis, const Dim &output_size, Location where) const {
  return burin::repeat_interleave(*this, counts, axis, output_size, where);
}
SortResult Tensor::sort(int64_t axis, bool descending, Location where) const {
  return burin::sort(*this, axis, descending, where);
}
SortResult Tensor::topk(const Dim &k, int64_t axis, bool largest, Location where) const {
  return burin::topk(*this, k, axis, largest, where);
}
Tensor Tensor::view(const Shape &shape, Location where) const { return burin::reshape(*this, shape, where); }
Tensor Tensor::view_as(const Tensor &other, Location where) const {
  return burin::reshape(*this, other.shape(where), where);
}

Tensor Tensor::erfc(Location where) const { return burin::erfc(*this, where); }
Tensor Tensor::erfinv(Location where) const { return burin::erfinv(*this, where); }
Tensor Tensor::lgamma(Location where) const { return burin::lgamma(*this, where); }
Tensor Tensor::digamma(Location where) const { return burin::digamma(*this, where); }
Tensor Tensor::xlogy(const Tensor &other, Location where) const { return burin::xlogy(*this, other, where); }
Tensor Tensor::logit(std::optional<double> eps, Location where) const { return burin::logit(*this, eps, where); }
Tensor Tensor::sinc(Location where) const { return burin::sinc(*this, where); }
Tensor Tensor::i0(Location where) const { return burin::i0(*this, where); }

Tensor Tensor::mm(const Tensor &other, Location where) const { return burin::mm(*this, other, where); }
Tensor Tensor::bmm(const Tensor &other, Location where) const { return burin::bmm(*this, other, where); }
Tensor Tensor::mv(const Tensor &other, Location where) const { return burin::mv(*this, other, where); }
Tensor Tensor::dot(const Tensor &other, Location where) const { return burin::dot(*this, other, where); }
Tensor Tensor::amax(Axes axes, bool keepdims, Location where) const {
  return burin::amax(*this, std::move(axes), keepdims, where);
}
Tensor Tensor::amin(Axes axes, bool keepdims, Location where) const {
  return burin::amin(*this, std::move(axes), keepdims, where);
}
Tensor Tensor::ravel(Location where) const { return burin::ravel(*this, where); }
Tensor Tensor::type_as(const Tensor &other, Location where) const { return to(other.dtype(where), where); }
Tensor Tensor::scatter_add(int64_t axis, const Tensor &indices, const Tensor &updates, Location where) const {
  return burin::scatter_add(*this, axis, indices, updates, where);
}
Tensor Tensor::scatter_reduce(int64_t axis, const Tensor &indices, const Tensor &updates, const std::string &reduce,
                              bool include_self, Location where) const {
  return burin::scatter_reduce(*this, axis, indices, updates, reduce, include_self, where);
}
Tensor Tensor::index_add(int64_t axis, const Tensor &indices, const Tensor &updates, double alpha,
                         Location where) const {
  return burin::index_add(*this, axis, indices, updates, alpha, where);
}
Tensor Tensor::index_copy(int64_t axis, const Tensor &indices, const Tensor &updates, Location where) const {
  return burin::index_copy(*this, axis, indices, updates, where);
}
Tensor Tensor::index_fill(int64_t axis, const Tensor &indices, const Tensor &value, Location where) const {
  return burin::index_fill(*this, axis, indices, value, where);
}

Tensor Tensor::scattered(int64_t axis, const Tensor &indices, const Tensor &value, const Location &where) const {
  return burin::scatter(*this, indices, value.to(dtype(where), where).broadcast_to(indices.shape(where), where), axis,
                        "set", false, where);
}
std::vector<Tensor> Tensor::splitEvery(int64_t size, int64_t axis, const Location &where) const {
  return detail::splitEvery(*this, size, axis, where);
}

// ---- see burin/functional.h

Tensor Tensor::logaddexp(const Tensor &other, Location where) const { return burin::logaddexp(*this, other, where); }
Tensor Tensor::hypot(const Tensor &other, Location where) const { return burin::hypot(*this, other, where); }
Tensor Tensor::outer(const Tensor &other, Location where) const { return burin::outer(*this, other, where); }
Tensor Tensor::inner(const Tensor &other, Location where) const { return burin::inner(*this, other, where); }
Tensor Tensor::heaviside(const Tensor &at_zero, Location where) const {
  return burin::heaviside(*this, at_zero, where);
}
Tensor Tensor::copysign(const Tensor &other, Location where) const { return burin::copysign(*this, other, where); }
Tensor Tensor::fmax(const Tensor &other, Location where) const { return burin::fmax(*this, other, where); }
Tensor Tensor::fmin(const Tensor &other, Location where) const { return burin::fmin(*this, other, where); }
Tensor Tensor::float_power(const Tensor &exponent, Location where) const {
  return burin::float_power(*this, exponent, where);
}
Tensor Tensor::lerp(const Tensor &end, const Tensor &weight, Location where) const {
  return burin::lerp(*this, end, weight, where);
}
Tensor Tensor::addcmul(const Tensor &a, const Tensor &b, double value, Location where) const {
  return burin::addcmul(*this, a, b, value, where);
}
Tensor Tensor::addcdiv(const Tensor &a, const Tensor &b, double value, Location where) const {
  return burin::addcdiv(*this, a, b, value, where);
}
Tensor Tensor::addmm(const Tensor &a, const Tensor &b, double beta, double alpha, Location where) const {
  return burin::addmm(*this, a, b, beta, alpha, where);
}
Tensor Tensor::exp2(Location where) const { return burin::exp2(*this, where); }
Tensor Tensor::log10(Location where) const { return burin::log10(*this, where); }
Tensor Tensor::frac(Location where) const { return burin::frac(*this, where); }
Tensor Tensor::signbit(Location where) const { return burin::signbit(*this, where); }
Tensor Tensor::deg2rad(Location where) const { return burin::deg2rad(*this, where); }
Tensor Tensor::rad2deg(Location where) const { return burin::rad2deg(*this, where); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf,
                          Location where) const {
  return burin::nan_to_num(*this, nan, posinf, neginf, where);
}
Tensor Tensor::isclose(const Tensor &other, double rtol, double atol, bool equal_nan, Location where) const {
  return burin::isclose(*this, other, rtol, atol, equal_nan, where);
}
Tensor Tensor::dist(const Tensor &other, double p, Location where) const { return burin::dist(*this, other, p, where); }
Tensor Tensor::cross(const Tensor &other, int64_t axis, Location where) const {
  return burin::cross(*this, other, axis, where);
}
Tensor Tensor::nanmean(Axes axes, bool keepdims, Location where) const {
  return burin::nanmean(*this, std::move(axes), keepdims, where);
}
Tensor Tensor::cov(int64_t correction, Location where) const { return burin::cov(*this, correction, where); }
Tensor Tensor::corrcoef(Location where) const { return burin::corrcoef(*this, where); }
Tensor Tensor::histc(int64_t bins, double low, double high, Location where) const {
  return burin::histc(*this, bins, low, high, where);
}
Tensor Tensor::bincount(const Dim &minlength, Location where) const { return burin::bincount(*this, minlength, where); }
Tensor Tensor::diag(int64_t offset, Location where) const { return burin::diag(*this, offset, where); }
Tensor Tensor::flipud(Location where) const { return burin::flipud(*this, where); }
Tensor Tensor::fliplr(Location where) const { return burin::fliplr(*this, where); }
Tensor Tensor::rot90(int64_t k, int64_t from, int64_t to, Location where) const {
  return burin::rot90(*this, k, from, to, where);
}
Tensor Tensor::take_along_dim(const Tensor &indices, int64_t axis, Location where) const {
  return burin::take_along_dim(*this, indices, axis, where);
}
Tensor Tensor::unique(Location where) const { return burin::unique(*this, where); }
Tensor Tensor::swapaxes(int64_t axis1, int64_t axis2, Location where) const {
  return burin::swapaxes(*this, axis1, axis2, where);
}
Tensor Tensor::argwhere(Location where) const { return burin::argwhere(*this, where); }
Tensor Tensor::kthvalue(const Dim &k, int64_t axis, bool keepdims, Location where) const {
  return burin::kthvalue(*this, k, axis, keepdims, where);
}
Tensor Tensor::nanquantile(double q, Location where) const { return burin::nanquantile(*this, q, where); }
Tensor Tensor::nanquantile(double q, int64_t axis, bool keepdims, Location where) const {
  return burin::nanquantile(*this, q, axis, keepdims, where);
}
Tensor Tensor::nanmedian(Location where) const { return burin::nanmedian(*this, where); }
Tensor Tensor::nanmedian(int64_t axis, bool keepdims, Location where) const {
  return burin::nanmedian(*this, axis, keepdims, where);
}
SortResult Tensor::mode(int64_t axis, bool keepdims, Location where) const {
  return burin::mode(*this, axis, keepdims, where);
}
Tensor Tensor::logcumsumexp(int64_t axis, Location where) const { return burin::logcumsumexp(*this, axis, where); }
Tensor Tensor::gcd(const Tensor &other, Location where) const { return burin::gcd(*this, other, where); }
Tensor Tensor::lcm(const Tensor &other, Location where) const { return burin::lcm(*this, other, where); }
Tensor Tensor::addmv(const Tensor &a, const Tensor &b, double beta, double alpha, Location where) const {
  return burin::addmv(*this, a, b, beta, alpha, where);
}
Tensor Tensor::addr(const Tensor &a, const Tensor &b, double beta, double alpha, Location where) const {
  return burin::addr(*this, a, b, beta, alpha, where);
}
Tensor Tensor::renorm(double p, int64_t axis, double maxnorm, Location where) const {
  return burin::renorm(*this, p, axis, maxnorm, where);
}
Tensor Tensor::index_reduce(int64_t axis, const Tensor &indices, const Tensor &updates, const std::string &reduce,
                            bool include_self, Location where) const {
  return burin::index_reduce(*this, axis, indices, updates, reduce, include_self, where);
}
Tensor Tensor::sum_to_size(const Shape &wanted, Location where) const {
  LocationScope scope(detail::inScope(where));
  const Shape sizes = shape();
  const size_t added = sizes.size() - std::min(sizes.size(), wanted.size());
  Axes axes;
  bool fits = wanted.size() <= sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    if (i < added || (wanted[i - added] == Dim(1) && sizes[i] != Dim(1)))
      axes.push_back(int64_t(i));
    else
      fits = mayEqual(wanted[i - added], sizes[i]);
  if (!fits)
    throw Error(detail::inScope(where), "sum_to_size",
                burin::str(wanted) + " does not broadcast to " + burin::str(spec()));
  return axes.empty() ? *this : burin::reshape(burin::sum(*this, axes), wanted);
}
SortResult Tensor::cummax(int64_t axis, Location where) const { return burin::cummax(*this, axis, where); }
SortResult Tensor::cummin(int64_t axis, Location where) const { return burin::cummin(*this, axis, where); }
std::vector<Tensor> Tensor::tensor_split(int64_t count, int64_t axis, Location where) const {
  return burin::tensor_split(*this, count, axis, where);
}
bool Tensor::equal(const Tensor &other, Location where) const { return burin::equal(*this, other, where); }
Tensor Tensor::trace(Location where) const { return burin::diagonal(*this, 0, 0, 1, where).sum({}, false, where); }
Tensor Tensor::where(const Tensor &condition, const Tensor &other, Location where) const {
  return burin::where(condition, *this, other, where);
}
Tensor Tensor::cpu(Location where) const { return to(burin::cpu, where); }
Tensor Tensor::cuda(int index, Location where) const { return to(burin::cuda(index), where); }
Tensor Tensor::new_full(const Shape &shape, double value, Location where) const {
  Beside scope(*this, where);
  return burin::full(shape, value, dtype(where), where);
}
Tensor Tensor::new_zeros(const Shape &shape, Location where) const { return new_full(shape, 0, where); }
Tensor Tensor::new_ones(const Shape &shape, Location where) const { return new_full(shape, 1, where); }

} // namespace burin
