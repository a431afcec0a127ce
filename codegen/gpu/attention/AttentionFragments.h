// Attention on tensor cores: what a warp keeps of its query rows while it loops over keys.
#pragma once
#include "codegen/gpu/attention/AttentionWarps.h"

namespace burin::codegen {

class AttentionFragments : protected AttentionWarps {
protected:
  AttentionFragments(const KernelEmission &, ir::ScaledDotProductAttentionOp);

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
    Fragments fragments;        // per 16 keys
    SmallVector<Value> shrinks; // factors of earlier sums, by half
  };
  /// Turns the scores of a tile into weights. `seesAll`: whether every row sees every key of the tile.
  Weights weigh(Value firstKey, ArrayRef<Value> scores, Online &, bool seesAll);

  /// A tile of keys: `seesAll` says whether every row sees all of them, `isLast` whether no tile follows, as far as is
  /// known when code is emitted.
  struct KeyTile {
    Value firstKey;
    bool seesAll, isLast;
  };
  /// Loops over tiles of keys from key `from` on, a multiple of `tileKeys`; `end` is the first key that no row sees.
  /// Tiles of which every row from `firstRow` on sees every key come first, in a loop of their own. Branches around the
  /// masks of one loop would not do: ptxas turns them into selects. The first row of a block is a multiple of
  /// `blockRows`.
  SmallVector<Value> overTiles(Value from, Value end, int64_t tileKeys, Value firstRow, int64_t blockRows,
                               SmallVector<Value> carried,
                               llvm::function_ref<SmallVector<Value>(const KeyTile &, ArrayRef<Value>)> body);
  void rescale(llvm::MutableArrayRef<Value> sums, ArrayRef<Value> shrinks);

  /// Divides the sums by the totals and stores them to shared memory, rows of `columns` elements, so that adjacent
  /// threads have adjacent columns in finish(), which follows a barrier and has `threads` threads.
  void stage(const Memory &, int64_t columns, const Online &, ArrayRef<Value> sums);
  void finish(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads);

private:
  void finishRows(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads, int64_t lanes);

  PointEmitter p;
  mlir::Block &body;
  ArrayRef<Value> results;
};

} // namespace burin::codegen
