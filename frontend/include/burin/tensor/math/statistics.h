// Statistics along an axis or of all elements: order statistics, running extrema and sums, histograms, integrals.
#pragma once
#include "burin/tensor/selection.h"
#include <utility>

namespace burin {

/// (smallest, largest) elements over `axes`. As torch.aminmax.
BURIN_API std::pair<Tensor, Tensor> aminmax(const Tensor &x, Axes axes = {}, bool keepdims = false,
                                            Location where = Location::current());
/// (variance, mean) and (standard deviation, mean). As torch.var_mean, torch.std_mean.
BURIN_API std::pair<Tensor, Tensor> var_mean(const Tensor &x, Axes axes = {}, bool keepdims = false,
                                             int64_t correction = 1, Location where = Location::current());
BURIN_API std::pair<Tensor, Tensor> std_mean(const Tensor &x, Axes axes = {}, bool keepdims = false,
                                             int64_t correction = 1, Location where = Location::current());
/// The value below which a fraction q (0 to 1) of all elements, or of those along `axis`, lies, interpolated; NaN if
/// there is a NaN. As torch.quantile with one q.
BURIN_API Tensor quantile(const Tensor &x, double q, Location where = Location::current());
BURIN_API Tensor quantile(const Tensor &x, double q, int64_t axis, bool keepdims = false,
                          Location where = Location::current());
/// The same of the elements that are not NaN; NaN if there are none. As torch.nanquantile.
BURIN_API Tensor nanquantile(const Tensor &x, double q, Location where = Location::current());
BURIN_API Tensor nanquantile(const Tensor &x, double q, int64_t axis, bool keepdims = false,
                             Location where = Location::current());
/// median() of the elements that are not NaN; NaN if there are none. As torch.nanmedian, along an axis its values.
BURIN_API Tensor nanmedian(const Tensor &x, Location where = Location::current());
BURIN_API Tensor nanmedian(const Tensor &x, int64_t axis, bool keepdims = false, Location where = Location::current());
/// The most frequent element along `axis`, the smallest of several, and the index of its last occurrence (i64). Throws
/// if there are no elements. As torch.mode.
BURIN_API SortResult mode(const Tensor &x, int64_t axis = -1, bool keepdims = false,
                          Location where = Location::current());
/// sort(x, 0).values. As torch.msort.
inline Tensor msort(const Tensor &x, Location where = Location::current()) { return sort(x, 0, false, where).values; }
/// The k-th smallest element along `axis`, from 1. As the values of torch.kthvalue.
BURIN_API Tensor kthvalue(const Tensor &x, const Dim &k, int64_t axis = -1, bool keepdims = false,
                          Location where = Location::current());
/// The largest, or smallest, element up to each one along `axis`, and its index, the last one of equal ones; from a NaN
/// on the results are NaN. A loop over the axis. As torch.cummax, torch.cummin.
BURIN_API SortResult cummax(const Tensor &x, int64_t axis, Location where = Location::current());
BURIN_API SortResult cummin(const Tensor &x, int64_t axis, Location where = Location::current());
/// log(cumsum(exp(x), axis)) without overflow, in the type of x; integers become f32. A loop over the axis. As
/// torch.logcumsumexp.
BURIN_API Tensor logcumsumexp(const Tensor &x, int64_t axis, Location where = Location::current());
/// The number of elements in each of `bins` intervals of equal width from low to high, in the type of x; others are not
/// counted. If both are 0, from the smallest to the largest element. As torch.histc.
BURIN_API Tensor histc(const Tensor &x, int64_t bins = 100, double low = 0, double high = 0,
                       Location where = Location::current());
/// Correlation coefficients of the variables in the rows of x [variables, samples]. As torch.corrcoef.
BURIN_API Tensor corrcoef(const Tensor &x, Location where = Location::current());
/// The integral of y along `axis` by the trapezoidal rule, at points of distance dx, or at x: a vector, or one position
/// per element. As torch.trapezoid.
BURIN_API Tensor trapezoid(const Tensor &y, double dx = 1, int64_t axis = -1, Location where = Location::current());
BURIN_API Tensor trapezoid(const Tensor &y, const Tensor &x, int64_t axis = -1, Location where = Location::current());
/// The integral up to each element from the second on. As torch.cumulative_trapezoid.
BURIN_API Tensor cumulative_trapezoid(const Tensor &y, double dx = 1, int64_t axis = -1,
                                      Location where = Location::current());
template <class X = double>
Tensor trapz(const Tensor &y, const X &x = 1, int64_t axis = -1, Location where = Location::current()) {
  return trapezoid(y, x, axis, where);
}

} // namespace burin
