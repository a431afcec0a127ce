// Products of tiles of attention's operands by FMA: 256 threads of a block form a square, and each computes 4 rows and
// 4 columns of a tile of 64 by 64. Operands pass through shared memory, as f32.
#pragma once
#include "codegen/gpu/attention/AttentionOperands.h"

namespace burin::codegen {

class AttentionTiles : protected AttentionOperands {
protected:
  static constexpr int64_t kSide = 16, kThreads = kSide * kSide;
  static constexpr int64_t kOwn = 4;             // rows of a thread, and columns of its vector
  static constexpr int64_t kTile = kSide * kOwn; // rows, and columns, of a tile

  template <class Op> AttentionTiles(ElementEmitter &e, Op op) : AttentionOperands(e, op) { allocate(); }
  /// Sets `thread`, `ownRow` and `ownColumn`.
  void placeThread();

  /// kTile rows of an operand from `first` on; 0 outside of the tensor.
  struct Rows {
    const StridedMemory &source;
    Value first;
    const Dim &count, &columns; // of the tensor
  };
  /// Scalar products of rows of two operands: this thread's rows of `left` with its columns, which are rows of `right`.
  /// All threads have read the shared memory of slices at the end.
  SmallVector<Value> products(const Rows &left, const Rows &right);

  /// Stores element [row, column] of this thread's part of a tile to shared memory: `turned`, as the left operand of
  /// addProducts(), or as it lies, as the left operand whose rows are the columns of the tile.
  void storeWeights(int64_t row, Value vector, bool turned);
  /// Loads rows into shared memory, from the column chunk * kTile on, as the right operand of addProducts().
  void loadValues(const Rows &, int64_t chunk);
  /// Adds the product of the weights and the values.
  void addProducts(llvm::MutableArrayRef<Value> sums) { addProducts(weights, values, kTile, sums); }
  /// Whether products() has no barrier, as far as is known.
  bool mayHaveNoDepth() { return !depth.isStatic() || depth.value() == 0; }

  Value vectorOf(Value v) { return k.broadcast(v, kOwn); }
  Value multiply(Value x, Value y) { return mlir::arith::MulFOp::create(k.b, k.loc, x, y); }
  Value sum(Value x, Value y) { return mlir::arith::AddFOp::create(k.b, k.loc, x, y); }
  Value lane(Value v, int64_t i) { return mlir::vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{i}); }
  /// Reduces over the threads of a row, which are half a warp.
  Value overRow(Value v, llvm::function_ref<Value(Value, Value)> join);
  /// The largest element of a row of the tile, and the sum of its elements; `v` has this thread's elements.
  Value largestOfRow(Value v);
  Value sumOfRow(Value v);

  Value thread, ownRow, ownColumn; // the first ones of the thread in a tile

private:
  void allocate();
  void addProducts(const Memory &left, const Memory &right, int64_t steps, llvm::MutableArrayRef<Value> sums);
  void loadSlice(const Memory &, const Rows &, Value from);
  void store(const Memory &tile, Value place, const Rows &, Value row, Value column);

  Memory leftSlice, rightSlice; // [step of the depth][row]
  Memory weights;               // [step][row]
  Memory values;                // [step][column]
};

} // namespace burin::codegen
