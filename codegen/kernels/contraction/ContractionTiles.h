// Register tiles of contractions: emits the sums of one tile and passes them to the epilogue.
//
// Each accumulator adds its products in the order of k (of a pair of bf16 the second one first), so that the result of
// a row does not depend on its tile, task or batch.
//
// Padding costs little: loops over the taps of a window run over the taps inside the left operand. Along a row that
// holds for whole tiles; tiles at the ends of a row loop over the taps, each with the rows that contain it. If the size
// of the row is a symbol, the other rows read zeros.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/kernels/contraction/ContractionEpilogue.h"
#include "codegen/kernels/contraction/ContractionTasks.h"
#include "codegen/kernels/contraction/ZeroRow.h"
#include "codegen/kernels/contraction/microkernel/CompressedRow.h"
#include "codegen/kernels/contraction/microkernel/KeptSums.h"

namespace burin::codegen {

class TailColumns;

class ContractionTiles {
public:
  ContractionTiles(const KernelEmission &kernel, ContractionSchedule &schedule);

  /// A position in all dimensions except the one along which tiles run.
  struct Place {
    Value batch;
    Value rowsBase;                                 // element of lhs at the start of row 0's window
    SmallVector<Value> outer;                       // positions in the outer dimensions
    std::map<size_t, std::pair<Value, Value>> taps; // by cut outer dimension: range of taps inside lhs
  };
  Place firstPlace(Value batch);
  Place placeOf(Value batch, Value outerPosition);

  /// A vector of columns of the right operand for a step of the sum.
  using Columns = llvm::function_ref<Value(int64_t vector, Value step)>;
  /// A range [from, to) of the outermost taps, to be added to the partial sums in scratch memory.
  struct SumBlock {
    KeptSums &sums;
    Value base; // index of row 0 among the kept sums
    Value from, to;
  };
  struct Tile {
    Value row; // first row
    int64_t rows;
    Chunk chunk;
    std::optional<int64_t> end = {}; // value of `row`, if windows of the tile reach beyond the ends of the row
    Value rowsEnd = {};              // end of the unit's rows, if rows of the tile may lie beyond it
    int64_t sureRows = 0;            // number of leading rows that do not
    // Index of this tile among those of a panel, and their number; null: no share of the next panel.
    Value visit = {}, visits = {};
    CompressedRow *nonZeros = nullptr; // list of the elements to multiply; null: all
    const SumBlock *block = nullptr;   // null: the whole sum
    Columns columns = {};              // null: from panels of rhs
  };
  void emit(const Place &place, const Tile &tile);

  /// Finishes a row with given sums: epilogue and stores.
  void finish(const Place &place, Value row, const Chunk &chunk, ArrayRef<Value> sums);
  /// Emits the tail columns of rows [from, to).
  void emitTail(const Place &place, Value from, Value to);
  /// Position in lhs of the first product of a row.
  Value leftStart(const Place &place, Value row);

  const Memory lhs, rhs;

private:
  using Step = ContractionLoopNest::Step;
  using Rows = ContractionLoopNest::Rows;
  using Innermost = llvm::function_ref<SmallVector<Value>(Value lhsAt, Value kAt, ValueRange sums, Rows, Value tap)>;
  struct SumLoops { // of one tile
    const Place &place;
    size_t count;
    std::optional<int64_t> end;
    const SumBlock *block;
    Innermost innermost;
  };
  SmallVector<Value> sumLoop(const SumLoops &, ArrayRef<Step> loops, Value lhsAt, Value kAt, SmallVector<Value> carried,
                             Rows rows, Value tap = {});
  SmallVector<Value> columnMasks(const Tile &tile);
  SmallVector<Value> rowsOf(const Tile &tile);
  SmallVector<Value> offsetsOf(const Tile &tile, ArrayRef<Value> rows);
  void emitListed(const Place &place, const Tile &tile, Columns columns, class PanelPrefetch &fetch);
  void finishTile(const Place &place, const Tile &tile, ArrayRef<Value> sums);
  void tailTile(const Place &place, TailColumns &dots, Value row, int64_t rows);

  ElementEmitter &e;
  KernelBuilder &k;
  ContractionSchedule &s;
  ContractionEpilogue epilogue;
  std::optional<Memory> tail;
  std::optional<ZeroRow> zeros;
};

} // namespace burin::codegen
