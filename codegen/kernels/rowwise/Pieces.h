// The iteration space of a kernel without reductions, split where a concat begins to read another operand, a pad ends,
// or the panels of a pack are not whole, so that inside of a piece no vector needs to find out what it reads.
#pragma once
#include "codegen/emit/builder/RowVectors.h"
#include "codegen/emit/element/ElementEmitter.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

class Pieces {
public:
  Pieces(ElementEmitter &e, mlir::Block &body, const passes::IterationSpace &);

  bool areSeveral(int d) const { return !cuts[d].empty(); }
  /// Emits `body` for each combination of pieces of these dimensions, under the conditions that choose it.
  void choose(ArrayRef<Index> place, ArrayRef<int> dims, llvm::function_ref<void()> body);
  /// Visits a range of dimension d by vectors that lie in one piece each.
  void walk(int d, RowRange row, VisitVector visit);

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
