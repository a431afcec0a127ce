// Non-maximum suppression: candidates of a class in order of decreasing score, each compared with the selected boxes.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/Sorting.h"
#include "codegen/emit/element/Boxes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class SuppressionKernel {
public:
  SuppressionKernel(ElementEmitter &e, NonMaxSuppressionOp op, Value result)
      : e(e), k(e.k), op(op), shape(shapeOf(op.getResult())), boxes(shapeOf(op.getBoxes())[1]),
        out{result, DType::i64, shape}, wide(overlapType(op)) {}

  // One task per class of each batch.
  LaunchShape emit() {
    k.loop(k.lo, k.hi, k.constant(1), [&](Value line) {
      e.scoped([&] {
        Value classes = k.dim(shape[1]);
        batch = k.div(line, classes);
        category = k.rem(line, classes);
        Sorter sorter(k, k.scratch, boxes);
        Value at =
            k.add(k.mul(k.dim(boxes), k.constant(Sorter::scratchBytes(1).value() - Sorter::scratchBytes(0).value())),
                  k.constant(Sorter::scratchBytes(0).value()));
        for (Memory &column : taken) {
          column = memoryAt(k, k.scratch, at, wide, shape[2]);
          at = k.add(at, k.mul(k.dim(shape[2]), k.constant(int64_t(byteWidth(wide)))));
        }
        Value candidates = collect(sorter);
        sorter.sort(candidates, keyBytes(dtypeOf(op.getScores())));
        Value kept = select(sorter, candidates);
        k.loop(kept, k.dim(shape[2]), k.constant(1), [&](Value i) { store(i, k.constant(-1)); });
      });
    });
    return {shape[0] * shape[1],
            Sorter::scratchBytes(boxes) + shape[2] * Dim(int64_t(std::size(taken) * byteWidth(wide)))};
  }

private:
  void store(Value at, Value box) { k.store(out, k.linear(shape, {{batch}, {category}, {at}}), box, 1, {}); }

  /// Collects the boxes with a score above the threshold; returns their number.
  Value collect(Sorter &sorter) {
    DType type = dtypeOf(op.getScores());
    return k.loop(k.constant(0), k.dim(boxes), k.constant(1), ValueRange{k.constant(0)},
                  [&](Value i, ValueRange carried) {
                    return e.scoped([&]() -> SmallVector<Value> {
                      Value score = e.element(op.getScores(), {{batch}, {category}, {i}});
                      sorter.put(carried[0], sortKey(k, score, type, /*descending=*/true), i);
                      Scalar x(k.b, k.loc, score, type);
                      Scalar isHigh = x.to(wide) > op.getScoreThreshold().convertToDouble();
                      Value one = arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), isHigh.value());
                      return {k.add(carried[0], one)};
                    });
                  })[0];
  }

  /// Selects candidates until there are enough; returns their number.
  Value select(Sorter &sorter, Value candidates) {
    using Predicate = arith::CmpIPredicate;
    auto result = k.loopWhile(
        ValueRange{k.constant(0), k.constant(0)},
        [&](ValueRange v) -> Value {
          return arith::AndIOp::create(k.b, k.loc, k.compare(Predicate::slt, v[0], candidates),
                                       k.compare(Predicate::slt, v[1], k.dim(shape[2])));
        },
        [&](ValueRange v) -> SmallVector<Value> {
          return e.scoped([&]() -> SmallVector<Value> {
            Value index = sorter.place(v[0]), kept = v[1];
            SmallVector<Scalar> box = boxAt(e, op, batch, index);
            Value apart = isApart(box, kept);
            k.when(apart, [&] {
              store(kept, index);
              for (auto [column, value] : llvm::zip(taken, box))
                k.store(column, {kept}, value.value(), 1, {});
            });
            Value one = arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), apart);
            return {k.add(v[0], k.constant(1)), k.add(kept, one)};
          });
        });
    return result[1];
  }

  /// Whether `box` overlaps none of the first `kept` selected boxes by more than the threshold.
  Value isApart(ArrayRef<Scalar> box, Value kept) {
    Value yes = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI1Type(), 1);
    auto result = k.loopWhile(
        ValueRange{k.constant(0), yes},
        [&](ValueRange v) -> Value {
          return arith::AndIOp::create(k.b, k.loc, k.compare(arith::CmpIPredicate::slt, v[0], kept), v[1]);
        },
        [&](ValueRange v) -> SmallVector<Value> {
          SmallVector<Scalar> other;
          for (Memory &column : taken)
            other.push_back(box[0].with(k.load(column, {v[0]}, 1, {})));
          return {k.add(v[0], k.constant(1)), (!overlap(box, other, op)).value()};
        });
    return result[1];
  }

  ElementEmitter &e;
  KernelBuilder &k;
  NonMaxSuppressionOp op;
  const Shape shape; // of the result: batch, classes, boxes to keep
  const Dim boxes;
  const Memory out;
  const DType wide; // in which overlaps are computed
  Value batch, category;
  Memory taken[5];
};

} // namespace

LaunchShape emitSuppression(const KernelEmission &kernel) {
  Value root = passes::skipReshapes(kernel.body.getTerminator()->getOperand(0));
  return SuppressionKernel(kernel.e, root.getDefiningOp<NonMaxSuppressionOp>(), kernel.results[0]).emit();
}

} // namespace burin::codegen
