// Decomposes ops that no kernel computes as a whole into ops that kernels compute.
#include "passes/graph/decompose/Decompose.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/Passes.h.inc"

namespace {

/// Batch norm with given statistics is one scale and one shift per channel.
class BatchNorm : public OpRewritePattern<BatchNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BatchNormOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    DType type = dtypeOf(op.getX()), wide = wideType(type);
    auto widened = [&](Value v) { return g.cast(v, wide); };
    Value variance = widened(op.getVariance());
    Value deviation = g.rsqrt(g.add(variance, g.fullLike(variance, op.getEpsilon().convertToDouble())));
    Value scale = g.mul(widened(op.getWeight()), deviation);
    Value shift = g.sub(widened(op.getBias()), g.mul(widened(op.getMean()), scale));
    Value x = widened(op.getX());
    Shape shape = shapeOf(x);
    Value y = g.add(g.mul(x, g.perChannel(scale, shape)), g.perChannel(shift, shape));
    rewriter.replaceOp(op, g.cast(y, type));
    return success();
  }
};

/// x over `axes`, with zero mean and unit variance.
Value standardized(GraphBuilder &g, Value x, const std::vector<int64_t> &axes, double epsilon) {
  Value centered = g.sub(x, g.broadcastLike(g.reduce<ReduceMeanOp>(x, axes), x));
  Value variance = g.reduce<ReduceMeanOp>(g.mul(centered, centered), axes);
  return g.mul(centered, g.broadcastLike(g.rsqrt(g.add(variance, g.fullLike(variance, epsilon))), x));
}

/// Scales and shifts y in the shape in which x is normalised, so that everything shares one iteration space. `place` is
/// the shape with the channels at their position and 1 elsewhere.
Value scaledAndShifted(GraphBuilder &g, Value y, Value weight, Value bias, const Shape &place) {
  auto repeated = [&](Value v) { return g.broadcastLike(g.reshape(g.cast(v, dtypeOf(y)), place), y); };
  if (weight)
    y = g.mul(y, repeated(weight));
  return bias ? g.add(y, repeated(bias)) : y;
}

/// Normalises x [N, C, …] as [N, groups, C / groups, …].
class GroupNorm : public OpRewritePattern<GroupNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GroupNormOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    Shape shape = shapeOf(op.getX()), grouped = shape;
    DType type = dtypeOf(op.getX());
    Dim groups = int64_t(op.getGroups()), perGroup = floordiv(shape[1], groups);
    grouped[1] = groups;
    grouped.insert(grouped.begin() + 2, perGroup);
    Shape place(grouped.size() - 1, Dim(1));
    place[0] = groups;
    place[1] = perGroup;
    Value x = g.reshape(g.cast(op.getX(), wideType(type)), grouped);
    Value y = standardized(g, x, axesFrom(2, int64_t(grouped.size())), op.getEpsilon().convertToDouble());
    y = scaledAndShifted(g, y, op.getWeight(), op.getBias(), place);
    rewriter.replaceOp(op, g.cast(g.reshape(y, shape), type));
    return success();
  }
};

class InstanceNorm : public OpRewritePattern<InstanceNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(InstanceNormOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    Shape shape = shapeOf(op.getX()), spatial = shape;
    DType type = dtypeOf(op.getX());
    if (spatial.size() == 2)
      spatial.push_back(1);
    Shape place(spatial.size() - 1, Dim(1));
    place[0] = spatial[1];
    Value x = g.reshape(g.cast(op.getX(), wideType(type)), spatial);
    Value y = standardized(g, x, axesFrom(2, int64_t(spatial.size())), op.getEpsilon().convertToDouble());
    y = scaledAndShifted(g, y, op.getWeight(), op.getBias(), place);
    rewriter.replaceOp(op, g.cast(g.reshape(y, shape), type));
    return success();
  }
};

/// Gives the scalar operand of a reduction or composite a dimension to run along.
class ScalarOperand : public RewritePattern {
public:
  ScalarOperand(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool reduction = op->hasTrait<ir::Reduction>();
    if (!reduction && !isa<SoftmaxOp, LogSoftmaxOp, ArgmaxOp, ArgminOp, CumsumOp>(op))
      return failure();
    if (!shapeOf(op->getOperand(0)).empty())
      return failure();
    GraphBuilder g(rewriter, op->getLoc());
    std::vector<Attr> attrs = attrsOf(op);
    const OpInfo &info = *opInfo(op);
    for (size_t i = 0; i < attrs.size(); ++i) {
      if (StringRef(info.attrs[i].name) == "axis")
        attrs[i] = int64_t(0);
      if (StringRef(info.attrs[i].name) == "axes")
        attrs[i] = std::vector<int64_t>{0};
    }
    Value x = g.reshape(op->getOperand(0), {1});
    Operation *sized = createOp(rewriter, op->getLoc(), info, {x}, std::move(attrs));
    rewriter.replaceOp(op, g.reshape(sized->getResult(0), {}));
    return success();
  }
};

/// Kernels generate random numbers in vectors whose first element is a multiple of 4. Other row lengths are generated
/// as one row; elements depend on their row-major position alone, which does not change.
struct RandomRows : RewritePattern {
  RandomRows(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 2, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<RandomUniformOp, RandomNormalOp, RandomIntegersOp>(op))
      return failure();
    Shape shape = shapeOf(op->getResult(0));
    if (shape.size() < 2 || mod(shape.back(), 4) == Dim(0))
      return failure();
    const OpInfo &info = *opInfo(op);
    std::vector<Attr> attrs = attrsOf(op);
    for (size_t i = 0; i < attrs.size(); ++i)
      if (StringRef(info.attrs[i].name) == "shape")
        attrs[i] = Shape{elements(shape)};
    Operation *flat = createOp(rewriter, op->getLoc(), info, operandsOf(op), std::move(attrs));
    rewriter.replaceOp(op, GraphBuilder(rewriter, op->getLoc()).reshape(flat->getResult(0), shape));
    return success();
  }
};

struct DecomposePass : impl::DecomposePassBase<DecomposePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    populateContractionDecompositions(set);
    populateConvTransposeDecompositions(set);
    populateNormalizationDecompositions(set);
    populateIndexDecompositions(set);
    set.add<ScalarOperand, RandomRows>(context);
    SqueezeOp::getCanonicalizationPatterns(set, context);
    UnsqueezeOp::getCanonicalizationPatterns(set, context);
    StackOp::getCanonicalizationPatterns(set, context);
    SplitOp::getCanonicalizationPatterns(set, context);
    TileOp::getCanonicalizationPatterns(set, context);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace

void populateNormalizationDecompositions(RewritePatternSet &patterns) {
  patterns.add<BatchNorm, GroupNorm, InstanceNorm>(patterns.getContext());
}

} // namespace burin::passes
