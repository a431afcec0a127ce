// Attention on tensor cores: what a warp keeps of its query rows while it loops over keys.
#pragma once
#include "codegen/gpu/attention/AttentionWarps.h"

namespace burin::codegen {

class AttentionFragments : protected AttentionWarps {
protected:
  AttentionFragments(const KernelEmission &, ir::ScaledDotProductAttentionOp);

  /// What a loop over tiles of keys carries of this lane's two rows, which are 8 apart: halves 0 and 1.
  struct Online {
    SmallVector<Value> tops;   // the largest score so far, equal in the four lanes of a row
    SmallVector<Value> totals; // the sum of the weights of this lane's keys, relative to `tops`
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
    Fragments fragments;        // per 16 keys
    SmallVector<Value> shrinks; // per half: the factor that makes earlier sums relative to the new top
  };
  /// Turns the scores of a tile into weights. `seesAll`: whether every row sees every key of the tile.
  Weights weigh(Value firstKey, ArrayRef<Value> scores, Online &, bool seesAll);

  /// A tile of keys: `seesAll` says whether every row sees all of them, `isLast` whether no tile follows, as far as is
  /// known when code is emitted.
  struct KeyTile {
    Value firstKey;
    bool seesAll, isLast;
  };
  /// Calls `body`, which returns the new carried values, for tiles of keys from key `from` on, a multiple of
  /// `tileKeys`, to `end`, beyond which no row sees a key. Without a mask, tiles of which every row from `firstRow` on
  /// sees every key come first, in a loop of their own. A branch around the masks of one loop would not do: ptxas turns
  /// it into selects. The first row of a block is a multiple of `blockRows`.
  SmallVector<Value> overTiles(Value from, Value end, int64_t tileKeys, Value firstRow, int64_t blockRows,
                               SmallVector<Value> carried,
                               llvm::function_ref<SmallVector<Value>(const KeyTile &, ArrayRef<Value>)> body);
  /// Multiplies the sums of each half by its factor.
  void rescale(llvm::MutableArrayRef<Value> sums, ArrayRef<Value> shrinks);

  /// Divides the sums by the totals, 0 for rows that see no key, and stores them to shared memory, rows of `columns`
  /// elements. A barrier must follow.
  void storeResults(const Memory &, int64_t columns, const Online &, ArrayRef<Value> sums);
  /// `threads` threads compute the epilogue of `tileRows` rows that are stored so; adjacent threads have adjacent
  /// columns.
  void finish(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads);

private:
  void finishRows(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads, int64_t lanes);

  PointEmitter p;
  mlir::Block &body;
  ArrayRef<Value> results;
};

} // namespace burin::codegen
