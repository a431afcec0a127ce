// More functions of PyTorch, by its names and with its order of arguments, composed of the ops in burin/ops.h: traced,
// differentiated and fused like these. Sizes may be symbolic unless a function says otherwise. Functions in
// burin/tensor/composed.h have PyTorch's names, too; where burin's own name or order differs, both can be used.
#pragma once
#include "burin/nn/module.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/indexing.h"
#include "burin/tensor/math/products.h"
#include "burin/tensor/math/signal.h"
#include "burin/tensor/math/special.h"
#include "burin/tensor/math/statistics.h"
#include "burin/tensor/reductions.h"
#include <utility>

namespace burin {

// ---- other names

/// concat(xs, axis). As torch.cat.
inline Tensor cat(const std::vector<Tensor> &xs, int64_t axis = 0, Location where = Location::current()) {
  return concat(xs, axis, where);
}
inline Tensor concatenate(const std::vector<Tensor> &xs, int64_t axis = 0, Location where = Location::current()) {
  return concat(xs, axis, where);
}
/// Inverse functions and comparisons under PyTorch's long names.
inline Tensor arccos(const Tensor &x, Location where = Location::current()) { return acos(x, where); }
inline Tensor arcsin(const Tensor &x, Location where = Location::current()) { return asin(x, where); }
inline Tensor arctan(const Tensor &x, Location where = Location::current()) { return atan(x, where); }
inline Tensor arccosh(const Tensor &x, Location where = Location::current()) { return acosh(x, where); }
inline Tensor arcsinh(const Tensor &x, Location where = Location::current()) { return asinh(x, where); }
inline Tensor arctanh(const Tensor &x, Location where = Location::current()) { return atanh(x, where); }
inline Tensor arctan2(const Tensor &y, const Tensor &x, Location where = Location::current()) {
  return atan2(y, x, where);
}
inline Tensor greater(const Tensor &x, const Tensor &y, Location where = Location::current()) {
  return gt(x, y, where);
}
inline Tensor greater_equal(const Tensor &x, const Tensor &y, Location where = Location::current()) {
  return ge(x, y, where);
}
inline Tensor less(const Tensor &x, const Tensor &y, Location where = Location::current()) { return lt(x, y, where); }
inline Tensor less_equal(const Tensor &x, const Tensor &y, Location where = Location::current()) {
  return le(x, y, where);
}
inline Tensor not_equal(const Tensor &x, const Tensor &y, Location where = Location::current()) {
  return ne(x, y, where);
}
/// The largest or smallest elements over `axes`. As torch.amax, torch.amin.
inline Tensor amax(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current()) {
  return max(x, std::move(axes), keepdims, where);
}
inline Tensor amin(const Tensor &x, Axes axes = {}, bool keepdims = false, Location where = Location::current()) {
  return min(x, std::move(axes), keepdims, where);
}
/// maximum(x, y) and minimum(x, y). As torch.max, torch.min of two tensors.
template <std::same_as<Tensor> T> Tensor max(const Tensor &x, const T &y, Location where = Location::current()) {
  return maximum(x, y, where);
}
template <std::same_as<Tensor> T> Tensor min(const Tensor &x, const T &y, Location where = Location::current()) {
  return minimum(x, y, where);
}
inline Tensor isnan(const Tensor &x, Location where = Location::current()) { return is_nan(x, where); }
inline Tensor isinf(const Tensor &x, Location where = Location::current()) { return is_inf(x, where); }
inline Tensor isfinite(const Tensor &x, Location where = Location::current()) { return is_finite(x, where); }
/// clamp(x, low, high). As torch.clip.
inline Tensor clip(const Tensor &x, const Tensor &low, const Tensor &high, Location where = Location::current()) {
  return clamp(x, low, high, where);
}
/// One bound alone: clamp(x, low), clamp(x, None, high). As torch.clamp, torch.clip.
inline Tensor clamp(const Tensor &x, const Tensor &low, Location where = Location::current()) {
  return maximum(x, low, where);
}
inline Tensor clamp(const Tensor &x, const NoneType &, const Tensor &high, Location where = Location::current()) {
  return minimum(x, high, where);
}
inline Tensor clip(const Tensor &x, const Tensor &low, Location where = Location::current()) {
  return clamp(x, low, where);
}
inline Tensor clip(const Tensor &x, const NoneType &, const Tensor &high, Location where = Location::current()) {
  return minimum(x, high, where);
}
/// x + alpha * y and x - alpha * y; alpha is a number, an integer for integers. As torch.add, torch.sub.
BURIN_API Tensor add(const Tensor &x, const Tensor &y, const Tensor &alpha, Location where = Location::current());
BURIN_API Tensor sub(const Tensor &x, const Tensor &y, const Tensor &alpha, Location where = Location::current());
inline Tensor moveaxis(const Tensor &x, int64_t from, int64_t to, Location where = Location::current()) {
  return movedim(x, from, to, where);
}
/// x as a vector. As torch.ravel.
BURIN_API Tensor ravel(const Tensor &x, Location where = Location::current());

// ---- selecting and writing at indices, in PyTorch's order: x, axis, indices, values

/// gather(x, indices, axis). As torch.gather.
template <std::integral A>
Tensor gather(const Tensor &x, A axis, const Tensor &indices, Location where = Location::current()) {
  return gather(x, indices, int64_t(axis), where);
}
/// x with the elements at `indices` along `axis` replaced, or added to. As torch.scatter, torch.scatter_add.
template <std::integral A>
Tensor scatter(const Tensor &x, A axis, const Tensor &indices, const Tensor &updates,
               Location where = Location::current()) {
  return scatter(x, indices, updates, int64_t(axis), "set", false, where);
}
/// One number at all of the indices.
template <std::integral A, Arithmetic V>
Tensor scatter(const Tensor &x, A axis, const Tensor &indices, V value, Location where = Location::current()) {
  return x.scatter(axis, indices, value, where);
}
BURIN_API Tensor scatter_add(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                             Location where = Location::current());
/// x combined with the updates by "sum", "prod", "amax", "amin" or "mean". Without `include_self` the elements that
/// have updates do not count themselves. As torch.scatter_reduce.
BURIN_API Tensor scatter_reduce(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                                const std::string &reduce, bool include_self = true,
                                Location where = Location::current());
/// x with alpha * updates added to, or copied to, the slices at the vector `indices` along `axis`. As torch.index_add,
/// torch.index_copy.
BURIN_API Tensor index_add(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                           double alpha = 1, Location where = Location::current());
BURIN_API Tensor index_copy(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                            Location where = Location::current());
/// x with all elements of the slices at the vector `indices` along `axis` set to `value`. As torch.index_fill.
BURIN_API Tensor index_fill(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &value,
                            Location where = Location::current());
/// x with the updates combined into the slices at the vector `indices` along `axis` by "prod", "mean", "amax" or
/// "amin"; see scatter_reduce. As torch.index_reduce.
BURIN_API Tensor index_reduce(const Tensor &x, int64_t axis, const Tensor &indices, const Tensor &updates,
                              const std::string &reduce, bool include_self = true,
                              Location where = Location::current());
/// x with one slice along `axis`, the elements from `start` to `end` in steps, or a diagonal replaced by `src`, which
/// has the shape of x.select(axis, index), x.slice(axis, start, end, step), x.diagonal(offset, axis1, axis2). As
/// torch.select_scatter, slice_scatter, diagonal_scatter.
BURIN_API Tensor select_scatter(const Tensor &x, const Tensor &src, int64_t axis, int64_t index,
                                Location where = Location::current());
BURIN_API Tensor slice_scatter(const Tensor &x, const Tensor &src, int64_t axis = 0, const Dim &start = 0,
                               const std::optional<Dim> &end = std::nullopt, int64_t step = 1,
                               Location where = Location::current());
BURIN_API Tensor diagonal_scatter(const Tensor &x, const Tensor &src, int64_t offset = 0, int64_t axis1 = 0,
                                  int64_t axis2 = 1, Location where = Location::current());
/// The coordinates of positions in a flattened tensor of this shape, one i64 tensor per dimension. As
/// torch.unravel_index.
BURIN_API std::vector<Tensor> unravel_index(const Tensor &indices, const Shape &shape,
                                            Location where = Location::current());
/// gather(x, indices, axis), where other dimensions broadcast. As torch.take_along_dim.
BURIN_API Tensor take_along_dim(const Tensor &x, const Tensor &indices, int64_t axis,
                                Location where = Location::current());
/// Rows of `weight` [words, size] at the integers `indices`: [shape of indices, size]. As
/// torch.nn.functional.embedding.
inline Tensor embedding(const Tensor &indices, const Tensor &weight, Location where = Location::current()) {
  return take(weight, indices, 0, where);
}
/// The elements of x at these positions of the flattened tensor, in the shape of `indices`; take(x, indices, axis) of
/// burin/ops.h selects slices. As torch.take.
BURIN_API Tensor take(const Tensor &x, const Tensor &indices, Location where = Location::current());
/// x with its elements where `mask` is true replaced by the first ones of `source`, in row-major order. A run fails if
/// `source` has too few. The mask broadcasts to x. As torch.masked_scatter.
BURIN_API Tensor masked_scatter(const Tensor &x, const Tensor &mask, const Tensor &source,
                                Location where = Location::current());
/// Repeats slice i along `axis` counts[i] times. The sum of the counts, a vector, is the size of the result:
/// `output_size`, or without it read from eager counts. In a trace `output_size` is required; a run with another sum
/// fails. As torch.repeat_interleave.
BURIN_API Tensor repeat_interleave(const Tensor &x, const Tensor &counts, int64_t axis, const Dim &output_size = -1,
                                   Location where = Location::current());
/// The different elements of x, sorted, as a vector whose size depends on data: in a trace it is a new symbol. Every
/// NaN is an element of its own. As torch.unique.
BURIN_API Tensor unique(const Tensor &x, Location where = Location::current());
/// unique(x); for each element of x its position there (i64, in the shape of x); and how often each occurs (i64).
struct UniqueResult {
  Tensor values, inverse, counts;
};
/// As torch.unique with return_inverse and return_counts; numpy.unique_all without the first positions.
BURIN_API UniqueResult unique_all(const Tensor &x, Location where = Location::current());
/// The elements of the flattened x that differ from the one before. As torch.unique_consecutive.
BURIN_API Tensor unique_consecutive(const Tensor &x, Location where = Location::current());
/// The place of each value among sorted ones: i64, the number of elements that are less than it; with `right`, or
/// equal. `sorted` is a vector, or has vectors along its last dimension, one for each of `values`. As
/// torch.searchsorted, torch.bucketize.
BURIN_API Tensor searchsorted(const Tensor &sorted, const Tensor &values, bool right = false,
                              Location where = Location::current());
inline Tensor bucketize(const Tensor &values, const Tensor &boundaries, bool right = false,
                        Location where = Location::current()) {
  return searchsorted(boundaries, values, right, where);
}

// ---- elementwise

/// |x| with the sign of y. As torch.copysign.
BURIN_API Tensor copysign(const Tensor &x, const Tensor &y, Location where = Location::current());
/// True for negative numbers, -0 too. As torch.signbit.
BURIN_API Tensor signbit(const Tensor &x, Location where = Location::current());
/// The larger or smaller one; of a NaN and a number the number. As torch.fmax, torch.fmin.
BURIN_API Tensor fmax(const Tensor &x, const Tensor &y, Location where = Location::current());
BURIN_API Tensor fmin(const Tensor &x, const Tensor &y, Location where = Location::current());
/// The greatest common divisor, or least common multiple, of integers, not negative; 0 if both, or one, are 0. A loop
/// until all elements are done. Throws for floats and bools. As torch.gcd, torch.lcm.
BURIN_API Tensor gcd(const Tensor &x, const Tensor &y, Location where = Location::current());
BURIN_API Tensor lcm(const Tensor &x, const Tensor &y, Location where = Location::current());
/// x with its slices along `axis` scaled down where their p-norm is above `maxnorm`. As torch.renorm.
BURIN_API Tensor renorm(const Tensor &x, double p, int64_t axis, double maxnorm, Location where = Location::current());
/// Degrees to radians, and back. As torch.deg2rad, torch.rad2deg.
BURIN_API Tensor deg2rad(const Tensor &x, Location where = Location::current());
BURIN_API Tensor rad2deg(const Tensor &x, Location where = Location::current());
/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). As torch.nn.functional.celu.
BURIN_API Tensor celu(const Tensor &x, double alpha = 1, Location where = Location::current());
/// clamp(x, low, high) of floats. As torch.nn.functional.hardtanh.
BURIN_API Tensor hardtanh(const Tensor &x, double low = -1, double high = 1, Location where = Location::current());
/// x where |x| > lambd, 0 elsewhere; the same moved by lambd towards 0. As torch.nn.functional.hardshrink, softshrink.
BURIN_API Tensor hardshrink(const Tensor &x, double lambd = 0.5, Location where = Location::current());
BURIN_API Tensor softshrink(const Tensor &x, double lambd = 0.5, Location where = Location::current());
/// x - tanh(x). As torch.nn.functional.tanhshrink.
BURIN_API Tensor tanhshrink(const Tensor &x, Location where = Location::current());
/// x where x > threshold, `value` elsewhere. As torch.nn.functional.threshold.
BURIN_API Tensor threshold(const Tensor &x, double threshold, double value, Location where = Location::current());
/// x where it is positive, weight * x elsewhere; weight [1], or one per channel (dimension 1). As
/// torch.nn.functional.prelu.
BURIN_API Tensor prelu(const Tensor &x, const Tensor &weight, Location where = Location::current());
/// x to a power in f64. As torch.float_power.
BURIN_API Tensor float_power(const Tensor &x, const Tensor &exponent, Location where = Location::current());
/// x * 2 to the power y. As torch.ldexp.
BURIN_API Tensor ldexp(const Tensor &x, const Tensor &exponent, Location where = Location::current());
/// The base 2 logarithm of 2 to the power x plus 2 to the power y. As torch.logaddexp2.
BURIN_API Tensor logaddexp2(const Tensor &x, const Tensor &y, Location where = Location::current());
/// True for the infinity of this sign. As torch.isposinf, torch.isneginf.
BURIN_API Tensor isposinf(const Tensor &x, Location where = Location::current());
BURIN_API Tensor isneginf(const Tensor &x, Location where = Location::current());
/// Whether each element of x is one of `values`. As torch.isin.
BURIN_API Tensor isin(const Tensor &x, const Tensor &values, Location where = Location::current());
/// softmax(-x). As torch.nn.functional.softmin.
BURIN_API Tensor softmin(const Tensor &x, int64_t axis = -1, Location where = Location::current());

// ---- shapes

/// The same as methods of these names.
inline Tensor flatten(const Tensor &x, int64_t start = 0, int64_t end = -1, Location where = Location::current()) {
  return x.flatten(start, end, where);
}
inline Tensor t(const Tensor &x, Location where = Location::current()) { return x.t(where); }
/// Swaps two dimensions. As torch.swapaxes.
inline Tensor swapaxes(const Tensor &x, int64_t axis1, int64_t axis2, Location where = Location::current()) {
  return x.transpose(axis1, axis2, where);
}
inline Tensor swapdims(const Tensor &x, int64_t axis1, int64_t axis2, Location where = Location::current()) {
  return x.transpose(axis1, axis2, where);
}
/// Splits x into `count` pieces along `axis` that differ in size by 1 at most, the larger ones first. As
/// torch.tensor_split.
BURIN_API std::vector<Tensor> tensor_split(const Tensor &x, int64_t count, int64_t axis = 0,
                                           Location where = Location::current());
/// The same into `count` pieces of one size: along dimension 1 (0 of vectors), 0 and 2. As torch.hsplit, vsplit,
/// dsplit.
BURIN_API std::vector<Tensor> hsplit(const Tensor &x, int64_t count, Location where = Location::current());
BURIN_API std::vector<Tensor> vsplit(const Tensor &x, int64_t count, Location where = Location::current());
BURIN_API std::vector<Tensor> dsplit(const Tensor &x, int64_t count, Location where = Location::current());
/// Positions of elements that are not 0, one per row: nonzero(x). As torch.argwhere.
inline Tensor argwhere(const Tensor &x, Location where = Location::current()) { return nonzero(x, where); }
/// All combinations of one element of each vector, one per row. As torch.cartesian_prod.
BURIN_API Tensor cartesian_prod(const std::vector<Tensor> &xs, Location where = Location::current());
/// Powers of a vector as columns, from `count` - 1 to 0, or with `increasing` from 0; -1: as many as elements. As
/// torch.vander.
BURIN_API Tensor vander(const Tensor &x, const Dim &count = -1, bool increasing = false,
                        Location where = Location::current());
/// Mirrors along the second, or first, dimension. As torch.fliplr, torch.flipud.
BURIN_API Tensor fliplr(const Tensor &x, Location where = Location::current());
BURIN_API Tensor flipud(const Tensor &x, Location where = Location::current());
/// Rotates by k * 90 degrees from the first axis towards the second. As torch.rot90.
BURIN_API Tensor rot90(const Tensor &x, int64_t k = 1, int64_t from = 0, int64_t to = 1,
                       Location where = Location::current());
/// Concatenates along dimension 2; a vector becomes [1, n, 1]. As torch.dstack; vstack under its other name.
BURIN_API Tensor dstack(const std::vector<Tensor> &xs, Location where = Location::current());
inline Tensor row_stack(const std::vector<Tensor> &xs, Location where = Location::current()) {
  return vstack(xs, where);
}
/// At least three dimensions: a vector becomes [1, n, 1], a matrix [n, m, 1]. As torch.atleast_3d.
BURIN_API Tensor atleast_3d(const Tensor &x, Location where = Location::current());
/// At least one, or two, dimensions; new ones come first. As torch.atleast_1d, torch.atleast_2d.
BURIN_API Tensor atleast_1d(const Tensor &x, Location where = Location::current());
BURIN_API Tensor atleast_2d(const Tensor &x, Location where = Location::current());
/// All operands with their common shape. As torch.broadcast_tensors.
BURIN_API std::vector<Tensor> broadcast_tensors(const std::vector<Tensor> &xs, Location where = Location::current());
/// Concatenates along dimension 1; vectors become columns. As torch.column_stack.
BURIN_API Tensor column_stack(const std::vector<Tensor> &xs, Location where = Location::current());
/// A matrix with these matrices on its diagonal. As torch.block_diag.
BURIN_API Tensor block_diag(const std::vector<Tensor> &xs, Location where = Location::current());
/// The last dimension as the diagonal of matrices [..., n, n]. As torch.diag_embed.
BURIN_API Tensor diag_embed(const Tensor &x, Location where = Location::current());
/// diag() of the flattened x. As torch.diagflat.
inline Tensor diagflat(const Tensor &x, int64_t offset = 0, Location where = Location::current()) {
  return diag(ravel(x, where), offset, where);
}
/// [b, c * r², h, w] to [b, c, h * r, w * r], and back. As torch.nn.functional.pixel_shuffle, pixel_unshuffle.
BURIN_API Tensor pixel_shuffle(const Tensor &x, int64_t r, Location where = Location::current());
BURIN_API Tensor pixel_unshuffle(const Tensor &x, int64_t r, Location where = Location::current());
/// Row and column of each element of the lower, or upper, triangle of a matrix: i64[2, count]. As torch.tril_indices,
/// torch.triu_indices.
BURIN_API Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset = 0, Location where = Location::current());
BURIN_API Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset = 0, Location where = Location::current());
/// `count` numbers from base to the power start to base to the power stop. As torch.logspace.
BURIN_API Tensor logspace(double start, double stop, int64_t count, double base = 10, DType dtype = f32,
                          Location where = Location::current());

// ---- layers as functions

namespace detail {
BURIN_API Tensor convOf(size_t dimensions, bool transposed, const Tensor &x, const Tensor &weight,
                        const std::optional<Tensor> &bias, const IntList &stride, const IntList &padding,
                        const IntList &more, int64_t groups, const char *name, const Location &where);
BURIN_API Tensor maxPoolOf(size_t dimensions, const Tensor &x, const IntList &kernel, const IntList &stride,
                           const IntList &padding, const IntList &dilation, bool ceil_mode, const char *name,
                           const Location &where);
BURIN_API SortResult maxPoolWithIndices(size_t dimensions, const Tensor &x, const IntList &kernel,
                                        const IntList &stride, const IntList &padding, const IntList &dilation,
                                        bool ceil_mode, const char *name, const Location &where);
BURIN_API Tensor maxUnpool(size_t dimensions, const Tensor &x, const Tensor &indices, const IntList &kernel,
                           const IntList &stride, const IntList &padding, const Shape &output_size, const char *name,
                           const Location &where);
BURIN_API Tensor lpPool(size_t dimensions, const Tensor &x, double p, const IntList &kernel, const IntList &stride,
                        bool ceil_mode, const char *name, const Location &where);
BURIN_API Tensor avgPoolOf(size_t dimensions, const Tensor &x, const IntList &kernel, const IntList &stride,
                           const IntList &padding, bool ceil_mode, bool count_include_pad, const char *name,
                           const Location &where);
BURIN_API Tensor adaptiveMaxPool(const char *name, size_t dimensions, const Tensor &x, const IntList &size,
                                 const Location &where);
BURIN_API Tensor batchNorm(const Tensor &x, const Tensor &mean, const Tensor &variance, const Tensor &weight,
                           const Tensor &bias, bool training, double eps, const Location &where);
} // namespace detail

/// With `training`, drops each element with probability p and scales the others by 1 / (1 - p); else x. The numbers
/// are those of the default generator. As torch.nn.functional.dropout.
BURIN_API Tensor dropout(const Tensor &x, double p = 0.5, bool training = true, Location where = Location::current());

/// The same with `training` behind the operands, as torch.nn.functional.batch_norm: it normalises by the statistics of
/// x itself. An undefined Tensor, {}, is no scale or no shift. Parameters (buffers) as running statistics are updated;
/// tensors cannot be: in training pass {} for them.
template <std::same_as<bool> T>
Tensor batch_norm(const Tensor &x, const Tensor &running_mean, const Tensor &running_var, const Tensor &weight,
                  const Tensor &bias, T training, double momentum = 0.1, double eps = 1e-5,
                  Location where = Location::current()) {
  (void)momentum; // of running statistics
  return detail::batchNorm(x, running_mean, running_var, weight, bias, training, eps, where);
}
BURIN_API Tensor batch_norm(const Tensor &x, Parameter running_mean, Parameter running_var, const Tensor &weight,
                            const Tensor &bias, bool training, double momentum = 0.1, double eps = 1e-5,
                            Location where = Location::current());
/// Sums, means or maxima ("sum", "mean", "max") of rows of `weight` [words, size]: of the rows at each row of `indices`
/// [bags, length]; with `offsets` [bags], of bag i from offsets[i] to offsets[i + 1] of indices [n]. Weights of the
/// shape of the indices scale rows (mode "sum"). As torch.nn.functional.embedding_bag.
BURIN_API Tensor embedding_bag(const Tensor &indices, const Tensor &weight,
                               const std::optional<Tensor> &offsets = std::nullopt, const std::string &mode = "mean",
                               const std::optional<Tensor> &per_sample_weights = std::nullopt,
                               Location where = Location::current());
/// The elements of x [N, C, spatial…] at the positions in `grid` [N, result sizes…, dimensions], from -1 to 1, the
/// innermost dimension first, interpolated: [N, C, result sizes…]. The mode is "bilinear" (in any number of
/// dimensions), "nearest" or "bicubic"; elements outside are by `padding_mode` "zeros", those at the "border", or a
/// "reflection". With `align_corners` -1 and 1 are the centres of the outermost elements, else their outer edges. As
/// torch.nn.functional.grid_sample.
BURIN_API Tensor grid_sample(const Tensor &x, const Tensor &grid, const std::string &mode = "bilinear",
                             const std::string &padding_mode = "zeros", bool align_corners = false,
                             Location where = Location::current());
/// Positions for grid_sample: those of an image of shape `size` [N, C, H, W] or [N, C, D, H, W], mapped by the matrices
/// theta [N, 2, 3] or [N, 3, 4]. As torch.nn.functional.affine_grid.
BURIN_API Tensor affine_grid(const Tensor &theta, const Shape &size, bool align_corners = false,
                             Location where = Location::current());
/// The windows of x [N, C, H, W] as columns: [N, C * kernel elements, windows]. As torch.nn.functional.unfold; the
/// method x.unfold(axis, size, step) is torch.Tensor.unfold.
BURIN_API Tensor unfold(const Tensor &x, const IntList &kernel, const IntList &dilation = 1, const IntList &padding = 0,
                        const IntList &stride = 1, Location where = Location::current());
/// The sums of windows in columns at their places in images [N, C, output size]: the transpose of unfold. As
/// torch.nn.functional.fold.
BURIN_API Tensor fold(const Tensor &x, const Shape &output_size, const IntList &kernel, const IntList &dilation = 1,
                      const IntList &padding = 0, const IntList &stride = 1, Location where = Location::current());

/// Over the last dimensions, which have the sizes `normalized`: layer_norm(x, {8}, weight, bias). As
/// torch.nn.functional.layer_norm, rms_norm.
BURIN_API Tensor layer_norm(const Tensor &x, std::initializer_list<int64_t> normalized,
                            const std::optional<Tensor> &weight = std::nullopt,
                            const std::optional<Tensor> &bias = std::nullopt, double eps = 1e-5,
                            Location where = Location::current());
BURIN_API Tensor rms_norm(const Tensor &x, std::initializer_list<int64_t> normalized,
                          const std::optional<Tensor> &weight = std::nullopt, double eps = 1e-6,
                          Location where = Location::current());
/// Dropout of whole channels of x [N, C, …]. As torch.nn.functional.dropout1d, dropout2d and dropout3d.
BURIN_API Tensor dropout2d(const Tensor &x, double p = 0.5, bool training = true, Location where = Location::current());
inline Tensor dropout1d(const Tensor &x, double p = 0.5, bool training = true, Location where = Location::current()) {
  return dropout2d(x, p, training, where);
}
inline Tensor dropout3d(const Tensor &x, double p = 0.5, bool training = true, Location where = Location::current()) {
  return dropout2d(x, p, training, where);
}
/// Dropout that keeps mean 0 and variance 1: dropped elements become the value that selu() approaches at -infinity, and
/// all are scaled and shifted. As torch.nn.functional.alpha_dropout; of whole channels, feature_alpha_dropout.
BURIN_API Tensor alpha_dropout(const Tensor &x, double p = 0.5, bool training = true,
                               Location where = Location::current());
BURIN_API Tensor feature_alpha_dropout(const Tensor &x, double p = 0.5, bool training = true,
                                       Location where = Location::current());
/// A sample of softmax(logits / tau) as probabilities along `axis` (Gumbel-softmax, Jang et al. 2017); with `hard`, 1
/// at the largest and 0 elsewhere, with the gradient of the probabilities. The numbers are those of the default
/// generator. Throws unless tau > 0. As torch.nn.functional.gumbel_softmax.
BURIN_API Tensor gumbel_softmax(const Tensor &logits, double tau = 1, bool hard = false, int64_t axis = -1,
                                Location where = Location::current());
/// x where it is not negative, else a * x: with `training`, a is uniform in [lower, upper) per element, else their
/// mean. As torch.nn.functional.rrelu.
BURIN_API Tensor rrelu(const Tensor &x, double lower = 1.0 / 8, double upper = 1.0 / 3, bool training = false,
                       Location where = Location::current());
/// x / (k + alpha * mean of the squares of `size` channels around each one)^beta, for x [N, C, …]; channels outside
/// count as 0. As torch.nn.functional.local_response_norm.
BURIN_API Tensor local_response_norm(const Tensor &x, int64_t size, double alpha = 1e-4, double beta = 0.75,
                                     double k = 1, Location where = Location::current());
/// Interleaves `groups` groups of channels of x [N, C, …]. As torch.nn.functional.channel_shuffle.
BURIN_API Tensor channel_shuffle(const Tensor &x, int64_t groups, Location where = Location::current());

/// conv(x, weight, bias, …) with `dimensions` spatial dimensions. As torch.nn.functional.conv2d and so on.
#define BURIN_SPATIAL(dimensions)                                                                                      \
  inline Tensor conv##dimensions##d(const Tensor &x, const Tensor &weight,                                             \
                                    const std::optional<Tensor> &bias = std::nullopt, const IntList &stride = 1,       \
                                    const IntList &padding = 0, const IntList &dilation = 1, int64_t groups = 1,       \
                                    Location where = Location::current()) {                                            \
    return detail::convOf(dimensions, false, x, weight, bias, stride, padding, dilation, groups,                       \
                          "conv" #dimensions "d", where);                                                              \
  }                                                                                                                    \
  inline Tensor conv_transpose##dimensions##d(                                                                         \
      const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias = std::nullopt,                         \
      const IntList &stride = 1, const IntList &padding = 0, const IntList &output_padding = 0, int64_t groups = 1,    \
      Location where = Location::current()) {                                                                          \
    return detail::convOf(dimensions, true, x, weight, bias, stride, padding, output_padding, groups,                  \
                          "conv_transpose" #dimensions "d", where);                                                    \
  }                                                                                                                    \
  inline Tensor max_pool##dimensions##d(const Tensor &x, const IntList &kernel, const IntList &stride = {},            \
                                        const IntList &padding = 0, const IntList &dilation = 1,                       \
                                        bool ceil_mode = false, Location where = Location::current()) {                \
    return detail::maxPoolOf(dimensions, x, kernel, stride, padding, dilation, ceil_mode, "max_pool" #dimensions "d",  \
                             where);                                                                                   \
  }                                                                                                                    \
  /* Also the position of each largest element, the first one of equals, in the flattened spatial dimensions: i64. */  \
  inline SortResult max_pool##dimensions##d_with_indices(                                                              \
      const Tensor &x, const IntList &kernel, const IntList &stride = {}, const IntList &padding = 0,                  \
      const IntList &dilation = 1, bool ceil_mode = false, Location where = Location::current()) {                     \
    return detail::maxPoolWithIndices(dimensions, x, kernel, stride, padding, dilation, ceil_mode,                     \
                                      "max_pool" #dimensions "d_with_indices", where);                                 \
  }                                                                                                                    \
  /* Elements back at their positions, zeros elsewhere; `output_size`: the spatial sizes, or those of the pool's       \
   * input. */                                                                                                         \
  inline Tensor max_unpool##dimensions##d(const Tensor &x, const Tensor &indices, const IntList &kernel,               \
                                          const IntList &stride = {}, const IntList &padding = 0,                      \
                                          const Shape &output_size = {}, Location where = Location::current()) {       \
    return detail::maxUnpool(dimensions, x, indices, kernel, stride, padding, output_size,                             \
                             "max_unpool" #dimensions "d", where);                                                     \
  }                                                                                                                    \
  /* The sum of the elements of each window to the power p, to the power 1 / p. */                                     \
  inline Tensor lp_pool##dimensions##d(const Tensor &x, double p, const IntList &kernel, const IntList &stride = {},   \
                                       bool ceil_mode = false, Location where = Location::current()) {                 \
    return detail::lpPool(dimensions, x, p, kernel, stride, ceil_mode, "lp_pool" #dimensions "d", where);              \
  }                                                                                                                    \
  inline Tensor avg_pool##dimensions##d(const Tensor &x, const IntList &kernel, const IntList &stride = {},            \
                                        const IntList &padding = 0, bool ceil_mode = false,                            \
                                        bool count_include_pad = true, Location where = Location::current()) {         \
    return detail::avgPoolOf(dimensions, x, kernel, stride, padding, ceil_mode, count_include_pad,                     \
                             "avg_pool" #dimensions "d", where);                                                       \
  }                                                                                                                    \
  /* The largest element of each window, as many windows as `size` says; x [N, C, spatial…] or [C, spatial…]. */       \
  inline Tensor adaptive_max_pool##dimensions##d(const Tensor &x, const IntList &size,                                 \
                                                 Location where = Location::current()) {                               \
    return detail::adaptiveMaxPool("adaptive_max_pool" #dimensions "d", dimensions, x, size, where);                   \
  }                                                                                                                    \
  inline Tensor adaptive_avg_pool##dimensions##d(const Tensor &x, const IntList &size,                                 \
                                                 Location where = Location::current()) {                               \
    return adaptive_avg_pool(x, size.size() == 1 ? IntList(std::vector<int64_t>(dimensions, size[0])) : size, "nchw",  \
                             where);                                                                                   \
  }
BURIN_SPATIAL(1)
BURIN_SPATIAL(2)
BURIN_SPATIAL(3)
#undef BURIN_SPATIAL

namespace nn {
/// The functions of torch.nn.functional: `namespace F = burin::nn::functional;`.
namespace functional {
using namespace burin;
}
} // namespace nn

} // namespace burin
