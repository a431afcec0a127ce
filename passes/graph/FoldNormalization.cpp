// Folds constant scales and shifts per channel into the weights of the convolution or product next to them.
//
// The new weights are written as ops on the old ones, which constant folding computes.
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_FOLDNORMALIZATIONPASS
#include "passes/Passes.h.inc"

namespace {

/// The constant that `v` broadcasts along all dimensions but `channel`; null if there is none.
Value channelSource(Value v, size_t channel) {
  size_t rank = shapeOf(v).size();
  if (auto full = v.getDefiningOp<FullOp>())
    return full;
  if (auto broadcast = v.getDefiningOp<BroadcastToOp>())
    v = broadcast.getX();
  Shape shape = shapeOf(v);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != Dim(1) && d + rank - shape.size() != channel)
      return {};
  return isConstantExpression(v) ? v : Value();
}

/// y = x * scale + shift per channel. Scale and shift are vectors in the accumulator type; null stands for 1 or 0.
struct Affine {
  Value x, scale, shift;
};

/// Matches an op as an affine map of one operand. `operand` and the other queries create no ops; `read` does.
class AffineReader {
public:
  AffineReader(Operation *op, size_t channel) : op(op), channel(channel) {
    if (auto norm = dyn_cast<BatchNormOp>(op)) {
      bool constant = channel == 1 && llvm::all_of(op->getOperands().drop_front(), isConstantExpression);
      x = constant ? norm.getX() : Value();
    } else if (isa<AddOp, MulOp, SubOp, DivOp>(op) && isFloat(dtypeOf(op->getResult(0)))) {
      if (channelSource(op->getOperand(1), channel))
        x = op->getOperand(0);
      else if (channelSource(op->getOperand(0), channel) && !isa<DivOp>(op))
        x = op->getOperand(1);
    }
  }

  Value operand() const { return x; }
  bool hasShift() const { return isa<BatchNormOp, AddOp, SubOp>(op); }
  bool hasScale() const { return !isa<AddOp>(op) && !(isa<SubOp>(op) && x == op->getOperand(0)); }

  Affine read(GraphBuilder &g) const {
    if (auto norm = dyn_cast<BatchNormOp>(op)) {
      Value variance = wide(g, norm.getVariance());
      Value deviation = g.rsqrt(g.add(variance, g.fullLike(variance, norm.getEpsilon().convertToDouble())));
      Value scale = g.mul(wide(g, norm.getWeight()), deviation);
      return {x, scale, g.sub(wide(g, norm.getBias()), g.mul(wide(g, norm.getMean()), scale))};
    }
    bool xFirst = x == op->getOperand(0);
    Value v = vector(g, op->getOperand(xFirst ? 1 : 0));
    if (isa<MulOp>(op))
      return {x, v, {}};
    if (isa<DivOp>(op))
      return {x, g.op<ReciprocalOp>({v}), {}};
    if (isa<AddOp>(op))
      return {x, {}, v};
    return xFirst ? Affine{x, {}, g.op<NegOp>({v})} : Affine{x, g.fullLike(v, -1), v};
  }

private:
  static Value wide(GraphBuilder &g, Value v) { return g.cast(v, wideType(dtypeOf(v))); }
  Value vector(GraphBuilder &g, Value v) const {
    Dim channels = shapeOf(op->getResult(0))[channel];
    Value source = channelSource(v, channel);
    if (auto full = source.getDefiningOp<FullOp>())
      return g.full({channels}, full.getValue().convertToDouble(), wideType(dtypeOf(v)));
    Dim size = elements(shapeOf(source));
    return wide(g, g.broadcast(g.reshape(source, {size}), {channels}));
  }

  Operation *op;
  size_t channel;
  Value x;
};

/// Arithmetic on weights, in the accumulator type.
class Weights {
public:
  Weights(GraphBuilder &g, Value like) : g(g), type(dtypeOf(like)) {}
  Value wide(Value v) { return g.cast(v, wideType(type)); }
  Value narrow(Value v) { return g.cast(v, type); }

  /// weight * v, where the weight is seen as `view`, and v as `place`, which broadcasts to it.
  Value scaled(Value weight, Value v, const Shape &view, const Shape &place) {
    Value w = g.reshape(wide(weight), view);
    w = g.mul(w, g.broadcast(g.reshape(v, place), view));
    return g.reshape(w, shapeOf(weight));
  }
  /// bias * scale + shift; a null bias is 0.
  Value affine(Value bias, const Affine &a) {
    Value result = bias ? wide(bias) : Value();
    if (result && a.scale)
      result = g.mul(result, a.scale);
    if (a.shift)
      result = result ? g.add(result, a.shift) : a.shift;
    return result ? narrow(result) : Value();
  }

private:
  GraphBuilder &g;
  DType type;
};

/// A view of conv weights [O, C/groups, k…] or conv_transpose weights [C, O/groups, k…] as [groups, …, …, k…], so that
/// the channels of a group have a dimension of their own. `place` is 1 except in the groups and in the output (or
/// input) channels.
void groupedView(Operation *op, Value weight, bool output, Shape &view, Shape &place) {
  Shape shape = shapeOf(weight);
  int64_t groups = op->getAttrOfType<IntegerAttr>("groups").getInt();
  view = {groups, floordiv(shape[0], groups), shape[1]};
  view.insert(view.end(), shape.begin() + 2, shape.end());
  place.assign(view.size(), Dim(1));
  size_t dim = output == isa<ConvOp>(op) ? 1 : 2;
  place[0] = view[0];
  place[dim] = view[dim];
}

Value biasOf(Operation *conv) { return conv->getNumOperands() > 2 ? conv->getOperand(2) : Value(); }

bool isFoldableConvolution(Operation *op) {
  auto conv = dyn_cast_or_null<ConvOp>(op);
  if (!conv && !isa_and_nonnull<ConvTransposeOp>(op))
    return false;
  bool nchw = !conv || conv.getLayout() == "nchw";
  return nchw && isConstantExpression(op->getOperand(1)) && (!biasOf(op) || isConstantExpression(biasOf(op)));
}

/// Copies `op` to the rewriter's position with other operands.
Value withOperands(PatternRewriter &rewriter, Operation *op, Value x, Value weight, Value bias) {
  Operation *copy = rewriter.clone(*op);
  SmallVector<Value> operands{x, weight};
  if (bias)
    operands.push_back(bias);
  rewriter.modifyOpInPlace(copy, [&] { copy->setOperands(operands); });
  return copy->getResult(0);
}

/// affine(conv(x))
class AfterConvolution : public RewritePattern {
public:
  AfterConvolution(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    AffineReader reader(op, 1);
    if (!reader.operand() || !reader.operand().hasOneUse())
      return failure();
    Operation *conv = reader.operand().getDefiningOp();
    if (!isFoldableConvolution(conv))
      return failure();
    GraphBuilder g(rewriter, conv->getLoc());
    Affine affine = reader.read(g);
    Value weight = conv->getOperand(1);
    Weights weights(g, weight);
    Value bias = weights.affine(biasOf(conv), affine);
    if (affine.scale) {
      Shape view, place;
      groupedView(conv, weight, /*output=*/true, view, place);
      weight = weights.narrow(weights.scaled(weight, affine.scale, view, place));
    }
    rewriter.replaceOp(op, withOperands(rewriter, conv, conv->getOperand(0), weight, bias));
    return success();
  }
};

/// conv(affine(x)). Padding inserts zeros after the affine map, so padded convolutions take no shift.
class BeforeConvolution : public OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    Operation *before = op.getX().getDefiningOp();
    if (!before || !isFoldableConvolution(op))
      return failure();
    AffineReader reader(before, 1);
    bool padded = llvm::any_of(op.getPadding(), [](int64_t p) { return p != 0; });
    if (!reader.operand() || (padded && reader.hasShift()))
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    Affine affine = reader.read(g);
    Value weight = op.getWeight();
    Weights weights(g, weight);
    Shape view, place;
    groupedView(op, weight, /*output=*/false, view, place);
    Value bias = op.getBias();
    if (affine.shift) {
      Value products = weights.scaled(weight, affine.shift, view, place);
      std::vector<int64_t> axes = axesFrom(1, int64_t(shapeOf(weight).size()));
      bias = weights.affine(bias, {{}, {}, g.op<ReduceSumOp>({products}, {{"axes", axes}})});
    }
    if (affine.scale)
      weight = weights.narrow(weights.scaled(weight, affine.scale, view, place));
    rewriter.replaceOp(op, withOperands(rewriter, op, affine.x, weight, bias));
    return success();
  }
};

/// affine(matmul(x)) and affine(matmul(x) + bias)
class AfterMatmul : public RewritePattern {
public:
  AfterMatmul(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<BatchNormOp, AddOp, MulOp, SubOp, DivOp>(op))
      return failure();
    Shape shape = shapeOf(op->getResult(0));
    if (shape.empty())
      return failure();
    size_t channel = shape.size() - 1;
    AffineReader reader(op, channel);
    if (!reader.operand() || !reader.operand().hasOneUse())
      return failure();
    Value product = reader.operand(), bias;
    Operation *sum = product.getDefiningOp();
    if (auto add = dyn_cast_or_null<AddOp>(sum)) {
      bool first = channelSource(add.getY(), channel) != Value();
      bias = first ? add.getY() : add.getX();
      product = first ? add.getX() : add.getY();
      if (!channelSource(bias, channel) || !product.hasOneUse())
        return failure();
    }
    auto matmul = product.getDefiningOp<MatmulOp>();
    if (!matmul || !isConstantExpression(matmul.getRhs()) || (!bias && !reader.hasScale()))
      return failure();

    GraphBuilder g(rewriter, matmul.getLoc());
    Affine affine = reader.read(g);
    auto repeated = matmul.getRhs().getDefiningOp<BroadcastToOp>();
    Value weight = repeated ? repeated.getX() : matmul.getRhs();
    Weights weights(g, weight);
    if (affine.scale) {
      Shape view = shapeOf(weight);
      weight = weights.narrow(weights.scaled(weight, affine.scale, view, {view.back()}));
    }
    Value result = g.op<MatmulOp>({matmul.getLhs(), g.broadcastLike(weight, matmul.getRhs())});
    if (bias)
      bias = AffineReader(sum, channel).read(g).shift;
    if (Value shift = weights.affine(bias, affine))
      result = GraphBuilder(rewriter, op->getLoc()).add(result, g.broadcast(shift, shape));
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct FoldNormalizationPass : impl::FoldNormalizationPassBase<FoldNormalizationPass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<AfterConvolution, BeforeConvolution, AfterMatmul>(context);
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

} // namespace burin::passes
