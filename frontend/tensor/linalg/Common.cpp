// Operands and small matrices.
#include "frontend/tensor/linalg/Linalg.h"
#include "ir/infer/Infer.h"
#include <limits>

namespace burin::linalg {

using namespace detail;

Tensor Call::operand(const Tensor &x, int64_t rank) const {
  const TensorSpec spec = x.spec(place);
  if (!isFloat(spec.dtype) || isFloat8(spec.dtype))
    fail("it takes floats, not " + str(spec) + "; convert them: to(f32)");
  if (int64_t(spec.shape.size()) < rank)
    fail("it takes matrices [..., m, n], not " + str(spec));
  return spec.dtype == DType::f64 ? x : x.to(DType::f32);
}

Tensor Call::square(const Tensor &x) const {
  Tensor a = operand(x);
  if (rowsOf(a) != columnsOf(a))
    fail("the matrices must be square, but are " + str(x.spec(place)) +
         (rowsOf(a).isStatic() && columnsOf(a).isStatic() ? "" : "; give both dimensions the same symbol"));
  return a;
}

Shape batchOf(const Tensor &x) { return {x.shape().begin(), x.shape().end() - 2}; }

Shape matrices(Shape batch, const Dim &rows, const Dim &columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Shape commonBatch(const Tensor &x, const Tensor &y, const Call &call) {
  auto batch = ir::broadcastShapes(batchOf(x), batchOf(y));
  if (!batch)
    call.fail("the batches of " + str(x.spec()) + " and " + str(y.spec()) + " do not fit");
  return *batch;
}

Tensor identity(const Shape &batch, const Dim &rows, const Dim &columns, DType dtype) {
  Tensor one = (rowIndices(rows) == columnIndices(columns)).to(dtype);
  return broadcast_to(one, matrices(batch, rows, columns));
}

Tensor firstRows(const Tensor &x, const Dim &count) { return rowsOf(x) == count ? x : x.slice(x.rank() - 2, 0, count); }
Tensor firstColumns(const Tensor &x, const Dim &count) {
  return columnsOf(x) == count ? x : x.slice(x.rank() - 1, 0, count);
}

Tensor diagonalColumn(const Tensor &x) {
  Tensor isDiagonal = rowIndices(rowsOf(x)) == columnIndices(columnsOf(x));
  return reduce_sum(where(isDiagonal, x, 0.0), {-1}, true);
}

double epsilonOf(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
}

Tensor firstBad(const Tensor &isBad) {
  Tensor bad = squeeze(isBad, {-1});
  if (isEmpty(bad.shape().back()))
    return zeros(Shape(bad.shape().begin(), bad.shape().end() - 1), DType::i32);
  Tensor position = where(bad, iota({bad.shape().back()}, DType::i64) + 1, std::numeric_limits<int32_t>::max());
  Tensor first = reduce_min(position, {-1});
  return where(any(bad, {-1}), first, 0).to(DType::i32);
}

Tensor scaleOf(const Tensor &a) {
  const bool isWide = a.dtype() == DType::f64;
  Tensor largest = reduce_max(abs(a), {-2, -1}, true);
  Tensor isUsual = (largest > (isWide ? 1e-100 : 1e-12)) & (largest < (isWide ? 1e100 : 1e12));
  return detach(where(isUsual | (largest == 0) | !is_finite(largest), 1.0, largest));
}

} // namespace burin::linalg
