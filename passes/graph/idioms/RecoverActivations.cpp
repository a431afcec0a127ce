// Recognises sigmoid, silu, hardswish and gelu in the formulas that programs and exporters write.
#include "passes/analysis/GraphBuilder.h"
#include "passes/graph/Simplify.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// Relative tolerance for a constant of this type: the precision of 16-bit types, or about five decimal digits, which
/// people write, in f32.
double tolerance(DType type) {
  switch (type) {
  case DType::bf16:
    return 8e-3;
  case DType::f16:
    return 1e-3;
  case DType::f32:
    return 1e-5;
  default:
    return 1e-7;
  }
}

/// The coefficients of x^i * f^j of a polynomial.
class Polynomial {
public:
  static constexpr size_t kPowersOfX = 4, kPowersOfF = 2;
  double at[kPowersOfX][kPowersOfF] = {};

  static Polynomial term(size_t i, size_t j, double number) {
    Polynomial p;
    p.at[i][j] = number;
    return p;
  }
  Polynomial plus(const Polynomial &other, double factor = 1) const {
    Polynomial sum = *this;
    for (size_t i = 0; i < kPowersOfX; ++i)
      for (size_t j = 0; j < kPowersOfF; ++j)
        sum.at[i][j] += factor * other.at[i][j];
    return sum;
  }
  /// nullopt if a power exceeds the table.
  std::optional<Polynomial> times(const Polynomial &other) const {
    Polynomial product;
    for (size_t n = 0; n < kPowersOfX * kPowersOfX; ++n)
      for (size_t m = 0; m < kPowersOfF * kPowersOfF; ++m) {
        size_t i = n / kPowersOfX, k = n % kPowersOfX, j = m / kPowersOfF, l = m % kPowersOfF;
        double number = at[i][j] * other.at[k][l];
        if (number == 0)
          continue;
        if (i + k >= kPowersOfX || j + l >= kPowersOfF)
          return std::nullopt;
        product.at[i + k][j + l] += number;
      }
    return product;
  }
  bool isNear(const Polynomial &expected, double relative) const {
    for (size_t i = 0; i < kPowersOfX; ++i)
      for (size_t j = 0; j < kPowersOfF; ++j)
        if (!(std::abs(at[i][j] - expected.at[i][j]) <= relative * std::abs(expected.at[i][j])))
          return false;
    return true;
  }
};

/// `v` as a polynomial in x and f (null: x alone); nullopt if it is none or nested deeper than `depth`.
std::optional<Polynomial> polynomialIn(Value v, Value x, Value f, int depth = 8) {
  if (v == x)
    return Polynomial::term(1, 0, 1);
  if (v == f)
    return Polynomial::term(0, 1, 1);
  if (auto number = uniformValue(v))
    return Polynomial::term(0, 0, *number);
  Operation *op = v.getDefiningOp();
  if (!isa_and_present<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp>(op) || depth == 0)
    return std::nullopt;
  auto left = polynomialIn(op->getOperand(0), x, f, depth - 1);
  if (!left || isa<NegOp>(op))
    return left ? left->times(Polynomial::term(0, 0, -1)) : left;
  if (isa<DivOp, PowOp>(op)) {
    auto number = uniformValue(op->getOperand(1));
    if (!number)
      return std::nullopt;
    if (isa<DivOp>(op))
      return left->times(Polynomial::term(0, 0, 1 / *number));
    std::optional<Polynomial> power = left;
    if (*number != 2 && *number != 3)
      return std::nullopt;
    for (int i = 1; i < int(*number) && power; ++i)
      power = power->times(*left);
    return power;
  }
  auto right = polynomialIn(op->getOperand(1), x, f, depth - 1);
  if (!right || isa<MulOp>(op))
    return right ? left->times(*right) : right;
  return left->plus(*right, isa<AddOp>(op) ? 1 : -1);
}

/// Candidates for the variable of a polynomial `v`, outermost first.
SmallVector<Value> variablesOf(Value v) {
  constexpr size_t kMost = 16;
  SmallVector<Value> values{v};
  for (size_t i = 0; i < values.size() && values.size() < kMost; ++i)
    if (Operation *op = values[i].getDefiningOp(); isa_and_present<AddOp, SubOp, MulOp, DivOp, NegOp, PowOp>(op))
      for (Value operand : op->getOperands())
        if (!llvm::is_contained(values, operand) && !uniformValue(operand))
          values.push_back(operand);
  return values;
}

/// x / 2 * (1 + f(p(x))), where f is erf or tanh and p the polynomial of gelu.
template <class Function> class Gelu : public OpRewritePattern<Function> {
  using OpRewritePattern<Function>::OpRewritePattern;
  LogicalResult matchAndRewrite(Function op, PatternRewriter &rewriter) const override {
    constexpr bool isTanh = std::is_same_v<Function, TanhOp>;
    const double linear = isTanh ? std::sqrt(2 / M_PI) : std::sqrt(0.5), cubic = isTanh ? 0.044715 * linear : 0;
    const Polynomial expected = Polynomial::term(1, 0, linear).plus(Polynomial::term(3, 0, cubic));
    for (Value x : variablesOf(op.getX())) {
      auto argument = polynomialIn(op.getX(), x, {});
      if (!argument || !argument->isNear(expected, tolerance(dtypeOf(x))))
        continue;
      Operation *product = gate(op.getResult(), x);
      if (!product)
        continue;
      rewriter.setInsertionPoint(product);
      std::string form = isTanh ? "tanh" : "none";
      rewriter.replaceOp(product, ir::create<GeluOp>(rewriter, product->getLoc(), {x}, {{"approximate", form}}));
      return success();
    }
    return failure();
  }

  /// The op that computes x / 2 * (1 + f), searched among the users of f.
  static Operation *gate(Value f, Value x) {
    constexpr int kMostSteps = 6;
    const Polynomial expected = Polynomial::term(1, 0, 0.5).plus(Polynomial::term(1, 1, 0.5));
    Value v = f;
    for (int step = 0; step < kMostSteps && v.hasOneUse(); ++step) {
      Operation *user = *v.user_begin();
      if (!isa<AddOp, MulOp, DivOp>(user))
        return nullptr;
      v = user->getResult(0);
      auto p = polynomialIn(v, x, f);
      if (p && p->isNear(expected, tolerance(dtypeOf(x))))
        return user;
    }
    return nullptr;
  }
};

/// 1 / (1 + exp(-x))
template <class Op> class Sigmoid : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if constexpr (std::is_same_v<Op, DivOp>)
      if (uniformValue(op.getX()) != 1)
        return failure();
    auto sum = op->getOperands().back().template getDefiningOp<AddOp>();
    if (!sum || !sum->hasOneUse())
      return failure();
    bool oneFirst = uniformValue(sum.getX()) == 1;
    if (!oneFirst && uniformValue(sum.getY()) != 1)
      return failure();
    auto exp = (oneFirst ? sum.getY() : sum.getX()).template getDefiningOp<ExpOp>();
    auto neg = exp && exp->hasOneUse() ? exp.getX().template getDefiningOp<NegOp>() : NegOp();
    if (!neg)
      return failure();
    rewriter.replaceOp(op, ir::create<SigmoidOp>(rewriter, op.getLoc(), {neg.getX()}));
    return success();
  }
};

/// x * gate(x)
template <class Gate, class Whole> class Gated : public OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    for (auto [x, y] : {std::pair(op.getX(), op.getY()), std::pair(op.getY(), op.getX())}) {
      auto gate = y.template getDefiningOp<Gate>();
      if (!gate || gate.getX() != x || !gate->hasOneUse())
        continue;
      rewriter.replaceOp(op, ir::create<Whole>(rewriter, op.getLoc(), {x}));
      return success();
    }
    return failure();
  }
};

} // namespace

void populateActivationFormulas(RewritePatternSet &patterns) {
  patterns.add<Gelu<ErfOp>, Gelu<TanhOp>, Sigmoid<DivOp>, Sigmoid<ReciprocalOp>, Gated<SigmoidOp, SiluOp>,
               Gated<HardsigmoidOp, HardswishOp>>(patterns.getContext());
}

} // namespace burin::passes
