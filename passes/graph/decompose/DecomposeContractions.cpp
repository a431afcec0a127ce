// Decomposes all products to matmul or conv, and elementwise ops that fuse with them.
#include "passes/analysis/GraphBuilder.h"
#include "passes/graph/decompose/Decompose.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// softmax(query · scale · keyᵀ, masked) · value in f64; attention kernels compute the other types.
class Attention : public OpRewritePattern<ScaledDotProductAttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaledDotProductAttentionOp op, PatternRewriter &rewriter) const override {
    if (dtypeOf(op.getResult()) != DType::f64)
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    Value query = op.getQuery();
    query = g.mul(query, g.broadcastLike(scaleOf(op, g), query));
    Value scores = g.op<MatmulOp>({query, g.transposeLastTwo(op.getKey())});
    Shape shape = shapeOf(scores);
    int64_t columns = int64_t(shape.size()) - 1;
    Value minusInfinity = g.fullLike(scores, -INFINITY);

    if (op.getIsCausal()) {
      Shape plane(shape.end() - 2, shape.end());
      Value seen = g.op<GeOp>({g.iota(plane, 0, DType::i32), g.iota(plane, 1, DType::i32)});
      scores = g.where(g.broadcast(seen, shape), scores, minusInfinity);
    }
    Value mask = op.getMask();
    if (mask && isFloat(dtypeOf(mask)))
      scores = g.add(scores, g.broadcast(g.cast(mask, dtypeOf(scores)), shape));
    else if (mask)
      scores = g.where(g.broadcast(g.cast(mask, DType::boolean), shape), scores, minusInfinity);

    Value weights = g.op<SoftmaxOp>({scores}, {{"axis", columns}});
    if (mask) { // a row that is masked out as a whole would be NaN
      Value top = g.reduce<ReduceMaxOp>(scores, {columns});
      Value blind = g.op<EqOp>({top, g.fullLike(top, -INFINITY)});
      weights = g.where(g.broadcast(blind, shape), g.fullLike(scores, 0), weights);
    }
    rewriter.replaceOp(op, g.op<MatmulOp>({weights, op.getValue()}));
    return success();
  }

  /// The scale as a tensor of rank 0.
  static Value scaleOf(ScaledDotProductAttentionOp op, GraphBuilder &g) {
    DType type = dtypeOf(op.getQuery());
    double scale = op.getScale().convertToDouble();
    Dim width = shapeOf(op.getQuery()).back();
    if (scale != 0)
      return g.full({}, scale, type);
    if (width.isStatic())
      return g.full({}, 1 / std::sqrt(double(width.value())), type);
    Value count = g.op<ReduceSumOp>({g.full({width}, 1, wideType(type))}, {{"axes", std::vector<int64_t>{0}}});
    return g.cast(g.rsqrt(count), type);
  }
};

class DotGeneral : public OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    Shape left = shapeOf(op.getLhs()), right = shapeOf(op.getRhs());
    auto leftFree = others(left.size(), op.getLhsBatch(), op.getLhsContract());
    auto rightFree = others(right.size(), op.getRhsBatch(), op.getRhsContract());
    Dim depth = sizeOver(left, op.getLhsContract());
    Shape batch;
    for (int64_t d : op.getLhsBatch())
      batch.push_back(left[d]);
    auto with = [&](Dim rows, Dim columns) {
      Shape shape = batch;
      shape.push_back(rows);
      shape.push_back(columns);
      return shape;
    };
    Value lhs = g.transpose(op.getLhs(), concatenated({op.getLhsBatch(), leftFree, op.getLhsContract()}));
    Value rhs = g.transpose(op.getRhs(), concatenated({op.getRhsBatch(), op.getRhsContract(), rightFree}));
    lhs = g.reshape(lhs, with(sizeOver(left, leftFree), depth));
    rhs = g.reshape(rhs, with(depth, sizeOver(right, rightFree)));
    rewriter.replaceOp(op, g.reshape(g.op<MatmulOp>({lhs, rhs}), shapeOf(op.getResult())));
    return success();
  }

  static std::vector<int64_t> others(size_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    std::vector<int64_t> rest;
    for (int64_t d = 0; d < int64_t(rank); ++d)
      if (!llvm::is_contained(batch, d) && !llvm::is_contained(contract, d))
        rest.push_back(d);
    return rest;
  }
  static Dim sizeOver(const Shape &shape, ArrayRef<int64_t> dims) {
    Dim size = 1;
    for (int64_t d : dims)
      size = size * shape[d];
    return size;
  }
};

/// The bias becomes an addition, which fuses with the convolution. For 16-bit floats that would round twice, so the
/// bias stays until the convolution is lowered.
class ConvBias : public OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    Value bias = op.getBias();
    if (!bias || wideType(dtypeOf(bias)) != dtypeOf(bias))
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    rewriter.setInsertionPointAfter(op);
    rewriter.modifyOpInPlace(op, [&] { op.getBiasMutable().clear(); });
    Shape shape = shapeOf(op.getResult());
    size_t channelDim = op.getLayout() == "nhwc" ? shape.size() - 1 : 1;
    Value repeated = g.perChannel(bias, shape, channelDim);
    Value sum = g.add(op.getResult(), repeated);
    rewriter.replaceAllUsesExcept(op.getResult(), sum, sum.getDefiningOp());
    return success();
  }
};

} // namespace

void populateContractionDecompositions(RewritePatternSet &patterns) {
  patterns.add<Attention, DotGeneral, ConvBias>(patterns.getContext());
}

} // namespace burin::passes
