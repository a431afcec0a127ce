// Non-maximum suppression: a block per class sorts the candidates by their scores and then keeps the first one that is
// left, again and again. Its threads drop those of the later candidates that overlap it.
#include "codegen/emit/Sorting.h"
#include "codegen/emit/element/Boxes.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/rowwise/BlockSort.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = SliceSort::kThreads;
constexpr int64_t kMostBlocks = 256; // bounds scratch memory

class SuppressionKernel {
public:
  SuppressionKernel(ElementEmitter &e, NonMaxSuppressionOp op, Value result)
      : e(e), k(e.k), op(op), shape(shapeOf(op.getResult())), boxes(shapeOf(op.getBoxes())[1]),
        out{result, DType::i64, shape}, form(k, dtypeOf(op.getScores()), boxes) {}

  GpuLaunch emit() {
    const Dim classes = shape[0] * shape[1], blocks = min(classes, kMostBlocks);
    SliceSort sort(form, boxes);
    // Behind the items of a block a byte per box: whether it has been dropped.
    const Dim bytes = sort.bytes() + ceildiv(boxes, 8) * Dim(8);
    Value start = memoryAt(k, k.scratch, k.mul(k.lo, k.dim(bytes)), DType::i8, bytes).pointer;
    ItemMemory items = sort.memory(start, k.constant(0));
    dropped = memoryAt(k, start, k.dim(sort.bytes()), DType::i8, boxes);
    thread = threadIndex(k), step = k.constant(kThreads);
    k.loop(k.lo, k.dim(classes), k.dim(blocks), [&](Value slice) {
      e.scoped([&] {
        batch = k.div(slice, k.dim(shape[1])), category = k.rem(slice, k.dim(shape[1]));
        k.loop(thread, k.dim(boxes), step, [&](Value i) { k.store(dropped, {i}, byte(0), 1, {}); });
        Value sorted = sort.sort(items, [&](Value i) { return candidateAt(i); });
        Value kept = keepAll(items, sorted);
        k.loop(k.add(kept, thread), k.dim(shape[2]), step, [&](Value i) { store(i, k.constant(-1)); });
        barrier(k); // before the next class overwrites the items
      });
    });
    return {.blocks = blocks, .threads = kThreads, .scratchOfThread = ceildiv(bytes, kThreads)};
  }

private:
  Value isBelow(Value x, Value y) { return k.compare(arith::CmpIPredicate::slt, x, y); }
  Value byte(int64_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI8Type(), n); }
  void store(Value at, Value box) { k.store(out, k.linear(shape, {{batch}, {category}, {at}}), box, 1, {}); }

  /// The item of a box; the last one if its score does not exceed the threshold.
  Item candidateAt(Value i) {
    return e.scoped([&] {
      Value score = e.element(op.getScores(), {{batch}, {category}, {i}});
      Item item = form.make(sortKey(k, score, dtypeOf(op.getScores()), /*descending=*/true), i);
      Scalar isHigh = Scalar(k.b, k.loc, score, dtypeOf(op.getScores())).to(overlapType(op)) >
                      op.getScoreThreshold().convertToDouble();
      return form.select(isHigh.value(), item, form.last());
    });
  }

  /// Whether item `i` exists and is a candidate; then the result of `body` instead of `otherwise`.
  Value ifCandidate(const ItemMemory &items, Value sorted, Value i, Value otherwise,
                    llvm::function_ref<Value(const Item &)> body) {
    return k.when(isBelow(i, k.dim(boxes)), {otherwise}, [&]() -> SmallVector<Value> {
      Item item = items.load(k, k.add(sorted, i));
      return k.when(form.isBefore(item, form.last()), {otherwise},
                    [&]() -> SmallVector<Value> { return {body(item)}; });
    })[0];
  }

  /// Keeps candidates until there are enough, or none is left; returns their number. All threads take the same course.
  Value keepAll(const ItemMemory &items, Value sorted) {
    Value no = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI1Type(), 0), one = k.constant(1);
    auto wasDropped = [&](Value i) {
      return ifCandidate(items, sorted, i, no, [&](const Item &) {
        return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne, k.load(dropped, {i}, 1, {}), byte(0))
            .getResult();
      });
    };
    auto isCandidate = [&](Value i) {
      Value yes = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI1Type(), 1);
      return ifCandidate(items, sorted, i, no, [&](const Item &) { return yes; });
    };
    return k.loopWhile(
        {k.constant(0), k.constant(0)},
        [&](ValueRange v) -> Value {
          return arith::AndIOp::create(k.b, k.loc, isBelow(v[1], k.dim(shape[2])), isCandidate(v[0]));
        },
        [&](ValueRange v) -> SmallVector<Value> {
          return e.scoped([&]() -> SmallVector<Value> {
            keep(items, sorted, v[0], v[1]);
            barrier(k);
            Value next = k.loopWhile(
                {k.add(v[0], one)}, [&](ValueRange at) { return wasDropped(at[0]); },
                [&](ValueRange at) { return SmallVector<Value>{k.add(at[0], one)}; })[0];
            return {next, k.add(v[1], one)};
          });
        })[1];
  }

  void keep(const ItemMemory &items, Value sorted, Value i, Value number) {
    Value index = form.place(items.load(k, k.add(sorted, i)));
    k.when(k.compare(arith::CmpIPredicate::eq, thread, k.constant(0)), [&] { store(number, index); });
    SmallVector<Scalar> kept = boxAt(e, op, batch, index);
    k.loop(k.add(k.add(i, k.constant(1)), thread), k.dim(boxes), step, [&](Value other) {
      e.scoped([&] {
        Item item = items.load(k, k.add(sorted, other));
        k.when(form.isBefore(item, form.last()), [&] {
          e.scoped([&] {
            SmallVector<Scalar> box = boxAt(e, op, batch, form.place(item));
            k.when(overlap(box, kept, op).value(), [&] { k.store(dropped, {other}, byte(1), 1, {}); });
          });
        });
      });
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  NonMaxSuppressionOp op;
  const Shape shape; // of the result: batch, classes, boxes to keep
  const Dim boxes;
  const Memory out;
  ItemForm form;
  Memory dropped;
  Value thread, step, batch, category;
};

} // namespace

GpuLaunch emitGpuSuppression(const KernelEmission &kernel) {
  auto op = cast<NonMaxSuppressionOp>(passes::KernelBody(kernel.body).root());
  return SuppressionKernel(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
