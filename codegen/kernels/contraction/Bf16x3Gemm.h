// Products of f32 numbers as products of their bf16 terms (see passes/lower/EmulateF32Gemm.cpp), by tiles of 16 rows of
// 64 bytes: AMX.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// Sums of a square of rows and columns at a time, in tile registers. The depth is cut into strips, so that what all
/// rows have of one stays in cache while panels pass.
class Bf16x3Gemm {
public:
  static constexpr int64_t kSide = 32; // of a square: two tiles by two

  /// The terms of both sides as in ContractOp. A task has so many squares of rows and panels of columns at most.
  Bf16x3Gemm(KernelBuilder &k, Memory left, Memory right, int64_t depth, int64_t squares, int64_t panels);

  int64_t scratchBytes() const;
  /// Before the first product of a kernel, and after the last one.
  void begin();
  void end();
  /// Adds up a strip for `kSide` rows, from a multiple of as many on, and the columns of a panel: square `square` of
  /// the task, and panel `number`. On the way, a share of the next panel is fetched.
  void multiply(Value strip, Value row, Value panel, Value square, Value number);
  /// Of a row of a square: the sums of a vector of columns.
  Value sums(Value square, Value number, Value row, int64_t vector);
  /// Whether all of these are finite.
  Value areFinite(llvm::ArrayRef<Value> sums);
  /// Elements of the right side at a step, put together again: those of a vector of columns of a panel.
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
  int64_t blocks, stripBlocks, squares, keptSquares; // blocks are those of the depth
};

} // namespace burin::codegen
