#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kSide = 16, kThreads = kSide * kSide; // threads of a block lie in a square
constexpr int64_t kColumns = 4;                         // of a thread: one vector
constexpr int64_t kRows = 4, kFewRows = 1;              // of a thread; where the result has few
constexpr int64_t kDepth = 16;                          // of the slices in shared memory

DType accumulatorType(DType type) {
  if (type == DType::f64 || type == DType::i64)
    return type;
  return isFloat(type) ? DType::f32 : DType::i32;
}

class GpuContraction {
public:
  GpuContraction(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                 ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), op(op), body(body), results(results), left(e.stridedMemoryOf(op.getLhs())),
        rhs(*e.memoryOf(passes::skipReshapes(op.getRhs()))), type(dtypeOf(op.getResult())),
        sumType(accumulatorType(dtypeOf(op.getLhs()))), panelWidth(passes::kPanelBytes / int64_t(byteWidth(sumType))),
        lhsShape(shapeOf(op.getLhs())), shape(shapeOf(op.getResult())), spatial(op.getKernel().size()),
        columns(shape.back()), panelColumns(columns), depth(lhsShape.back()) {
    if (Value t = op.getTail()) {
      tail = *e.memoryOf(passes::skipReshapes(t));
      panelColumns = columns - shapeOf(t)[op.getBatch() + 1];
    }
    for (size_t d = 0; d < op.getBatch(); ++d)
      batches = batches * shape[d];
    for (size_t d = 0; d < spatial; ++d) {
      rows = rows * shape[op.getBatch() + d];
      depth = depth * Dim(op.getKernel()[d]);
      isCut |= cut(d);
    }
    rowsOfThread = rows.isStatic() && rows.value() <= kSide ? kFewRows : kRows;
    tileRows = kSide * rowsOfThread, tileColumns = kSide * kColumns;
  }

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
  /// Whether windows of a spatial dimension may reach beyond lhs.
  bool cut(size_t d) {
    return !op.getPadding().empty() && (op.getPadding()[d] > 0 || op.getPadding()[spatial + d] > 0);
  }

  Memory tile(DType dtype, int64_t width) {
    Type element = dtype == DType::boolean ? Type(k.b.getI8Type()) : k.storageType(dtype);
    return {sharedArray(k, element, kDepth * width), dtype, {}};
  }

  Value isBelow(Value x, Value y) { return k.compare(arith::CmpIPredicate::slt, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(k.b, k.loc, x, y); }
  /// An element as it is added up; 0, and memory is not touched, where the condition fails.
  Value elementIf(Value condition, const Memory &memory, llvm::function_ref<Value()> position) {
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(k.storageType(sumType)));
    return k.when(condition, {zero}, [&]() -> SmallVector<Value> {
      return {castLanes(k.b, k.loc, k.load(memory, {position()}, 1, {}), memory.dtype, sumType)};
    })[0];
  }

  /// Slices of both sides from step `from` of the sum on, as [step][row] and [step][column].
  void fillTiles(Value from) {
    for (int64_t i = 0; i < kDepth * tileRows; i += kThreads) {
      // Neighbouring threads take neighbouring steps: channels, next to each other in memory.
      Value at = k.add(thread, k.constant(i)), row = k.div(at, k.constant(kDepth)),
            step = k.rem(at, k.constant(kDepth));
      Value place = k.add(k.mul(step, k.constant(tileRows)), row);
      auto [element, inside] = leftAt(k.add(firstRow, row), k.add(from, step));
      k.store(leftTile, {place}, element, 1, {});
      if (isCut)
        k.store(*insideTile, {place}, inside, 1, {});
    }
    for (int64_t i = 0; i < kDepth * tileColumns; i += kThreads) {
      Value at = k.add(thread, k.constant(i));
      Value column = k.rem(at, k.constant(tileColumns)), step = k.div(at, k.constant(tileColumns));
      k.store(rightTile, {at}, rightAt(k.add(firstColumn, column), k.add(from, step)), 1, {});
    }
  }

  /// lhs(b, row, step), and whether the window has something there.
  std::pair<Value, Value> leftAt(Value row, Value step) {
    Value exists = both(isBelow(row, k.dim(rows)), isBelow(step, k.dim(depth))), inside = exists;
    Value channels = k.dim(lhsShape.back());
    Value position = k.mul(batch, op.getBatch() ? k.dim(left.strides[op.getBatch() - 1]) : k.constant(0));
    position = k.add(position, k.mul(k.rem(step, channels), k.dim(left.strides.back())));
    Value taps = k.div(step, channels);
    for (size_t d = spatial; d-- > 0;) {
      size_t dim = op.getBatch() + d;
      Value size = k.dim(shape[dim]), kernel = k.constant(op.getKernel()[d]);
      Value tap = d ? k.rem(taps, kernel) : taps, at = d ? k.rem(row, size) : row;
      taps = d ? k.div(taps, kernel) : taps, row = d ? k.div(row, size) : row;
      int64_t low = op.getPadding().empty() ? 0 : op.getPadding()[d];
      Value x = k.add(k.mul(at, k.constant(op.getStrides()[d])), k.mul(tap, k.constant(op.getDilations()[d])));
      x = k.sub(x, k.constant(low));
      if (cut(d))
        inside = both(inside,
                      both(k.compare(arith::CmpIPredicate::sge, x, k.constant(0)), isBelow(x, k.dim(lhsShape[dim]))));
      position = k.add(position, k.mul(x, k.dim(left.strides[dim])));
    }
    return {elementIf(inside, left.memory, [&] { return position; }), inside};
  }

  Value rightAt(Value column, Value step) {
    Value isStep = isBelow(step, k.dim(depth)), width = k.constant(panelWidth);
    Value panel = elementIf(both(isStep, isBelow(column, k.dim(panelColumns))), rhs, [&] {
      Value panels = k.add(k.mul(batch, k.dim(ceildiv(panelColumns, panelWidth))), k.div(column, width));
      return k.add(k.mul(k.add(k.mul(panels, k.dim(depth)), step), width), k.rem(column, width));
    });
    if (!tail)
      return panel;
    Value beyond = k.sub(column, k.dim(panelColumns));
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
        Value place = k.add(threadRow(), k.constant(step * tileRows + r));
        Value x = k.broadcast(k.load(leftTile, {place}, 1, {}), kColumns);
        Value next = k.multiplyAdd(sumType, x, right, sums[r]);
        // What lies outside of lhs is left out: 0 times infinity would be NaN.
        sums[r] =
            isCut ? arith::SelectOp::create(k.b, k.loc, k.load(*insideTile, {place}, 1, {}), next, sums[r]).getResult()
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
        k.width = kColumns;
        if (partial)
          e.mask = k.below(column, k.maskBound(columns, narrowest(body, type)), kColumns);
        p.finish(op.getResult(), placeOf(row, column), castLanes(k.b, k.loc, sums[r], sumType, type), body, results);
        e.mask = {};
        k.width = 1;
      });
    }
  }

  SmallVector<Index> placeOf(Value row, Value column) {
    SmallVector<Index> at(shape.size());
    at.back() = {column, 1};
    auto split = [&](Value rest, size_t from, size_t to) {
      for (size_t d = to; d-- > from;) {
        at[d] = {d > from ? k.rem(rest, k.dim(shape[d])) : rest};
        rest = d > from ? k.div(rest, k.dim(shape[d])) : rest;
      }
    };
    split(batch, 0, op.getBatch());
    split(row, op.getBatch(), op.getBatch() + spatial);
    return at;
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  ContractOp op;
  Block &body;
  ArrayRef<Value> results;
  StridedMemory left;
  Memory rhs;
  std::optional<Memory> tail;
  DType type, sumType;
  int64_t panelWidth;
  Shape lhsShape, shape; // of the left side and the result
  size_t spatial;
  Dim columns, panelColumns; // all, and those in panels
  Dim rows = 1, depth, batches = 1;
  bool isCut = false;
  int64_t rowsOfThread, tileRows, tileColumns;
  Value firstRow, firstColumn, batch, thread;
  Memory leftTile, rightTile;
  std::optional<Memory> insideTile;
};

} // namespace

GpuLaunch emitGpuContraction(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results) {
  return GpuContraction(e, *body.getOps<ContractOp>().begin(), body, a, results).emit();
}

} // namespace burin::codegen
