// The heights of the tiles of a row of windows whose number is a symbol.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// There is code for a few heights: 3, 2 and 1 units, of a third of the tallest tile each, and 7 rows if a unit is 4
/// and that is worth its code. With 12, 8 and 7 rows there is a sum for every number from 26 on and most below, for
/// example 14 = 7 + 7, 28 = 12 + 8 + 8 and 50 = 12 + 12 + 12 + 7 + 7. For other numbers the last tile, of 2 units or of
/// 1, has rows that do not exist.
struct RowTiles {
  /// `count` is positive; a tile has at most `tallest` rows, which are at least 3.
  RowTiles(KernelBuilder &k, Value count, int64_t tallest, bool withSevens);

  struct Run {
    int64_t height;
    Value number;     // of adjacent tiles
    int64_t sureRows; // the first ones, which exist in each of them
  };
  SmallVector<Run> runs; // in the order of rows
  Value all;             // tiles
};

} // namespace burin::codegen
