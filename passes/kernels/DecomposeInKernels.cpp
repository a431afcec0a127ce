// Decomposes composites inside kernels into the reductions and elementwise ops that emitters know.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_DECOMPOSEINKERNELSPASS
#include "passes/Passes.h.inc"

namespace {

template <class Op> std::vector<int64_t> axesOf(Op op) { return std::vector<int64_t>(op.getAxes()); }
int64_t rankOf(Value v) { return int64_t(shapeOf(v).size()); }

/// Each function returns the replacement of an op. Operands and result have the element type of the op, intermediate
/// values the accumulator type.
class Composites {
public:
  Composites(OpBuilder &b, Operation *op) : g(b, op->getLoc()), type(dtypeOf(op->getResult(0))) {}

  Value replacement(Operation *op) {
    Value result = llvm::TypeSwitch<Operation *, Value>(op)
                       .Case<SoftmaxOp, LogSoftmaxOp, LayerNormOp, RmsNormOp, ReduceMeanOp, ReduceVarOp, LogsumexpOp>(
                           [&](auto composite) { return expand(composite); })
                       .Default(Value());
    return result ? g.cast(result, type) : result;
  }

private:
  Value wide(Value x) { return g.cast(x, wideType(dtypeOf(x))); }

  /// Subtracts the row maximum, ignoring NaN: a NaN makes its own element NaN, and so the sum of the row.
  Value shiftedToTop(Value x, const std::vector<int64_t> &axes) {
    return g.sub(x, g.broadcastLike(g.reduce<ReduceMaxNumOp>(x, axes), x));
  }

  Value expand(SoftmaxOp op) {
    std::vector<int64_t> axes{int64_t(op.getAxis())};
    Value x = wide(op.getX());
    Value e = g.exp(shiftedToTop(x, axes));
    // One division per row: a division per element would cost more than its exponential.
    Value inverse = g.reciprocal(g.reduce<ReduceSumOp>(e, axes));
    return g.mul(e, g.broadcastLike(inverse, e));
  }

  Value expand(LogSoftmaxOp op) {
    std::vector<int64_t> axes{int64_t(op.getAxis())};
    Value x = wide(op.getX());
    Value shifted = shiftedToTop(x, axes);
    Value total = g.log(g.reduce<ReduceSumOp>(g.exp(shifted), axes));
    return g.sub(shifted, g.broadcastLike(total, x));
  }

  /// x / sqrt(mean(x * x) + epsilon) over the axes, times weight, plus bias; both may be null.
  Value normalized(Value x, const std::vector<int64_t> &axes, double epsilon, Value weight, Value bias) {
    Value square = g.reduce<ReduceAverageOp>(x, axes, {{"squared", true}});
    Value y = g.mul(x, g.broadcastLike(g.rsqrt(g.add(square, g.fullLike(square, epsilon))), x));
    if (weight && bias)
      return g.fma(y, g.broadcastLike(wide(weight), y), g.broadcastLike(wide(bias), y));
    if (weight)
      y = g.mul(y, g.broadcastLike(wide(weight), y));
    if (bias)
      y = g.add(y, g.broadcastLike(wide(bias), y));
    return y;
  }

  // Two passes: the variance is that of centered values, so that a large mean costs no precision.
  Value expand(LayerNormOp op) {
    Value x = wide(op.getX());
    std::vector<int64_t> axes = axesFrom(int64_t(op.getAxis()), rankOf(x));
    Value centered = g.sub(x, g.broadcastLike(g.reduce<ReduceAverageOp>(x, axes), x));
    return normalized(centered, axes, op.getEpsilon().convertToDouble(), op.getWeight(), op.getBias());
  }

  Value expand(RmsNormOp op) {
    Value x = wide(op.getX());
    std::vector<int64_t> axes = axesFrom(int64_t(op.getAxis()), rankOf(x));
    return normalized(x, axes, op.getEpsilon().convertToDouble(), op.getWeight(), {});
  }

  Value expand(ReduceMeanOp op) {
    return g.op<ReduceAverageOp>({wide(op.getX())}, {{"axes", axesOf(op)}, {"keepdims", op.getKeepdims()}});
  }

  Value expand(ReduceVarOp op) {
    Value x = wide(op.getX());
    Value centered = g.sub(x, g.broadcastLike(g.reduce<ReduceAverageOp>(x, axesOf(op)), x));
    return g.op<ReduceAverageOp>({centered}, {{"axes", axesOf(op)},
                                              {"keepdims", op.getKeepdims()},
                                              {"correction", int64_t(op.getCorrection())},
                                              {"squared", true}});
  }

  // Infinite maxima are not subtracted: inf - inf would make a row of -inf, or one that contains inf, NaN.
  Value expand(LogsumexpOp op) {
    Value x = wide(op.getX());
    Value top = g.reduce<ReduceMaxNumOp>(x, axesOf(op));
    top = g.where(g.op<IsInfOp>({top}), g.fullLike(top, 0), top);
    Value sum = g.reduce<ReduceSumOp>(g.exp(g.sub(x, g.broadcastLike(top, x))), axesOf(op));
    return g.reshape(g.add(g.log(sum), top), shapeOf(op.getResult()));
  }

  GraphBuilder g;
  DType type;
};

struct DecomposeInKernelsPass : impl::DecomposeInKernelsPassBase<DecomposeInKernelsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](KernelOp kernel) {
      for (Operation &op : kernel.getBody().front().without_terminator())
        if (op.getNumResults() == 1)
          ops.push_back(&op);
    });
    for (Operation *op : ops) {
      OpBuilder b(op);
      if (Value result = Composites(b, op).replacement(op)) {
        op->getResult(0).replaceAllUsesWith(result);
        op->erase();
      }
    }
  }
};

} // namespace

} // namespace burin::passes
