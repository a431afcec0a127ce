// Products and convolutions that no other family of GPU kernels accepts: large ones of f32 by FmaContraction.cpp. Of
// the others 256 threads compute 64 rows (16 of at most 16) by 64 columns by FMA, from slices of 16 steps in shared
// memory, in the order of the sum.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/contraction/ContractionSides.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kSide = 16, kThreads = kSide * kSide; // threads of a block form a square
constexpr int64_t kColumns = 4;                         // columns of a thread: one vector
constexpr int64_t kRows = 4, kFewRows = 1;              // rows of a thread; for results with few rows
constexpr int64_t kDepth = 16;                          // steps of the sum in shared memory at once

class GpuContraction : ContractionSides {
public:
  GpuContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                 ArrayRef<Value> results)
      : ContractionSides(e, op), e(e), p(e, a), body(body), results(results),
        rowsOfThread(rows.isStatic() && rows.value() <= kSide ? kFewRows : kRows), tileRows(kSide * rowsOfThread),
        tileColumns(kSide * kColumns) {}

  GpuLaunch emit() {
    Dim rowTiles = ceildiv(rows, tileRows), columnTiles = ceildiv(columns, tileColumns);
    Value task = k.lo, rest = k.div(task, k.dim(columnTiles));
    firstColumn = k.mul(k.rem(task, k.dim(columnTiles)), k.constant(tileColumns));
    firstRow = k.mul(k.rem(rest, k.dim(rowTiles)), k.constant(tileRows));
    batch = op.getBatch() ? k.div(rest, k.dim(rowTiles)) : k.constant(0);
    thread = threadIndex(k);
    leftTile = tile(sumType, tileRows), rightTile = tile(sumType, tileColumns);
    if (isCut)
      insideTile = tile(DType::boolean, tileRows);
    Value zero =
        arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(VectorType::get({kColumns}, k.storageType(sumType))));
    SmallVector<Value> sums = k.loop(k.constant(0), k.dim(depth), k.constant(kDepth),
                                     SmallVector<Value>(rowsOfThread, zero), [&](Value from, ValueRange carried) {
                                       e.scoped([&] { fillTiles(from); });
                                       barrier(k);
                                       SmallVector<Value> next = multiply(SmallVector<Value>(carried));
                                       barrier(k);
                                       return next;
                                     });
    finish(sums);
    return {.blocks = batches * rowTiles * columnTiles, .threads = kThreads};
  }

private:
  Memory tile(DType dtype, int64_t width) {
    Type element = dtype == DType::boolean ? Type(k.b.getI8Type()) : k.storageType(dtype);
    return {sharedArray(k, element, kDepth * width), dtype, {}};
  }

  /// Loads an element in the accumulator type; 0, without a load, if the condition is false.
  Value elementIf(Value condition, const Memory &memory, llvm::function_ref<Value()> position) {
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(k.storageType(sumType)));
    return k.when(condition, {zero}, [&]() -> SmallVector<Value> {
      return {castLanes(k.b, k.loc, k.load(memory, {position()}, 1, {}), memory.dtype, sumType)};
    })[0];
  }

  /// Stores slices of both operands, from step `from` of the sum on, to shared memory as [step][row] and
  /// [step][column].
  void fillTiles(Value from) {
    for (int64_t i = 0; i < kDepth * tileRows; i += kThreads) {
      // Adjacent threads take adjacent steps, which are channels, adjacent in memory.
      Value at = k.add(thread, k.constant(i)), row = k.div(at, k.constant(kDepth)),
            step = k.rem(at, k.constant(kDepth));
      Value stored = k.add(k.mul(step, k.constant(tileRows)), row);
      auto [element, inside] = leftAt(k.add(firstRow, row), k.add(from, step));
      k.store(leftTile, {stored}, element, 1, {});
      if (isCut)
        k.store(*insideTile, {stored}, inside, 1, {});
    }
    for (int64_t i = 0; i < kDepth * tileColumns; i += kThreads) {
      Value at = k.add(thread, k.constant(i));
      Value column = k.rem(at, k.constant(tileColumns)), step = k.div(at, k.constant(tileColumns));
      k.store(rightTile, {at}, rightAt(k.add(firstColumn, column), k.add(from, step)), 1, {});
    }
  }

  /// Element (batch, row, step) of lhs, and whether it lies inside of lhs.
  std::pair<Value, Value> leftAt(Value row, Value step) {
    auto [position, inside] = leftPosition(leftRow(batch, row), step);
    Value at = position;
    return {elementIf(inside, left.memory, [&] { return at; }), inside};
  }

  Value rightAt(Value column, Value step) {
    Value at = k.rem(column, k.constant(panelWidth));
    auto [position, exists] = rightPosition(batch, k.sub(column, at), at, step);
    exists = both(exists, isBelow(column, k.dim(panelColumns)));
    Value stored = position, panel = elementIf(exists, rhs, [&] { return stored; });
    if (!tail)
      return panel;
    Value isStep = isBelow(step, k.dim(depth)), beyond = k.sub(column, k.dim(panelColumns));
    Value isTail = both(k.compare(arith::CmpIPredicate::sge, beyond, k.constant(0)), isBelow(column, k.dim(columns)));
    Value last = elementIf(both(isStep, isTail), *tail, [&] { return k.add(k.mul(beyond, k.dim(depth)), step); });
    return arith::SelectOp::create(k.b, k.loc, isTail, last, panel);
  }

  Value threadRow() { return k.mul(k.div(thread, k.constant(kSide)), k.constant(rowsOfThread)); }
  Value threadColumn() { return k.mul(k.rem(thread, k.constant(kSide)), k.constant(kColumns)); }

  SmallVector<Value> multiply(SmallVector<Value> sums) {
    for (int64_t step = 0; step < kDepth; ++step) {
      Value right = k.load(rightTile, {k.add(threadColumn(), k.constant(step * tileColumns)), 1}, kColumns, {});
      for (int64_t r = 0; r < rowsOfThread; ++r) {
        Value stored = k.add(threadRow(), k.constant(step * tileRows + r));
        Value x = k.broadcast(k.load(leftTile, {stored}, 1, {}), kColumns);
        Value next = k.multiplyAdd(sumType, x, right, sums[r]);
        // Padding is skipped rather than multiplied: 0 times infinity would be NaN.
        sums[r] =
            isCut ? arith::SelectOp::create(k.b, k.loc, k.load(*insideTile, {stored}, 1, {}), next, sums[r]).getResult()
                  : next;
      }
    }
    return sums;
  }

  void finish(ArrayRef<Value> sums) {
    Value column = k.add(firstColumn, threadColumn());
    bool partial = !columns.isStatic() || columns.value() % kColumns != 0;
    for (int64_t r = 0; r < rowsOfThread; ++r) {
      Value row = k.add(k.add(firstRow, threadRow()), k.constant(r));
      k.when(both(isBelow(row, k.dim(rows)), isBelow(column, k.dim(columns))), [&] {
        llvm::SaveAndRestore inLanes(k.width, kColumns);
        llvm::SaveAndRestore existing(
            e.mask, partial ? k.below(column, k.maskBound(columns, narrowest(body, type)), kColumns) : Value());
        p.finish(op.getResult(), placeOf(batch, row, column), castLanes(k.b, k.loc, sums[r], sumType, type), body,
                 results);
      });
    }
  }

  ElementEmitter &e;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> results;
  int64_t rowsOfThread, tileRows, tileColumns;
  Value firstRow, firstColumn, batch, thread;
  Memory leftTile, rightTile;
  std::optional<Memory> insideTile;
};

} // namespace

/// Whether emitFmaContraction() computes it: f32 with enough tiles of 128 by 128 to keep a GPU busy (symbolic sizes
/// count as large), without a tail of columns, and without padding, which these tiles would multiply as zeros (0 times
/// infinity is NaN).
static bool hasLargeTiles(ContractOp op) {
  const bool isOfF32 = dtypeOf(op.getLhs()) == DType::f32 && dtypeOf(op.getRhs()) == DType::f32 && !op.getTail();
  const bool isPadded = llvm::any_of(op.getPadding(), [](int64_t n) { return n > 0; });
  return isOfF32 && !isPadded && passes::contractionTiles(op, kFmaTile, kFmaTile).count() >= passes::kFewTiles;
}

GpuLaunch emitGpuContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  if (hasLargeTiles(op))
    return emitFmaContraction(kernel);
  return GpuContraction(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
