// Products with few rows on the left, as in decoding: a block reads a strip of columns of the right operand once, front
// to back. A thread reads pieces of 16 bytes of a step; its neighbours read the rest of the step and the following
// steps. The sums of all threads are added in a fixed tree.
//
// The time is that of reading the right operand, so many reads must be incomplete at any time (about 40 KB per
// multiprocessor at 4 TB/s). Loads to registers do not achieve that: ptxas moves them down to their uses. cp.async
// copies pieces ahead to shared memory instead. A thread reads only what it has copied itself, so there is no barrier.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMovedBytes = 16;           // of a piece
constexpr int64_t kMostPiecesOfIteration = 4; // that a thread multiplies together
constexpr int64_t kStages = 4;                // iterations in shared memory
constexpr int64_t kThreads = 256, kManyThreads = 512;
constexpr int64_t kStrip = 32, kNarrowStrip = 16; // columns of a block
// With fewer columns, more threads per column and more strips keep enough copies incomplete.
constexpr int64_t kFewColumns = 4096;

class ThinContraction : ContractionSides {
public:
  ThinContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : ContractionSides(e, op), p(e, a), body(body), results(results), rowCount(*upperBound(rows)),
        hasFewColumns(columns.isStatic() && columns.value() < kFewColumns),
        threads(hasFewColumns ? kManyThreads : kThreads), strip(hasFewColumns ? kNarrowStrip : kStrip),
        lanes(kMovedBytes / int64_t(byteWidth(rhs.dtype))), threadsOfStep(strip / lanes),
        stepsAtOnce(threads / threadsOfStep),
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
    planIterations();
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
    return {.blocks = batches * strips, .threads = threads, .sharedBytes = stages * stageBytes()};
  }

private:
  Value zero() { return arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(0)); }
  Value ownStep() { return k.div(thread, k.constant(threadsOfStep)); }
  /// The first column of this thread's load.
  Value ownColumn() { return k.add(firstColumn, k.mul(k.rem(thread, k.constant(threadsOfStep)), k.constant(lanes))); }

  /// Divides the steps into iterations of equal length, if their number is known.
  void planIterations() {
    if (!depth.isStatic() || depth.value() == 0)
      return;
    const int64_t pieces = (depth.value() + stepsAtOnce - 1) / stepsAtOnce;
    const int64_t iterations = (pieces + kMostPiecesOfIteration - 1) / kMostPiecesOfIteration;
    piecesOfIteration = (pieces + iterations - 1) / iterations;
    stages = std::min(kStages, iterations);
  }
  int64_t stepsOfIteration() const { return piecesOfIteration * stepsAtOnce; }
  int64_t stageBytes() const { return piecesOfIteration * threads * kMovedBytes; }
  /// Step i of this thread in the iteration that begins at `first`.
  Value stepOf(Value first, int64_t i) { return k.add(k.add(first, ownStep()), k.constant(i * stepsAtOnce)); }
  /// The element of shared memory where this thread's piece i of a stage, which begins at element `stage`, lies.
  Value placeOfPiece(Value stage, int64_t i) {
    return k.add(k.add(stage, k.mul(thread, k.constant(lanes))), k.constant(i * threads * lanes));
  }

  SmallVector<Value> addAll(ArrayRef<Value> zeros) {
    Memory ring{sharedPool(k), rhs.dtype, {}};
    const int64_t ofStage = stageBytes() / int64_t(byteWidth(rhs.dtype)), ahead = (stages - 1) * stepsOfIteration();
    for (int64_t iteration = 0; iteration + 1 < stages; ++iteration)
      copyIteration(ring, k.constant(iteration * stepsOfIteration()), k.constant(iteration * ofStage));
    SmallVector<Value> state(zeros);
    state.push_back(k.constant(0)); // the stage of the iteration
    state = k.loop(
        k.constant(0), k.dim(depth), k.constant(stepsOfIteration()), state, [&](Value first, ValueRange carried) {
          // The stage of the iteration before is free: this thread has multiplied its pieces.
          Value stage = carried.back(), last = k.constant((stages - 1) * ofStage);
          copyIteration(ring, k.add(first, k.constant(ahead)), ifZero(stage, last, k.sub(stage, k.constant(ofStage))));
          SmallVector<Value> next = addIteration(ring, first, stage, carried.drop_back());
          next.push_back(ifZero(k.sub(stage, last), k.constant(0), k.add(stage, k.constant(ofStage))));
          return next;
        });
    state.pop_back();
    return state;
  }
  Value ifZero(Value x, Value then, Value otherwise) {
    return arith::SelectOp::create(k.b, k.loc, k.compare(arith::CmpIPredicate::eq, x, k.constant(0)), then, otherwise);
  }

  /// The conditions that an iteration has all steps, and that it has only some; null if there is no such iteration.
  std::pair<Value, Value> lengthOf(Value first) {
    Value end = k.dim(depth), last = k.add(first, k.constant(stepsOfIteration() - 1));
    Value isWhole = isBelow(last, end), isCut;
    if (!isMultipleOf(depth, stepsOfIteration()))
      isCut = both(isBelow(first, end), k.compare(arith::CmpIPredicate::sge, last, end));
    return {isWhole, isCut};
  }

  /// Starts to copy this thread's pieces of an iteration to a stage, if they exist, and closes a group of copies.
  /// Pieces beyond the end are zeros.
  void copyIteration(const Memory &ring, Value first, Value stage) {
    Value isTrue = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
    auto copy = [&](bool isCut) {
      for (int64_t i = 0; i < piecesOfIteration; ++i) {
        Value step = stepOf(first, i), exists = isCut ? isBelow(step, k.dim(depth)) : isTrue;
        step = isCut ? k.minimum(step, k.sub(k.dim(depth), k.constant(1))) : step;
        copyAsync(k, k.elementPointer(ring, placeOfPiece(stage, i)), k.elementPointer(rhs, piecePosition(step)),
                  exists);
      }
    };
    auto [isWhole, isCut] = lengthOf(first);
    k.when(isWhole, [&] { copy(false); });
    if (isCut)
      k.when(isCut, [&] { copy(true); });
    commitCopies(k);
  }

  /// Adds the products of this thread's pieces of an iteration.
  SmallVector<Value> addIteration(const Memory &ring, Value first, Value stage, ValueRange sums) {
    SmallVector<Value> lefts = loadLeftsOfIteration(first);
    waitForCopies(k, stages - 1);
    SmallVector<Value> next(sums);
    Type type = VectorType::get({lanes}, k.storageType(rhs.dtype));
    for (int64_t i = 0; i < piecesOfIteration; ++i) {
      Value right = LLVM::LoadOp::create(k.b, k.loc, type, k.elementPointer(ring, placeOfPiece(stage, i)), kMovedBytes);
      next = addStep(ArrayRef<Value>(lefts).slice(size_t(i * rowCount), size_t(rowCount)), right, next);
    }
    return next;
  }

  /// Left elements of this thread's steps of an iteration, for each step those of all rows; 0 beyond the end.
  SmallVector<Value> loadLeftsOfIteration(Value first) {
    Type type = k.storageType(left.memory.dtype);
    Value none = arith::ConstantOp::create(k.b, k.loc, type, cast<TypedAttr>(k.b.getZeroAttr(type)));
    const SmallVector<Value> zeros(size_t(piecesOfIteration * rowCount), none);
    auto load = [&](bool isCut) {
      SmallVector<Value> lefts;
      for (int64_t i = 0; i < piecesOfIteration; ++i) {
        Value step = stepOf(first, i);
        llvm::append_range(lefts, loadLefts(step, isCut ? isBelow(step, k.dim(depth)) : Value()));
      }
      return lefts;
    };
    auto [isWhole, isCut] = lengthOf(first);
    if (!isCut)
      return load(false);
    SmallVector<Value> lefts = k.when(isWhole, zeros, [&] { return load(false); });
    return k.when(isCut, lefts, [&] { return load(true); });
  }

  /// The position of this thread's part of a step. Columns beyond the last one are those before it.
  Value piecePosition(Value step) {
    if (!isPlain)
      return rightPosition(batch, ownPanel(), k.rem(ownColumn(), k.constant(panelWidth)), step).first;
    // In pieces: LLVM then knows that positions are multiples of one.
    Value pieces = k.div(k.dim(columns), k.constant(lanes)), sharedRow = k.add(k.mul(batch, k.dim(depth)), step);
    Value piece = k.minimum(k.div(ownColumn(), k.constant(lanes)), k.sub(pieces, k.constant(1)));
    return k.mul(k.add(k.mul(sharedRow, pieces), piece), k.constant(lanes));
  }
  /// The first column of this thread's panel; beyond the last panel that of the last one.
  Value ownPanel() {
    Value last = k.sub(k.dim(ceildiv(panelColumns, panelWidth)), k.constant(1));
    return k.mul(k.minimum(k.div(ownColumn(), k.constant(panelWidth)), last), k.constant(panelWidth));
  }

  /// The same sums with loads of single elements.
  SmallVector<Value> addOneByOne(ArrayRef<Value> zeros) {
    return k.loop(ownStep(), k.dim(depth), k.constant(stepsAtOnce), zeros, [&](Value step, ValueRange s) {
      Value column = ownColumn(), at = k.rem(column, k.constant(panelWidth));
      Value mask = isPlain ? k.below(column, k.dim(columns), lanes) : Value();
      Value panel = isPlain ? k.sub(column, at) : ownPanel();
      Value right = k.load(rhs, {rightPosition(batch, panel, at, step).first, 1}, lanes, mask);
      return addStep(loadLefts(step), right, SmallVector<Value>(s));
    });
  }

  /// The elements of the rows of the left operand at a step; 0 unless `exists`, which may be null.
  SmallVector<Value> loadLefts(Value step, Value exists = {}) {
    SmallVector<Value> lefts;
    for (const Row &row : leftRows) {
      auto [position, isThere] = leftPosition(row, step);
      lefts.push_back(k.load(left.memory, {position}, 1, rows.isStatic() && !isCut ? exists : isThere));
    }
    return lefts;
  }

  /// A piece as f32. The upper one of two bf16 in a word needs one instruction, which LLVM does not find.
  Value widened(Value piece) {
    if (rhs.dtype != DType::bf16)
      return castLanes(k.b, k.loc, piece, rhs.dtype, DType::f32);
    auto word = [&](int64_t n) { return arith::ConstantIntOp::create(k.b, k.loc, k.b.getI32Type(), n); };
    Value words = vector::BitCastOp::create(k.b, k.loc, VectorType::get({lanes / 2}, k.b.getI32Type()), piece);
    SmallVector<Value> wide;
    for (Value pair : vector::ToElementsOp::create(k.b, k.loc, words).getElements())
      for (Value bits : {arith::ShLIOp::create(k.b, k.loc, pair, word(16)).getResult(),
                         arith::AndIOp::create(k.b, k.loc, pair, word(int32_t(0xffff0000))).getResult()})
        wide.push_back(arith::BitcastOp::create(k.b, k.loc, k.b.getF32Type(), bits));
    return vector::FromElementsOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getF32Type()), wide);
  }

  SmallVector<Value> addStep(ArrayRef<Value> lefts, Value right, SmallVector<Value> sums) {
    right = widened(right);
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
          Value sharedRow = k.add(k.mul(warp, k.constant(rowCount)), k.constant(r));
          Value column = k.add(k.mul(lane, k.constant(lanes)), k.constant(i));
          k.store(parts, {k.add(k.mul(sharedRow, k.constant(strip)), column)}, x, 1, {});
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
  int64_t lanes, threadsOfStep; // elements of a piece; threads per step of the strip
  int64_t stepsAtOnce;          // of which the threads of the block have a piece each
  int64_t piecesOfIteration = kMostPiecesOfIteration, stages = kStages;
  Memory parts; // [warp][row][column]
  Value firstColumn, batch, thread;
  SmallVector<Row> leftRows;
};

} // namespace

GpuLaunch emitThinContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return ThinContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
