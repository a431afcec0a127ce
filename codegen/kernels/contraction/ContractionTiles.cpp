#include "codegen/kernels/contraction/ContractionTiles.h"
#include "codegen/kernels/contraction/microkernel/PanelPrefetch.h"
#include "codegen/kernels/contraction/microkernel/TailColumns.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Addresses of steps in the panels of a tile's chunks. With several chunks a step has so many of them that LLVM's loop
/// strength reduction would take longer than all other passes: the steps of an unrolled iteration, which differ by
/// constants, share an opaque pointer per chunk.
class PanelAddresses {
public:
  PanelAddresses(KernelBuilder &k, const Memory &rhs, ArrayRef<Value> starts, int64_t width)
      : k(k), rhs(rhs), starts(starts), width(width) {}

  /// Memory, and the element in it at which the step of a chunk begins.
  std::pair<Memory, Value> at(int64_t chunk, Value step) {
    auto [base, ahead] = k.splitConstant(step);
    if (starts.size() == 1 || !base)
      return {rhs, startOf(chunk, step)};
    if (base != pointersAt) {
      pointers.clear();
      for (int64_t c = 0; c < int64_t(starts.size()); ++c)
        pointers.push_back(k.opaqueAliases(rhs, startOf(c, base), 1).front());
    }
    pointersAt = base;
    return {pointers[chunk], k.constant(ahead * width)};
  }

private:
  Value startOf(int64_t chunk, Value step) { return k.add(starts[chunk], k.mul(step, k.constant(width))); }

  KernelBuilder &k;
  const Memory &rhs;
  ArrayRef<Value> starts; // of the chunks, at step 0
  const int64_t width;
  SmallVector<Memory> pointers;
  Value pointersAt; // step
};

} // namespace

ContractionTiles::ContractionTiles(const KernelEmission &kernel, ContractionSchedule &schedule)
    : lhs(schedule.left.memory), rhs(*kernel.e.memoryOf(passes::skipReshapes(schedule.op.getRhs()))), e(kernel.e),
      k(e.k), s(schedule), epilogue(e, s, s.sumType, kernel.body, *kernel.space, kernel.results) {
  if (Value t = s.op.getTail())
    tail = *e.memoryOf(passes::skipReshapes(t));
  if (ZeroRow::isNeeded(s))
    zeros.emplace(k, s);
}

// ---- places

ContractionTiles::Place ContractionTiles::firstPlace(Value batch) { return {batch, k.constant(0), {}, {}}; }

ContractionTiles::Place ContractionTiles::placeOf(Value batch, Value outerPosition) {
  Place place{batch, k.dim(s.lhsStart), SmallVector<Value>(s.outer.size()), {}};
  Value rest = outerPosition;
  for (size_t i = s.outer.size(); i-- > 0;) {
    Value size = k.dim(s.outer[i].size);
    place.outer[i] = i ? k.rem(rest, size) : rest;
    rest = i ? k.div(rest, size) : rest;
    place.rowsBase = k.add(place.rowsBase, k.mul(place.outer[i], k.dim(s.outer[i].stride)));
  }
  for (size_t i = 0; i < s.outer.size(); ++i)
    if (s.outer[i].cut)
      place.taps[s.outer[i].dim] = s.tapsOf(k, s.outer[i].dim, place.outer[i]);
  return place;
}

Value ContractionTiles::leftStart(const Place &place, Value row) {
  Value start = k.add(k.mul(place.batch, k.dim(s.lhsBatchStride)), place.rowsBase);
  return k.add(start, s.rowOffset(k, row));
}

// ---- a tile: rows x (chunks * vectors) accumulators

void ContractionTiles::emit(const Place &place, const Tile &tile) {
  const int64_t vectors = tile.chunk.vectors, perChunk = s.chunkVectors(), perPanel = s.chunksPerPanel();
  const int64_t chunks = llvm::divideCeil(vectors, perChunk);
  Value panelSize = k.mul(k.dim(s.depth), k.constant(s.panelWidth));
  Value rhsBatch = k.mul(place.batch, k.mul(panelSize, k.dim(ceildiv(s.columns, s.panelWidth))));
  auto panelOf = [&](Value c) { return k.add(rhsBatch, k.mul(k.div(c, k.constant(perPanel)), panelSize)); };
  SmallVector<Value> chunkBase; // element of rhs at the start of each chunk
  for (int64_t c = 0; c < chunks; ++c) {
    Value at = k.add(tile.chunk.number, k.constant(c));
    chunkBase.push_back(k.add(panelOf(at), k.mul(k.rem(at, k.constant(perPanel)), k.constant(s.chunkWidth))));
  }
  PanelPrefetch fetch(k, rhs, s.panelWidth, chunkBase, std::min(vectors, perChunk) * s.lanes, s.staysCached);
  if (tile.visit && !tile.block)
    fetch.share(k.add(panelOf(k.add(tile.chunk.number, k.constant(chunks - 1))), panelSize), k.dim(s.depth), tile.visit,
                tile.visits);
  const SmallVector<Value> rows = rowsOf(tile), offsets = offsetsOf(tile, rows);
  SmallVector<Value> masks = columnMasks(tile);
  PanelAddresses addresses(k, rhs, chunkBase, s.panelWidth);
  auto inPanels = [&](int64_t v, Value step) {
    auto [panel, start] = addresses.at(v / perChunk, step);
    Value at = k.add(start, k.constant(v % perChunk * s.lanes));
    Value loaded = k.load(panel, {at, 1}, s.lanes, masks[size_t(v)]);
    return s.pairs ? loaded : castLanes(k.b, k.loc, loaded, rhs.dtype, s.sumType);
  };
  Columns columns = tile.columns ? tile.columns : Columns(inPanels);
  if (tile.nonZeros)
    return emitListed(place, tile, columns, fetch);
  auto fetchAhead = [&](int64_t ahead, Value step) { fetch(tile.rows, ahead, step); };
  auto sumsAt = [&](const SmallVector<Value> &offsets) {
    return Microkernel(k, {lhs, offsets, s.sum.back().stride, s.pairs, bool(zeros)}, s.sumType, vectors, columns,
                       tile.columns || !s.isPacked ? Microkernel::Fetch() : Microkernel::Fetch(fetchAhead));
  };
  ArrayRef<Step> loops = tile.end ? s.sumAtEnds : s.sum;
  auto innermost = [&](Value lhsAt, Value kAt, ValueRange carried, Rows seeing, Value tap) {
    const int64_t sure = tile.rowsEnd ? tile.sureRows : tile.rows;
    Microkernel sums = sumsAt(zeros ? zeros->redirected(offsets, rows, lhsAt, tap, tile.row, sure) : offsets);
    const int64_t unrolled = !tile.end ? s.unrolled() : tile.chunk.isRest ? 1 : s.unrolledAtEnds();
    const Step &last = loops.back();
    Value whole = k.dim(last.size - s.single);
    SmallVector<Value> now = sums.add(lhsAt, kAt, whole, carried, seeing, unrolled);
    return k.loop(k.constant(0), k.dim(s.single), k.constant(1), now, [&](Value, ValueRange some) {
      return sums.addSingle(k.add(lhsAt, k.mul(whole, k.dim(last.stride))), k.add(kAt, whole), some, seeing);
    });
  };
  const SumBlock *block = tile.block;
  SmallVector<Value> carried =
      block ? block->sums.load(block->base, tile.row, tile.rows, vectors) : sumsAt(offsets).zeros();
  carried = sumLoop({place, loops.size(), tile.end, block, innermost}, loops, leftStart(place, tile.row), k.constant(0),
                    carried, {0, tile.rows});
  block ? block->sums.store(block->base, tile.row, vectors, carried) : finishTile(place, tile, carried);
}

/// Masks of the columns that exist, for each vector of a chunk; null where all do, as in packed panels.
SmallVector<Value> ContractionTiles::columnMasks(const Tile &tile) {
  const bool isNarrow = s.narrowVectors && !tile.chunk.isWhole; // the last chunk is partial
  const int64_t perChunk = s.chunkVectors(), chunks = llvm::divideCeil(tile.chunk.vectors, perChunk);
  SmallVector<Value> masks;
  for (int64_t v = 0; v < tile.chunk.vectors; ++v) {
    const bool isLast = isNarrow && v / perChunk == chunks - 1;
    const int64_t before = isLast ? s.columns.value() / s.chunkWidth * s.chunkWidth : 0;
    const int64_t first = before + v % perChunk * s.lanes;
    const bool areAll = s.isPacked || first + s.lanes <= s.panelWidth;
    masks.push_back(areAll ? Value() : k.below(k.constant(first), k.constant(s.panelWidth), s.lanes));
  }
  return masks;
}

/// The tile's rows, relative to its first one; those that do not exist are the last one.
SmallVector<Value> ContractionTiles::rowsOf(const Tile &tile) {
  SmallVector<Value> rows;
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value at = k.constant(r);
    if (tile.rowsEnd && r >= tile.sureRows)
      at = k.minimum(at, k.sub(k.sub(tile.rowsEnd, tile.row), k.constant(1)));
    rows.push_back(at);
  }
  return rows;
}

/// Offsets in lhs of rowsOf(tile), relative to its first row.
SmallVector<Value> ContractionTiles::offsetsOf(const Tile &tile, ArrayRef<Value> rows) {
  SmallVector<Value> offsets;
  for (int64_t r = 0; r < tile.rows; ++r)
    offsets.push_back(s.gathered.empty() ? s.rowOffset(k, rows[r]) : s.offsetInTile(k, tile.row, r, offsets));
  return offsets;
}

/// Sums over the nonzero elements of a row.
void ContractionTiles::emitListed(const Place &place, const Tile &tile, Columns columns, PanelPrefetch &fetch) {
  CompressedRow &list = *tile.nonZeros;
  auto listed = [&](int64_t v, Value number) { return columns(v, list.place(number)); };
  auto fetchListed = [&](int64_t, Value number) { fetch.row(list.placeAhead(number)); };
  Value zero = k.constant(0);
  Microkernel sums(k, {list.values, {zero}, 1}, s.sumType, tile.chunk.vectors, listed, fetchListed);
  finishTile(place, tile, sums.add(zero, zero, list.count, sums.zeros()));
}

/// The loops of the sum around the last one, which `innermost` emits.
SmallVector<Value> ContractionTiles::sumLoop(const SumLoops &all, ArrayRef<Step> loops, Value lhsAt, Value kAt,
                                             SmallVector<Value> carried, Rows rows, Value tap) {
  if (loops.size() == 1)
    return all.innermost(lhsAt, kAt, carried, rows, tap);
  const Step &loop = loops.front();
  Value inner = k.constant(1); // steps of k within one iteration of this loop
  for (const Step &below : loops.drop_front())
    inner = k.mul(inner, k.dim(below.size));
  auto at = [&](Value x, SmallVector<Value> values, Rows seeing) {
    Value lhsNext = k.add(lhsAt, k.mul(x, k.dim(loop.stride)));
    return sumLoop(all, loops.drop_front(), lhsNext, k.add(kAt, k.mul(x, inner)), values, seeing,
                   loop.cut && loop.dim == s.along.dim ? x : tap);
  };
  if (all.end && loop.dim == s.along.dim && loop.cut) {
    for (const ContractionLoopNest::Taps &taps : s.tapsSeen(loop.size.value(), *all.end, rows.second))
      carried = k.loop(k.constant(taps.first), k.constant(taps.end), k.constant(1), carried,
                       [&](Value tap, ValueRange values) { return at(tap, SmallVector<Value>(values), taps.seeing); });
    return carried;
  }
  auto range = std::pair(k.constant(0), k.dim(loop.size));
  if (auto cut = all.place.taps.find(loop.dim); loop.cut && cut != all.place.taps.end())
    range = cut->second;
  if (all.block && loops.size() == all.count)
    range = {k.maximum(range.first, all.block->from), k.minimum(range.second, all.block->to)};
  return k.loop(range.first, range.second, k.constant(1), carried,
                [&](Value x, ValueRange values) { return at(x, SmallVector<Value>(values), rows); });
}

// ---- epilogue and tail

void ContractionTiles::finishTile(const Place &place, const Tile &tile, ArrayRef<Value> sums) {
  Value column = k.mul(tile.chunk.number, k.constant(s.chunkWidth));
  epilogue.finish({tile.row, tile.rows, place.batch, tile.rowsEnd, tile.sureRows, place.outer}, column,
                  tile.chunk.vectors, s.columns, tile.chunk.isWhole, sums);
}

void ContractionTiles::finish(const Place &place, Value row, const Chunk &chunk, ArrayRef<Value> sums) {
  finishTile(place, {row, 1, chunk}, sums);
}

void ContractionTiles::emitTail(const Place &place, Value from, Value to) {
  TailColumns dots(k, lhs, s.sumAtEnds.back().stride, *tail, s.sumType, s.tailColumns, s.depth,
                   s.sumAtEnds.back().size.value());
  Value some = k.constant(dots.rows()), whole = k.mul(k.div(k.sub(to, from), some), some), last = k.add(from, whole);
  k.loop(from, last, some, [&](Value row) { tailTile(place, dots, row, dots.rows()); });
  k.loop(last, to, k.constant(1), [&](Value row) { tailTile(place, dots, row, 1); });
}

void ContractionTiles::tailTile(const Place &place, TailColumns &dots, Value row, int64_t rows) {
  auto segment = [&](Value lhsAt, Value kAt, ValueRange sums, Rows, Value) {
    return dots.add(lhsAt, kAt, k.dim(s.along.stride), sums);
  };
  SmallVector<Value> sums = sumLoop({place, s.sumAtEnds.size(), {}, nullptr, segment}, s.sumAtEnds,
                                    leftStart(place, row), k.constant(0), dots.zeros(rows), {0, rows});
  epilogue.finish({row, rows, place.batch, {}, 0, place.outer}, k.dim(s.columns), 1, s.allColumns, false,
                  dots.finish(sums));
}

} // namespace burin::codegen
