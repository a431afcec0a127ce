// Gradients of attention as one op, so that no matrix of weights is in memory.
//
// With P the weights, a softmax of scores = scale · q · kᵀ, and g the gradient of the result, gradients are written as
//   dV = Pᵀ · g,   dS = P * (dP - rowsum(dP * P)) with dP = g · vᵀ,   dQ = dS · k,   dK = dSᵀ · q.
// P, dP and dS have an element for each query and key. Where nothing else reads them, `attention_gradient` computes the
// three products, and a kernel keeps the matrices in cache. A product of the weights with values, which the gradient
// shares with attention that the program has composed itself, becomes `scaled_dot_product_attention`.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/kernels/families/GpuFamilies.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_ATTENTIONGRADIENTSPASS
#include "passes/Passes.h.inc"

namespace {

// A kernel computes a head per task, the products of the composed form have a task per tile. On one thread of a Zen 4
// the kernel takes as long as they do for 128 queries and keys, and 0.4 (causal) to 0.8 of the time for 1024. So it
// also pays off if a third of the threads have no head, and for long sequences if half of them have none.
constexpr int64_t kFewestHeads = 16, kFewestLongHeads = 8, kLongScores = 512 * 512;
// Products of bf16 are twice as fast as those of the kernel, which are of f32. It is faster for causal attention, where
// it computes half of the scores, of so many scores per head.
constexpr int64_t kFewestBf16Scores = 256 * 256;
constexpr int64_t kMostCounted = 1 << 20; // of heads and scores

/// A value as a transpose of another: dimension d is dimension perm[d] of `base`.
struct Transposed {
  explicit Transposed(Value v) : base(v), perm(axesFrom(0, int64_t(shapeOf(v).size()))) {
    while (auto transpose = base.getDefiningOp<TransposeOp>()) {
      for (int64_t &d : perm)
        d = transpose.getPerm()[size_t(d)];
      base = transpose.getX();
    }
  }
  /// With the last two dimensions exchanged.
  Transposed turned() const {
    Transposed result = *this;
    std::swap(result.perm[perm.size() - 2], result.perm[perm.size() - 1]);
    return result;
  }
  bool operator==(const Transposed &) const = default;

  Value base;
  std::vector<int64_t> perm;
};

Value withoutBroadcast(Value v) {
  while (auto broadcast = v.getDefiningOp<BroadcastToOp>())
    v = broadcast.getX();
  return v;
}

/// Whether a matrix of bool is true up to the diagonal: the number of a row is at least that of the column.
bool isLowerTriangle(Value v) {
  Shape shape = shapeOf(v);
  if (auto ge = v.getDefiningOp<GeOp>()) {
    auto rows = ge.getX().getDefiningOp<IotaOp>(), columns = ge.getY().getDefiningOp<IotaOp>();
    return shape.size() == 2 && rows && columns && rows.getAxis() == 0 && columns.getAxis() == 1;
  }
  auto constant = v.getDefiningOp<ConstantOp>();
  if (!constant || shape.size() != 2)
    return false;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  const int64_t rows = shape[0].value(), columns = shape[1].value();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      if ((bytes[size_t(r * columns + c)] != 0) != (c <= r))
        return false;
  return true;
}

/// The attention around a softmax, and the products of its gradient.
class Gradient {
public:
  Gradient(SoftmaxOp softmax, const AttentionGradientsPassOptions &options)
      : options(options), softmax(softmax), weights(softmax.getResult()) {}

  bool match() {
    const DType type = dtypeOf(weights);
    return type != DType::f64 && softmax.getAxis() + 1 == shapeOf(weights).size() && readScores(softmax.getX()) &&
           readZeroRows() && readUsesOfWeights() && readUsesOfScores() && fit() && paysOff();
  }

  void rewrite() {
    Operation *first = ofValue;
    for (Operation *op : {ofQuery.getOperation(), ofKey.getOperation()})
      if (op && op->isBeforeInBlock(first))
        first = op;
    OpBuilder b(first);
    GraphBuilder g(b, softmax.getLoc());
    const GraphBuilder::NamedAttrs attrs{{"is_causal", isCausal}, {"scale", scale}};
    Value all = g.op<AttentionGradientOp>({query, valueOf(key, g), valueOf(value, g), gradient, mask}, attrs);
    const Dim rows = rowsOf(query), keys = rowsOf(ofValue.getResult());
    replace(ofQuery, part(all, 0, rows, g), g);
    replace(ofKey, part(all, rows, rows + keys, g), g);
    ofValue.getResult().replaceAllUsesWith(part(all, rows + keys, rows + keys * 2, g));
    if (output) {
      b.setInsertionPoint(output);
      output.getResult().replaceAllUsesWith(
          g.op<ScaledDotProductAttentionOp>({query, valueOf(key, g), output.getRhs(), mask}, attrs));
    }
  }

private:
  static Dim rowsOf(Value v) { return *(shapeOf(v).end() - 2); }

  // ---- the forward formula
  /// Whether scores are products, scaled, and then masked.
  bool readScores(Value scores) {
    if (auto where = maskOf(scores); where && isLowerTriangle(withoutBroadcast(where.getCondition()))) {
      isCausal = true;
      conditions.push_back(where.getCondition());
      scores = where.getX();
    }
    if (auto where = maskOf(scores)) {
      mask = withoutBroadcast(where.getCondition());
      conditions.push_back(where.getCondition());
      scores = where.getX();
    } else if (auto add = scores.getDefiningOp<AddOp>()) {
      double ignored = 1;
      const bool isFirst = bool(withoutFactors(add.getX(), ignored).getDefiningOp<MatmulOp>());
      mask = withoutBroadcast(isFirst ? add.getY() : add.getX());
      scores = isFirst ? add.getX() : add.getY();
    }
    auto products = withoutFactors(scores, scale).getDefiningOp<MatmulOp>();
    if (!products || !std::isfinite(scale) || scale == 0) // the attribute 0 stands for the default scale
      return false;
    query = products.getLhs();
    key = Transposed(products.getRhs()).turned();
    return true;
  }

  /// The op if it replaces some scores by -inf.
  static WhereOp maskOf(Value scores) {
    auto where = scores.getDefiningOp<WhereOp>();
    return where && uniformValue(where.getY()) == -INFINITY ? where : WhereOp();
  }

  /// Strips multiplications and divisions by numbers from `v` and accumulates them in `factor`.
  static Value withoutFactors(Value v, double &factor) {
    while (Operation *op = factorAt(v, factor))
      v = uniformValue(op->getOperand(0)) ? op->getOperand(1) : op->getOperand(0);
    return v;
  }
  /// The op that computes `v` if it is a multiplication or division by a number.
  static Operation *factorAt(Value v, double &factor) {
    if (auto mul = v.getDefiningOp<MulOp>()) {
      auto x = uniformValue(mul.getX()), number = x ? x : uniformValue(mul.getY());
      factor *= number.value_or(1);
      return number ? mul.getOperation() : nullptr;
    }
    auto div = v.getDefiningOp<DivOp>();
    auto number = div ? uniformValue(div.getY()) : std::nullopt;
    factor /= number.value_or(1);
    return number ? div.getOperation() : nullptr;
  }

  /// Rows that see no key have weights of 0 in attention, NaN in a plain softmax. Causal rows see the first key.
  bool readZeroRows() {
    Value scores = softmax.getX();
    auto where = weights.hasOneUse() ? dyn_cast<WhereOp>(*weights.user_begin()) : WhereOp();
    if (!where || where.getY() != weights || uniformValue(where.getX()) != 0)
      return !mask && llvm::hasSingleElement(scores.getUsers());
    auto isEmpty = withoutBroadcast(where.getCondition()).getDefiningOp<EqOp>();
    auto top = isEmpty ? isEmpty.getX().getDefiningOp<ReduceMaxOp>() : ReduceMaxOp();
    if (!top || top.getX() != scores || !isAlongRows(top) || uniformValue(isEmpty.getY()) != -INFINITY)
      return false;
    weights = where.getResult();
    return llvm::all_of(scores.getUsers(), [&](Operation *user) { return user == top || user == softmax; });
  }
  bool isAlongRows(Operation *reduction) {
    return reducedAxes(reduction) == SmallVector<int64_t>{int64_t(softmax.getAxis())};
  }

  // ---- the formulas of the gradients
  bool readUsesOfWeights() {
    MulOp inner, outer; // dP * P, P * (dP - sum)
    for (Operation *user : weights.getUsers()) {
      auto matmul = dyn_cast<MatmulOp>(user);
      auto mul = dyn_cast<MulOp>(user);
      if (matmul && matmul.getLhs() == weights && matmul.getRhs() != weights && !output)
        output = matmul;
      else if (auto turned = productOfTurned(user, weights); turned && !ofValue)
        ofValue = turned;
      else if (mul && other(mul).getDefiningOp<SubOp>() && !outer)
        outer = mul;
      else if (mul && other(mul).getDefiningOp<MatmulOp>() && !inner)
        inner = mul;
      else
        return false;
    }
    if (!inner || !outer || !ofValue)
      return false;
    auto ofWeights = other(inner).getDefiningOp<MatmulOp>();
    auto difference = other(outer).getDefiningOp<SubOp>();
    auto total = withoutBroadcast(difference.getY()).getDefiningOp<ReduceSumOp>();
    gradient = ofWeights.getLhs();
    value = Transposed(ofWeights.getRhs()).turned();
    ofScores = outer.getResult();
    return total && total.getX() == inner.getResult() && isAlongRows(total) && inner->hasOneUse() &&
           difference->hasOneUse() && difference.getX() == ofWeights.getResult() && ofValue.getRhs() == gradient &&
           llvm::all_of(ofWeights->getUsers(), [&](Operation *user) { return user == inner || user == difference; }) &&
           (!output || Transposed(output.getRhs()) == value);
  }
  Value other(MulOp mul) { return mul.getX() == weights ? mul.getY() : mul.getX(); }

  /// The product of transposed rows if `user` transposes `v` for it alone; null if not.
  static MatmulOp productOfTurned(Operation *user, Value v) {
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || !transpose->hasOneUse() || Transposed(transpose.getResult()) != Transposed(v).turned())
      return {};
    auto matmul = dyn_cast<MatmulOp>(*transpose->user_begin());
    return matmul && matmul.getLhs() == transpose.getResult() ? matmul : MatmulOp();
  }

  bool readUsesOfScores() {
    while (ofScores.hasOneUse() && passes(*ofScores.user_begin()))
      ofScores = ofScores.user_begin()->getResult(0);
    for (Operation *user : ofScores.getUsers()) {
      auto matmul = dyn_cast<MatmulOp>(user);
      if (matmul && matmul.getLhs() == ofScores && !ofQuery)
        ofQuery = matmul;
      else if (auto turned = productOfTurned(user, ofScores); turned && !ofKey)
        ofKey = turned;
      else
        return false;
    }
    return (ofQuery || ofKey) && (!ofQuery || Transposed(ofQuery.getRhs()) == key) &&
           (!ofKey || Transposed(ofKey.getRhs()) == Transposed(query));
  }
  /// Whether the op is the gradient of a mask or of a factor, on the way from scores to products.
  bool passes(Operation *user) {
    auto where = dyn_cast<WhereOp>(user);
    if (where && where.getX() == ofScores)
      return llvm::is_contained(conditions, where.getCondition()) && uniformValue(where.getY()) == 0;
    return user->getNumResults() == 1 && factorAt(user->getResult(0), factor) == user;
  }

  /// Whether the kernel is faster than the products. Symbolic sizes without a bound count as large.
  bool paysOff() { return options.onGpus ? paysOffOnGpus() : paysOffOnCpus(); }
  /// A GPU has blocks for few heads, too. A kernel keeps sums of all columns in registers.
  bool paysOffOnGpus() {
    std::optional<int64_t> columns = upperBound(shapeOf(query).back());
    return columns && *columns <= kMostAttentionColumns && !(options.roundsF32 && dtypeOf(weights) == DType::f32);
  }
  bool paysOffOnCpus() {
    Shape scores = shapeOf(weights);
    auto most = [](ArrayRef<Dim> sizes) {
      int64_t total = 1;
      for (const Dim &size : sizes)
        total = std::min(kMostCounted, total * std::min(kMostCounted, upperBound(size).value_or(kMostCounted)));
      return total;
    };
    const int64_t heads = most(ArrayRef(scores).drop_back(2)), perHead = most(ArrayRef(scores).take_back(2));
    return heads >= (perHead >= kLongScores ? kFewestLongHeads : kFewestHeads) &&
           (dtypeOf(weights) != DType::bf16 || (isCausal && perHead >= kFewestBf16Scores));
  }

  /// Whether the shapes are those of the op, and all operands are known before the products.
  bool fit() {
    if (shapeOf(ofValue.getResult()).back() != shapeOf(query).back())
      return false;
    Block *block = softmax->getBlock();
    SmallVector<Operation *> products{ofValue};
    for (Operation *op : {ofQuery.getOperation(), ofKey.getOperation(), output.getOperation()})
      if (op)
        products.push_back(op);
    for (Value operand : {query, key.base, value.base, gradient, mask})
      for (Operation *product : products) {
        Operation *op = operand ? operand.getDefiningOp() : nullptr;
        const bool isOfOutput = product == output && (operand == gradient || operand == value.base);
        if (product->getBlock() != block || (op && !isOfOutput && !op->isBeforeInBlock(product)))
          return false;
      }
    return true;
  }

  // ---- the new ops
  static Value valueOf(const Transposed &t, GraphBuilder &g) { return g.transpose(t.base, t.perm); }
  static Value part(Value all, const Dim &from, const Dim &to, GraphBuilder &g) {
    Shape stops = shapeOf(all), starts(stops.size(), Dim(0));
    starts[starts.size() - 2] = from;
    stops[stops.size() - 2] = to;
    return g.slice(all, starts, stops);
  }
  void replace(MatmulOp product, Value part, GraphBuilder &g) {
    if (product)
      product.getResult().replaceAllUsesWith(factor == 1 ? part : g.mul(part, g.fullLike(part, factor)));
  }

  const AttentionGradientsPassOptions options;
  SoftmaxOp softmax;
  Value weights;
  Value query, gradient, mask;
  Transposed key{softmax.getX()}, value{softmax.getX()};
  bool isCausal = false;
  double scale = 1;
  double factor = 1;             // of the gradients of scores
  SmallVector<Value> conditions; // of masks
  Value ofScores;
  MatmulOp output, ofQuery, ofKey, ofValue;
};

struct AttentionGradientsPass : impl::AttentionGradientsPassBase<AttentionGradientsPass> {
  using AttentionGradientsPassBase::AttentionGradientsPassBase;
  void runOnOperation() override {
    SmallVector<SoftmaxOp> all;
    getOperation().walk([&](SoftmaxOp op) { all.push_back(op); });
    bool changes = false;
    for (SoftmaxOp op : all)
      if (Gradient gradient(op, {onGpus, roundsF32}); gradient.match()) {
        gradient.rewrite();
        changes = true;
      }
    if (!changes)
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
          if (isOpTriviallyDead(&op))
            op.erase();
  }
};

} // namespace

} // namespace burin::passes
