// What a kernel without contraction does, before there is code: the dimensions its walks go along, what each of them
// computes, and what is kept in scratch memory in between.
#pragma once
#include "codegen/target/Target.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

struct RowwiseSchedule {
  using Value = mlir::Value;

  RowwiseSchedule(mlir::Block &body, const passes::IterationSpace &, llvm::ArrayRef<Value> results, const Target &);

  /// Rows that are reduced side by side.
  static constexpr int64_t kRowsTogether = 2;

  mlir::Block &body;
  const passes::IterationSpace &alignment;
  const Shape &space;
  llvm::SmallVector<int> parallel, reduced; // dimensions of the space
  int64_t vectorWidth = 1;
  bool lanesReduce = false;     // the lanes of vectors lie along a reduced dimension
  DType narrowest = DType::i64; // of the results
  /// Reductions by the number of walks that come before theirs.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> levels;
  /// Values with and without reduced dimensions, and where they go.
  llvm::SmallVector<std::pair<Value, Value>> fullResults, pointResults;

  /// An expensive value needed in several walks is kept in scratch memory by the first.
  struct Slot {
    Dim offset, bytes; // of one row
    bool written = false, touched = false;
  };
  llvm::MapVector<Value, Slot> kept;
  Dim scratchBytes = 0;
  bool reducesExpensive = false; // values that take longer to compute than memory takes

  /// For people: the space, what is reduced, the walks over a row and what they compute, what is kept between them.
  std::string text() const;

  /// Whether rows begin anywhere in a line of the cache, and are so long that it matters.
  bool startsAnywhere() const;
  /// An operand with rows that these values are computed from, or null.
  Value rowRead(llvm::ArrayRef<Value> roots) const;
  /// Whether these values are computed element by element, from nothing at another place of the row.
  bool isElementwise(llvm::ArrayRef<Value> roots) const;
  /// Whether these values are computed, as far as they are not kept, from an operand that all rows share.
  bool readsSharedRow(llvm::ArrayRef<Value> roots) const;

private:
  void findLevels(llvm::ArrayRef<Value> results);
  void planScratch();
  /// Whether these values are computed from `v`; what is kept is read from scratch memory.
  bool needs(llvm::ArrayRef<Value> roots, Value v, bool isKeptRead = true) const;
  bool isAlongRow(Value v) const;
  bool isRow(Value v) const;
};

} // namespace burin::codegen
