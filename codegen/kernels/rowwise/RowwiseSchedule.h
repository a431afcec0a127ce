// The schedule of a kernel without contraction: the dimensions of its walks (passes over a row), the ops of each walk,
// and the values kept in scratch memory between walks.
#pragma once
#include "codegen/target/Target.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

struct RowwiseSchedule {
  using Value = mlir::Value;

  RowwiseSchedule(mlir::Block &body, const passes::IterationSpace &, llvm::ArrayRef<Value> results, const Target &);

  /// Rows that are reduced together.
  static constexpr int64_t kRowsTogether = 2;

  mlir::Block &body;
  const passes::IterationSpace &alignment;
  const Shape &space;
  llvm::SmallVector<int> parallel, reduced; // dimensions of the space
  int64_t vectorWidth = 1;                  // lanes of a vector
  int64_t taskWidth = 1;                    // lanes of kTaskVectorBytes; tasks are multiples of it on all targets
  bool lanesReduce = false;                 // lanes run along a reduced dimension
  DType narrowest = DType::i64;             // narrowest element type of the results
  /// Reductions by the number of walks that must precede theirs.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> levels;
  /// Results with and without reduced dimensions: value, pointer.
  llvm::SmallVector<std::pair<Value, Value>> fullResults, pointResults;

  /// Scratch memory of an expensive value that several walks need; the first walk stores it.
  struct Slot {
    Dim offset, bytes; // of one row
    bool written = false, touched = false;
  };
  llvm::MapVector<Value, Slot> kept;
  Dim scratchBytes = 0;
  bool reducesExpensive = false; // some value takes longer to compute than to store and load

  /// Text for `--emit schedule`: the space, reduced dimensions, walks with their reductions, and kept values.
  std::string text() const;

  /// Whether rows begin at addresses that are no multiple of the vector size, because of their length, and are so long
  /// (8 vectors) that vectors across cache lines cost time.
  bool hasUnalignedRows() const;
  /// An operand with one value per element of the rows, which these values depend on; null if there is none.
  Value rowRead(llvm::ArrayRef<Value> roots) const;
  /// Whether each element of these values depends only on elements at the same position of the row.
  bool isElementwise(llvm::ArrayRef<Value> roots) const;
  /// Whether these values depend, except through kept values, on an operand that all rows share.
  bool readsSharedRow(llvm::ArrayRef<Value> roots) const;
  /// Whether these values depend on `v`, after the reductions that they read; kept values are loaded from scratch
  /// memory instead of computed if `isKeptRead`.
  bool needs(llvm::ArrayRef<Value> roots, Value v, bool isKeptRead = true) const;

private:
  void findLevels(llvm::ArrayRef<Value> results);
  void planScratch();
  bool isAlongRow(Value v) const;
  bool isRow(Value v) const;
};

} // namespace burin::codegen
