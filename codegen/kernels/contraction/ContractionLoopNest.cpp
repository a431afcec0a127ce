#include "codegen/kernels/contraction/ContractionLoopNest.h"

using namespace burin::ir;

namespace burin::codegen {

ContractionLoopNest::ContractionLoopNest(ContractOp op, StridedMemory left) : op(op), left(std::move(left)) {
  Shape shape = shapeOf(op.getLhs()), result = shapeOf(op.getResult());
  size_t batchDims = op.getBatch(), spatial = op.getKernel().size();
  ArrayRef<Dim> strides = this->left.strides;
  lhsBatchStride = batchDims ? strides[batchDims - 1] : Dim(0);
  lhsStart = 0;
  for (size_t d = 0; d < spatial; ++d) {
    size_t dim = batchDims + d;
    bool cut = !op.getPadding().empty() && (op.getPadding()[d] > 0 || op.getPadding()[spatial + d] > 0);
    if (cut)
      lhsStart = lhsStart - strides[dim] * Dim(op.getPadding()[d]);
    outer.push_back({result[dim], strides[dim] * Dim(op.getStrides()[d]), dim, cut});
    if (op.getKernel()[d] > 1 || cut)
      sum.push_back({Dim(op.getKernel()[d]), strides[dim] * Dim(op.getDilations()[d]), dim, cut});
  }
  sum.push_back({shape.back(), strides.back()});
  depth = 1;
  for (Step &s : sum)
    depth = depth * s.size;
  mergeRows();
  mergeSum();
}

void ContractionLoopNest::mergeRows() {
  while (outer.size() > 1) {
    Step &inner = outer.back(), &before = outer[outer.size() - 2];
    bool linear = before.stride == inner.size * inner.stride || before.size == Dim(1);
    if (!linear || inner.cut || before.cut)
      break;
    before = {before.size * inner.size, inner.stride, before.dim};
    outer.pop_back();
  }
  along = outer.pop_back_val();
}

void ContractionLoopNest::mergeSum() {
  sumAtEnds = sum;
  for (size_t i = sum.size() - 1; i-- > 0;) {
    bool whole = !sum[i].cut || sum[i].dim == along.dim; // away from the ends of a row all its taps are there
    if (!whole || sum[i + 1].cut || sum[i].stride != sum[i + 1].size * sum[i + 1].stride)
      continue;
    sum[i] = {sum[i].size * sum[i + 1].size, sum[i + 1].stride};
    sum.erase(sum.begin() + i + 1);
  }
}

bool ContractionLoopNest::isInside(int64_t from, int64_t rows) {
  if (!along.cut)
    return true;
  auto [first, last] = std::pair(rowsSeeing(0, from, rows), rowsSeeing(op.getKernel().back() - 1, from, rows));
  return first == Rows(0, rows) && last == first;
}

ContractionLoopNest::Rows ContractionLoopNest::rowsSeeing(int64_t tap, int64_t from, int64_t rows) {
  int64_t offset = tap * op.getDilations().back() - op.getPadding()[op.getKernel().size() - 1];
  int64_t stride = op.getStrides().back(), size = shapeOf(op.getLhs())[along.dim].value(), first = 0, second = rows;
  while (first < rows && (from + first) * stride + offset < 0)
    ++first;
  while (second > first && (from + second - 1) * stride + offset >= size)
    --second;
  return {first, second};
}

} // namespace burin::codegen
