// Reductions, and what is made of them.
#include "frontend/onnx/Node.h"

namespace burin::onnx {

namespace {

using Reduction = Tensor (*)(const Tensor &, const std::vector<int64_t> &, bool, Location);

/// The axes of a reduction: nullopt if it is to do nothing.
std::optional<std::vector<int64_t>> axesOf(Node &n) {
  auto axes = n.list(1, "axes");
  if (axes && !axes->empty())
    return axes;
  if (n.attribute("noop_with_empty_axes", int64_t(0)))
    return std::nullopt;
  return std::vector<int64_t>();
}

/// `before` and `after` are applied to the elements and to their reduction. Integers stay what they are.
template <class Before, class After> Values reduce(Node &n, Reduction reduction, Before before, After after) {
  Tensor x = n[0];
  DType dtype = x.dtype();
  auto axes = axesOf(n);
  Tensor y = before(x);
  if (axes && x.rank() > 0)
    y = reduction(y, *axes, n.attribute("keepdims", int64_t(1)) != 0, {});
  return after(y).to(dtype);
}

Tensor same(const Tensor &x) { return x; }
Tensor square(const Tensor &x) { return x * x; }

template <Reduction reduction> Values plain(Node &n) { return reduce(n, reduction, same, same); }
Values l1(Node &n) {
  return reduce(n, reduce_sum, [](const Tensor &x) { return abs(x); }, same);
}
Values l2(Node &n) {
  return reduce(n, reduce_sum, square, [](const Tensor &x) { return sqrt(x); });
}
Values sumSquare(Node &n) { return reduce(n, reduce_sum, square, same); }
Values logSum(Node &n) {
  return reduce(n, reduce_sum, same, [](const Tensor &x) { return log(x); });
}

using ArgReduction = Tensor (*)(const Tensor &, int64_t, bool, Location);

/// The last of equal elements is the first of the reversed ones.
template <ArgReduction reduction> Values indexOf(Node &n) {
  Tensor x = n[0];
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  bool keeps = n.attribute("keepdims", int64_t(1)), last = n.attribute("select_last_index", int64_t(0));
  if (!last)
    return reduction(x, axis, keeps, {});
  return sizeTensor(n.shape()[size_t(axis)] - 1) - reduction(flip(x, {axis}), axis, keeps, {});
}

Values cumulative(Node &n) {
  Tensor x = n[0];
  return cumsum(x, n.integer(1), n.attribute("exclusive", int64_t(0)), n.attribute("reverse", int64_t(0)))
      .to(x.dtype());
}

/// Each element's product over those before it, itself included or not.
Values cumulativeProduct(Node &n) {
  constexpr int64_t kMaxSize = 4096;
  Tensor x = n[0];
  int64_t axis = n.axis(n.integer(1));
  Dim size = n.shape()[size_t(axis)];
  if (!size.isStatic() || size.value() > kMaxSize)
    n.unsupported("a dimension of " + size.str() + " elements");
  bool exclusive = n.attribute("exclusive", int64_t(0)), reverse = n.attribute("reverse", int64_t(0));
  Shape square(size_t(x.rank() + 1), Dim(1)); // the result's dimension, then the one to multiply over
  square[size_t(axis)] = square[size_t(axis) + 1] = size;
  Tensor i = iota(square, DType::i64, axis), j = iota(square, DType::i64, axis + 1);
  Tensor takesPart = reverse ? exclusive ? j > i : j >= i : exclusive ? j < i : j <= i;
  return reduce_prod(where(takesPart, unsqueeze(x, {axis}), 1), {axis + 1}).to(x.dtype());
}

constexpr OpEntry table[] = {
    {"ArgMax", indexOf<argmax>},
    {"ArgMin", indexOf<argmin>},
    {"CumProd", cumulativeProduct},
    {"CumSum", cumulative},
    {"ReduceL1", l1},
    {"ReduceL2", l2},
    {"ReduceLogSum", logSum},
    {"ReduceLogSumExp", plain<logsumexp>},
    {"ReduceMax", plain<reduce_max>},
    {"ReduceMean", plain<reduce_mean>},
    {"ReduceMin", plain<reduce_min>},
    {"ReduceProd", plain<reduce_prod>},
    {"ReduceSum", plain<reduce_sum>},
    {"ReduceSumSquare", sumSquare},
};

} // namespace

std::span<const OpEntry> reductionOps() { return table; }

} // namespace burin::onnx
