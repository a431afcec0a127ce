// The contraction emitter: matrix products and convolutions alike, by register tiles.
//
// A tile is `rows` positions of the innermost result dimension but one, times a chunk of columns, held in vector
// accumulators over the whole sum. The right side comes in panels (see PackOp); a chunk is what a tile takes of a
// panel's width. Each accumulator adds its products in the order of k, in any tile: a row's result does not depend on
// which tile, task or batch it is computed in. A few columns beyond the last whole vector may come as rows of their
// own, the tail: they are summed by lanes (see TailColumns.h). What is fused behind the product is computed on the
// accumulators.
//
// Padding costs nothing: the loops over the taps of a window run over those that lie inside the left side. Along a row
// that holds for whole tiles; those at its ends go tap by tap through the rows that see it.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/Window.h"
#include "codegen/kernels/contraction/Bf16x3Gemm.h"
#include "codegen/kernels/contraction/CompressedRow.h"
#include "codegen/kernels/contraction/ContractionEpilogue.h"
#include "codegen/kernels/contraction/ContractionLoopNest.h"
#include "codegen/kernels/contraction/ContractionTiling.h"
#include "codegen/kernels/contraction/KeptSums.h"
#include "codegen/kernels/contraction/PanelPrefetch.h"
#include "codegen/kernels/contraction/TailColumns.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kRestStep = 4;      // heights of the tile for what full tiles leave of an unknown row count
constexpr int64_t kBlockSteps = 2048; // of a deep sum; their part of a panel is 256 KB of f32

DType accumulatorType(DType type) {
  if (type == DType::f64 || type == DType::i64)
    return type;
  return isFloat(type) ? DType::f32 : DType::i32;
}

class ContractionKernel : ContractionLoopNest {
public:
  ContractionKernel(ElementEmitter &e, ContractOp op, Block &body, const passes::IterationSpace &a,
                    ArrayRef<Value> results)
      : ContractionLoopNest(op, e.stridedMemoryOf(op.getLhs())), e(e), k(e.k), lhs(left.memory),
        rhs(*e.memoryOf(passes::skipReshapes(op.getRhs()))), sumType(accumulatorType(dtypeOf(op.getLhs()))),
        epilogue(e, *this, sumType, body, a, results) {
    lanes = k.target.lanes(byteWidth(sumType));
    panelWidth = passes::kPanelBytes / byteWidth(sumType);
    chunkWidth = k.target.tileVectors * lanes;
    columns = allColumns = shapeOf(op.getResult()).back();
    if (Value t = op.getTail()) {
      tail = *e.memoryOf(passes::skipReshapes(t));
      columns = columns - (tailColumns = shapeOf(t)[op.getBatch() + 1].value());
    }
    if (columns.isStatic() && columns.value() % chunkWidth)
      narrowVectors = (columns.value() % chunkWidth + lanes - 1) / lanes;
    // The columns of other chunks need no mask, which costs something without AVX-512.
    if (narrowVectors == k.target.tileVectors && k.target.avx512)
      narrowVectors = 0;
    // Rows a multiple of a way apart have their lines in one set of the first cache level: more of them than it has
    // ways would drive each other out.
    const Machine &machine = k.target.machine;
    bool shareSet = gathered.empty() && along.stride.isStatic() &&
                    along.stride.value() * byteWidth(lhs.dtype) % machine.l1WayBytes == 0;
    mostRows = shareSet ? std::min(k.target.tileRows, machine.l1Ways) : k.target.tileRows;
  }

  LaunchShape emit() {
    // Tasks: batches, blocks of rows (or of outer rows), blocks of panels. The split is the same on every target.
    bool byRows = outer.empty() && !along.cut;
    Dim units = byRows ? along.size : Dim(1);
    for (auto &dim : outer)
      units = units * dim.size;
    if (rowGroup > 1)
      units = floordiv(units, rowGroup);
    ContractionTiling tasks(byRows && rowGroup == 1, units, byRows ? Dim(rowGroup) : along.size, depth, columns,
                            byteWidth(rhs.dtype), byteWidth(sumType), bool(op.getTerms()));
    if (rowGroup > 1) {
      units = units * Dim(rowGroup);
      tasks.unitsPerBlock = tasks.unitsPerBlock * Dim(rowGroup);
    }
    Dim rowsOfTask = byRows ? tasks.unitsPerBlock : tasks.unitsPerBlock * along.size;
    if (rowsOfTask.isStatic() && rowsOfTask.value() > mostRows && isDeepOverWindows())
      kept.emplace(k, sumType, chunkWidth);
    if (Value terms = op.getTerms())
      products.emplace(k, *e.memoryOf(passes::skipReshapes(terms)), rhs, depth.value(),
                       tasks.unitsPerBlock.value() / Bf16x3Gemm::kSide, tasks.panelsPerBlock.value());
    Dim unitBlocks = tasks.unitBlocks, perBlock = tasks.unitsPerBlock, batches = 1;
    for (size_t i = 0; i < op.getBatch(); ++i)
      batches = batches * shapeOf(op.getResult())[i];

    // The plan hands in the one long expression only.
    Value together = k.dim(tasks.panelsPerBlock), last = k.sub(together, k.constant(1));
    Value panelBlocksHere = k.div(k.add(k.dim(tasks.panels), last), together);
    if (products)
      products->begin();
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      Value panelBlock = k.rem(task, panelBlocksHere), rest = k.div(task, panelBlocksHere);
      Value unitBlock = k.rem(rest, k.dim(unitBlocks));
      batch = k.div(rest, k.dim(unitBlocks));
      Value chunksPerBlock = k.mul(together, k.constant(panelWidth / chunkWidth));
      chunkFrom = k.mul(panelBlock, chunksPerBlock);
      chunkTo = k.minimum(k.add(chunkFrom, chunksPerBlock), k.dim(ceildiv(columns, chunkWidth)));
      Value unitFrom = k.mul(unitBlock, k.dim(perBlock));
      Value unitTo = k.minimum(k.add(unitFrom, k.dim(perBlock)), k.dim(units));
      isLastBlock = k.compare(arith::CmpIPredicate::eq, panelBlock, k.sub(panelBlocksHere, k.constant(1)));
      byRows ? taskOfRows(unitFrom, unitTo, perBlock) : taskOfUnits(unitFrom, unitTo, perBlock);
    });
    Dim scratch = skipsZeros() ? CompressedRow::scratchBytes(depth, sumType) : Dim(0);
    if (products) {
      products->end();
      scratch = products->scratchBytes();
    }
    if (kept)
      scratch = KeptSums::scratchBytes(rowsOfTask, sumType, chunkWidth);
    return {batches * unitBlocks * ceildiv(tasks.panels, tasks.panelsPerBlock), scratch};
  }

private:
  /// Rows, or units of rows, [from, to), of which there are `perBlock`, but fewer in the last task.
  void taskOfRows(Value from, Value to, const Dim &perBlock) {
    rowsBase = k.constant(0);
    if (products)
      return emitProducts(from, to);
    if (kept) {
      kept->setBase(k.sub(k.constant(0), from));
      return byBlocks(
          k.sub(to, from), [&](Value chunk, int64_t vectors) { blockTiles(from, to, perBlock, chunk, vectors); },
          [&](auto finishRow) { k.loop(from, to, k.constant(1), finishRow); });
    }
    emitRows(from, to, perBlock);
    emitTail(from, to);
  }

  void taskOfUnits(Value from, Value to, const Dim &perBlock) {
    auto eachUnit = [&](llvm::function_ref<void()> body) {
      k.loop(from, to, k.constant(1), [&](Value unit) {
        placeOuter(unit);
        if (perBlock.isStatic())
          unitsBefore = k.sub(unit, from);
        if (kept)
          kept->setBase(k.mul(k.sub(unit, from), k.dim(along.size)));
        body();
      });
    };
    unitsTogether = perBlock.isStatic() ? perBlock.value() : 1;
    auto tilesOfUnits = [&](Value chunk, int64_t vectors) {
      eachUnit([&] { allTiles(k.constant(0), along.size.value(), chunk, vectors); });
    };
    if (kept)
      return byBlocks(k.mul(k.sub(to, from), k.dim(along.size)), tilesOfUnits, [&](auto finishRow) {
        eachUnit([&] { k.loop(k.constant(0), k.dim(along.size), k.constant(1), finishRow); });
      });
    // Of several tiles all units pass a chunk of the panel before the next, which may not fit into cache with it.
    if (along.size.isStatic() && along.size.value() > mostRows)
      eachChunk(chunkFrom, tilesOfUnits);
    else
      eachUnit([&] { emitRows(k.constant(0), k.dim(along.size), along.size); });
    if (tailColumns)
      eachUnit([&] { emitTail(k.constant(0), k.dim(along.size)); });
  }

  // ---- deep sums over windows, block by block of the outermost taps: a block's part of the panel stays in cache while
  // all rows of the task pass it. The sums take their products in the same order as without blocks.
  /// `tiles` adds a block to the sums of all rows, for a chunk; `eachRow` calls its argument for each of the rows.
  void byBlocks(Value rows, llvm::function_ref<void(Value chunk, int64_t vectors)> tiles,
                llvm::function_ref<void(llvm::function_ref<void(Value)>)> eachRow) {
    Dim taps = sum.front().size, inBlock = max(floordiv(taps * kBlockSteps, max(depth, 1)), 1);
    eachChunk(chunkFrom, [&](Value chunk, int64_t vectors) {
      kept->clear(rows);
      k.loop(k.constant(0), k.dim(taps), k.dim(inBlock), [&](Value from) {
        block = {from, k.minimum(k.add(from, k.dim(inBlock)), k.dim(taps))};
        tiles(chunk, vectors);
        block.reset();
      });
      eachRow([&](Value row) {
        finish(row, 1, k.mul(chunk, k.constant(chunkWidth)), vectors, columns, kept->load(row, 1, vectors));
      });
    });
  }

  /// The tiles of rows [from, to), of which there are `perBlock`, but fewer in the last task.
  void blockTiles(Value from, Value to, const Dim &perBlock, Value chunk, int64_t vectors) {
    int64_t rows = along.size.value(), whole = std::min(rows, perBlock.value()), rest = rows % whole;
    Value isWhole = k.compare(arith::CmpIPredicate::eq, k.sub(to, from), k.constant(whole));
    if (!rest)
      return allTiles(from, whole, chunk, vectors);
    k.when(isWhole, [&] { allTiles(from, whole, chunk, vectors); });
    k.unless(isWhole, [&] { allTiles(from, rest, chunk, vectors); });
  }

  void placeOuter(Value unit) {
    Value rest = unit;
    rowsBase = k.dim(lhsStart);
    outerAt.assign(outer.size(), Value());
    for (size_t i = outer.size(); i-- > 0;) {
      Value size = k.dim(outer[i].size);
      outerAt[i] = i ? k.rem(rest, size) : rest;
      rest = i ? k.div(rest, size) : rest;
      rowsBase = k.add(rowsBase, k.mul(outerAt[i], k.dim(outer[i].stride)));
    }
    for (size_t i = 0; i < outer.size(); ++i)
      if (outer[i].cut)
        tapsInside[outer[i].dim] = tapsOf(k, outer[i].dim, outerAt[i]);
  }

  // ---- rows [from, to) of the current outer position, for the current chunks; blocks hold `perBlock` rows
  void emitRows(Value from, Value to, const Dim &perBlock) {
    if (!along.size.isStatic()) {
      anyRows(from, to);
      return;
    }
    int64_t rows = along.size.value(), block = std::min(rows, perBlock.value());
    if (int64_t rest = block ? rows % block : 0) { // of the last block
      Value isWhole = k.compare(arith::CmpIPredicate::eq, k.sub(to, from), k.constant(block));
      k.when(isWhole, [&] { allRows(from, block); });
      k.unless(isWhole, [&] { allRows(from, rest); });
    } else if (block) {
      allRows(from, block);
    }
  }

  // ---- rows [from, to) by products of terms, `from` a multiple of the rows of a square
  void emitProducts(Value from, Value to) {
    Value side = k.constant(Bf16x3Gemm::kSide), one = k.constant(1);
    k.loop(k.constant(0), k.constant(products->strips), one, [&](Value strip) {
      eachChunk(chunkFrom, [&](Value chunk, int64_t vectors) {
        k.loop(from, to, side, [&](Value start) {
          Value square = k.div(k.sub(start, from), side), number = k.sub(chunk, chunkFrom);
          products->multiply(strip, start, chunk, square, number);
          auto finishRows = [&] {
            k.loop(start, k.minimum(to, k.add(start, side)), one, [&](Value row) {
              SmallVector<Value> sums;
              for (int64_t v = 0; v < vectors; ++v)
                sums.push_back(products->sums(square, number, k.sub(row, start), v));
              finishProducts(row, chunk, sums);
            });
          };
          Value isLast = k.compare(arith::CmpIPredicate::eq, strip, k.constant(products->strips - 1));
          products->strips > 1 ? k.when(isLast, finishRows) : finishRows();
        });
      });
    });
  }

  /// What is not finite may have no terms: such a row is computed again, in f32.
  void finishProducts(Value row, Value chunk, ArrayRef<Value> sums) {
    Value areFinite = products->areFinite(sums), column = k.mul(chunk, k.constant(chunkWidth));
    k.when(areFinite, [&] { finish(row, 1, column, int64_t(sums.size()), columns, sums); });
    k.unless(areFinite, [&] { tile(row, 1, chunk, 1, int64_t(sums.size())); });
  }

  /// As many rows as there are: full tiles, and what is left in one more, some of whose rows may not be there. So each
  /// panel is read once.
  void anyRows(Value from, Value to) {
    using enum arith::CmpIPredicate;
    int64_t below = (mostRows - 1) / kRestStep * kRestStep;
    Value count = k.sub(to, from), isSingle = k.compare(eq, count, k.constant(1));
    k.when(isSingle, [&] { fewRows(from, 1); });
    k.unless(isSingle, [&] {
      Value full = k.div(k.add(count, k.constant(mostRows - below - 1)), k.constant(mostRows));
      Value start = k.add(from, k.mul(full, k.constant(mostRows))), rest = k.sub(to, start);
      rowsEnd = to;
      eachChunk(chunkFrom, [&](Value chunk, int64_t vectors) {
        sureRows = below + 1;
        chunkTiles(from, full, mostRows, 0, {}, chunk, vectors);
        for (int64_t rows = below; rows > 0; rows -= kRestStep) {
          sureRows = rows - kRestStep + 1;
          Value isTaken = arith::AndIOp::create(k.b, k.loc, k.compare(sge, rest, k.constant(sureRows)),
                                                k.compare(sle, rest, k.constant(rows)));
          k.when(isTaken, [&] { tile(start, rows, chunk, 1, vectors); });
        }
      });
      rowsEnd = {};
    });
  }

  /// Tiles of nearly equal height instead of full ones and a rest.
  void allRows(Value from, int64_t rows) {
    if (rows > mostRows || rowGroup > 1) {
      eachChunk(chunkFrom, [&](Value chunk, int64_t vectors) { allTiles(from, rows, chunk, vectors); });
      return;
    }
    if (!isInside(0, rows))
      end = 0;
    fewRows(from, rows);
    end.reset();
  }
  /// Those whose windows all lie inside lhs share loops. Of rows of rows, `start` is 0.
  void allTiles(Value start, int64_t rows, Value chunk, int64_t vectors) {
    int64_t groups = rows / rowGroup, tiles = llvm::divideCeil(groups, mostRows / rowGroup);
    auto inside = [&](int64_t from, int64_t size) { return isInside(from * rowGroup, size * rowGroup); };
    for (TileRun run : tilesOf(groups, tiles, inside)) {
      if (!run.inside)
        end = run.from;
      Value from = k.add(start, k.constant(run.from * rowGroup));
      chunkTiles(from, k.constant(run.tiles), run.size * rowGroup, run.before, tiles, chunk, vectors);
      end.reset();
    }
  }
  /// `tiles` tiles of `rows` rows each, from row `from` on, `before` others before them. So many tiles as `inUnit`
  /// (null: as these) take each chunk of the panel in each unit.
  void chunkTiles(Value from, Value tiles, int64_t rows, int64_t before, std::optional<int64_t> inUnit, Value chunk,
                  int64_t vectors) {
    int64_t perPanel = panelWidth / chunkWidth;
    Value each = inUnit ? k.constant(*inUnit) : tiles;
    Value pass = k.mul(k.rem(chunk, k.constant(perPanel)), k.constant(unitsTogether));
    if (unitsBefore)
      pass = k.add(pass, unitsBefore);
    visits = k.maximum(k.mul(each, k.constant(perPanel * unitsTogether)), k.constant(1));
    k.loop(k.constant(0), tiles, k.constant(1), [&](Value t) {
      visit = k.add(k.add(k.mul(pass, each), k.constant(before)), t);
      tile(k.add(from, k.mul(t, k.constant(rows))), rows, chunk, 1, vectors);
      visit = {};
    });
  }

  /// The chunks of the task from `from` on. The last one is apart if the columns end in it.
  void eachChunk(Value from, llvm::function_ref<void(Value chunk, int64_t vectors)> body) {
    Value whole = wholeChunksEnd();
    allColumnsThere = narrowVectors > 0;
    k.loop(from, whole, k.constant(1), [&](Value chunk) { body(chunk, k.target.tileVectors); });
    allColumnsThere = false;
    if (narrowVectors)
      k.when(k.compare(arith::CmpIPredicate::slt, whole, chunkTo), [&] { body(whole, narrowVectors); });
  }
  Value wholeChunksEnd() {
    return narrowVectors ? k.minimum(chunkTo, k.constant(columns.value() / chunkWidth)) : chunkTo;
  }

  bool skipsZeros() { return op.getFinite() && sum.size() == 1 && left.strides.back() == Dim(1); }

  /// A single row may have so many zeros that it goes by its other elements.
  void fewRows(Value row, int64_t rows) {
    if (rows > 1 || !skipsZeros())
      return fewTiles(row, rows);
    CompressedRow some(k, lhs, leftStart(row), depth, sumType);
    Value pays = some.paysOff();
    k.when(pays, [&] {
      some.list(k.mul(k.dim(depth), k.constant(kSmallRows * chunkWidth / panelWidth)));
      nonZeros = &some;
      fewTiles(row, rows);
      nonZeros = nullptr;
    });
    k.unless(pays, [&] { fewTiles(row, rows); });
  }

  /// A single tile of few rows: takes several chunks at once, to have enough independent sums.
  void fewTiles(Value row, int64_t rows) {
    int64_t group = std::max<int64_t>(1, kSmallRows / rows);
    Value done = chunkFrom;
    if (group > 1) {
      Value count = k.sub(wholeChunksEnd(), chunkFrom), by = k.constant(group);
      done = k.add(chunkFrom, k.mul(k.div(count, by), by));
      k.loop(chunkFrom, done, by, [&](Value chunk) { tile(row, rows, chunk, group, k.target.tileVectors); });
    }
    eachChunk(done, [&](Value chunk, int64_t vectors) { tile(row, rows, chunk, 1, vectors); });
  }

  // ---- the register tile: rows x (chunks * perChunk) accumulators
  /// Where in lhs the sums of a row begin.
  Value leftStart(Value row) { return k.add(k.add(k.mul(batch, k.dim(lhsBatchStride)), rowsBase), rowOffset(k, row)); }
  void tile(Value row, int64_t rows, Value chunk, int64_t chunks, int64_t perChunk) {
    int64_t vectors = chunks * perChunk, perPanel = panelWidth / chunkWidth;
    Value panelSize = k.mul(k.dim(depth), k.constant(panelWidth));
    Value rhsBatch = k.mul(batch, k.mul(panelSize, k.dim(ceildiv(columns, panelWidth))));
    auto panelOf = [&](Value c) { return k.add(rhsBatch, k.mul(k.div(c, k.constant(perPanel)), panelSize)); };
    SmallVector<Value> chunkBase; // element of rhs where each chunk starts
    for (int64_t c = 0; c < chunks; ++c) {
      Value at = k.add(chunk, k.constant(c));
      chunkBase.push_back(k.add(panelOf(at), k.mul(k.rem(at, k.constant(perPanel)), k.constant(chunkWidth))));
    }
    PanelPrefetch fetch(k, rhs, panelWidth, chunkBase, perChunk * lanes);
    if (visit && !block)
      fetch.share(k.add(panelOf(chunk), panelSize), k.dim(depth), visit, visits);
    SmallVector<Value> leftOffsets; // of the rows in lhs; those beyond the end are read where the last one is
    for (int64_t r = 0; r < rows; ++r) {
      Value at = k.constant(r);
      if (rowsEnd && r >= sureRows)
        at = k.minimum(at, k.sub(k.sub(rowsEnd, row), k.constant(1)));
      leftOffsets.push_back(gathered.empty() ? rowOffset(k, at) : offsetInTile(k, row, r, leftOffsets));
    }
    auto columnsAt = [&](int64_t v, Value step) {
      if (products)
        return products->columns(chunk, step, v);
      Value panelRow = k.mul(step, k.constant(panelWidth));
      Value at = k.add(k.add(chunkBase[v / perChunk], panelRow), k.constant(v % perChunk * lanes));
      return castLanes(k.b, k.loc, k.load(rhs, {at, 1}, lanes, {}), rhs.dtype, sumType);
    };
    Value column = k.mul(chunk, k.constant(chunkWidth));
    if (nonZeros) {
      auto listed = [&](int64_t v, Value number) { return columnsAt(v, nonZeros->place(number)); };
      auto fetchListed = [&](int64_t, Value number) { fetch.row(nonZeros->placeAhead(number)); };
      Value zero = k.constant(0);
      Microkernel tile(k, nonZeros->values, {zero}, 1, sumType, vectors, listed, fetchListed);
      return finish(row, rows, column, vectors, columns, tile.add(zero, zero, nonZeros->count, tile.zeros()));
    }
    auto fetchAhead = [&](int64_t ahead, Value step) { fetch(rows, ahead, step); };
    Microkernel tile(k, lhs, leftOffsets, sum.back().stride, sumType, vectors, columnsAt,
                     products ? Microkernel::Fetch() : Microkernel::Fetch(fetchAhead));
    ArrayRef<Step> loops = end ? sumAtEnds : sum;
    auto innermost = [&](Value lhsAt, Value kAt, ValueRange sums, Rows seeing) {
      return tile.add(lhsAt, kAt, k.dim(loops.back().size), sums, seeing, end ? unrolledAtEnds() : kUnrolledSteps);
    };
    SmallVector<Value> sums = block ? kept->load(row, rows, vectors) : tile.zeros();
    sums = sumLoop(loops, leftStart(row), k.constant(0), sums, {0, rows}, innermost);
    block ? kept->store(row, vectors, sums) : finish(row, rows, column, vectors, columns, sums);
  }

  using Innermost = llvm::function_ref<SmallVector<Value>(Value lhsAt, Value kAt, ValueRange sums, Rows)>;
  /// The loops of the sum but the last, which is `innermost`.
  SmallVector<Value> sumLoop(ArrayRef<Step> loops, Value lhsAt, Value kAt, SmallVector<Value> carried, Rows rows,
                             Innermost innermost) {
    if (loops.size() == 1)
      return innermost(lhsAt, kAt, carried, rows);
    const Step &loop = loops.front();
    Value inner = k.constant(1); // steps of k below this loop
    for (const Step &below : loops.drop_front())
      inner = k.mul(inner, k.dim(below.size));
    auto at = [&](Value x, SmallVector<Value> values, Rows seeing) {
      Value lhsNext = k.add(lhsAt, k.mul(x, k.dim(loop.stride)));
      return sumLoop(loops.drop_front(), lhsNext, k.add(kAt, k.mul(x, inner)), values, seeing, innermost);
    };
    if (end && loop.dim == along.dim && loop.cut) {
      for (const Taps &taps : tapsSeen(loop.size.value(), *end, rows.second))
        carried =
            k.loop(k.constant(taps.first), k.constant(taps.end), k.constant(1), carried,
                   [&](Value tap, ValueRange values) { return at(tap, SmallVector<Value>(values), taps.seeing); });
      return carried;
    }
    auto range = std::pair(k.constant(0), k.dim(loop.size));
    if (auto cut = tapsInside.find(loop.dim); loop.cut && cut != tapsInside.end())
      range = cut->second;
    if (block && loops.size() == (end ? sumAtEnds : sum).size())
      range = {k.maximum(range.first, block->first), k.minimum(range.second, block->second)};
    return k.loop(range.first, range.second, k.constant(1), carried,
                  [&](Value x, ValueRange values) { return at(x, SmallVector<Value>(values), rows); });
  }

  // ---- the columns of the tail, for rows [from, to)
  void emitTail(Value from, Value to) {
    if (!tailColumns)
      return;
    TailColumns dots(k, lhs, sumAtEnds.back().stride, *tail, sumType, tailColumns, depth,
                     sumAtEnds.back().size.value());
    Value some = k.constant(dots.rows()), whole = k.mul(k.div(k.sub(to, from), some), some), last = k.add(from, whole);
    k.when(isLastBlock, [&] {
      k.loop(from, last, some, [&](Value row) { tailTile(dots, row, dots.rows()); });
      k.loop(last, to, k.constant(1), [&](Value row) { tailTile(dots, row, 1); });
    });
  }

  void tailTile(TailColumns &dots, Value row, int64_t rows) {
    auto segment = [&](Value lhsAt, Value kAt, ValueRange sums, Rows) {
      return dots.add(lhsAt, kAt, k.dim(along.stride), sums);
    };
    SmallVector<Value> sums = sumLoop(sumAtEnds, leftStart(row), k.constant(0), dots.zeros(rows), {0, rows}, segment);
    finish(row, rows, k.dim(columns), 1, allColumns, dots.finish(sums));
  }

  /// Computes what is fused behind the product, and stores the columns below `bound`.
  void finish(Value row, int64_t rows, Value column, int64_t vectors, const Dim &bound, ArrayRef<Value> sums) {
    epilogue.finish({row, rows, batch, rowsEnd, sureRows, outerAt}, column, vectors, bound, allColumnsThere, sums);
  }

  ElementEmitter &e;
  KernelBuilder &k;
  Memory lhs, rhs;
  DType sumType;
  ContractionEpilogue epilogue;
  int64_t lanes, panelWidth, chunkWidth;
  int64_t narrowVectors = 0;    // of the last chunk, if it is not a whole one
  bool allColumnsThere = false; // of the chunk being computed

  int64_t mostRows;        // of a tile
  Dim columns, allColumns; // in panels; and with those of the tail
  std::optional<Memory> tail;
  int64_t tailColumns = 0;

  std::optional<int64_t> end; // where the tile begins, if windows of it reach beyond the ends of the row
  std::map<size_t, std::pair<Value, Value>> tapsInside; // per outer dimension that is cut, at the current position
  Value batch, chunkFrom, chunkTo, rowsBase, isLastBlock;
  Value visit, visits; // which tile of a panel this is, of how many (null: its own is all that it fetches)
  Value unitsBefore;   // of the task, that have passed the chunk already
  int64_t unitsTogether = 1;
  Value rowsEnd;        // of a tile that may reach beyond; null: all its rows are there
  int64_t sureRows = 0; // of such a tile, from its first on
  SmallVector<Value> outerAt;
  CompressedRow *nonZeros = nullptr; // what the sum goes over, if not over all
  std::optional<Bf16x3Gemm> products;
  std::optional<KeptSums> kept;
  std::optional<std::pair<Value, Value>> block; // outermost taps that are being added to the kept sums
};

} // namespace
LaunchShape emitContraction(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ContractOp>().begin();
  return ContractionKernel(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
