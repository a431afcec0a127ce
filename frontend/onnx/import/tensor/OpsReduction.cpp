// Reductions and compositions of them.
#include "burin/tensor/math/linalg.h"
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

namespace {

using Reduction = Tensor (*)(const Tensor &, const IntList &, bool, Location);

/// The axes of a reduction; nullopt if it is the identity.
std::optional<std::vector<int64_t>> axesOf(Node &n) {
  auto axes = n.list(1, "axes");
  if (axes && !axes->empty())
    return axes;
  if (n.attribute("noop_with_empty_axes", int64_t(0)))
    return std::nullopt;
  return std::vector<int64_t>();
}

/// Applies `before` to the elements and `after` to the result. Integers keep their type.
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

/// The last of equal elements is the first one in reverse order.
template <ArgReduction reduction> Values indexOf(Node &n) {
  Tensor x = n[0];
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  bool keeps = n.attribute("keepdims", int64_t(1)), last = n.attribute("select_last_index", int64_t(0));
  if (!last)
    return reduction(x, axis, keeps, {});
  return sizeTensor(n.shape()[size_t(axis)] - 1) - reduction(flip(x, {axis}), axis, keeps, {});
}

using Running = Tensor (*)(const Tensor &, int64_t, bool, bool, Location);

template <Running running> Values cumulative(Node &n) {
  Tensor x = n[0];
  bool exclusive = n.attribute("exclusive", int64_t(0)), reverse = n.attribute("reverse", int64_t(0));
  return running(x, n.integer(1), exclusive, reverse, {}).to(x.dtype());
}

Values determinant(Node &n) { return linalg::det(n[0]); }

constexpr OpEntry table[] = {
    {"ArgMax", indexOf<argmax>},
    {"ArgMin", indexOf<argmin>},
    {"CumProd", cumulative<cumprod>},
    {"CumSum", cumulative<cumsum>},
    {"Det", determinant},
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
