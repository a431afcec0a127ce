// Base of pools over planes (channels first): a task computes some rows of one plane of the result, vector by vector.
// Rows of x are in scratch memory, behind a border.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/builder/RowVectors.h"
#include "codegen/emit/element/Window.h"
#include "llvm/Support/SaveAndRestore.h"

namespace burin::codegen {

class PlaneKernel {
public:
  static constexpr int64_t kRowsOfTask = passes::kPlaneRows;

protected:
  PlaneKernel(ElementEmitter &e, mlir::Operation *op, const Window &w, mlir::Block &body,
              const passes::IterationSpace &a, ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), w(w), rule(e, op), body(body), results(results), x(ir::shapeOf(w.x)),
        result(ir::shapeOf(op->getResult(0))), lanes(k.target.lanes(byteWidth(rule.sumType))),
        border(llvm::alignTo(w.low[1], lanes)) {}

  /// Calls `visit` with the first and the end row of each task, with its plane in `at`. Returns the number of tasks.
  Dim eachTask(llvm::function_ref<void(Value from, Value to)> visit) {
    Shape counts{result[0], result[1], ceildiv(result[2], kRowsOfTask)};
    k.eachPosition(k.lo, k.hi, counts, [&](ArrayRef<Value> task) {
      e.scoped([&] {
        at.clear();
        for (Value index : task)
          at.push_back({index});
        Value from = k.mul(at[2].base, k.constant(kRowsOfTask));
        Value to = k.minimum(k.add(from, k.constant(kRowsOfTask)), k.dim(result[2]));
        at.push_back({});
        visit(from, to);
      });
    });
    return counts[0] * counts[1] * counts[2];
  }

  /// Calls `visit` with the first row of a run of rows of the result and the rows of the run, which are computed
  /// together: all rows of most tasks, single ones of a task that has fewer. `all`: the most rows of a run.
  void eachRun(Value from, Value to, int64_t all, llvm::function_ref<void(Value first, int64_t rows)> visit) {
    auto single = [&] { k.loop(from, to, k.constant(1), [&](Value row) { visit(row, 1); }); };
    if (all == 1)
      return single();
    if (isMultipleOf(result[2], all))
      return visit(from, all);
    Value isWhole = k.compare(mlir::arith::CmpIPredicate::eq, k.sub(to, from), k.constant(all));
    k.when(isWhole, [&] { visit(from, all); });
    k.unless(isWhole, single);
  }

  /// Calls `visit` for each vector of columns of x or the result, which has `lanes` lanes during the call. `isStored`:
  /// the mask is used for stores.
  void eachVectorOf(const Dim &columns, bool isStored, llvm::function_ref<void(Value column, Value mask)> visit) {
    RowRange range{.from = k.constant(0),
                   .to = k.dim(columns),
                   .begin = 0,
                   .end = columns,
                   .lanes = lanes,
                   .stored = isStored ? narrowest(body, rule.type) : DType::i64,
                   .mayRepeat = !k.sharesMemory(),
                   .varies = true};
    eachVector(k, range, [&](Value column, int64_t width, Value mask) {
      llvm::SaveAndRestore fewer(lanes, width);
      visit(column, mask);
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  const Window &w;
  WindowRule rule;
  mlir::Block &body;
  ArrayRef<Value> results;
  Shape x, result;
  int64_t lanes;
  int64_t border;        // columns of scratch memory before those of x
  SmallVector<Index> at; // position in the result
};

} // namespace burin::codegen
