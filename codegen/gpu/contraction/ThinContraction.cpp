// Products with few rows on the left, as in decoding: a block reads one panel of the right operand once, front to back.
// A thread loads 16 bytes of a step; its neighbours load the rest of the step and the following steps. The sums of all
// threads are added in a fixed tree.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMovedBytes = 16; // of one load of a thread
constexpr int64_t kOnTheirWay = 4;  // loads of a thread before it multiplies
constexpr int64_t kThreads = 256, kManyThreads = 512;
constexpr int64_t kFewColumns = 4096; // with fewer columns, more threads per panel keep enough loads in flight

class ThinContraction : ContractionSides {
public:
  ThinContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : ContractionSides(e, op), p(e, a), body(body), results(results), rowCount(*upperBound(rows)),
        threads(columns.isStatic() && columns.value() < kFewColumns ? kManyThreads : kThreads),
        lanes(kMovedBytes / int64_t(byteWidth(rhs.dtype))), threadsOfStep(panelWidth / lanes),
        parts{sharedArray(k, k.b.getF32Type(), threads / kWarp * rowCount * panelWidth), DType::f32, {}} {}

  GpuLaunch emit() {
    Dim panels = ceildiv(columns, panelWidth);
    firstColumn = k.mul(k.rem(k.lo, k.dim(panels)), k.constant(panelWidth));
    batch = op.getBatch() ? k.div(k.lo, k.dim(panels)) : k.constant(0);
    thread = threadIndex(k);
    for (int64_t r = 0; r < rowCount; ++r)
      leftRows.push_back(leftRow(batch, k.constant(r)));
    Value isAligned = k.isAligned(rhs.pointer, kMovedBytes);
    SmallVector<Value> zeros(size_t(rowCount), k.broadcast(zero(), lanes));
    SmallVector<Value> sums = k.when(isAligned, zeros, [&] {
      assumeAligned(k, rhs.pointer, kMovedBytes);
      return addAll(zeros);
    });
    k.unless(isAligned, [&] { store(addAll(zeros)); });
    k.when(isAligned, [&] { store(sums); });
    barrier(k);
    k.loop(thread, k.constant(rowCount * panelWidth), k.constant(threads), [&](Value i) { finish(i); });
    return {.blocks = batches * panels, .threads = threads};
  }

private:
  Value zero() { return arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(0)); }

  SmallVector<Value> addAll(ArrayRef<Value> zeros) {
    const int64_t steps = threads / threadsOfStep; // of the block at once
    Value own = k.div(thread, k.constant(threadsOfStep)), end = k.dim(depth);
    Value whole = k.sub(end, k.constant((kOnTheirWay - 1) * steps));
    SmallVector<Value> sums = k.loop(own, whole, k.constant(kOnTheirWay * steps), zeros, [&](Value step, ValueRange s) {
      return addSteps(step, steps, kOnTheirWay, SmallVector<Value>(s));
    });
    // The remaining steps follow the last full iteration of this thread.
    Value turns = k.div(k.add(k.maximum(k.sub(whole, own), k.constant(0)), k.constant(kOnTheirWay * steps - 1)),
                        k.constant(kOnTheirWay * steps));
    Value rest = k.add(own, k.mul(turns, k.constant(kOnTheirWay * steps)));
    return k.loop(rest, end, k.constant(steps), sums,
                  [&](Value step, ValueRange s) { return addSteps(step, steps, 1, SmallVector<Value>(s)); });
  }

  SmallVector<Value> addSteps(Value first, int64_t distance, int64_t count, SmallVector<Value> sums) {
    Value column = k.mul(k.rem(thread, k.constant(threadsOfStep)), k.constant(lanes));
    SmallVector<Value> steps, right;
    for (int64_t i = 0; i < count; ++i) {
      steps.push_back(k.add(first, k.constant(i * distance)));
      Value position = k.add(panelPosition(batch, firstColumn, steps.back()), column);
      right.push_back(castLanes(k.b, k.loc, k.load(rhs, {position, 1}, lanes, {}), rhs.dtype, DType::f32));
    }
    for (int64_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < rowCount; ++r) {
        auto [position, isThere] = leftPosition(leftRows[size_t(r)], steps[size_t(i)]);
        Value x = rows.isStatic() && !isCut ? k.load(left.memory, {position}, 1, {})
                                            : k.load(left.memory, {position}, 1, isThere);
        x = castLanes(k.b, k.loc, x, left.memory.dtype, DType::f32);
        sums[size_t(r)] = k.multiplyAdd(DType::f32, k.broadcast(x, lanes), right[size_t(i)], sums[size_t(r)]);
      }
    return sums;
  }

  /// Stores the sums of a warp, per column of the panel, in shared memory.
  void store(ArrayRef<Value> sums) {
    Value warp = k.div(thread, k.constant(kWarp)), lane = k.rem(thread, k.constant(kWarp));
    for (int64_t r = 0; r < rowCount; ++r)
      for (int64_t i = 0; i < lanes; ++i) {
        Value x = vector::ExtractOp::create(k.b, k.loc, sums[size_t(r)], ArrayRef<int64_t>{i});
        for (int64_t distance = kWarp / 2; distance >= threadsOfStep; distance /= 2)
          x = arith::AddFOp::create(k.b, k.loc, x, shuffleDown(k, x, distance));
        k.when(isBelow(lane, k.constant(threadsOfStep)), [&] {
          Value line = k.add(k.mul(warp, k.constant(rowCount)), k.constant(r));
          Value column = k.add(k.mul(lane, k.constant(lanes)), k.constant(i));
          k.store(parts, {k.add(k.mul(line, k.constant(panelWidth)), column)}, x, 1, {});
        });
      }
  }

  /// Computes result i of the rows of the panel.
  void finish(Value i) {
    Value row = k.div(i, k.constant(panelWidth)), column = k.add(firstColumn, k.rem(i, k.constant(panelWidth)));
    k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
      Value sum = k.load(parts, {i}, 1, {});
      for (int64_t w = 1; w < threads / kWarp; ++w)
        sum = arith::AddFOp::create(k.b, k.loc, sum,
                                    k.load(parts, {k.add(i, k.constant(w * rowCount * panelWidth))}, 1, {}));
      p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, DType::f32, type), body,
               results);
    });
  }

  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  int64_t rowCount, threads;
  int64_t lanes, threadsOfStep; // elements of a thread's load; threads per step of the panel
  Memory parts;                 // [warp][row][column]
  Value firstColumn, batch, thread;
  SmallVector<Row> leftRows;
};

} // namespace

GpuLaunch emitThinContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return ThinContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
