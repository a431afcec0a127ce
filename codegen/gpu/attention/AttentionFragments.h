// Query rows of attention on tensor cores: a warp has 16, and a lane two of them, 8 apart. Scores and weighted sums of
// values are sums of matrix instructions: element 4 * n + 2 * half + i of a lane is in row 8 * half, column 8 * n + i.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/gpu/attention/AttentionSides.h"
#include "codegen/gpu/contraction/TensorCore.h"

namespace burin::codegen {

class AttentionFragments : protected AttentionSides {
protected:
  static constexpr int64_t kWarpRows = 16, kHalves = 2;
  static constexpr int64_t kColumns = 8, kSteps = 16; // columns and summed elements of one matrix instruction

  AttentionFragments(const KernelEmission &, ir::ScaledDotProductAttentionOp);
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
  /// Whether 16-byte asynchronous copies are possible: strides, sizes and addresses are multiples of 16 bytes. Null if
  /// that is known to be false.
  Value copiesPieces();
  /// Copies a tile by asynchronous copies of `threads` threads, this one being number `member`.
  void copyTile(const Tile &, Value member, int64_t threads);
  /// The same by single elements, complete on return.
  void storeTile(const Tile &, Value member, int64_t threads);

  /// What a loop over tiles of keys carries of this lane's rows.
  struct Online {
    SmallVector<Value> tops, totals; // the largest score; the sum of this lane's weights
    static constexpr size_t kCount = 2 * kHalves;
    static Online of(ArrayRef<Value> carried) {
      return {SmallVector<Value>(carried.take_front(kHalves)), SmallVector<Value>(carried.slice(kHalves, kHalves))};
    }
    SmallVector<Value> followedBy(ArrayRef<Value> others) const {
      SmallVector<Value> all(tops);
      llvm::append_range(all, totals);
      llvm::append_range(all, others);
      return all;
    }
  };
  Online start();
  struct Weights {
    SmallVector<SmallVector<Value>> fragments; // left operands of 16 keys each
    SmallVector<Value> shrinks;                // factors of earlier sums, by half
  };
  /// Turns the scores of a tile into weights. `isCut` (i1): whether some rows may not see some of the keys; null: they
  /// may not.
  Weights weigh(Value firstKey, ArrayRef<Value> scores, Online &, Value isCut = {});
  void rescale(llvm::MutableArrayRef<Value> sums, ArrayRef<Value> shrinks);

  /// Divides the sums by the totals and stores them to shared memory, rows of `columns` elements, so that adjacent
  /// threads have adjacent columns in finish(), which follows a barrier and has `threads` threads.
  void stage(const Memory &, int64_t columns, const Online &, ArrayRef<Value> sums);
  void finish(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads);

  Value product(Value x, Value y) { return mlir::arith::MulFOp::create(k.b, k.loc, x, y); }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }

  DType dtype; // of query, key and value
  Value firstRow, ownRow, thread, lane;

private:
  SmallVector<Value> maskedScores(Value firstKey, ArrayRef<Value> scores);
  void finishRows(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads, int64_t lanes);

  PointEmitter p;
  mlir::Block &body;
  ArrayRef<Value> results;
};

} // namespace burin::codegen
