// Ops that go along an axis in order: running sums, and scattered updates where the last one wins.
#include "codegen/PointEmitter.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class SequentialKernel {
public:
  SequentialKernel(ElementEmitter &e, ArrayRef<Value> results) : e(e), k(e.k), results(results) {}

  // One task per line along the axis.
  LaunchShape emit(CumsumOp op) {
    Shape shape = shapeOf(op.getResult());
    size_t axis = op.getAxis();
    DType from = dtypeOf(op.getX()), type = dtypeOf(op.getResult());
    DType sumType = type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
    Dim lines = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        lines = lines * shape[d];
    Memory out{results[0], type, shape};
    k.loop(k.lo, k.hi, k.constant(1), [&](Value line) {
      SmallVector<Index> at(shape.size());
      Value rest = line;
      for (size_t d = shape.size(); d-- > 0;) {
        if (d == axis)
          continue;
        Value size = k.dim(shape[d]);
        at[d] = {k.rem(rest, size)};
        rest = k.div(rest, size);
      }
      Value length = k.dim(shape[axis]);
      Value zero = e.zeroOf(sumType);
      k.loop(k.constant(0), length, k.constant(1), zero, [&](Value i, ValueRange carried) {
        return e.scoped([&] {
          Value position = op.getReverse() ? k.sub(k.sub(length, k.constant(1)), i) : i;
          at[axis] = {position};
          Value x = castLanes(k.b, k.loc, e.element(op.getX(), at), from, sumType);
          Value next = isFloat(sumType) ? Value(arith::AddFOp::create(k.b, k.loc, carried[0], x))
                                        : Value(arith::AddIOp::create(k.b, k.loc, carried[0], x));
          Value written = castLanes(k.b, k.loc, op.getExclusive() ? Value(carried[0]) : next, sumType, type);
          k.store(out, k.linear(shape, at), written, 1, {});
          return SmallVector<Value>{next};
        });
      });
    });
    return {lines, 0};
  }

  // A single task: copy, then the updates in order.
  LaunchShape emit(ScatterOp op) {
    Shape shape = shapeOf(op.getResult()), updates = shapeOf(op.getUpdates());
    DType type = dtypeOf(op.getResult());
    Memory out{results[0], type, shape};
    Value size = k.dim(shape[op.getAxis()]);
    k.loop(k.lo, k.hi, k.constant(1), [&](Value) {
      each(shape, [&](ArrayRef<Index> at) { k.store(out, k.linear(shape, at), e.element(op.getX(), at), 1, {}); });
      each(updates, [&](ArrayRef<Index> at) {
        Index i = e.asIndex(e.element(op.getIndices(), at), dtypeOf(op.getIndices()));
        Value negative = k.compare(arith::CmpIPredicate::slt, i.base, k.constant(0));
        Value wrapped = arith::SelectOp::create(k.b, k.loc, negative, k.add(i.base, size), i.base);
        k.when(e.inRange({wrapped}, k.constant(0), size), [&] {
          e.scoped([&] {
            SmallVector<Index> target(at);
            target[op.getAxis()] = {wrapped};
            Index position = k.linear(shape, target);
            Value value = e.element(op.getUpdates(), at);
            if (op.getReduction() == "add")
              value = plus(k.load(out, position, 1, {}), value, type);
            k.store(out, position, value, 1, {});
          });
        });
      });
    });
    return {1, 0};
  }

private:
  Value plus(Value x, Value y, DType type) {
    DType sumType = type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
    x = castLanes(k.b, k.loc, x, type, sumType);
    y = castLanes(k.b, k.loc, y, type, sumType);
    Value sum = isFloat(sumType)         ? Value(arith::AddFOp::create(k.b, k.loc, x, y))
                : type == DType::boolean ? Value(arith::OrIOp::create(k.b, k.loc, x, y))
                                         : Value(arith::AddIOp::create(k.b, k.loc, x, y));
    return castLanes(k.b, k.loc, sum, sumType, type);
  }

  void each(const Shape &shape, llvm::function_ref<void(ArrayRef<Index>)> body) {
    Value count = k.constant(1);
    for (const Dim &d : shape)
      count = k.mul(count, k.dim(d));
    k.loop(k.constant(0), count, k.constant(1), [&](Value i) { e.scoped([&] { body(e.delinearize({i}, shape)); }); });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  ArrayRef<Value> results;
};

} // namespace

LaunchShape emitSequentialKernel(ElementEmitter &e, Block &body, ArrayRef<Value> results) {
  Operation *root = passes::skipReshapes(body.getTerminator()->getOperand(0)).getDefiningOp();
  SequentialKernel kernel(e, results);
  if (auto cumsum = dyn_cast<CumsumOp>(root))
    return kernel.emit(cumsum);
  return kernel.emit(cast<ScatterOp>(root));
}

} // namespace burin::codegen
