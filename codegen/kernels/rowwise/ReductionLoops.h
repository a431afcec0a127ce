// Loops of a rowwise kernel over its reduced dimensions, for one point of the parallel dimensions or for several rows
// together: reductions, then results of full size. A walk is one pass over the reduced dimensions.
#pragma once
#include "codegen/emit/Reducer.h"
#include "codegen/emit/element/PointEmitter.h"
#include "codegen/kernels/rowwise/RowwiseSchedule.h"
#include <deque>

namespace burin::codegen {

class ReductionLoops : protected RowwiseSchedule {
protected:
  ReductionLoops(ElementEmitter &e, mlir::Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : RowwiseSchedule(body, a, results, e.k.target), e(e), k(e.k) {}

  struct Row {
    int64_t number; // index among the rows computed together
    PointEmitter p;
    Value scratch;           // kept values of it and of the rows computed with it
    SmallVector<Index> next; // for prefetching: the point of the row that will have this number next
    Value firstAligned = {}; // of an aligned walk: the element that it begins at; negative before the row
    Value keptFrom = {};     // unused elements before the row in scratch memory, see keepsAlignment()
    Value mask = {};         // active lanes, where that differs between rows
    bool isReduced = false;  // reductions are done and its kept values are in scratch memory
  };

  ElementEmitter &e;
  KernelBuilder &k;
  std::deque<Row> rows;   // rows computed together
  std::deque<Row> before; // reduced rows whose results are stored while the next ones are reduced
  /// Use non-temporal stores; prefetch the next rows; store the results of `before`.
  bool streamed = false, fetches = false, writesBefore = false;

  void begin(int64_t count, Value scratch);
  template <class Body> auto scoped(Body &&body) {
    std::deque<PointEmitter::Scope> scopes;
    for (Row *row : active)
      scopes.emplace_back(row->p);
    return e.scoped(body);
  }
  /// Mask of the lanes from `from` on that lie inside the dimension. Blocks end at whole vectors, so only the end of
  /// the dimension needs a mask.
  Value tailMask(Value from, const Dim &size);

  /// Rows that are summed in all columns of a thread before the rows after them, see eachStrip().
  struct Strip {
    Value from, to, isLater, isLast;
  };
  std::optional<Strip> strip;

  /// Calls `body` for each strip of the rows of a matrix whose columns are summed; once if rows are few, or for another
  /// reduction than sums of f32. Columns are summed block by block; the blocks of a strip are adjacent, so lines that
  /// the hardware prefetches past the end of a block are read soon. Between strips the sums are kept in scratch memory.
  void eachStrip(const Dim &columns, llvm::function_ref<void()> body);
  void reduceLevel(ArrayRef<mlir::Operation *> level);
  /// The same for the rows of a strip; in the last strip calls `then`, with the results known.
  void reduceStrip(ArrayRef<mlir::Operation *> level, llvm::function_ref<void()> then);
  void writeRows();
  /// Computes all values before the first store, which may overwrite memory that they are computed from.
  void write(ArrayRef<std::pair<Value, Value>> stored);

private:
  static constexpr int64_t kUnroll = 4; // accumulators of a row
  using Step = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> carried, int64_t copy)>;

  SmallVector<Row *> active; // rows of the current walk
  bool lastWalk = false;

  void activate(std::deque<Row> &some);
  void moveTo(int d, const Index &to);
  std::vector<Reducer> reducersOf(ArrayRef<mlir::Operation *> level);
  SmallVector<Value> identities(std::vector<Reducer> &reducers);
  SmallVector<Value> accumulate(ArrayRef<mlir::Operation *> level, std::vector<Reducer> &reducers,
                                SmallVector<Value> init);
  void finish(std::vector<Reducer> &reducers, ArrayRef<Value> sums);
  SmallVector<Value> joined(Reducer &r, SmallVector<SmallVector<Value>> parts);
  SmallVector<Value> walkReduced(SmallVector<Value> init, Step step);
  SmallVector<Value> walkDimension(size_t i, SmallVector<Value> carried, Step step);
  SmallVector<Value> vectorAt(Value r, const SmallVector<Value> &carried, int64_t copy, Step step);
  SmallVector<Value> walkBlocks(Value from, Value to, int64_t copies, ValueRange carried, Step step);
  SmallVector<Value> visit(Step step, SmallVector<Value> carried, int64_t copy);
  void bindKept();
  void writeRow(Row &row, bool isAligned);
  void writeBefore();

  // codegen/kernels/rowwise/UnalignedRows.cpp
  Value vectorOffset(Row &row, Value v, Value pointer);
  Value elementsBeforeBoundary(Row &row, Value v, Value pointer);
  enum class Order { Overlapping, Masked, FromStart };
  Order orderOf(ArrayRef<mlir::Operation *> level);
  bool keepsAlignment();
  SmallVector<Value> walkLevel(ArrayRef<mlir::Operation *> level, const SmallVector<Value> &carried, Step step);
  SmallVector<Value> walkOverlapping(Value read, SmallVector<Value> carried, Step step);
  SmallVector<Value> walkMasked(Value read, SmallVector<Value> carried, Step step);
  Value laneNumbers();
  Value number(Value n);
  Value lanesBelow(Value n);
  Value lanesFrom(Value n);
  Value lanesAcross(Value x, Value y, Value from);
  SmallVector<Value> elementsFrom(Value r);
  void writeOverlapping(Row &row);
  void writeShifted();

  Index rowPosition(const Row &row);
  Memory scratchOf(Value v, const Slot &slot, const Row &row);
  Index scratchPosition(const Row &row);
};

} // namespace burin::codegen
