#include "codegen/kernels/contraction/microkernel/ContractionLoopNest.h"
#include "codegen/emit/element/Window.h"
#include "ir/dialect/Contract.h"

using namespace burin::ir;

namespace burin::codegen {

// With fewer rows in a tile, loads or the latency of sums take longer than its products.
constexpr int64_t kFewRows = 5;
constexpr int64_t kDeep = 8192;      // steps of a sum whose panel, 1 MB of f32, exceeds L2
constexpr int64_t kTypicalSize = 64; // assumed for symbolic sizes in choices that do not affect bits

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
  single = 0;
  if (isOfPairs(op)) {
    const Dim steps = ceildiv(shape.back(), 2);
    pairs = strides.back();
    single = steps * Dim(2) - shape.back();
    sum.push_back({steps, strides.back() * Dim(2)});
  } else {
    sum.push_back({shape.back(), strides.back()});
  }
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
    before = {before.size * inner.size, inner.stride, before.dim, false, before.dims + inner.dims};
    outer.pop_back();
  }
  chooseAlong();
}

/// Tiles run along the last dimension, which is usually contiguous. If it is shorter than a good tile, they run through
/// the rows of all dimensions, or along a dimension whose windows stay inside lhs, a contiguous one or else the
/// longest: the channels of a weight's gradient, or the images of a batch.
void ContractionLoopNest::chooseAlong() {
  if (outer.back().size.isStatic() && outer.back().size.value() <= kFewRows && gatherRows())
    return;
  along = outer.pop_back_val();
  if (along.dims > 1 || !along.size.isStatic() || along.size.value() > kFewRows)
    return;
  Step *longest = nullptr;
  auto isBetter = [](const Step &a, const Step &b) {
    const bool isLine = a.stride == Dim(1) && a.size.value() > kFewRows,
               isOther = b.stride == Dim(1) && b.size.value() > kFewRows;
    return isLine == isOther ? a.size.value() > b.size.value() : isLine;
  };
  for (Step &step : outer)
    if (!step.cut && step.size.isStatic() && isBetter(step, longest ? *longest : along))
      longest = &step;
  if (!longest)
    return;
  Step chosen = *longest;
  outer.erase(longest);
  outer.push_back(along);
  along = chosen;
}

/// Merges all rows into one dimension of irregular offsets, if no window reaches beyond lhs. Returns false otherwise.
bool ContractionLoopNest::gatherRows() {
  bool isEven = outer.size() == 1;
  if (isEven || op.getTail() || llvm::any_of(outer, [](const Step &s) { return s.cut || !s.size.isStatic(); }))
    return false;
  along = {1, 0, outer.front().dim, false, 0};
  for (const Step &step : outer) {
    along.size = along.size * step.size;
    along.dims += step.dims;
  }
  rowGroup = outer.back().size.value();
  gathered = std::move(outer);
  outer.clear();
  return true;
}

void ContractionLoopNest::mergeSum() {
  sumAtEnds = sum;
  for (size_t i = sum.size() - 1; i-- > 0;) {
    // Tiles away from the ends of a row use all taps. If the row's size is a symbol, see ZeroRow.
    bool whole = !sum[i].cut || (sum[i].dim == along.dim && along.size.isStatic());
    const bool endsAlone = i + 2 == sum.size() && single != Dim(0);
    if (!whole || endsAlone || sum[i + 1].cut || sum[i].stride != sum[i + 1].size * sum[i + 1].stride)
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

SmallVector<ContractionLoopNest::Taps> ContractionLoopNest::tapsSeen(int64_t taps, int64_t from, int64_t rows) {
  constexpr int64_t kFewTaps = 4; // fewer taps are listed one by one
  SmallVector<Taps> seen;
  for (int64_t tap = 0, end = 0; tap < taps; tap = end) {
    Rows seeing = rowsSeeing(tap, from, rows);
    for (end = tap + 1; end < taps && rowsSeeing(end, from, rows) == seeing;)
      ++end;
    if (seeing.first >= seeing.second)
      continue;
    if (end - tap >= kFewTaps)
      seen.push_back({tap, end, seeing});
    else
      for (; tap < end; ++tap)
        seen.push_back({tap, tap + 1, seeing});
  }
  return seen;
}

int64_t ContractionLoopNest::unrolled() {
  const Dim between = floordiv(along.stride, max(sum.back().stride, 1));
  return between.isStatic() && between.value() > 0 ? std::min(between.value(), kUnrolledSteps) : kUnrolledSteps;
}

int64_t ContractionLoopNest::unrolledAtEnds() {
  constexpr int64_t kWideWindow = 8; // taps
  return op.getKernel().back() > kWideWindow ? 1 : kUnrolledSteps;
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

bool ContractionLoopNest::isDeepOverWindows(int64_t chunks) {
  bool isPlain = !op.getTerms() && !op.getTail() && sum.size() > 1 && along.size.isStatic();
  if (!isPlain || sum.front().size != sumAtEnds.front().size || (along.cut && sum.front().dim == along.dim))
    return false;
  auto typical = [](std::string_view) { return std::optional(kTypicalSize); };
  return depth.evaluate(typical).value_or(0) * chunks >= kDeep;
}

// ---- positions

Value ContractionLoopNest::rowOffset(KernelBuilder &k, Value row) const {
  if (gathered.empty())
    return k.mul(row, k.dim(along.stride));
  Value rest = row, offset = k.constant(0);
  for (const Step &step : llvm::reverse(gathered)) {
    offset = k.add(offset, k.mul(k.rem(rest, k.dim(step.size)), k.dim(step.stride)));
    rest = k.div(rest, k.dim(step.size));
  }
  return offset;
}

Value ContractionLoopNest::offsetInTile(KernelBuilder &k, Value row, int64_t r, ArrayRef<Value> before) const {
  if (int64_t inGroup = r % rowGroup)
    return k.add(before[r - inGroup], k.mul(k.constant(inGroup), k.dim(gathered.back().stride)));
  return r ? k.sub(rowOffset(k, k.add(row, k.constant(r))), rowOffset(k, row)) : k.constant(0);
}

std::pair<Value, Value> ContractionLoopNest::tapsOf(KernelBuilder &k, size_t dim, Value position) {
  size_t d = dim - op.getBatch();
  Value origin = k.sub(k.mul(position, k.constant(op.getStrides()[d])), k.constant(op.getPadding()[d]));
  Value size = k.dim(shapeOf(op.getLhs())[dim]);
  return codegen::tapsInside(k, origin, size, op.getKernel()[d], op.getDilations()[d]);
}

} // namespace burin::codegen
