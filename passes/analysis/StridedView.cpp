#include "passes/analysis/StridedView.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

constexpr int64_t kLeastSide =
    8; // elements; a dimension known to be shorter is not worth transposing squares in registers

SmallVector<Dim> rowMajorStrides(const Shape &shape) {
  SmallVector<Dim> strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

static Shape startsOf(SliceOp slice) { return std::get<Shape>(*fromMlir(slice.getStarts(), AttrKind::Shape)); }

bool isUnitSlice(Operation *op) {
  auto slice = dyn_cast_or_null<SliceOp>(op);
  return slice && llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
}

bool isPrefixSlice(Operation *op) {
  return isUnitSlice(op) && llvm::all_of(startsOf(cast<SliceOp>(op)), [](const Dim &start) { return start == Dim(0); });
}

bool keepsStrides(Operation *op) {
  if (!op || !isView(op))
    return false;
  Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  return !to.empty() && from.size() == to.size() && std::equal(from.begin() + 1, from.end(), to.begin() + 1);
}

static bool keepsLastTwo(Operation *op) {
  Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  return from.size() >= 2 && std::equal(from.end() - 2, from.end(), to.end() - 2);
}

bool repeatsMatrices(Operation *op) { return isa_and_present<BroadcastToOp>(op) && keepsLastTwo(op); }

bool addsUnits(Operation *op) {
  if (!op || !isView(op))
    return false;
  Shape to = shapeOf(op->getResult(0));
  size_t matched = 0;
  Shape from = shapeOf(op->getOperand(0));
  for (const Dim &size : to)
    if (matched < from.size() && size == from[matched])
      ++matched;
    else if (size != Dim(1))
      return false;
  return matched == from.size() && from.size() < to.size();
}

/// The strides of a source behind addsUnits(), row-major if it is.
static SmallVector<Dim> withUnits(ArrayRef<Dim> strides, const Shape &from, const Shape &to) {
  SmallVector<Dim> all;
  size_t matched = 0;
  for (const Dim &size : to)
    if (matched < from.size() && size == from[matched])
      all.push_back(strides[matched++]);
    else
      all.push_back(matched < from.size() ? strides[matched] * from[matched] : Dim(1));
  return all;
}

/// The strides of a source behind repeatsMatrices().
static SmallVector<Dim> repeated(ArrayRef<Dim> strides, const Shape &from, const Shape &to) {
  SmallVector<Dim> all(to.size() - from.size(), Dim(0));
  for (size_t d = 0; d < from.size(); ++d)
    all.push_back(from[d] == to[all.size()] ? strides[d] : Dim(0));
  return all;
}

/// Makes a view of the operand of an op, for which addsUnits() or repeatsMatrices(), one of its result.
static void lookThrough(StridedView &view, Operation *op) {
  auto through = repeatsMatrices(op) ? repeated : withUnits;
  view.strides = through(view.strides, shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
}

/// The strides of a source behind a reshape that splits its dimensions, adds and drops sizes of 1; nullopt for others.
static std::optional<SmallVector<Dim>> splitStrides(ArrayRef<Dim> strides, const Shape &from, const Shape &to) {
  SmallVector<Dim> all(to.size(), Dim(1));
  size_t end = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == Dim(1))
      continue;
    const size_t begin = end;
    Dim product = 1;
    while (product != from[d] && end < to.size())
      product = product * to[end++];
    if (product != from[d])
      return std::nullopt;
    Dim stride = strides[d];
    for (size_t n = end; n-- > begin; stride = stride * to[n])
      all[n] = stride;
  }
  const bool isWhole = llvm::all_of(ArrayRef<Dim>(to).drop_front(end), [](const Dim &size) { return size == Dim(1); });
  return isWhole ? std::optional(all) : std::nullopt;
}

/// Whether a value is a slice, reshaped or not.
static bool isOfSlice(Value v) { return isa_and_present<SliceOp>(skipReshapes(v).getDefiningOp()); }

StridedView stridedViewOf(Value v) {
  Operation *op = v.getDefiningOp();
  if (isPrefixSlice(op) || keepsStrides(op))
    return stridedViewOf(op->getOperand(0));
  if (isUnitSlice(op)) {
    StridedView view = stridedViewOf(op->getOperand(0));
    for (auto [start, stride] : llvm::zip_equal(startsOf(cast<SliceOp>(op)), view.strides))
      view.offset = view.offset + start * stride;
    return view;
  }
  if (addsUnits(op) || repeatsMatrices(op)) {
    StridedView view = stridedViewOf(op->getOperand(0));
    lookThrough(view, op);
    return view;
  }
  if (op && isView(op) && isOfSlice(v)) {
    StridedView view = stridedViewOf(op->getOperand(0));
    if (auto strides = splitStrides(view.strides, shapeOf(op->getOperand(0)), shapeOf(v)))
      return {view.base, *strides, view.offset};
  }
  auto transpose = dyn_cast_or_null<TransposeOp>(op);
  if (!transpose)
    return {skipReshapes(v), rowMajorStrides(shapeOf(v)), 0};
  StridedView source = stridedViewOf(transpose.getX()), seen{source.base, {}, source.offset};
  for (int64_t from : transpose.getPerm())
    seen.strides.push_back(source.strides[from]);
  return seen;
}

bool joinsRows(Operation *op) {
  constexpr size_t kMostJoined = 3; // of which a kernel selects one per row
  auto concat = dyn_cast_or_null<ConcatOp>(op);
  return concat && concat.getXs().size() <= kMostJoined && concat.getAxis() + 2 == shapeOf(concat.getResult()).size();
}

bool keepsMatrices(Operation *op) { return addsUnits(op) ? keepsLastTwo(op) : repeatsMatrices(op); }

SmallVector<RowsView> rowsViewsOf(Value v) {
  Operation *source = v.getDefiningOp();
  SmallVector<Operation *> views; // from v on
  for (; source && keepsMatrices(source); source = source->getOperand(0).getDefiningOp())
    views.push_back(source);
  Shape shape = shapeOf(v);
  if (!joinsRows(source))
    return {{stridedViewOf(v), shape[shape.size() - 2]}};
  SmallVector<RowsView> all;
  for (Value x : source->getOperands()) {
    StridedView view = stridedViewOf(x);
    for (Operation *op : llvm::reverse(views))
      lookThrough(view, op);
    Shape own = shapeOf(x);
    all.push_back({view, own[own.size() - 2]});
  }
  return all;
}

/// An integer type of the same size: copies compute nothing.
static DType movedAs(DType type) {
  constexpr DType bySize[] = {DType::i8, DType::i8, DType::i16, DType::i16, DType::i32};
  size_t bytes = byteWidth(type);
  return bytes == 8 ? DType::i64 : bySize[bytes];
}

/// Merges neighbouring dimensions that are contiguous both in the source and in the result.
static void merge(SmallVector<StridedCopy::Along> &dims) {
  for (size_t i = dims.size(); i-- > 1;)
    if (dims[i - 1].from == dims[i].size * dims[i].from) {
      dims[i - 1] = {dims[i - 1].size * dims[i].size, dims[i].from, dims[i].to};
      dims.erase(dims.begin() + i);
    }
}

static bool isLong(const Dim &size, int64_t least = kLeastSide) {
  return upperBound(size).value_or(INT64_MAX) >= least;
}

/// Whether the pairs are the elements of the operand as they lie in memory.
static bool areNeighbours(Bf16PairsOp op) { return op.getAxis() == 1 && isMultipleOf(shapeOf(op.getX()).back(), 2); }

std::optional<StridedCopy> transposingCopyOf(Block &body, int64_t leastSide) {
  if (body.getTerminator()->getNumOperands() != 1)
    return std::nullopt;
  Value root = skipReshapes(body.getTerminator()->getOperand(0));
  auto pack = root.getDefiningOp<PackOp>();
  Value view = pack ? pack.getX() : root;
  if (!view.getDefiningOp<TransposeOp>())
    return std::nullopt;
  auto [base, from, offset] = stridedViewOf(view);
  if (auto pairs = base.getDefiningOp<Bf16PairsOp>(); pairs && areNeighbours(pairs))
    base = skipReshapes(pairs.getX());
  if (!isa<BlockArgument>(base) || llvm::is_contained(from, Dim(0)) || offset != Dim(0))
    return std::nullopt;
  StridedCopy copy;
  copy.type = movedAs(dtypeOf(root));
  copy.source = base;
  Shape shape = shapeOf(root);
  SmallVector<Dim> to = rowMajorStrides(shape);
  if (pack) { // [batch…, K, N] -> [batch…, panel, K, width]
    Dim rows = from[from.size() - 2], columns = from.back();
    from.back() = rows;
    from[from.size() - 2] = columns * Dim(pack.getWidth());
    from.push_back(columns);
    copy.panels = pack.getWidth();
    copy.filled = shapeOf(view).back();
  }
  for (size_t i = 0; i < shape.size(); ++i)
    copy.dims.push_back({shape[i], from[i], to[i]});
  if (!pack) {
    llvm::erase_if(copy.dims, [](const StridedCopy::Along &d) { return d.size == Dim(1); });
    merge(copy.dims);
  }
  for (size_t i = 0; i + 1 < copy.dims.size(); ++i)
    if (copy.dims[i].from == Dim(1) && isLong(copy.dims[i].size, leastSide))
      copy.inner = int(i);
  if (copy.inner < 0 || copy.dims.back().from == Dim(1) || !isLong(copy.dims.back().size, leastSide))
    return std::nullopt;
  return copy;
}

/// The dimension of the space along which the operand of a transpose is contiguous, or -1.
static int contiguousDimension(TransposeOp op, const IterationSpace &a) {
  Shape shape = shapeOf(op.getX());
  int64_t last = int64_t(shape.size()) - 1;
  while (last >= 0 && shape[last] == Dim(1))
    --last;
  for (auto [to, from] : llvm::enumerate(op.getPerm()))
    if (from == last)
      return a.dims.find(op.getResult())->second[to];
  return -1;
}

/// Whether all results of a kernel without reductions use all dimensions of its space, of which there are several.
static bool isElementwiseOverRows(Block &body, const IterationSpace &a) {
  // A reduction over a dimension of size 1 reduces no dimension of the space.
  bool reduces = llvm::any_of(body, [](Operation &op) { return !reducedAxes(&op).empty(); });
  auto isWhole = [&](Value yielded) {
    auto dims = a.dims.find(a.contains(yielded) ? yielded : skipReshapes(yielded));
    return dims != a.dims.end() &&
           llvm::count_if(dims->second, [](int d) { return d >= 0; }) == int64_t(a.space.size());
  };
  return a.space.size() > 1 && !reduces && !llvm::is_contained(a.reduced, true) &&
         llvm::all_of(body.getTerminator()->getOperands(), isWhole);
}

std::optional<TransposedReads> transposedReadsOf(Block &body, const IterationSpace &a) {
  if (!isElementwiseOverRows(body, a))
    return std::nullopt;
  int last = int(a.space.size()) - 1;
  TransposedReads reads;
  for (auto op : body.getOps<TransposeOp>()) {
    if (!a.contains(op.getResult()) || isBool(dtypeOf(op.getResult())))
      continue;
    int d = contiguousDimension(op, a);
    if (d < 0 || d == last || (reads.along >= 0 && d != reads.along))
      continue;
    reads.along = d;
    reads.values.push_back(op.getResult());
  }
  if (reads.values.empty() || !isLong(a.space[reads.along]) || !isLong(a.space[last]))
    return std::nullopt;
  return reads;
}

int interleavedDimension(Block &body, const IterationSpace &a) {
  for (auto op : body.getOps<TransposeOp>())
    if (int d = a.contains(op.getResult()) ? contiguousDimension(op, a) : -1; d >= 0 && !isLong(a.space[d]))
      return d;
  return -1;
}

llvm::SmallVector<TakeOp> takesOfColumns(Block &body, const IterationSpace &a) {
  if (!isElementwiseOverRows(body, a) || !isLong(a.space.back()))
    return {};
  int last = int(a.space.size()) - 1;
  llvm::SmallVector<TakeOp> takes;
  for (auto op : body.getOps<TakeOp>()) {
    auto dims = a.dims.find(op.getResult());
    if (dims == a.dims.end() || shapeOf(op.getIndices()).size() != 1)
      continue;
    if (dims->second[op.getAxis()] == last && llvm::count(dims->second, last) == 1)
      takes.push_back(op);
  }
  return takes;
}

} // namespace burin::passes
