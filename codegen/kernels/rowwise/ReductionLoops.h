// The walks of a kernel without contraction over its reduced dimensions, for one point of the others or for rows that
// are worked on together: reductions, then what is written of full size.
#pragma once
#include "codegen/emit/PointEmitter.h"
#include "codegen/emit/Reducer.h"
#include "codegen/kernels/rowwise/RowwiseSchedule.h"
#include <deque>

namespace burin::codegen {

class ReductionLoops : protected RowwiseSchedule {
protected:
  ReductionLoops(ElementEmitter &e, mlir::Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : RowwiseSchedule(body, a, results, e.k.target), e(e), k(e.k) {}

  struct Row {
    int64_t number; // among those that are worked on together
    PointEmitter p;
    Value scratch;           // what is kept of it, and of those beside it
    SmallVector<Index> next; // where the row is that will have this number
    Value firstLine = {};    // where the first line is that a walk over lines begins with
    Value keptFrom = {};     // how many elements come before it in scratch memory, so that its lines are lines there
    Value mask = {};         // of lanes that are in the row, where that differs between rows
    bool isReduced = false;  // all that is kept of it has been
  };

  ElementEmitter &e;
  KernelBuilder &k;
  std::deque<Row> rows;   // that are worked on together
  std::deque<Row> before; // rows that are reduced already, and written while the others are reduced
  /// Whether stores go past the cache, whether the next rows are fetched, whether `before` is written.
  bool streamed = false, fetches = false, writesBefore = false;

  void begin(int64_t count, Value scratch);
  template <class Body> auto scoped(Body &&body) {
    std::deque<PointEmitter::Scope> scopes;
    for (Row *row : active)
      scopes.emplace_back(row->p);
    return e.scoped(body);
  }
  /// The lanes from `from` on that are still inside; blocks end at whole vectors, so only the dimension's end cuts one.
  Value tailMask(Value from, const Dim &size);

  void reduceLevel(ArrayRef<mlir::Operation *> level);
  void writeRows();
  /// All before the first store: it may go to memory that the others are computed from.
  void write(ArrayRef<std::pair<Value, Value>> stored);

private:
  static constexpr int64_t kUnroll = 4; // accumulators of a row reduction
  using Step = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> carried, int64_t copy)>;

  SmallVector<Row *> active; // the rows that the present walk is over
  bool lastWalk = false;

  void activate(std::deque<Row> &some);
  void moveTo(int d, const Index &to);
  SmallVector<Value> joined(Reducer &r, SmallVector<SmallVector<Value>> parts);
  SmallVector<Value> walkReduced(SmallVector<Value> init, Step step);
  SmallVector<Value> walkDimension(size_t i, SmallVector<Value> carried, Step step);
  SmallVector<Value> vectorAt(Value r, const SmallVector<Value> &carried, int64_t copy, Step step);
  SmallVector<Value> walkBlocks(Value from, Value to, int64_t copies, ValueRange carried, Step step);
  SmallVector<Value> visit(Step step, SmallVector<Value> carried, int64_t copy);
  void bindKept();
  void writeRow(Row &row, bool inLines);
  void writeBefore();

  // codegen/kernels/rowwise/UnalignedRows.cpp
  Value intoLine(Row &row, Value v, Value pointer);
  Value beforeLine(Row &row, Value v, Value pointer);
  enum class Order { Lines, MaskedLines, FromStart };
  Order orderOf(ArrayRef<mlir::Operation *> level);
  bool keepsLines();
  SmallVector<Value> walkLevel(ArrayRef<mlir::Operation *> level, const SmallVector<Value> &carried, Step step);
  SmallVector<Value> walkLines(Value read, SmallVector<Value> carried, Step step);
  SmallVector<Value> walkMaskedLines(Value read, SmallVector<Value> carried, Step step);
  Value laneNumbers();
  Value number(Value n);
  Value lanesBelow(Value n);
  Value lanesFrom(Value n);
  Value lanesAcross(Value x, Value y, Value from);
  SmallVector<Value> elementsFrom(Value r);
  void writeLines(Row &row);
  void writeTurned();

  Index rowPosition(const Row &row);
  Memory scratchOf(Value v, const Slot &slot, const Row &row);
  Index scratchPosition(const Row &row);
};

} // namespace burin::codegen
