// Recognises softmax, norms and attention in reductions, broadcasts and elementwise ops.
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/graph/Simplify.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// Matches a formula backwards from its last op, through broadcasts and reshapes between a tensor and values per row,
/// and records the ops that it visits.
class FormulaReader {
public:
  explicit FormulaReader(Operation *root) : root(root) { seen.insert(root); }

  template <class Op> Op get(Value v) {
    while (isa_and_present<BroadcastToOp, ReshapeOp>(v.getDefiningOp())) {
      Operation *move = v.getDefiningOp();
      seen.insert(move);
      moves.push_back({shapeOf(move->getOperand(0)), shapeOf(v)});
      v = move->getOperand(0);
    }
    auto op = v.getDefiningOp<Op>();
    if (op)
      seen.insert(op);
    return op;
  }

  /// Whether every broadcast and reshape only repeats rows of `x` along `axes`, and no visited op has users outside of
  /// the formula.
  bool isWhole(Value x, ArrayRef<int64_t> axes) const {
    Shape full = shapeOf(x), kept = full, dropped;
    for (size_t d = 0; d < full.size(); ++d)
      if (llvm::is_contained(axes, int64_t(d)))
        kept[d] = 1;
      else
        dropped.push_back(full[d]);
    auto isEither = [&](const Shape &shape) { return shape == full || shape == kept; };
    for (auto &[from, to] : moves) {
      Shape source(full.size() - std::min(full.size(), from.size()), Dim(1));
      llvm::append_range(source, from);
      bool isUnsqueeze = from == dropped && elements(from) == elements(to);
      if (!isEither(to) || !(isUnsqueeze || isEither(source)))
        return false;
    }
    return llvm::all_of(seen, [&](Operation *op) {
      return op == root || llvm::all_of(op->getUsers(), [&](Operation *user) { return seen.contains(user); });
    });
  }

private:
  Operation *root;
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<std::pair<Shape, Shape>> moves; // from, to
};

/// exp(x - max) / sum
class Softmax : public OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op, PatternRewriter &rewriter) const override {
    FormulaReader formula(op);
    auto sum = formula.get<ReduceSumOp>(op.getY());
    auto exp = sum && sum.getX() == op.getX() ? formula.get<ExpOp>(op.getX()) : ExpOp();
    auto shifted = exp ? formula.get<SubOp>(exp.getX()) : SubOp();
    auto top = shifted ? formula.get<ReduceMaxOp>(shifted.getY()) : ReduceMaxOp();
    if (!top || top.getX() != shifted.getX())
      return failure();
    Value x = top.getX();
    auto axes = reducedAxes(sum);
    if (axes.size() != 1 || axes != reducedAxes(top) || x.getType() != op.getType() || !formula.isWhole(x, axes))
      return failure();
    rewriter.replaceOp(op, ir::create<SoftmaxOp>(rewriter, op.getLoc(), {x}, {{"axis", axes.front()}}));
    return success();
  }
};

/// The value whose square `v` is; null if there is none.
Value squareRoot(FormulaReader &formula, Value v) {
  if (auto product = formula.get<MulOp>(v))
    return product.getX() == product.getY() ? product.getX() : Value();
  auto power = formula.get<PowOp>(v);
  return power && uniformValue(power.getY()) == 2 ? power.getX() : Value();
}

/// The operand of the square root `v`, or of its reciprocal if `reciprocal`; null if `v` is neither.
Value underRoot(FormulaReader &formula, Value v, bool reciprocal) {
  if (auto power = formula.get<PowOp>(v))
    return uniformValue(power.getY()) == (reciprocal ? -0.5 : 0.5) ? power.getX() : Value();
  if (!reciprocal) {
    auto root = formula.get<SqrtOp>(v);
    return root ? root.getX() : Value();
  }
  if (auto root = formula.get<RsqrtOp>(v))
    return root.getX();
  if (auto inverse = formula.get<ReciprocalOp>(v))
    return underRoot(formula, inverse.getX(), false);
  auto quotient = formula.get<DivOp>(v);
  return quotient && uniformValue(quotient.getX()) == 1 ? underRoot(formula, quotient.getY(), false) : Value();
}

/// x / sqrt(mean(x * x) + epsilon) and (x - mean(x)) / sqrt(variance + epsilon) over the last dimensions.
template <class Op> class Norm : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (succeeded(match(op, op.getX(), op.getY(), rewriter)))
      return success();
    return std::is_same_v<Op, MulOp> ? match(op, op.getY(), op.getX(), rewriter) : failure();
  }

  static LogicalResult match(Op op, Value x, Value deviation, PatternRewriter &rewriter) {
    FormulaReader formula(op);
    Value sum = underRoot(formula, deviation, std::is_same_v<Op, MulOp>);
    auto add = sum ? formula.get<AddOp>(sum) : AddOp();
    if (!add)
      return failure();
    auto first = uniformValue(add.getX()), epsilon = first ? first : uniformValue(add.getY());
    if (!epsilon || !(*epsilon >= 0) || std::isinf(*epsilon))
      return failure();

    Value variance = first ? add.getY() : add.getX();
    auto var = formula.get<ReduceVarOp>(variance);
    auto mean = var ? ReduceMeanOp() : formula.get<ReduceMeanOp>(variance);
    if (var ? var.getCorrection() != 0 : !mean || squareRoot(formula, mean.getX()) != x)
      return failure();
    SmallVector<int64_t> axes = var ? reducedAxes(var) : reducedAxes(mean);

    Value source = x;
    FormulaReader centered = formula;
    auto difference = centered.get<SubOp>(x);
    auto center = difference ? centered.get<ReduceMeanOp>(difference.getY()) : ReduceMeanOp();
    if (center && center.getX() == difference.getX() && reducedAxes(center) == axes) {
      source = difference.getX();
      formula = centered;
    }
    if (var && (source == x || var.getX() != source))
      return failure();
    int64_t rank = shapeOf(x).size(), axis = rank - int64_t(axes.size());
    bool areLast = !axes.empty() && llvm::equal(axes, axesFrom(axis, rank));
    if (!areLast || x.getType() != op.getType() || source.getType() != op.getType() || !formula.isWhole(x, axes))
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    GraphBuilder::NamedAttrs attrs{{"axis", axis}, {"epsilon", *epsilon}};
    rewriter.replaceOp(op, source == x ? g.op<RmsNormOp>({x, Value()}, attrs)
                                       : g.op<LayerNormOp>({source, Value(), Value()}, attrs));
    return success();
  }
};

/// The value of the shape of the normalised dimensions that `v` repeats over the dimensions before them; null if there
/// is none. One with more dimensions, of size 1, must be a constant: where the sizes before the axis are 1, every value
/// has such a shape, and the results would not be those of a graph with symbolic sizes.
template <class Op> Value parameterOf(Op norm, Value v, PatternRewriter &rewriter) {
  Shape rows = shapeOf(norm.getX());
  rows.erase(rows.begin(), rows.begin() + norm.getAxis());
  if (auto broadcast = v.getDefiningOp<BroadcastToOp>())
    v = broadcast.getX();
  if (auto reshape = v.getDefiningOp<ReshapeOp>(); reshape && shapeOf(reshape.getX()) == rows)
    v = reshape.getX();
  Shape shape = shapeOf(v);
  size_t extra = shape.size() - std::min(shape.size(), rows.size());
  auto isOne = [](const Dim &size) { return size == Dim(1); };
  if (!std::equal(shape.begin() + extra, shape.end(), rows.begin(), rows.end()) ||
      !std::all_of(shape.begin(), shape.begin() + extra, isOne) || dtypeOf(v) != dtypeOf(norm.getX()) ||
      (extra && !v.getDefiningOp<ConstantOp>()))
    return {};
  return GraphBuilder(rewriter, v.getLoc()).reshape(v, rows);
}

/// norm(x) * weight and layer_norm(x) + bias
template <class Op, class Whole> class NormParameter : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    for (auto [x, y] : {std::pair(op.getX(), op.getY()), std::pair(op.getY(), op.getX())}) {
      auto norm = x.template getDefiningOp<Whole>();
      if (!norm || !norm->hasOneUse())
        continue;
      SmallVector<Value> operands = operandsOf(norm);
      constexpr size_t kWeight = 1;
      constexpr size_t place = std::is_same_v<Op, MulOp> ? kWeight : kWeight + 1;
      if (llvm::any_of(ArrayRef(operands).drop_front(place), [](Value v) { return v != nullptr; }))
        continue;
      operands[place] = parameterOf(norm, y, rewriter);
      if (!operands[place])
        continue;
      double epsilon = norm.getEpsilon().convertToDouble();
      rewriter.replaceOp(op, ir::create<Whole>(rewriter, op.getLoc(), operands,
                                               {{"axis", int64_t(norm.getAxis())}, {"epsilon", epsilon}}));
      return success();
    }
    return failure();
  }
};

/// softmax(scale * query · keyᵀ) · value. Not with a mask: for rows that are masked out as a whole the op returns 0,
/// the formula NaN.
class Attention : public OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    auto softmax = op.getLhs().getDefiningOp<SoftmaxOp>();
    if (!softmax || !softmax->hasOneUse() || softmax.getAxis() + 1 != shapeOf(softmax.getResult()).size())
      return failure();
    double scale = 1;
    Value scores = withoutFactors(softmax.getX(), scale);
    auto products = scores.hasOneUse() ? scores.getDefiningOp<MatmulOp>() : MatmulOp();
    if (!products)
      return failure();
    Value query = withoutFactors(products.getLhs(), scale), key = withoutFactors(products.getRhs(), scale);
    if (!std::isfinite(scale) || scale == 0) // the attribute 0 stands for the default scale
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    rewriter.replaceOp(op, g.op<ScaledDotProductAttentionOp>({query, g.transposeLastTwo(key), op.getRhs(), Value()},
                                                             {{"scale", scale}}));
    return success();
  }

  /// Strips multiplications and divisions by numbers from `v` and accumulates them in `scale`.
  static Value withoutFactors(Value v, double &scale) {
    while (v.hasOneUse()) {
      auto mul = v.getDefiningOp<MulOp>();
      auto div = v.getDefiningOp<DivOp>();
      if (!mul && !div)
        break;
      Value x = mul ? mul.getX() : div.getX(), number = mul ? mul.getY() : div.getY();
      if (mul && uniformValue(x))
        std::swap(x, number);
      auto factor = uniformValue(number);
      if (!factor)
        break;
      scale = mul ? scale * *factor : scale / *factor;
      v = x;
    }
    return v;
  }
};

} // namespace

void populateRowFormulas(RewritePatternSet &patterns) {
  patterns.add<Softmax, Norm<MulOp>, Norm<DivOp>, NormParameter<MulOp, LayerNormOp>, NormParameter<MulOp, RmsNormOp>,
               NormParameter<AddOp, LayerNormOp>, Attention>(patterns.getContext());
}

} // namespace burin::passes
