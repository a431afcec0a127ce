// Functions of PyTorch that are compositions of the ops in burin/ops.h. They are traced, differentiated and fused like
// these. All sizes may be symbolic unless a function says otherwise.
#pragma once
#include "burin/ops.h"
#include "burin/tensor.h"
#include "burin/tensor/selection.h"
#include <limits>
#include <utility>

namespace burin {

// ---- elementwise; operands broadcast

/// x where `mask` (bool) is false, `value` elsewhere. The element type is that of x: throws if `value` is of a higher
/// class (bool < integers < floats). As torch.masked_fill.
BURIN_API Tensor masked_fill(const Tensor &x, const Tensor &mask, const Tensor &value,
                             Location where = Location::current());
/// x * x. As torch.square.
BURIN_API Tensor square(const Tensor &x, Location where = Location::current());
/// 2 to the power x; integers become f32. As torch.exp2.
BURIN_API Tensor exp2(const Tensor &x, Location where = Location::current());
/// Logarithm to base 2; integers become f32. As torch.log2.
BURIN_API Tensor log2(const Tensor &x, Location where = Location::current());
/// Logarithm to base 10; integers become f32. As torch.log10.
BURIN_API Tensor log10(const Tensor &x, Location where = Location::current());
/// log(exp(x) + exp(y)) without overflow. As torch.logaddexp.
BURIN_API Tensor logaddexp(const Tensor &x, const Tensor &y, Location where = Location::current());
/// sqrt(x² + y²); the squares may overflow. As torch.hypot.
BURIN_API Tensor hypot(const Tensor &x, const Tensor &y, Location where = Location::current());
/// start + weight * (end - start). As torch.lerp.
BURIN_API Tensor lerp(const Tensor &start, const Tensor &end, const Tensor &weight,
                      Location where = Location::current());
/// x + value * a * b. As torch.addcmul.
BURIN_API Tensor addcmul(const Tensor &x, const Tensor &a, const Tensor &b, double value = 1,
                         Location where = Location::current());
/// x + value * a / b. As torch.addcdiv.
BURIN_API Tensor addcdiv(const Tensor &x, const Tensor &a, const Tensor &b, double value = 1,
                         Location where = Location::current());
/// x - trunc(x). As torch.frac.
BURIN_API Tensor frac(const Tensor &x, Location where = Location::current());
/// 0 for x < 0, 1 for x > 0, `at_zero` for 0. As torch.heaviside.
BURIN_API Tensor heaviside(const Tensor &x, const Tensor &at_zero, Location where = Location::current());
/// max(x, low), and min(x, high). As torch.clamp_min, torch.clamp_max.
BURIN_API Tensor clamp_min(const Tensor &x, const Tensor &low, Location where = Location::current());
BURIN_API Tensor clamp_max(const Tensor &x, const Tensor &high, Location where = Location::current());
/// NaN and infinities replaced; without a value for an infinity, by the largest (smallest) finite number of the type.
/// As torch.nan_to_num.
BURIN_API Tensor nan_to_num(const Tensor &x, double nan = 0, std::optional<double> posinf = std::nullopt,
                            std::optional<double> neginf = std::nullopt, Location where = Location::current());
/// True for elements that are neither infinite nor NaN. As torch.isfinite.
BURIN_API Tensor is_finite(const Tensor &x, Location where = Location::current());
/// True where |x - y| <= atol + rtol * |y| or x == y. NaN is close to NaN with `equal_nan` only. As torch.isclose.
BURIN_API Tensor isclose(const Tensor &x, const Tensor &y, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false, Location where = Location::current());
/// Whether all elements are close. Reads the values, so it throws in a trace; use isclose(x, y).all() there. As
/// torch.allclose.
BURIN_API bool allclose(const Tensor &x, const Tensor &y, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false, Location where = Location::current());
/// Whether shapes and all elements are equal. Reads the values, so it throws in a trace. As torch.equal.
BURIN_API bool equal(const Tensor &x, const Tensor &y, Location where = Location::current());
/// min(max(x, 0), 6). As torch.nn.functional.relu6.
BURIN_API Tensor relu6(const Tensor &x, Location where = Location::current());
/// As torch.nn.functional.selu.
BURIN_API Tensor selu(const Tensor &x, Location where = Location::current());
/// x * tanh(softplus(x)). As torch.nn.functional.mish.
BURIN_API Tensor mish(const Tensor &x, Location where = Location::current());
/// log(sigmoid(x)). As torch.nn.functional.logsigmoid.
BURIN_API Tensor logsigmoid(const Tensor &x, Location where = Location::current());
/// x / (1 + |x|). As torch.nn.functional.softsign.
BURIN_API Tensor softsign(const Tensor &x, Location where = Location::current());
/// The first half along `axis` times the sigmoid of the second. The size must be static and even. As
/// torch.nn.functional.glu.
BURIN_API Tensor glu(const Tensor &x, int64_t axis = -1, Location where = Location::current());

// ---- reductions, over all axes by default

/// Standard deviation: the square root of var(x, axes, keepdims, correction). As torch.std; the method is x.std(…), but
/// a function cannot be named std without hiding the standard library.
BURIN_API Tensor stddev(const Tensor &x, Axes axes = {}, bool keepdims = false, int64_t correction = 1,
                        Location where = Location::current());
/// The p-norm: (sum of |x|^p)^(1/p); the largest |x| for p = infinity, the smallest for -infinity, the number of
/// non-zeros for 0. Integers become f32. As torch.linalg.vector_norm.
BURIN_API Tensor norm(const Tensor &x, double p = 2, Axes axes = {}, bool keepdims = false,
                      Location where = Location::current());
/// x / max(norm(x, p, axis), eps). As torch.nn.functional.normalize.
BURIN_API Tensor normalize(const Tensor &x, double p = 2, int64_t axis = 1, double eps = 1e-12,
                           Location where = Location::current());
/// The cosine of the angle between x and y along `axis`. As torch.nn.functional.cosine_similarity.
BURIN_API Tensor cosine_similarity(const Tensor &x, const Tensor &y, int64_t axis = 1, double eps = 1e-8,
                                   Location where = Location::current());
/// Number of non-zero elements: i64. As torch.count_nonzero.
BURIN_API Tensor count_nonzero(const Tensor &x, Axes axes = {}, Location where = Location::current());
/// Sum and mean of the elements that are not NaN. As torch.nansum, torch.nanmean.
BURIN_API Tensor nansum(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
BURIN_API Tensor nanmean(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current());
/// The median of all elements, or along `axis`; the lower one of two, NaN if there is a NaN. As torch.median, along an
/// axis its values.
BURIN_API Tensor median(const Tensor &x, Location where = Location::current());
BURIN_API Tensor median(const Tensor &x, int64_t axis, bool keepdims = false, Location where = Location::current());
/// Differences of adjacent elements along `axis`, `n` times. As torch.diff.
BURIN_API Tensor diff(const Tensor &x, int64_t n = 1, int64_t axis = -1, Location where = Location::current());

// ---- products

/// Sum of products over the indices that `equation` names, as in "bij,bjk->bik". A term has a letter per dimension,
/// "..." stands for any number of dimensions; without "->" the result has the letters that occur once, sorted. Throws
/// if the equation is malformed or does not fit the shapes. As torch.einsum.
BURIN_API Tensor einsum(const std::string &equation, const std::vector<Tensor> &operands,
                        Location where = Location::current());
inline Tensor einsum(const std::string &equation, std::initializer_list<Tensor> operands,
                     Location where = Location::current()) {
  return einsum(equation, std::vector<Tensor>(operands), where);
}
template <std::convertible_to<Tensor>... Rest>
Tensor einsum(const std::string &equation, const detail::Operand &first, const Rest &...rest) {
  return einsum(equation, std::vector<Tensor>{first.tensor, Tensor(rest)...}, first.where);
}
/// Sum over the last `count` dimensions of x and the first `count` of y. As torch.tensordot.
BURIN_API Tensor tensordot(const Tensor &x, const Tensor &y, int64_t count = 2, Location where = Location::current());
/// Sum over axesX of x and axesY of y, pairwise. As torch.tensordot.
BURIN_API Tensor tensordot(const Tensor &x, const Tensor &y, const IntList &axes_x, const IntList &axes_y,
                           Location where = Location::current());
/// x[i] * y[j] of two vectors. As torch.outer.
BURIN_API Tensor outer(const Tensor &x, const Tensor &y, Location where = Location::current());
/// beta * x + alpha * (a @ b). As torch.addmm, torch.baddbmm.
BURIN_API Tensor addmm(const Tensor &x, const Tensor &a, const Tensor &b, double beta = 1, double alpha = 1,
                       Location where = Location::current());
/// (a * scale_a) @ (b * scale_b) + bias for 8-bit floats a [M, K] and b [K, N], in the type `dtype`. The products have
/// f32 sums, to which the scales are applied: f32, one number each, or [M, 1] for the rows of a and [1, N] for the
/// columns of b. A bias [N] is added before the result is rounded. As torch._scaled_mm.
BURIN_API Tensor scaled_mm(const Tensor &a, const Tensor &b, const Tensor &scale_a, const Tensor &scale_b, DType dtype,
                           const std::optional<Tensor> &bias = std::nullopt, Location where = Location::current());
/// x · weightᵀ + bias; weight [out, in], bias [out]. As torch.nn.functional.linear.
BURIN_API Tensor linear(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias = std::nullopt,
                        Location where = Location::current());
/// The Kronecker product of two tensors of one rank. As torch.kron.
BURIN_API Tensor kron(const Tensor &x, const Tensor &y, Location where = Location::current());
/// Distances (the p-norm) between the rows of x [..., P, M] and y [..., R, M]: [..., P, R]. As torch.cdist.
BURIN_API Tensor cdist(const Tensor &x, const Tensor &y, double p = 2, Location where = Location::current());

// ---- shapes

/// Repeats dimensions of size 1 to `shape`, which may have more dimensions; -1 keeps a size. As torch.Tensor.expand.
BURIN_API Tensor expand(const Tensor &x, const Shape &shape, Location where = Location::current());
BURIN_API Tensor expand_as(const Tensor &x, const Tensor &other, Location where = Location::current());
/// Repeats the whole tensor; more counts than dimensions add dimensions in front. Counts may be symbolic. As
/// torch.Tensor.repeat.
BURIN_API Tensor repeat(const Tensor &x, const Shape &counts, Location where = Location::current());
template <std::integral T> Tensor repeat(const Tensor &x, T count, Location where = Location::current()) {
  return repeat(x, Shape{Dim(count)}, where);
}
/// Repeats each element along `axis` `count` times. As torch.repeat_interleave.
BURIN_API Tensor repeat_interleave(const Tensor &x, int64_t count, int64_t axis, Location where = Location::current());
/// Splits x into `count` pieces along `axis`, of ceil(size / count) each except the last, or fewer pieces if that is
/// enough. A symbolic size gives always `count` pieces, of which the last ones may be empty. As torch.chunk.
BURIN_API std::vector<Tensor> chunk(const Tensor &x, int64_t count, int64_t axis = 0,
                                    Location where = Location::current());
namespace detail {
BURIN_API std::vector<Tensor> splitEvery(const Tensor &x, int64_t size, int64_t axis, const Location &where);
}
/// Splits x into pieces of `size` along `axis`; the last may be smaller. The size of the dimension must be static. As
/// torch.split.
template <std::integral T>
std::vector<Tensor> split(const Tensor &x, T size, int64_t axis = 0, Location where = Location::current()) {
  return detail::splitEvery(x, int64_t(size), axis, where);
}
/// The slices along `axis`, without that dimension, whose size must be static. As torch.unbind.
BURIN_API std::vector<Tensor> unbind(const Tensor &x, int64_t axis = 0, Location where = Location::current());
/// `length` elements along `axis`, from `start`. As torch.narrow.
BURIN_API Tensor narrow(const Tensor &x, int64_t axis, const Dim &start, const Dim &length,
                        Location where = Location::current());
/// One slice along `axis`, without that dimension. As torch.select.
BURIN_API Tensor select(const Tensor &x, int64_t axis, int64_t index, Location where = Location::current());
/// The slices along `axis` at the positions in the vector `indices`. As torch.index_select.
BURIN_API Tensor index_select(const Tensor &x, int64_t axis, const Tensor &indices,
                              Location where = Location::current());
/// Permutes dimensions. As torch.permute; transpose(x, order) is the same.
BURIN_API Tensor permute(const Tensor &x, const IntList &order, Location where = Location::current());
/// Swaps two dimensions. As torch.transpose.
template <std::integral A, std::integral B>
Tensor transpose(const Tensor &x, A axis1, B axis2, Location where = Location::current()) {
  return x.transpose(axis1, axis2, where);
}
/// Moves dimension `from` to `to`; the others keep their order. As torch.movedim.
BURIN_API Tensor movedim(const Tensor &x, int64_t from, int64_t to, Location where = Location::current());
/// Splits dimension `axis` into several; one size may be -1. As torch.unflatten.
BURIN_API Tensor unflatten(const Tensor &x, int64_t axis, const Shape &sizes, Location where = Location::current());
/// Rotates elements along dimensions: those shifted out at one end enter at the other. Without axes, rotates the
/// flattened tensor. As torch.roll.
BURIN_API Tensor roll(const Tensor &x, const IntList &shifts, const Axes &axes = {},
                      Location where = Location::current());
/// The elements x[i, i + offset] of two dimensions, as a new last dimension. As torch.diagonal.
BURIN_API Tensor diagonal(const Tensor &x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1,
                          Location where = Location::current());
/// The diagonal of a matrix, or the matrix with a vector on its diagonal. As torch.diag.
BURIN_API Tensor diag(const Tensor &x, int64_t offset = 0, Location where = Location::current());
/// Concatenates along dimension 1 (0 for vectors), or along dimension 0 (vectors are rows). As torch.hstack,
/// torch.vstack.
BURIN_API Tensor hstack(const std::vector<Tensor> &xs, Location where = Location::current());
BURIN_API Tensor vstack(const std::vector<Tensor> &xs, Location where = Location::current());
/// Grids of coordinates from vectors: element [i0, i1, …] of result k is element ik of vector k. `indexing` is "ij", or
/// "xy", which swaps the first two dimensions. As torch.meshgrid.
BURIN_API std::vector<Tensor> meshgrid(const std::vector<Tensor> &xs, const std::string &indexing = "ij",
                                       Location where = Location::current());
/// 1 at the class in x along a new last dimension, 0 elsewhere: i64[shape of x, classes]. A class out of range is an
/// error of the run. Without `classes`, their number is the largest class plus 1, which reads x and throws in a trace.
/// As torch.nn.functional.one_hot.
BURIN_API Tensor one_hot(const Tensor &x, const Dim &classes = -1, Location where = Location::current());
/// Number of occurrences of 0, 1, … in the integers x: i64[bins]. There are `minlength` bins, and for an eager x, which
/// the call reads, enough for its largest value; in a trace a value that has no bin is an error of the run, and so is a
/// negative one. As torch.bincount.
BURIN_API Tensor bincount(const Tensor &x, const Dim &minlength = 0, Location where = Location::current());

/// Amounts of padding before and after dimensions; negative amounts crop. Carries the caller's line.
struct Padding {
  /// In the order of torch.nn.functional.pad: pairs from the last dimension backwards, {left, right, top, bottom}.
  Padding(std::initializer_list<int64_t> fromLast, Location where = Location::current())
      : fromLast(fromLast), where(where) {}
  Padding(std::vector<int64_t> fromLast, Location where = Location::current())
      : fromLast(std::move(fromLast)), where(where) {}
  /// In the order of numpy.pad: one pair per dimension, {{0, 0}, {1, 1}}.
  Padding(std::initializer_list<std::pair<int64_t, int64_t>> pairs, Location where = Location::current())
      : perDimension(pairs), where(where) {}

  std::vector<int64_t> fromLast;
  std::vector<std::pair<int64_t, int64_t>> perDimension;
  Location where;
};
namespace detail {
BURIN_API Tensor padded(const Tensor &x, const Padding &padding, const std::string &mode, double value);
}
/// Pads with zeros, or by `mode`: "constant", "reflect", "replicate" ("edge" in pad(x, low, high)), or "circular",
/// which continues at the other end. As torch.nn.functional.pad.
inline Tensor pad(const Tensor &x, const Padding &padding) { return detail::padded(x, padding, "constant", 0); }
template <std::convertible_to<std::string> Mode>
Tensor pad(const Tensor &x, const Padding &padding, const Mode &mode, double value = 0) {
  return detail::padded(x, padding, mode, value);
}

} // namespace burin
