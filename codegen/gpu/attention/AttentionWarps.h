// Attention, or its gradient, on tensor cores: a warp has 16 rows of a tile, and a lane two of them, 8 apart. Products
// are sums of matrix instructions: element 4 * n + 2 * half + i of a lane is in row lane / 4 + 8 * half of the warp's,
// and in column 8 * n + 2 * (lane % 4) + i.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/gpu/attention/AttentionOperands.h"
#include "codegen/gpu/contraction/TensorCore.h"

namespace burin::codegen {

class AttentionWarps : protected AttentionOperands {
protected:
  static constexpr int64_t kWarpRows = 16, kHalves = 2;
  static constexpr int64_t kColumns = 8, kSteps = 16; // columns and summed elements of one matrix instruction

  template <class Op> AttentionWarps(ElementEmitter &e, Op op) : AttentionOperands(e, op), dtype(query.memory.dtype) {}
  /// Sets `thread`, `lane` and `ownRow`; the warps have the rows from `firstRow` on, in order.
  void placeThread(Value index);

  /// A tile of rows from `first` on that goes to shared memory, from `sharedRow` on: for each block of 32 columns all
  /// rows. Outside of the tensor it has zeros.
  struct Tile {
    const SwizzledTile &to;
    Value sharedRow;
    const StridedMemory &source;
    Value first;
    const Dim &allRows, &allColumns;
    int64_t rows, blocks;
  };
  /// Whether 16-byte asynchronous copies of the operands are possible: strides, sizes and addresses are multiples of 16
  /// bytes. Null if that is known to be false.
  Value copiesPieces(ArrayRef<const StridedMemory *> operands);
  /// Copies a tile by asynchronous copies of `threads` threads, this one being number `member`.
  void copyTile(const Tile &, Value member, int64_t threads);
  /// The same by single elements, complete on return.
  void storeTile(const Tile &, Value member, int64_t threads);

  /// Loads the rows of this warp from a tile of `tileRows` rows that begins at `sharedRow`: left operands of products,
  /// per step of kSteps columns.
  using Fragments = SmallVector<SmallVector<Value>>;
  Fragments loadRows(const SwizzledTile &, Value sharedRow, int64_t tileRows, int64_t steps);
  /// Scalar products of this warp's rows and those of a tile.
  SmallVector<Value> multiplyRows(const Fragments &, const SwizzledTile &, Value sharedRow, int64_t tileRows);
  /// Adds the product of weights, whose columns are the rows of a tile, and the tile.
  void addProducts(const Fragments &weights, const SwizzledTile &, Value sharedRow, int64_t tileRows,
                   llvm::MutableArrayRef<Value> sums);
  /// Products as left operands.
  Fragments fragmentsOf(ArrayRef<Value> elements);
  /// Masks scores of this lane's rows against the keys from `firstKey` on.
  SmallVector<Value> maskedScores(Value firstKey, ArrayRef<Value> scores);

  Value product(Value x, Value y) { return mlir::arith::MulFOp::create(k.b, k.loc, x, y); }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }

  DType dtype; // of query, key and value
  Value firstRow, ownRow, thread, lane;

private:
  void multiply(ArrayRef<Value> left, ArrayRef<Value> right, llvm::MutableArrayRef<Value> sums, int64_t matrix);
};

} // namespace burin::codegen
