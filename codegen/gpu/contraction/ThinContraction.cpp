// Products with few rows on the left, as in decoding: a block reads a strip of columns of the right operand once, front
// to back. A thread loads 16 bytes of a step; its neighbours load the rest of the step and the following steps. The
// sums of all threads are added in a fixed tree.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMovedBytes = 16; // of one load of a thread
constexpr int64_t kOnTheirWay = 8;  // loads of a thread before it multiplies
constexpr int64_t kThreads = 256, kManyThreads = 512;
constexpr int64_t kStrip = 32, kNarrowStrip = 16; // columns of a block
// With fewer columns, more threads per column and more strips keep enough loads in flight.
constexpr int64_t kFewColumns = 4096;

class ThinContraction : ContractionSides {
public:
  ThinContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : ContractionSides(e, op), p(e, a), body(body), results(results), rowCount(*upperBound(rows)),
        hasFewColumns(columns.isStatic() && columns.value() < kFewColumns),
        threads(hasFewColumns ? kManyThreads : kThreads), strip(hasFewColumns ? kNarrowStrip : kStrip),
        lanes(kMovedBytes / int64_t(byteWidth(rhs.dtype))), threadsOfStep(strip / lanes),
        parts{sharedArray(k, k.b.getF32Type(), threads / kWarp * rowCount * strip), DType::f32, {}} {}

  GpuLaunch emit() {
    Dim strips = ceildiv(columns, strip);
    firstColumn = k.mul(k.rem(k.lo, k.dim(strips)), k.constant(strip));
    batch = op.getBatch() ? k.div(k.lo, k.dim(strips)) : k.constant(0);
    thread = threadIndex(k);
    for (int64_t r = 0; r < rowCount; ++r)
      leftRows.push_back(leftRow(batch, k.constant(r)));
    Value isAligned = k.isAligned(rhs.pointer, kMovedBytes);
    if (isPlain && !isMultipleOf(columns, lanes)) {
      Value rest = k.rem(k.dim(columns), k.constant(lanes));
      isAligned = both(isAligned, k.compare(arith::CmpIPredicate::eq, rest, k.constant(0)));
    }
    SmallVector<Value> zeros(size_t(rowCount), k.broadcast(zero(), lanes));
    SmallVector<Value> sums = k.when(isAligned, zeros, [&] {
      assumeAligned(k, rhs.pointer, kMovedBytes);
      return addAll(zeros);
    });
    k.unless(isAligned, [&] {
      k.keepsRolled = true;
      store(addOneByOne(zeros));
      k.keepsRolled = false;
    });
    k.when(isAligned, [&] { store(sums); });
    barrier(k);
    k.loop(thread, k.constant(rowCount * strip), k.constant(threads), [&](Value i) { finish(i); });
    return {.blocks = batches * strips, .threads = threads};
  }

private:
  Value zero() { return arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(0)); }
  /// Steps that the threads of the block load at once.
  int64_t stepsAtOnce() const { return threads / threadsOfStep; }
  Value ownStep() { return k.div(thread, k.constant(threadsOfStep)); }
  /// The first column of this thread's load.
  Value ownColumn() { return k.add(firstColumn, k.mul(k.rem(thread, k.constant(threadsOfStep)), k.constant(lanes))); }

  /// Loads of a thread before it multiplies: few enough that the last ones are not all beyond the end.
  int64_t loadsAtOnce() const {
    if (!depth.isStatic() || depth.value() == 0)
      return kOnTheirWay;
    const int64_t all = (depth.value() + stepsAtOnce() - 1) / stepsAtOnce();
    const int64_t turns = (all + kOnTheirWay - 1) / kOnTheirWay;
    return (all + turns - 1) / turns;
  }

  SmallVector<Value> addAll(ArrayRef<Value> zeros) {
    const int64_t distance = loadsAtOnce() * stepsAtOnce();
    Value end = k.dim(depth), whole = k.sub(end, k.constant(distance - 1));
    SmallVector<Value> sums = k.loop(k.constant(0), whole, k.constant(distance), zeros, [&](Value first, ValueRange s) {
      return addSteps(first, /*isEnd=*/false, SmallVector<Value>(s));
    });
    if (isMultipleOf(depth, distance))
      return sums;
    Value rest = k.mul(k.div(end, k.constant(distance)), k.constant(distance));
    return k.when(isBelow(rest, end), sums, [&] { return addSteps(rest, /*isEnd=*/true, sums); });
  }

  /// Adds the products of this thread's steps of those from `first` on. Of the last ones, those beyond the end are left
  /// out.
  SmallVector<Value> addSteps(Value first, bool isEnd, SmallVector<Value> sums) {
    SmallVector<Value> right, exist;
    SmallVector<SmallVector<Value>> lefts;
    for (int64_t i = 0; i < loadsAtOnce(); ++i) {
      Value step = k.add(k.add(first, ownStep()), k.constant(i * stepsAtOnce()));
      exist.push_back(isBelow(step, k.dim(depth)));
      step = isEnd ? k.minimum(step, k.sub(k.dim(depth), k.constant(1))) : step;
      right.push_back(k.load(rhs, {piecePosition(step), 1}, lanes, {}));
      lefts.push_back(loadLefts(step));
    }
    warpBarrier(k); // ptxas would move the loads down to their uses, so that each waits for the one before
    for (size_t i = 0; i < right.size(); ++i) {
      SmallVector<Value> next = addStep(lefts[i], right[i], sums);
      for (auto [sum, added] : llvm::zip_equal(sums, next))
        sum = isEnd ? arith::SelectOp::create(k.b, k.loc, exist[i], added, sum).getResult() : added;
    }
    return sums;
  }

  /// The position of this thread's part of a step. Columns beyond the last one are those before it.
  Value piecePosition(Value step) {
    if (!isPlain)
      return rightPosition(batch, panelOf(ownColumn()), k.rem(ownColumn(), k.constant(panelWidth)), step).first;
    // In pieces: LLVM then knows that positions are multiples of one.
    Value pieces = k.div(k.dim(columns), k.constant(lanes)), line = k.add(k.mul(batch, k.dim(depth)), step);
    Value piece = k.minimum(k.div(ownColumn(), k.constant(lanes)), k.sub(pieces, k.constant(1)));
    return k.mul(k.add(k.mul(line, pieces), piece), k.constant(lanes));
  }
  Value panelOf(Value column) { return k.sub(column, k.rem(column, k.constant(panelWidth))); }

  /// The same sums with loads of single elements.
  SmallVector<Value> addOneByOne(ArrayRef<Value> zeros) {
    return k.loop(ownStep(), k.dim(depth), k.constant(stepsAtOnce()), zeros, [&](Value step, ValueRange s) {
      Value column = ownColumn(), at = k.rem(column, k.constant(panelWidth));
      Value mask = isPlain ? k.below(column, k.dim(columns), lanes) : Value();
      Value right = k.load(rhs, {rightPosition(batch, k.sub(column, at), at, step).first, 1}, lanes, mask);
      return addStep(loadLefts(step), right, SmallVector<Value>(s));
    });
  }

  /// The elements of the rows of the left operand at a step.
  SmallVector<Value> loadLefts(Value step) {
    SmallVector<Value> lefts;
    for (const Row &row : leftRows) {
      auto [position, isThere] = leftPosition(row, step);
      lefts.push_back(k.load(left.memory, {position}, 1, rows.isStatic() && !isCut ? Value() : isThere));
    }
    return lefts;
  }

  SmallVector<Value> addStep(ArrayRef<Value> lefts, Value right, SmallVector<Value> sums) {
    right = castLanes(k.b, k.loc, right, rhs.dtype, DType::f32);
    for (auto [x, sum] : llvm::zip_equal(lefts, sums)) {
      Value wide = castLanes(k.b, k.loc, x, left.memory.dtype, DType::f32);
      sum = k.multiplyAdd(DType::f32, k.broadcast(wide, lanes), right, sum);
    }
    return sums;
  }

  /// Stores the sums of a warp, per column of the strip, in shared memory.
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
          k.store(parts, {k.add(k.mul(line, k.constant(strip)), column)}, x, 1, {});
        });
      }
  }

  /// Computes result i of the rows of the strip.
  void finish(Value i) {
    Value row = k.div(i, k.constant(strip)), column = k.add(firstColumn, k.rem(i, k.constant(strip)));
    k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
      Value sum = k.load(parts, {i}, 1, {});
      for (int64_t w = 1; w < threads / kWarp; ++w)
        sum =
            arith::AddFOp::create(k.b, k.loc, sum, k.load(parts, {k.add(i, k.constant(w * rowCount * strip))}, 1, {}));
      p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sum, DType::f32, type), body,
               results);
    });
  }

  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  int64_t rowCount;
  bool hasFewColumns;
  int64_t threads, strip;
  int64_t lanes, threadsOfStep; // elements of a thread's load; threads per step of the strip
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
