// Included by burin/tensor.h inside class Tensor: x.function(...) is function(x, ...), see burin/tensor/composed.h.

Tensor masked_fill(const Tensor &mask, const Tensor &value, Location where = Location::current()) const;
Tensor square(Location where = Location::current()) const;
Tensor log2(Location where = Location::current()) const;
/// The lower bound alone, or None and the upper bound alone.
Tensor clamp(const Tensor &low, Location where = Location::current()) const;
Tensor clamp(const NoneType &, const Tensor &high, Location where = Location::current()) const;
Tensor clamp(const Tensor &low, const NoneType &, Location where = Location::current()) const;
/// The tensor plus, or minus, alpha * other.
Tensor add(const Tensor &other, const Tensor &alpha, Location where = Location::current()) const;
Tensor sub(const Tensor &other, const Tensor &alpha, Location where = Location::current()) const;
/// The elements at these positions of the flattened tensor; take(indices, axis) selects slices.
Tensor take(const Tensor &indices, Location where = Location::current()) const;
Tensor clamp_min(const Tensor &low, Location where = Location::current()) const;
Tensor clamp_max(const Tensor &high, Location where = Location::current()) const;
Tensor is_finite(Location where = Location::current()) const;
Tensor std(Axes axes = {}, bool keepdims = false, int64_t correction = 1, Location where = Location::current()) const;
Tensor argmax(Location where = Location::current()) const;
Tensor argmin(Location where = Location::current()) const;
Tensor median(Location where = Location::current()) const;
Tensor median(int64_t axis, bool keepdims = false, Location where = Location::current()) const;
Tensor quantile(double q, Location where = Location::current()) const;
Tensor quantile(double q, int64_t axis, bool keepdims = false, Location where = Location::current()) const;
Tensor diff(int64_t n = 1, int64_t axis = -1, Location where = Location::current()) const;
Tensor nansum(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
Tensor count_nonzero(Axes axes = {}, Location where = Location::current()) const;
bool allclose(const Tensor &other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
              Location where = Location::current()) const;
Tensor norm(double p = 2, Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
Tensor expand(const Shape &shape, Location where = Location::current()) const;
Tensor expand_as(const Tensor &other, Location where = Location::current()) const;
Tensor repeat(const Shape &counts, Location where = Location::current()) const;
template <std::integral T> Tensor repeat(T count, Location where = Location::current()) const {
  return repeat(Shape{Dim(count)}, where);
}
Tensor repeat_interleave(int64_t count, int64_t axis, Location where = Location::current()) const;
std::vector<Tensor> chunk(int64_t count, int64_t axis = 0, Location where = Location::current()) const;
/// Pieces of `size`; the last may be smaller. As torch.split.
template <std::integral T>
std::vector<Tensor> split(T size, int64_t axis = 0, Location where = Location::current()) const {
  return splitEvery(int64_t(size), axis, where);
}
std::vector<Tensor> unbind(int64_t axis = 0, Location where = Location::current()) const;
Tensor narrow(int64_t axis, const Dim &start, const Dim &length, Location where = Location::current()) const;
Tensor select(int64_t axis, int64_t index, Location where = Location::current()) const;
Tensor index_select(int64_t axis, const Tensor &indices, Location where = Location::current()) const;
Tensor permute(const IntList &order, Location where = Location::current()) const;
Tensor movedim(int64_t from, int64_t to, Location where = Location::current()) const;
Tensor unflatten(int64_t axis, const Shape &sizes, Location where = Location::current()) const;
Tensor roll(const IntList &shifts, const Axes &axes = {}, Location where = Location::current()) const;
/// Windows of `size` elements at every `step` along `axis`, as a new last dimension. As torch.Tensor.unfold.
Tensor unfold(int64_t axis, int64_t size, int64_t step, Location where = Location::current()) const;
Tensor diagonal(int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1, Location where = Location::current()) const;
Tensor masked_select(const Tensor &mask, Location where = Location::current()) const;
Tensor masked_scatter(const Tensor &mask, const Tensor &source, Location where = Location::current()) const;
Tensor repeat_interleave(const Tensor &counts, int64_t axis, const Dim &output_size = -1,
                         Location where = Location::current()) const;
SortResult sort(int64_t axis = -1, bool descending = false, Location where = Location::current()) const;
SortResult topk(const Dim &k, int64_t axis = -1, bool largest = true, Location where = Location::current()) const;

/// reshape() under PyTorch's name; tensors are dense, so a view is always possible.
Tensor view(const Shape &shape, Location where = Location::current()) const;
template <std::integral T> Tensor view(const std::vector<T> &shape, Location where = Location::current()) const {
  return view(Shape(shape.begin(), shape.end()), where);
}
template <std::integral T> Tensor reshape(const std::vector<T> &shape, Location where = Location::current()) const {
  return reshape(Shape(shape.begin(), shape.end()), where);
}
/// One size, as in x.view(-1).
template <std::integral T> Tensor view(T size, Location where = Location::current()) const {
  return view(Shape{Dim(size)}, where);
}
template <std::integral T> Tensor reshape(T size, Location where = Location::current()) const {
  return reshape(Shape{Dim(size)}, where);
}
Tensor view_as(const Tensor &other, Location where = Location::current()) const;
/// The tensor itself; all tensors are dense and row-major.
Tensor contiguous() const { return *this; }
/// Swaps two dimensions. As torch.Tensor.transpose with two arguments.
template <std::integral A, std::integral B>
Tensor transpose(A axis1, B axis2, Location where = Location::current()) const {
  return swapped(int64_t(axis1), int64_t(axis2), where);
}
/// The elements from, from + step, … below `to` along one dimension. Negative bounds count from the end; without `to`,
/// up to the end. The step is positive. x.slice(axis, from, to) is x[{…, Slice(from, to)}].
template <std::integral A>
Tensor slice(A axis, const Dim &from, const std::optional<Dim> &to = std::nullopt, int64_t step = 1,
             Location where = Location::current()) const {
  return sliced(int64_t(axis), from, to, step, where);
}

// ---- see burin/tensor/math/special.h
Tensor erfc(Location where = Location::current()) const;
Tensor erfinv(Location where = Location::current()) const;
Tensor lgamma(Location where = Location::current()) const;
Tensor digamma(Location where = Location::current()) const;
Tensor xlogy(const Tensor &other, Location where = Location::current()) const;
Tensor logit(std::optional<double> eps = std::nullopt, Location where = Location::current()) const;
Tensor sinc(Location where = Location::current()) const;
Tensor i0(Location where = Location::current()) const;

// ---- see burin/functional.h
/// shape() and rank() under PyTorch's names.
const Shape &sizes(Location where = Location::current()) const { return shape(where); }
int64_t dim(Location where = Location::current()) const { return rank(where); }
/// The tensor itself, as tensors never change.
Tensor clone() const { return *this; }
Tensor mm(const Tensor &other, Location where = Location::current()) const;
Tensor bmm(const Tensor &other, Location where = Location::current()) const;
Tensor mv(const Tensor &other, Location where = Location::current()) const;
Tensor dot(const Tensor &other, Location where = Location::current()) const;
Tensor amax(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
Tensor amin(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
Tensor ravel(Location where = Location::current()) const;
Tensor isnan(Location where = Location::current()) const { return is_nan(where); }
Tensor isinf(Location where = Location::current()) const { return is_inf(where); }
Tensor isfinite(Location where = Location::current()) const { return is_finite(where); }
/// Converted to the element type of `other`. As torch.Tensor.type_as.
Tensor type_as(const Tensor &other, Location where = Location::current()) const;
/// gather and scatter in PyTorch's order.
template <std::integral A> Tensor gather(A axis, const Tensor &indices, Location where = Location::current()) const {
  return gather(indices, int64_t(axis), where);
}
template <std::integral A>
Tensor scatter(A axis, const Tensor &indices, const Tensor &updates, Location where = Location::current()) const {
  return scatter(indices, updates, int64_t(axis), "set", false, where);
}
/// One number at all of the indices.
template <std::integral A, Arithmetic V>
Tensor scatter(A axis, const Tensor &indices, V value, Location where = Location::current()) const {
  return scattered(int64_t(axis), indices, Tensor(value), where);
}
Tensor scatter_add(int64_t axis, const Tensor &indices, const Tensor &updates,
                   Location where = Location::current()) const;
Tensor scatter_reduce(int64_t axis, const Tensor &indices, const Tensor &updates, const std::string &reduce,
                      bool include_self = true, Location where = Location::current()) const;
Tensor index_add(int64_t axis, const Tensor &indices, const Tensor &updates, double alpha = 1,
                 Location where = Location::current()) const;
Tensor index_copy(int64_t axis, const Tensor &indices, const Tensor &updates,
                  Location where = Location::current()) const;
Tensor index_fill(int64_t axis, const Tensor &indices, const Tensor &value, Location where = Location::current()) const;
Tensor logaddexp(const Tensor &other, Location where = Location::current()) const;
Tensor hypot(const Tensor &other, Location where = Location::current()) const;
Tensor outer(const Tensor &other, Location where = Location::current()) const;
Tensor inner(const Tensor &other, Location where = Location::current()) const;
Tensor heaviside(const Tensor &at_zero, Location where = Location::current()) const;
Tensor copysign(const Tensor &other, Location where = Location::current()) const;
Tensor fmax(const Tensor &other, Location where = Location::current()) const;
Tensor fmin(const Tensor &other, Location where = Location::current()) const;
Tensor float_power(const Tensor &exponent, Location where = Location::current()) const;
Tensor lerp(const Tensor &end, const Tensor &weight, Location where = Location::current()) const;
Tensor addcmul(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) const;
Tensor addcdiv(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) const;
Tensor addmm(const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
             Location where = Location::current()) const;
Tensor exp2(Location where = Location::current()) const;
Tensor log10(Location where = Location::current()) const;
Tensor frac(Location where = Location::current()) const;
Tensor signbit(Location where = Location::current()) const;
Tensor deg2rad(Location where = Location::current()) const;
Tensor rad2deg(Location where = Location::current()) const;
Tensor nan_to_num(double nan = 0, std::optional<double> posinf = std::nullopt,
                  std::optional<double> neginf = std::nullopt, Location where = Location::current()) const;
Tensor isclose(const Tensor &other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
               Location where = Location::current()) const;
Tensor dist(const Tensor &other, double p = 2, Location where = Location::current()) const;
Tensor cross(const Tensor &other, int64_t axis = -1, Location where = Location::current()) const;
Tensor nanmean(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
Tensor cov(int64_t correction = 1, Location where = Location::current()) const;
Tensor corrcoef(Location where = Location::current()) const;
Tensor histc(int64_t bins = 100, double low = 0, double high = 0, Location where = Location::current()) const;
Tensor bincount(const Dim &minlength = 0, Location where = Location::current()) const;
Tensor diag(int64_t offset = 0, Location where = Location::current()) const;
Tensor flipud(Location where = Location::current()) const;
Tensor fliplr(Location where = Location::current()) const;
Tensor rot90(int64_t k = 1, int64_t from = 0, int64_t to = 1, Location where = Location::current()) const;
Tensor take_along_dim(const Tensor &indices, int64_t axis, Location where = Location::current()) const;
Tensor unique(Location where = Location::current()) const;
Tensor swapaxes(int64_t axis1, int64_t axis2, Location where = Location::current()) const;
Tensor argwhere(Location where = Location::current()) const;
Tensor kthvalue(const Dim &k, int64_t axis = -1, bool keepdims = false, Location where = Location::current()) const;
Tensor nanquantile(double q, Location where = Location::current()) const;
Tensor nanquantile(double q, int64_t axis, bool keepdims = false, Location where = Location::current()) const;
Tensor nanmedian(Location where = Location::current()) const;
Tensor nanmedian(int64_t axis, bool keepdims = false, Location where = Location::current()) const;
SortResult mode(int64_t axis = -1, bool keepdims = false, Location where = Location::current()) const;
Tensor logcumsumexp(int64_t axis, Location where = Location::current()) const;
Tensor gcd(const Tensor &other, Location where = Location::current()) const;
Tensor lcm(const Tensor &other, Location where = Location::current()) const;
Tensor addmv(const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
             Location where = Location::current()) const;
Tensor addr(const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
            Location where = Location::current()) const;
Tensor renorm(double p, int64_t axis, double maxnorm, Location where = Location::current()) const;
Tensor index_reduce(int64_t axis, const Tensor &indices, const Tensor &updates, const std::string &reduce,
                    bool include_self = true, Location where = Location::current()) const;
/// reshape() to the shape of another tensor, and sum() over broadcast dimensions, so that this shape is left. As
/// torch.Tensor.reshape_as, sum_to_size.
Tensor reshape_as(const Tensor &other, Location where = Location::current()) const { return view_as(other, where); }
Tensor sum_to_size(const Shape &shape, Location where = Location::current()) const;
template <std::integral T> Tensor sum_to_size(T size, Location where = Location::current()) const {
  return sum_to_size(Shape{Dim(size)}, where);
}
SortResult cummax(int64_t axis, Location where = Location::current()) const;
SortResult cummin(int64_t axis, Location where = Location::current()) const;
std::vector<Tensor> tensor_split(int64_t count, int64_t axis = 0, Location where = Location::current()) const;
bool equal(const Tensor &other, Location where = Location::current()) const;
/// Sum of the diagonal of a matrix. As torch.Tensor.trace.
Tensor trace(Location where = Location::current()) const;
/// This tensor where `condition` holds, `other` elsewhere. As torch.Tensor.where.
Tensor where(const Tensor &condition, const Tensor &other, Location where = Location::current()) const;
/// to(burin::cpu) and to(burin::cuda(index)).
Tensor cpu(Location where = Location::current()) const;
Tensor cuda(int index = 0, Location where = Location::current()) const;
/// Of the element type and on the device of this tensor. As torch.Tensor.new_zeros, new_ones, new_full.
Tensor new_zeros(const Shape &shape, Location where = Location::current()) const;
Tensor new_ones(const Shape &shape, Location where = Location::current()) const;
Tensor new_full(const Shape &shape, double value, Location where = Location::current()) const;
/// add, sub, mul, div, abs and neg under PyTorch's other names.
Tensor subtract(const Tensor &other, Location where = Location::current()) const { return sub(other, where); }
Tensor multiply(const Tensor &other, Location where = Location::current()) const { return mul(other, where); }
Tensor divide(const Tensor &other, Location where = Location::current()) const { return div(other, where); }
Tensor true_divide(const Tensor &other, Location where = Location::current()) const { return div(other, where); }
Tensor absolute(Location where = Location::current()) const { return abs(where); }
Tensor negative(Location where = Location::current()) const { return neg(where); }
