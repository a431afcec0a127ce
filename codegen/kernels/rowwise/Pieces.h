// The iteration space of a kernel without reductions, split where a concat begins to read another operand and a pad
// ends, so that inside of a piece no vector needs to find out which operand it lies in.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

class Pieces {
public:
  Pieces(ElementEmitter &e, mlir::Block &body, const passes::IterationSpace &);

  bool areSeveral(int d) const { return !cuts[d].empty(); }
  /// Emits `body` for each combination of pieces of these dimensions, under the conditions that choose it.
  void choose(ArrayRef<Index> place, ArrayRef<int> dims, llvm::function_ref<void()> body);
  using Visit = llvm::function_ref<void(Value begin, Value mask)>;
  /// Visits positions [from, to) of dimension d by vectors that lie in one piece each; the mask may be null.
  /// `narrowest`: of what is stored.
  void walk(int d, Value from, Value to, int64_t lanes, DType narrowest, Visit visit);

private:
  void findCuts(mlir::Block &body, const passes::IterationSpace &);

  ElementEmitter &e;
  KernelBuilder &k;
  Shape space;
  /// Per dimension: where its pieces end, except the last one; in ascending order. None where the code of all pieces
  /// would be too large.
  SmallVector<Shape> cuts;
};

} // namespace burin::codegen
