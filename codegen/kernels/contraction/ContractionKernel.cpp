// The order in which tasks of contractions (matrix products and convolutions) compute their register tiles.
#include "codegen/emit/element/Window.h"
#include "codegen/kernels/contraction/ContractionTiles.h"
#include "codegen/kernels/contraction/RowTiles.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kRestStep = 4;      // step of tile heights for the remainder of a symbolic number of rows
constexpr int64_t kBlockSteps = 2048; // steps of a deep sum; their part of a panel is 256 KB of f32

using Tile = ContractionTiles::Tile;
using SumBlock = ContractionTiles::SumBlock;

class ContractionKernel {
public:
  explicit ContractionKernel(const KernelEmission &kernel)
      : k(kernel.e.k), s(*kernel.body.getOps<ContractOp>().begin(), leftSide(kernel), k.target), tiles(kernel, s) {
    if (s.keepsSums)
      kept.emplace(k, s.sumType, s.tileChunks * s.chunkWidth);
  }

  LaunchShape emit() {
    eachTask(k, s, [&](const ContractionTask &task) { s.byRows ? taskOfRows(task) : taskOfUnits(task); });
    return {s.tasks(), s.scratchBytes(), s.text()};
  }

private:
  static StridedMemory leftSide(const KernelEmission &kernel) {
    ContractOp op = *kernel.body.getOps<ContractOp>().begin();
    return kernel.e.stridedMemoryOf(op.getLhs());
  }

  /// Rows of a task at one outer position.
  struct Unit {
    const ContractionTask &task;
    ContractionTiles::Place place;
    Value together = {}; // units that use a chunk of a panel one after the other; null: 1
    Value before = {};   // number of those units that have used it already; null: 0
  };

  // ---- tasks
  void taskOfRows(const ContractionTask &task) {
    const Dim &perBlock = s.tiling.unitsPerBlock; // fewer in the last task
    Unit unit{task, tiles.firstPlace(task.batch)};
    Value from = task.unitFrom, to = task.unitTo;
    if (kept) {
      Value base = k.sub(k.constant(0), from);
      byBlocks(task, k.sub(to, from), [&](const Chunk &chunk, auto visit) { visit(unit, base, from, to, chunk); });
      return;
    }
    emitRows(unit, from, to, perBlock);
    emitTail(unit, from, to);
  }

  void taskOfUnits(const ContractionTask &task) {
    const Dim &perBlock = s.tiling.unitsPerBlock; // fewer in the last task
    Value together = perBlock.isStatic() ? k.dim(perBlock) : k.sub(task.unitTo, task.unitFrom);
    auto eachUnit = [&](auto body) {
      k.loop(task.unitFrom, task.unitTo, k.constant(1), [&](Value number) {
        body({task, tiles.placeOf(task.batch, number), together, k.sub(number, task.unitFrom)}, number);
      });
    };
    Value none = k.constant(0);
    if (kept) {
      Value rows = k.mul(k.sub(task.unitTo, task.unitFrom), k.dim(s.along.size));
      byBlocks(task, rows, [&](const Chunk &chunk, auto visit) {
        eachUnit([&](const Unit &unit, Value number) {
          Value base = k.mul(k.sub(number, task.unitFrom), k.dim(s.along.size));
          visit(unit, base, none, k.dim(s.along.size), chunk);
        });
      });
      return;
    }
    // With several tiles per unit, all units use a chunk of the panel before the next one, as both may exceed the
    // cache.
    if (s.along.size.isStatic() && s.along.size.value() > fullTileRows())
      eachChunk(k, s, task, s.tileChunks, [&](const Chunk &chunk) {
        eachUnit([&](const Unit &unit, Value) { allTiles(unit, none, s.along.size.value(), chunk); });
      });
    else
      eachUnit([&](const Unit &unit, Value) { emitRows(unit, none, k.dim(s.along.size), s.along.size); });
    if (s.tailColumns)
      eachUnit([&](const Unit &unit, Value) { emitTail(unit, none, k.dim(s.along.size)); });
  }

  void emitTail(const Unit &unit, Value from, Value to) {
    if (s.tailColumns)
      k.when(unit.task.isLastBlock, [&] { tiles.emitTail(unit.place, from, to); });
  }

  // ---- deep sums over windows, block by block of the outermost taps: the block's part of the panel stays in cache
  // while all rows of the task pass. The order of the products of a sum does not change.
  using RowsVisitor = llvm::function_ref<void(const Unit &, Value base, Value from, Value to, const Chunk &)>;
  /// `eachRows` calls its argument for the rows of each unit of the task, which has `rows` rows in total.
  void byBlocks(const ContractionTask &task, Value rows,
                llvm::function_ref<void(const Chunk &, RowsVisitor)> eachRows) {
    Dim taps = s.sum.front().size, inBlock = max(floordiv(taps * kBlockSteps, max(s.depth, 1)), 1);
    eachChunk(k, s, task, s.tileChunks, [&](const Chunk &chunk) {
      kept->clear(rows);
      k.loop(k.constant(0), k.dim(taps), k.dim(inBlock), [&](Value from) {
        Value to = k.minimum(k.add(from, k.dim(inBlock)), k.dim(taps));
        eachRows(chunk, [&](const Unit &unit, Value base, Value rowFrom, Value rowTo, const Chunk &chunk) {
          SumBlock block{*kept, base, from, to};
          blockTiles(unit, rowFrom, rowTo, chunk, block);
        });
      });
      eachRows(chunk, [&](const Unit &unit, Value base, Value rowFrom, Value rowTo, const Chunk &chunk) {
        k.loop(rowFrom, rowTo, k.constant(1),
               [&](Value row) { tiles.finish(unit.place, row, chunk, kept->load(base, row, 1, chunk.vectors)); });
      });
    });
  }

  void blockTiles(const Unit &unit, Value from, Value to, const Chunk &chunk, const SumBlock &block) {
    int64_t rows = s.along.size.value();
    int64_t whole = s.byRows ? std::min(rows, s.tiling.unitsPerBlock.value()) : rows, rest = rows % whole;
    if (!rest)
      return allTiles(unit, from, whole, chunk, &block);
    Value isWhole = k.compare(arith::CmpIPredicate::eq, k.sub(to, from), k.constant(whole));
    if (mayShareTiles(rest))
      return tilesOfEither(unit, from, {isWhole, whole, rest}, chunk, &block);
    k.when(isWhole, [&] { allTiles(unit, from, whole, chunk, &block); });
    k.unless(isWhole, [&] { allTiles(unit, from, rest, chunk, &block); });
  }

  // ---- rows [from, to) of a unit; a block has `perBlock` rows
  void emitRows(const Unit &unit, Value from, Value to, const Dim &perBlock) {
    if (!s.along.size.isStatic())
      return s.byRows ? anyRows(unit, from, to) : windowsOfRow(unit, to);
    int64_t rows = s.along.size.value(), block = std::min(rows, perBlock.value());
    if (int64_t rest = block ? rows % block : 0) { // rows of the last block
      Value isWhole = k.compare(arith::CmpIPredicate::eq, k.sub(to, from), k.constant(block));
      if (mayShareTiles(rest))
        return eachChunk(k, s, unit.task, s.tileChunks,
                         [&](const Chunk &chunk) { tilesOfEither(unit, from, {isWhole, block, rest}, chunk); });
      k.when(isWhole, [&] { allRows(unit, from, block); });
      k.unless(isWhole, [&] { allRows(unit, from, rest); });
    } else if (block) {
      allRows(unit, from, block);
    }
  }

  /// A symbolic number of rows: full tiles, and one more for the remainder, which may include rows that do not exist.
  /// Each panel is read once.
  void anyRows(const Unit &unit, Value from, Value to) {
    using enum arith::CmpIPredicate;
    // A few rows are the batch of a recurrent network, for example, whose steps are loops.
    const int64_t few = s.along.size.symbol() && s.isInLoop() ? kRestStep - 1 : 1;
    Value count = k.sub(to, from);
    for (int64_t rows = 1; rows <= few; ++rows)
      k.when(k.compare(eq, count, k.constant(rows)), [&] { fewRows(unit, {from, rows, {}}); });
    Value areMany = s.tileChunks > 1 ? k.compare(sge, count, k.constant(s.leastRows())) : Value();
    auto inTiles = [&](const Chunk &chunk) {
      const int64_t most = s.rowsOf(chunk.vectors), below = (most - 1) / kRestStep * kRestStep;
      Value full = k.div(k.add(count, k.constant(most - below - 1)), k.constant(most));
      Value start = k.add(from, k.mul(full, k.constant(most))), rest = k.sub(to, start);
      Tile whole{from, most, chunk};
      whole.rowsEnd = to;
      whole.sureRows = below + 1;
      equalTiles(unit, whole, full, k.constant(0), full);
      for (int64_t rows = below; rows > 0; rows -= kRestStep) {
        Tile tile{start, rows, chunk};
        tile.rowsEnd = to;
        tile.sureRows = rows - kRestStep + 1;
        Value isTaken = arith::AndIOp::create(k.b, k.loc, k.compare(sge, rest, k.constant(tile.sureRows)),
                                              k.compare(sle, rest, k.constant(rows)));
        k.when(isTaken, [&] { tiles.emit(unit.place, tile); });
      }
    };
    k.unless(k.compare(sle, count, k.constant(few)),
             [&] { eachChunk(k, s, unit.task, s.tileChunks, inTiles, areMany); });
  }

  /// A symbolic number of windows along an image's row, which may be a few tiles: their heights add up to it wherever
  /// possible.
  void windowsOfRow(const Unit &unit, Value count) {
    Value isSingle = k.compare(arith::CmpIPredicate::eq, count, k.constant(1));
    k.when(isSingle, [&] { fewRows(unit, {k.constant(0), 1, {}}); });
    k.unless(isSingle, [&] {
      eachChunk(k, s, unit.task, s.tileChunks, [&](const Chunk &chunk) {
        const RowTiles tiles(k, count, s.rowsOf(chunk.vectors), /*withSevens=*/!chunk.isRest);
        Value before = k.constant(0), row = k.constant(0);
        for (const auto &[height, number, sureRows] : tiles.runs) {
          Tile tile{row, height, chunk};
          if (sureRows < height) {
            tile.rowsEnd = count;
            tile.sureRows = sureRows;
          }
          equalTiles(unit, tile, number, before, tiles.all);
          before = k.add(before, number);
          row = k.add(row, k.mul(number, k.constant(height)));
        }
      });
    });
  }

  /// A static number of rows: tiles of nearly equal height instead of full tiles and a remainder.
  void allRows(const Unit &unit, Value from, int64_t rows) {
    if (rows > fullTileRows() || s.rowGroup > 1) {
      eachChunk(k, s, unit.task, s.tileChunks, [&](const Chunk &chunk) { allTiles(unit, from, rows, chunk); });
      return;
    }
    Tile tile{from, rows, {}};
    if (!s.isInside(0, rows))
      tile.end = 0;
    fewRows(unit, tile);
  }
  /// Tiles whose windows all lie inside the left operand share a loop. If rows are gathered, `start` is 0.
  void allTiles(const Unit &unit, Value start, int64_t rows, const Chunk &chunk, const SumBlock *block = nullptr) {
    int64_t groups = rows / s.rowGroup, count = llvm::divideCeil(groups, s.rowsOf(chunk.vectors) / s.rowGroup);
    auto inside = [&](int64_t from, int64_t size) { return s.isInside(from * s.rowGroup, size * s.rowGroup); };
    for (TileRun run : tilesOf(groups, count, inside)) {
      Tile tile{k.add(start, k.constant(run.from * s.rowGroup)), run.size * s.rowGroup, chunk};
      if (!run.inside)
        tile.end = run.from;
      tile.block = block;
      equalTiles(unit, tile, k.constant(run.tiles), k.constant(run.before), k.constant(count));
    }
  }

  /// The rows of a block: `whole`, or `rest` in the last one.
  struct EitherRows {
    Value isWhole;
    int64_t whole, rest;
  };
  /// Whether the tiles of a whole block and of the last one, with `rest` rows, may have the same code.
  bool mayShareTiles(int64_t rest) const { return s.byRows && s.rowGroup == 1 && rest > s.tileRows; }
  /// The most rows of a tile that spans as many columns as possible.
  int64_t fullTileRows() const { return s.rowsOf(s.tileChunks * s.chunkVectors()); }
  /// The tiles of a whole block and of the last one have nearly the same heights, and code is long: it is emitted once
  /// per height, for a number of tiles that the block determines.
  void tilesOfEither(const Unit &unit, Value start, const EitherRows &rows, const Chunk &chunk,
                     const SumBlock *block = nullptr) {
    auto runsOf = [&](int64_t count) {
      return tilesOf(count, llvm::divideCeil(count, s.rowsOf(chunk.vectors)), [](int64_t, int64_t) { return true; });
    };
    auto ofHeight = [](ArrayRef<TileRun> runs, int64_t height) {
      auto run = llvm::find_if(runs, [&](const TileRun &r) { return r.size == height; });
      return run == runs.end() ? TileRun{0, height, 0, 0, true} : *run;
    };
    auto chosen = [&](int64_t whole, int64_t rest) -> Value {
      if (whole == rest)
        return k.constant(whole);
      return arith::SelectOp::create(k.b, k.loc, rows.isWhole, k.constant(whole), k.constant(rest));
    };
    const SmallVector<TileRun> ofWhole = runsOf(rows.whole), ofRest = runsOf(rows.rest);
    llvm::SmallSetVector<int64_t, 4> heights;
    for (const TileRun &run : llvm::concat<const TileRun>(ofWhole, ofRest))
      heights.insert(run.size);
    for (int64_t height : heights) {
      const TileRun whole = ofHeight(ofWhole, height), rest = ofHeight(ofRest, height);
      Tile tile{k.add(start, chosen(whole.from, rest.from)), height, chunk};
      tile.block = block;
      equalTiles(unit, tile, chosen(whole.tiles, rest.tiles), chosen(whole.before, rest.before),
                 k.constant(llvm::divideCeil(rows.whole, s.rowsOf(chunk.vectors))));
    }
  }

  /// Emits `count` tiles like `first`, from its row on. `inUnit` is the number of tiles of a unit, which share the
  /// prefetch of the next panel; `before` of them precede these.
  void equalTiles(const Unit &unit, const Tile &first, Value count, Value before, Value inUnit) {
    int64_t perPanel = s.chunksPerPanel();
    Value together = unit.together ? unit.together : k.constant(1);
    Value pass = k.mul(k.rem(first.chunk.number, k.constant(perPanel)), together);
    if (unit.before)
      pass = k.add(pass, unit.before);
    Value visits = k.maximum(k.mul(inUnit, k.mul(k.constant(perPanel), together)), k.constant(1));
    k.loop(k.constant(0), count, k.constant(1), [&](Value t) {
      Tile tile = first;
      tile.visit = k.add(k.add(k.mul(pass, inUnit), before), t);
      tile.visits = visits;
      tile.row = k.add(first.row, k.mul(t, k.constant(first.rows)));
      tiles.emit(unit.place, tile);
    });
  }

  // ---- a single tile of few rows, for all chunks
  /// A single row with many zeros uses the list of its nonzero elements.
  void fewRows(const Unit &unit, Tile tile) {
    if (tile.rows > 1 || !s.skipsZeros)
      return fewTiles(unit, tile);
    CompressedRow some(k, tiles.lhs, tiles.leftStart(unit.place, tile.row), s.depth, s.sumType);
    Value pays = some.paysOff();
    k.when(pays, [&] {
      some.list(k.mul(k.dim(s.depth), k.constant(kSmallRows / s.chunksPerPanel())));
      Tile listed = tile;
      listed.nonZeros = &some;
      fewTiles(unit, listed);
    });
    k.unless(pays, [&] { fewTiles(unit, tile); });
  }

  /// Computes several chunks at once, to have enough independent sums.
  void fewTiles(const Unit &unit, Tile tile) {
    const int64_t together = std::max(s.tileChunks, kSmallRows / tile.rows);
    eachChunk(k, s, unit.task, together, [&](const Chunk &chunk) {
      tile.chunk = chunk;
      tiles.emit(unit.place, tile);
    });
  }

  KernelBuilder &k;
  ContractionSchedule s;
  ContractionTiles tiles;
  std::optional<KeptSums> kept;
};

} // namespace

LaunchShape emitContraction(const KernelEmission &kernel) { return ContractionKernel(kernel).emit(); }

} // namespace burin::codegen
