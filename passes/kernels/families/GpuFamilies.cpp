#include "passes/kernels/families/GpuFamilies.h"
#include "passes/analysis/SlidingWindow.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

ShortSide shortSideOf(const StridedCopy &copy) {
  constexpr int64_t kMostOfShort = 16;
  const StridedCopy::Along &inner = copy.dims[size_t(copy.inner)], &last = copy.dims.back();
  auto isShort = [](const Dim &size) { return size.isStatic() && size.value() <= kMostOfShort; };
  if (copy.panels)
    return ShortSide::None;
  if (isShort(last.size) && inner.to == last.size)
    return ShortSide::Last;
  return isShort(inner.size) && last.from == inner.size ? ShortSide::Inner : ShortSide::None;
}

/// Whether a matrix may have enough elements to keep the threads of a block busy.
static bool fillsBlock(const Dim &rows, const Dim &columns) {
  constexpr int64_t kFewestElements = 1024;
  return upperBound(rows).value_or(kFewestElements) * upperBound(columns).value_or(kFewestElements) >= kFewestElements;
}

std::optional<StridedCopy> gpuTransposeOf(Block &body) {
  constexpr int64_t kLeastSide = 8; // of tiles of two long dimensions
  auto copy = transposingCopyOf(body, 2);
  if (!copy)
    return std::nullopt;
  const Dim &rows = copy->dims[size_t(copy->inner)].size, &columns = copy->dims.back().size;
  auto isLong = [&](const Dim &size) { return upperBound(size).value_or(kLeastSide) >= kLeastSide; };
  const bool isWorthIt = shortSideOf(*copy) != ShortSide::None || (isLong(rows) && isLong(columns));
  return isWorthIt && fillsBlock(rows, columns) ? copy : std::nullopt;
}

bool isGpuTranspose(const KernelBody &body) { return gpuTransposeOf(body.block) && body.space(); }

bool isGpuTransposedReads(const KernelBody &body) {
  constexpr size_t kMostTiles = 4;
  const IterationSpace *space = body.space();
  auto reads = space ? transposedReadsOf(body.block, *space) : std::nullopt;
  return reads && reads->values.size() <= kMostTiles &&
         fillsBlock(space->space[size_t(reads->along)], space->space.back());
}

Operation *gpuWindowIn(Block &body) {
  constexpr int64_t kMostTaps = 25, kLongestWindow = 16;
  for (Operation &op : body) {
    std::optional<Window> w = windowOf(&op);
    if (!w || isa<AvgPoolOp>(op) || w->spatial != 2)
      continue;
    // Elements beyond the border are read from the border, which must exist.
    auto hasBorder = [&](size_t d) {
      const Dim size = shapeOf(w->x)[w->firstSpatial + d];
      return size.isStatic() ? size.value() > 0
                             : !w->ceilMode && w->low[d] + w->high[d] <= (w->kernel[d] - 1) * w->dilations[d];
    };
    const bool isSmall = w->channelsLast() ? w->kernel[1] <= kLongestWindow : w->kernel[0] * w->kernel[1] <= kMostTaps;
    return isSmall && hasBorder(0) && hasBorder(1) ? &op : nullptr;
  }
  return nullptr;
}

bool isGpuWindow(const KernelBody &body) {
  Operation *op = gpuWindowIn(body.block);
  if (!op || !body.space() || llvm::is_contained(body.space()->reduced, true) ||
      !body.space()->contains(op->getResult(0)))
    return false;
  llvm::SmallVector<int> used;
  for (int d : body.space()->dims.find(op->getResult(0))->second)
    if (d >= 0)
      used.push_back(d);
  llvm::sort(used);
  return used.size() == body.space()->space.size() && std::unique(used.begin(), used.end()) == used.end();
}

bool isLongRunning(const KernelBody &body) {
  auto isLong = [](auto op) {
    Shape shape = shapeOf(op.getResult());
    const Dim &length = shape[size_t(op.getAxis())];
    return size_t(op.getAxis()) + 1 == shape.size() && !(length.isStatic() && length.value() <= kShortSlice);
  };
  if (auto sums = dyn_cast_or_null<CumsumOp>(body.root()))
    return isLong(sums);
  auto products = dyn_cast_or_null<CumprodOp>(body.root());
  return products && isLong(products);
}

bool hasFewRows(const Dim &rows) {
  std::optional<int64_t> most = upperBound(rows);
  return most && *most > 0 && *most <= kMostThinRows;
}

bool hasColumnPanels(ContractOp op) {
  DType type = dtypeOf(op.getLhs());
  return byteWidth(type) == 1 && !isBool(type) && !op.getTail() && shapeOf(op.getRhs()).back() == Dim(1);
}

bool isThinContraction(const KernelBody &body) {
  auto op = body.first<ContractOp>();
  if (!op || !body.space())
    return false;
  DType from = dtypeOf(op.getLhs());
  if (!isFloat(from) || from == DType::f64 || op.getTail() || hasColumnPanels(op))
    return false;
  Dim rows = 1;
  Shape shape = shapeOf(op.getResult());
  for (size_t d = 0; d < op.getKernel().size(); ++d)
    rows = rows * shape[op.getBatch() + d];
  return hasFewRows(rows) && op.getPadding().empty();
}

bool isTensorCoreContraction(const KernelBody &body) {
  auto op = body.first<ContractOp>();
  if (!op || !body.space())
    return false;
  DType type = dtypeOf(op.getLhs());
  return (type == DType::f16 || type == DType::bf16) && !op.getTail();
}

bool isByteContraction(const KernelBody &body) {
  auto op = body.first<ContractOp>();
  return op && body.space() && hasColumnPanels(op);
}

bool isRoundedContraction(const KernelBody &body) {
  auto op = body.first<ContractOp>();
  return op && body.space() && dtypeOf(op.getLhs()) == DType::f32 && dtypeOf(op.getRhs()) == DType::f32 &&
         !op.getTail();
}

Tiles contractionTiles(ContractOp op, int64_t tileRows, int64_t tileColumns) {
  constexpr int64_t kUnknown = 4096;
  auto guess = [](const Dim &d) { return d.isStatic() ? d.value() : kUnknown; };
  Shape shape = shapeOf(op.getResult());
  Dim batches = 1, rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) {
    Dim &product = d < size_t(op.getBatch()) ? batches : rows;
    product = product * shape[d];
  }
  return {guess(batches), guess(ceildiv(rows, tileRows)), guess(ceildiv(shape.back(), tileColumns))};
}

int64_t warpgroupTileColumns(ContractOp op) {
  constexpr int64_t kNarrow = 128, kWide = 256;
  return contractionTiles(op, kWarpgroupTileRows, kWide).count() < kFewTiles ? kNarrow : kWide;
}

bool isWarpgroupContraction(const KernelBody &body) {
  const bool isOfBytes = isByteContraction(body);
  if (!isTensorCoreContraction(body) && !isOfBytes)
    return false;
  constexpr int64_t kCopiedBytes = 16, kColumns = 128, kHalf = 64; // of the narrower tile
  auto op = body.first<ContractOp>();
  const Dim channels = shapeOf(op.getLhs()).back();
  const int64_t copied = kCopiedBytes / int64_t(byteWidth(dtypeOf(op.getLhs())));
  // Bytes whose channels may be no multiple of 16 are multiplied by mma.sync, which reads less one by one.
  if (isOfBytes ? !isMultipleOf(channels, copied) : channels.isStatic() && channels.value() % copied)
    return false;
  const bool fillsTiles = contractionTiles(op, kHalf, kHalf).rows > 1 && contractionTiles(op, kHalf, kHalf).columns > 1;
  return fillsTiles && contractionTiles(op, kWarpgroupTileRows, kColumns).count() >= kFewTiles;
}

/// The op of an attention whose operands and result are of one type of 16-bit floats, with static depth and width; or
/// null.
static ScaledDotProductAttentionOp attentionOf16Bits(const KernelBody &body) {
  auto op = body.first<ScaledDotProductAttentionOp>();
  if (!op || !body.space())
    return {};
  DType type = dtypeOf(op.getQuery());
  Dim depth = shapeOf(op.getQuery()).back(), width = shapeOf(op.getResult()).back();
  const bool isOneType =
      dtypeOf(op.getKey()) == type && dtypeOf(op.getValue()) == type && dtypeOf(op.getResult()) == type;
  if ((type != DType::f16 && type != DType::bf16) || !isOneType || !depth.isStatic() || !width.isStatic())
    return {};
  return depth.value() > 0 && width.value() > 0 ? op : ScaledDotProductAttentionOp();
}

SharedKeys rowsOfSharedKeys(ScaledDotProductAttentionOp op) {
  Shape shape = shapeOf(op.getResult());
  SharedKeys shared{shape.size() - 2, 1, 0};
  const Dim &rows = shape[shape.size() - 2];
  if (rows.isStatic() && rows.value() <= kMostSplitRows)
    shared.rows = rows.value();
  SmallVector<RowsView> views = rowsViewsOf(op.getKey());
  views.append(rowsViewsOf(op.getValue()));
  auto isRepeated = [&](size_t d) {
    const bool isFew = shape[d].isStatic() && shape[d].value() <= kMostSplitRows;
    return isFew && shared.rows * shape[d].value() <= kMostSplitRows &&
           llvm::all_of(views, [&](const RowsView &rows) { return rows.view.strides[d] == Dim(0); });
  };
  for (; shared.leading > 0 && isRepeated(shared.leading - 1); --shared.leading)
    shared.rows *= shape[shared.leading - 1].value();
  for (size_t d = 0; d < shared.leading; ++d)
    shared.heads = shared.heads * shape[d];
  return shared;
}

bool splitsKeys(ScaledDotProductAttentionOp op) {
  DType type = dtypeOf(op.getQuery());
  const bool is16Bits = type == DType::f16 || type == DType::bf16;
  auto isOfType = [&](Value v) { return dtypeOf(v) == type; };
  auto isAllowed = [](const Dim &columns) {
    return columns.isStatic() && columns.value() > 0 && columns.value() <= kMostSplitColumns;
  };
  if ((type != DType::f32 && !is16Bits) || !isOfType(op.getKey()) || !isOfType(op.getValue()) ||
      !isOfType(op.getResult()) || !isAllowed(shapeOf(op.getQuery()).back()) ||
      !isAllowed(shapeOf(op.getResult()).back()))
    return false;
  SharedKeys shared = rowsOfSharedKeys(op);
  // No other family reads rows of several tensors.
  const bool areJoined = rowsViewsOf(op.getKey()).size() + rowsViewsOf(op.getValue()).size() > 2;
  const bool fillsGpu = shared.heads.isStatic() && shared.heads.value() >= kManyHeads;
  return shared.rows > 0 && (shared.rows <= kFewSplitRows || !is16Bits || !fillsGpu || areJoined);
}

bool isSplitAttention(const KernelBody &body) {
  auto op = body.first<ScaledDotProductAttentionOp>();
  return op && body.space() && splitsKeys(op);
}

bool isWarpgroupAttention(const KernelBody &body) {
  auto op = attentionOf16Bits(body);
  if (!op)
    return false;
  constexpr int64_t kCopied = 8; // elements of 16 bytes
  Shape shape = shapeOf(op.getResult());
  const Dim &rows = shape[shape.size() - 2];
  auto isAllowed = [](int64_t columns) { return columns % kCopied == 0 && columns <= kMostWarpgroupColumns; };
  return isAllowed(shapeOf(op.getQuery()).back().value()) && isAllowed(shape.back().value()) &&
         !(rows.isStatic() && rows.value() < kFewestWarpgroupRows);
}

bool isTensorCoreAttention(const KernelBody &body) {
  auto op = attentionOf16Bits(body);
  if (!op)
    return false;
  const int64_t depth = shapeOf(op.getQuery()).back().value(), width = shapeOf(op.getResult()).back().value();
  auto blocks = [](int64_t columns) { return (columns + kTensorCoreBlock - 1) / kTensorCoreBlock; };
  return width <= kMostTensorCoreWidth && blocks(depth) + blocks(width) <= kMostTensorCoreBlocks;
}

bool isGpuAttention(const KernelBody &body) {
  auto op = body.first<ScaledDotProductAttentionOp>();
  if (!op || !body.space())
    return false;
  std::optional<int64_t> columns = upperBound(shapeOf(op.getResult()).back());
  return columns && *columns <= kMostAttentionColumns;
}

bool isTensorCoreGradient(const KernelBody &body) {
  auto op = dyn_cast_or_null<AttentionGradientOp>(body.root());
  if (!op)
    return false;
  const DType type = dtypeOf(op.getResult());
  const Dim width = shapeOf(op.getResult()).back();
  const bool isOneType = llvm::all_of(ArrayRef<Value>{op.getQuery(), op.getKey(), op.getValue(), op.getGradient()},
                                      [&](Value v) { return dtypeOf(v) == type; });
  return (type == DType::f16 || type == DType::bf16) && isOneType && width.isStatic() && width.value() > 0 &&
         width.value() <= kMostGradientColumns;
}

bool isGpuAttentionGradient(const KernelBody &body) {
  auto op = dyn_cast_or_null<AttentionGradientOp>(body.root());
  std::optional<int64_t> columns = op ? upperBound(shapeOf(op.getResult()).back()) : std::nullopt;
  return columns && *columns <= kMostAttentionColumns;
}

} // namespace burin::passes
