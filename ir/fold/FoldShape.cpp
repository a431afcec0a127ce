// Folders and canonicalisations of ops that move elements.
#include "ir/dialect/Burin.h"
#include "ir/infer/Infer.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace burin::ir {

static bool sameType(Value a, Value b) { return a.getType() == b.getType(); }

// ---- folds: an existing value, or the same op with another operand

/// Folds two consecutive ops of this kind into the second one, or into their operand if the types are the same.
template <class Op> static OpFoldResult foldRepeated(Op op) {
  if (sameType(op.getX(), op.getResult()))
    return op.getX();
  auto inner = op.getX().template getDefiningOp<Op>();
  if (!inner)
    return {};
  if (sameType(inner.getX(), op.getResult()))
    return inner.getX();
  op.getXMutable().assign(inner.getX());
  return op.getResult();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) { return foldRepeated(*this); }

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> perm = getPerm();
  if (llvm::is_sorted(perm)) // the identity
    return getX();
  auto inner = getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> both;
  for (int64_t p : perm)
    both.push_back(inner.getPerm()[p]);
  if (llvm::is_sorted(both))
    return inner.getX();
  getXMutable().assign(inner.getX());
  setPerm(both);
  return getResult();
}

OpFoldResult BroadcastToOp::fold(FoldAdaptor) { return foldRepeated(*this); }

/// Bounds are within the tensor, so an unchanged type means the whole tensor.
OpFoldResult SliceOp::fold(FoldAdaptor) { return sameType(getX(), getResult()) ? getX() : Value(); }

OpFoldResult FlipOp::fold(FoldAdaptor) {
  if (getAxes().empty())
    return getX();
  auto inner = getX().getDefiningOp<FlipOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> once; // dimensions that one of the two flips
  std::set_symmetric_difference(getAxes().begin(), getAxes().end(), inner.getAxes().begin(), inner.getAxes().end(),
                                std::back_inserter(once));
  if (once.empty())
    return inner.getX();
  getXMutable().assign(inner.getX());
  setAxes(once);
  return getResult();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) { return getXs().size() == 1 ? getXs().front() : Value(); }

OpFoldResult PadOp::fold(FoldAdaptor) {
  auto isZero = [](int64_t v) { return v == 0; };
  bool isIdentity =
      llvm::all_of(getLow(), isZero) && llvm::all_of(getHigh(), isZero) && llvm::all_of(getInterior(), isZero);
  return isIdentity ? getX() : Value();
}

// ---- canonical forms: fewer kinds of ops for later passes

static Value reshape(PatternRewriter &b, mlir::Location loc, Value x, Shape shape) {
  return b.createOrFold<ReshapeOp>(loc, tensorType(b.getContext(), {dtypeOf(x), shape}), x,
                                   cast<ArrayAttr>(toMlir(b.getContext(), Attr(shape))));
}

/// Turns squeeze and unsqueeze into reshapes.
template <class Op> static LogicalResult asReshape(Op op, PatternRewriter &b) {
  b.replaceOp(op, reshape(b, op.getLoc(), op.getX(), shapeOf(op.getResult())));
  return success();
}
void SqueezeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(asReshape<SqueezeOp>);
}
void UnsqueezeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(asReshape<UnsqueezeOp>);
}

/// Moving the elements of a uniform tensor gives a uniform tensor.
template <class Op> static LogicalResult ofFull(Op op, PatternRewriter &b) {
  auto full = op.getX().template getDefiningOp<FullOp>();
  if (!full)
    return failure();
  b.replaceOp(op, create<FullOp>(b, op.getLoc(), {},
                                 {{"shape", shapeOf(op.getResult())},
                                  {"value", full.getValue().convertToDouble()},
                                  {"dtype", dtypeOf(op.getResult())}}));
  return success();
}
void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(ofFull<ReshapeOp>);
}
void BroadcastToOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(ofFull<BroadcastToOp>);
}

/// A transpose that moves only dimensions of size 1 does not change the order of elements.
static LogicalResult transposeAsReshape(TransposeOp op, PatternRewriter &b) {
  Shape shape = shapeOf(op.getX());
  SmallVector<int64_t> moved;
  for (int64_t p : op.getPerm())
    if (shape[p] != Dim(1))
      moved.push_back(p);
  return llvm::is_sorted(moved) ? asReshape(op, b) : failure();
}
/// A transposed broadcast is a broadcast of the transposed operand, which is smaller.
static LogicalResult transposeOfBroadcast(TransposeOp op, PatternRewriter &b) {
  auto broadcast = op.getX().getDefiningOp<BroadcastToOp>();
  if (!broadcast)
    return failure();
  Shape from = shapeOf(broadcast.getX()), full(op.getPerm().size() - from.size(), Dim(1));
  llvm::append_range(full, from);
  Value x = broadcast.getX();
  if (full != from)
    x = create<ReshapeOp>(b, op.getLoc(), {x}, {{"shape", full}});
  x = create<TransposeOp>(b, op.getLoc(), {x}, {{"perm", Ints(op.getPerm())}});
  b.replaceOp(op, create<BroadcastToOp>(b, op.getLoc(), {x}, {{"shape", shapeOf(op.getResult())}}));
  return success();
}
void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(transposeAsReshape);
  patterns.add(transposeOfBroadcast);
  patterns.add(ofFull<TransposeOp>);
}

/// A slice of a slice is a slice.
static LogicalResult sliceOfSlice(SliceOp op, PatternRewriter &b) {
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner)
    return failure();
  auto shapeAttr = [](Operation *o, size_t i) { return std::get<Shape>(attrsOf(o)[i]); };
  Shape starts = shapeAttr(op, 0), innerStarts = shapeAttr(inner, 0), result = shapeOf(op.getResult()), stops;
  Shape size = shapeOf(inner.getX()), innerSize = shapeOf(inner.getResult());
  Ints steps;
  for (size_t i = 0; i < starts.size(); ++i) {
    // Slices along other axes need no arithmetic.
    if (innerStarts[i] == Dim(0) && inner.getSteps()[i] == 1 && innerSize[i] == size[i]) {
      stops.push_back(shapeAttr(op, 1)[i]);
      steps.push_back(op.getSteps()[i]);
      continue;
    }
    if (starts[i] == Dim(0) && op.getSteps()[i] == 1 && result[i] == innerSize[i]) {
      starts[i] = innerStarts[i];
      stops.push_back(shapeAttr(inner, 1)[i]);
      steps.push_back(inner.getSteps()[i]);
      continue;
    }
    int64_t innerStep = inner.getSteps()[i], step;
    if (__builtin_mul_overflow(innerStep, op.getSteps()[i], &step))
      return failure();
    steps.push_back(step);
    starts[i] = innerStarts[i] + starts[i] * innerStep;
    // One past the last element; with step 1 this holds for symbolic sizes as well.
    if (!result[i].isStatic() && step != 1)
      return failure();
    stops.push_back(result[i] == Dim(0) ? starts[i] : starts[i] + (result[i] - 1) * step + 1);
  }
  InferCall call{*opInfo(op), {specOf(inner.getX())}, {starts, stops, steps}, /*strict=*/true, {}, {}};
  if (!infer(call) || call.results.front() != specOf(op.getResult()))
    return failure(); // symbolic bounds that cannot be proved to be within the tensor
  b.replaceOp(
      op, create<SliceOp>(b, op.getLoc(), {inner.getX()}, {{"starts", starts}, {"stops", stops}, {"steps", steps}}));
  return success();
}
void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(sliceOfSlice);
  patterns.add(ofFull<SliceOp>);
}

/// Merges nested concatenations along one axis, and drops empty operands.
static LogicalResult flattenConcat(ConcatOp op, PatternRewriter &b) {
  int64_t axis = op.getAxis();
  SmallVector<Value> parts;
  for (Value x : op.getXs()) {
    auto inner = x.getDefiningOp<ConcatOp>();
    if (inner && static_cast<int64_t>(inner.getAxis()) == axis && inner->hasOneUse())
      llvm::append_range(parts, inner.getXs());
    else
      parts.push_back(x);
  }
  auto isEmpty = [&](Value x) { return shapeOf(x)[axis] == Dim(0); };
  if (!llvm::all_of(parts, isEmpty))
    llvm::erase_if(parts, isEmpty);
  if (parts.size() == op.getXs().size())
    return failure();
  b.replaceOp(op, create<ConcatOp>(b, op.getLoc(), parts, {{"axis", axis}}));
  return success();
}

/// The slice of one tensor that equals the concatenation of two adjacent slices of it along `axis`; null if they are
/// not adjacent.
static Value joinedSlices(Value first, Value second, size_t axis, mlir::Location loc, PatternRewriter &b) {
  auto a = first.getDefiningOp<SliceOp>(), z = second.getDefiningOp<SliceOp>();
  if (!a || !z || a.getX() != z.getX() || a.getSteps() != z.getSteps() || a.getSteps()[axis] != 1)
    return {};
  auto bounds = [](SliceOp op, size_t i) { return std::get<Shape>(attrsOf(op)[i]); };
  Shape starts = bounds(a, 0), stops = bounds(z, 1), aStops = bounds(a, 1), zStarts = bounds(z, 0);
  if (aStops[axis] != zStarts[axis])
    return {};
  aStops[axis] = stops[axis];
  zStarts[axis] = starts[axis];
  if (aStops != stops || zStarts != starts)
    return {};
  return create<SliceOp>(b, loc, {a.getX()}, {{"starts", starts}, {"stops", stops}, {"steps", Ints(a.getSteps())}});
}
/// Merges adjacent slices of one tensor in a concatenation.
static LogicalResult concatOfSlices(ConcatOp op, PatternRewriter &b) {
  SmallVector<Value> parts;
  for (Value x : op.getXs()) {
    Value joined = parts.empty() ? Value() : joinedSlices(parts.back(), x, op.getAxis(), op.getLoc(), b);
    if (joined)
      parts.back() = joined;
    else
      parts.push_back(x);
  }
  if (parts.size() == op.getXs().size())
    return failure();
  b.replaceOp(op, create<ConcatOp>(b, op.getLoc(), parts, {{"axis", int64_t(op.getAxis())}}));
  return success();
}
void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add(flattenConcat);
  patterns.add(concatOfSlices);
}

static LogicalResult stackAsConcat(StackOp op, PatternRewriter &b) {
  int64_t axis = op.getAxis();
  SmallVector<Value> parts;
  for (Value x : op.getXs()) {
    Shape shape = shapeOf(x);
    shape.insert(shape.begin() + axis, Dim(1));
    parts.push_back(reshape(b, op.getLoc(), x, shape));
  }
  b.replaceOp(op, create<ConcatOp>(b, op.getLoc(), parts, {{"axis", axis}}));
  return success();
}
void StackOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) { patterns.add(stackAsConcat); }

static LogicalResult splitAsSlices(SplitOp op, PatternRewriter &b) {
  int64_t axis = op.getAxis();
  Shape starts(shapeOf(op.getX()).size(), Dim(0)), stops = shapeOf(op.getX());
  Ints steps(starts.size(), 1);
  SmallVector<Value> pieces;
  for (int64_t size : op.getSizes()) {
    stops[axis] = starts[axis] + size;
    pieces.push_back(
        create<SliceOp>(b, op.getLoc(), {op.getX()}, {{"starts", starts}, {"stops", stops}, {"steps", steps}}));
    starts[axis] = stops[axis];
  }
  b.replaceOp(op, pieces);
  return success();
}
void SplitOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) { patterns.add(splitAsSlices); }

/// [a, b] tiled by [r, s] is [1, a, 1, b] broadcast to [r, a, s, b], reshaped to [r*a, s*b].
static LogicalResult tileAsBroadcast(TileOp op, PatternRewriter &b) {
  Shape apart, repeated, shape = shapeOf(op.getX());
  for (auto [size, repeat] : llvm::zip_equal(shape, op.getRepeats())) {
    if (repeat != 1) {
      apart.push_back(1);
      repeated.push_back(repeat);
    }
    apart.push_back(size);
    repeated.push_back(size);
  }
  constexpr size_t kMaxRank = 32;
  if (apart.size() > kMaxRank)
    return failure();
  Value x = reshape(b, op.getLoc(), op.getX(), apart);
  x = create<BroadcastToOp>(b, op.getLoc(), {x}, {{"shape", repeated}});
  b.replaceOp(op, reshape(b, op.getLoc(), x, shapeOf(op.getResult())));
  return success();
}
void TileOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) { patterns.add(tileAsBroadcast); }

} // namespace burin::ir
