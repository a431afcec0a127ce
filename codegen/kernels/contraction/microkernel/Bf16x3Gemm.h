// f32 products as products of bf16 terms (see passes/lower/contractions/EmulateF32Gemm.cpp) on AMX tiles of 16 rows of
// 64 bytes.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// Computes the sums of a square of rows and columns in tile registers. The depth is cut into strips, so that the strip
/// of all rows stays in cache while panels pass.
class Bf16x3Gemm {
public:
  static constexpr int64_t kSide = 32; // side of a square: 2 × 2 tiles

  /// `left` and `right` hold terms as in ContractOp. A task has at most `squares` squares of rows and `panels` panels.
  Bf16x3Gemm(KernelBuilder &k, Memory left, Memory right, int64_t depth, int64_t squares, int64_t panels);

  int64_t scratchBytes() const;
  /// Configure the tile registers before the first product of a kernel, and release them after the last one.
  void begin();
  void end();
  /// Adds a strip to the sums of `kSide` rows from `row` (a multiple of kSide) on and the columns of a panel. `square`
  /// and `number` are the indices of the square and the panel in the task. Also prefetches a share of the next panel.
  void multiply(Value strip, Value row, Value panel, Value square, Value number);
  /// The sums of a row of a square, for a vector of columns.
  Value sums(Value square, Value number, Value row, int64_t vector);
  /// Scalar i1: whether all of these are finite.
  Value areFinite(llvm::ArrayRef<Value> sums);
  /// Recombined elements of the right operand at a step, for a vector of columns of a panel.
  Value columns(Value panel, Value step, int64_t vector);

  int64_t strips;

private:
  Value placeOf(Value square, Value number);
  void moveSums(llvm::StringRef instruction, Value place);
  void addBlock(Value left, Value right, llvm::function_ref<void(int64_t group)> beside);
  Value panelAt(Value panel);
  void tile(llvm::StringRef instruction, llvm::ArrayRef<int64_t> registers);
  void move(llvm::StringRef instruction, int64_t tile, const Memory &memory, Value at, int64_t rowBytes);

  KernelBuilder &k;
  Memory left, right, kept, configuration;
  int64_t blocks, stripBlocks, squares, keptSquares; // blocks of the depth
};

} // namespace burin::codegen
