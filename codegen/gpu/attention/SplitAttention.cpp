// Attention with few query rows, as in decoding (FlashDecoding, Dao et al. 2023): keys are cut into parts, one per
// block. Heads that share keys are rows of one block, so keys and values are read once.
//
// The rows of a block are divided among sets of warps. A set sees all keys of the part, for up to kRowsOfSet rows. A
// few adjacent threads share a key: each reads pieces of 16 bytes of it and of its value, and has those columns of all
// rows of the set. In each iteration of the loop over keys a thread loads several keys and their values before it
// computes, so that many loads are in flight.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/attention/AttentionPartials.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMovedBytes = 16; // of one load of a thread
constexpr int64_t kRowsOfSet = 4;   // most rows of a set
constexpr int64_t kFewSets = 2;     // up to so many sets have kWarpsOfSet warps, more have kWarpsOfManySets
constexpr int64_t kWarpsOfSet = 4, kWarpsOfManySets = 2;
// Pieces of keys, and of values, that a thread loads before it computes; half as many with kRowsOfSet rows, whose sums
// need the registers.
constexpr int64_t kLoadsInFlight = 4;
constexpr int64_t kFewParts = 2; // keys are cut only if there are more than these parts of the smallest size
// Upper bounds: blocks of all parts, four per multiprocessor of an H100; parts of one head's keys.
constexpr int64_t kEnoughBlocks = 528, kMostParts = 128;

class SplitAttention : AttentionPartials {
public:
  SplitAttention(const KernelEmission &kernel, ScaledDotProductAttentionOp op)
      : AttentionPartials(kernel, op), dtype(query.memory.dtype), lanes(kMovedBytes / int64_t(byteWidth(dtype))),
        queryRows{{query, rows}}, keyRows(piecesOf(op.getKey())), valueRows(piecesOf(op.getValue())) {
    const int64_t pieces = (std::max(depth.value(), width.value()) + lanes - 1) / lanes;
    while (threadsOfKey < pieces && threadsOfKey < kWarp)
      threadsOfKey *= 2;
    piecesOfThread = (pieces + threadsOfKey - 1) / threadsOfKey;
    columns = threadsOfKey * piecesOfThread * lanes;
    sets = (rowCount + kRowsOfSet - 1) / kRowsOfSet;
    rowsOfSet = (rowCount + sets - 1) / sets;
    warpsOfSet = sets > kFewSets ? kWarpsOfManySets : kWarpsOfSet;
    keysOfWarp = kWarp / threadsOfKey;
    threads = sets * warpsOfSet * kWarp;
    cut();
  }

  GpuLaunch emit() {
    thread = threadIndex(k);
    Value warp = k.div(thread, k.constant(kWarp)), inWarp = k.rem(thread, k.constant(kWarp));
    set = k.div(warp, k.constant(warpsOfSet)), warpOfSet = k.rem(warp, k.constant(warpsOfSet));
    keyOfWarp = k.div(inWarp, k.constant(threadsOfKey)), member = k.rem(inWarp, k.constant(threadsOfKey));
    allocateSharedRows(sets * warpsOfSet * rowsOfSet, columns);
    if (!isCut()) {
      emitPart();
      return launchOfParts();
    }
    assumeAligned(k, k.scratch, kMovedBytes);
    Value count = k.dim(shared.heads * parts), isPart = isBelow(k.lo, count);
    k.when(isPart, [&] { e.scoped([&] { emitPart(); }); });
    k.unless(isPart, [&] { e.scoped([&] { joinParts(k.sub(k.lo, count)); }); });
    return launchOfParts();
  }

private:
  // ---- sizes

  /// Keys that a set reads at once; keys that a thread reads in an iteration.
  int64_t keysAtOnce() const { return warpsOfSet * keysOfWarp; }
  int64_t loadsOfIteration() const {
    const int64_t most = std::max<int64_t>(kLoadsInFlight / piecesOfThread, 1);
    return rowsOfSet == kRowsOfSet ? (most + 1) / 2 : most;
  }

  /// Chooses the size and number of parts: multiples of the smallest part that is worth a block, and, unless there are
  /// more heads, at most kEnoughBlocks blocks. By sizes alone, so that the order of sums does not depend on the device.
  void cut() {
    Dim seen = isCausal ? min(keys, rows) : keys;
    Dim most = max(min(floordiv(kEnoughBlocks, max(shared.heads, 1)), kMostParts), 1);
    const int64_t least = std::max<int64_t>(kLoadsInFlight / piecesOfThread, 1) * keysAtOnce();
    if (seen.isStatic() && seen.value() <= kFewParts * least)
      return;
    keysOfPart = max(ceildiv(ceildiv(seen, most), least), 1) * least;
    parts = max(ceildiv(seen, keysOfPart), 1);
  }

  /// Row r of this thread's set; the last one again if there are no more.
  Value rowOfSet(int64_t r) {
    Value row = k.add(k.mul(set, k.constant(rowsOfSet)), k.constant(r));
    return sets * rowsOfSet > rowCount ? k.minimum(row, k.constant(rowCount - 1)) : row;
  }

  // ---- loads

  /// Rows that lie in several tensors, one after the other.
  struct Rows {
    StridedMemory source;
    Dim count;
  };
  using JoinedRows = SmallVector<Rows>;
  JoinedRows piecesOf(Value v) {
    return llvm::map_to_vector(passes::rowsViewsOf(v), [&](const passes::RowsView &rows) {
      return Rows{e.stridedMemoryOf(rows.view), rows.rows};
    });
  }
  void forEachSource(llvm::function_ref<void(const StridedMemory &)> visit) {
    for (const JoinedRows *all : {&queryRows, &keyRows, &valueRows})
      for (const Rows &rows : *all)
        visit(rows.source);
  }

  /// i1: whether all rows consist of whole, aligned pieces of 16 bytes. Null if sizes known at compile time rule that
  /// out.
  Value movesPieces() {
    bool areMultiples = depth.value() % lanes == 0 && width.value() % lanes == 0;
    Value rest = k.constant(0), areAligned = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
    forEachSource([&](const StridedMemory &s) {
      areMultiples &= s.strides.back() == Dim(1);
      for (const Dim &d : ArrayRef<Dim>(s.strides).drop_back()) {
        areMultiples &= !d.isStatic() || d.value() % lanes == 0;
        if (!isMultipleOf(d, lanes))
          rest = arith::OrIOp::create(k.b, k.loc, rest, k.rem(k.dim(d), k.constant(lanes)));
      }
      areAligned = both(areAligned, k.isAligned(s.memory.pointer, kMovedBytes));
    });
    return areMultiples ? both(areAligned, isFirst(rest)) : Value();
  }

  Value firstColumn(int64_t piece) { return k.mul(k.add(member, k.constant(piece * threadsOfKey)), k.constant(lanes)); }

  /// This thread's piece of a row. Beyond the last column it reads the last ones again; widenedKeys() replaces them in
  /// keys by zeros, and in values they are columns without a result.
  Value load(const JoinedRows &all, Value row, int64_t piece, const Dim &columnCount) {
    Value column = firstColumn(piece);
    if (hasPieces) {
      if (columns > columnCount.value())
        column = k.minimum(column, k.constant(columnCount.value() - lanes));
      Value pointer = pointerTo(all, row, column);
      assumeAligned(k, pointer, kMovedBytes);
      return k.load({pointer, dtype, {}}, {k.constant(0), 1}, lanes, {});
    }
    SmallVector<Value> elements;
    for (int64_t i = 0; i < lanes; ++i) {
      Value own = k.minimum(k.add(column, k.constant(i)), k.constant(columnCount.value() - 1));
      elements.push_back(k.load({pointerTo(all, row, own), dtype, {}}, {k.constant(0)}, 1, {}));
    }
    return vectorOf(elements);
  }
  Value pointerTo(const JoinedRows &all, Value row, Value column) {
    Value found;
    for (const Rows &rows : all) {
      Value position = k.add(rowStart(rows.source, row), k.mul(column, k.dim(rows.source.strides.back())));
      Value pointer = k.elementPointer(rows.source.memory, position);
      // A negative row is one of an earlier tensor, whose pointer has been found.
      found = found ? arith::SelectOp::create(k.b, k.loc, isBelow(row, k.constant(0)), found, pointer).getResult()
                    : pointer;
      row = k.sub(row, k.dim(rows.count));
    }
    return found;
  }
  Value widened(Value v) { return castLanes(k.b, k.loc, v, dtype, DType::f32); }

  void loadQueries() {
    queries.clear();
    for (int64_t r = 0; r < rowsOfSet; ++r) {
      Value row = goToRow(rowOfSet(r));
      for (int64_t n = 0; n < piecesOfThread; ++n)
        queries.push_back(load(queryRows, row, n, depth));
    }
  }

  // ---- the keys of a part

  void emitPart() {
    goToKeys(k.div(k.lo, k.dim(parts)));
    // Loaded even if static: LLVM must not know the count, so that the loads of the first iteration stay before the
    // loop.
    from = k.constant(0), to = k.runtimeSize(keys);
    if (isCausal)
      to = k.minimum(to, k.dim(rows));
    if (isCut()) {
      from = k.mul(k.rem(k.lo, k.dim(parts)), k.dim(keysOfPart));
      to = k.minimum(k.add(from, k.dim(keysOfPart)), to);
    }
    SmallVector<Value> sums = flat(Partials(size_t(rowsOfSet), nothing(size_t(piecesOfThread), lanes)));
    if (Value can = movesPieces()) {
      sums = k.when(can, sums, [&] { return e.scoped([&] { return addPieces(sums); }); });
      sums = k.unless(can, sums, [&] { return e.scoped([&] { return addOneByOne(sums); }); });
    } else {
      sums = addOneByOne(sums);
    }
    Partials own = ofFlat(sums, size_t(piecesOfThread));
    llvm::transform(own, own.begin(), [&](const Partial &x) { return ofWarp(x); });
    k.when(isFirst(keyOfWarp), [&] {
      for (auto [r, x] : llvm::enumerate(own))
        for (int64_t n = 0; n < piecesOfThread; ++n)
          storeSharedRow(sharedRowOf(set, warpOfSet, k.constant(int64_t(r))), columns, firstColumn(n), x,
                         x.weightedValues[size_t(n)]);
    });
    barrier(k);
    k.loop(thread, k.constant(rowCount * columnVectors()), k.constant(threads),
           [&](Value i) { e.scoped([&] { finishPart(i); }); });
  }

  SmallVector<Value> addPieces(ArrayRef<Value> init) {
    hasPieces = true;
    SmallVector<Value> state = addKeys(init, loadsOfIteration());
    hasPieces = false;
    return state;
  }
  SmallVector<Value> addOneByOne(ArrayRef<Value> init) {
    k.keepsRolled = true;
    SmallVector<Value> state = addKeys(init, 1);
    k.keepsRolled = false;
    return state;
  }

  /// Adds the keys of the part, `count` keys per thread in each iteration. The loads of an iteration are issued in the
  /// previous one (software pipelining): in the same iteration ptxas would move the loads of values behind the products
  /// with the keys, so that they would begin only when the keys have arrived.
  SmallVector<Value> addKeys(ArrayRef<Value> init, int64_t count) {
    loadQueries();
    Value jump = k.constant(count * keysAtOnce());
    return k.when(isBelow(from, to), init, [&] {
      SmallVector<Value> state(init);
      llvm::append_range(state, e.scoped([&] { return loadIteration(from, count); }));
      state.push_back(from);
      state = k.loop(from, k.sub(to, jump), jump, state, [&](Value first, ValueRange carried) {
        SmallVector<Value> next = addIteration(first, count, carried.drop_back());
        Value following = k.add(first, jump);
        llvm::append_range(next, e.scoped([&] { return loadIteration(following, count); }));
        next.push_back(following);
        return next;
      });
      Value last = state.pop_back_val();
      return addIteration(last, count, state);
    });
  }

  /// The keys of this thread in an iteration. Keys beyond the end of the part have a false `exist`, and the last one is
  /// read instead.
  struct Iteration {
    SmallVector<Value> keys, exist;
    ValueRange keyPieces, valuePieces; // [key][piece]
    ValueRange masks;                  // [row][key]; empty without a mask
  };
  Iteration iterationAt(Value first, int64_t count) {
    Iteration t;
    Value own = k.add(first, k.add(k.mul(warpOfSet, k.constant(keysOfWarp)), keyOfWarp));
    for (int64_t u = 0; u < count; ++u) {
      Value number = k.add(own, k.constant(u * keysAtOnce()));
      t.exist.push_back(isBelow(number, to));
      t.keys.push_back(k.minimum(number, k.sub(to, k.constant(1))));
    }
    return t;
  }

  /// Loads keys, values and masks of an iteration.
  SmallVector<Value> loadIteration(Value first, int64_t count) {
    Iteration t = iterationAt(first, count);
    SmallVector<Value> loaded;
    for (Value number : t.keys)
      for (int64_t n = 0; n < piecesOfThread; ++n)
        loaded.push_back(load(keyRows, number, n, depth));
    for (Value number : t.keys)
      for (int64_t n = 0; n < piecesOfThread; ++n)
        loaded.push_back(load(valueRows, number, n, width));
    for (int64_t r = 0; mask && r < rowsOfSet; ++r) {
      Value row = goToRow(rowOfSet(r));
      for (Value number : t.keys)
        loaded.push_back(maskAt(row, number));
    }
    return loaded;
  }

  /// Adds the keys of an iteration. `carried` has the partials, followed by what loadIteration() has loaded.
  SmallVector<Value> addIteration(Value first, int64_t count, ValueRange carried) {
    return e.scoped([&] {
      const auto ofSums = size_t(rowsOfSet * (2 + piecesOfThread)), pieces = size_t(count * piecesOfThread);
      Partials sums = ofFlat(carried.take_front(ofSums), size_t(piecesOfThread));
      Iteration t = iterationAt(first, count);
      t.keyPieces = carried.slice(ofSums, pieces), t.valuePieces = carried.slice(ofSums + pieces, pieces);
      t.masks = carried.drop_front(ofSums + 2 * pieces);
      SmallVector<Value> wide = widenedKeys(t);
      for (int64_t r = 0; r < rowsOfSet; ++r)
        addValues(t, scores(t, r, wide), sums[size_t(r)]);
      return flat(sums);
    });
  }

  /// Keys as f32, zeros beyond the last column.
  SmallVector<Value> widenedKeys(const Iteration &t) {
    SmallVector<Value> isColumn, wide;
    for (int64_t n = 0; n < piecesOfThread; ++n)
      isColumn.push_back(columns > depth.value() ? k.below(firstColumn(n), k.constant(depth.value()), lanes) : Value());
    for (auto [i, piece] : llvm::enumerate(t.keyPieces))
      wide.push_back(selected(isColumn[i % isColumn.size()], widened(piece), zeros(lanes)));
    return wide;
  }

  /// Masked scores of a row: its products with the keys, summed over the threads of each key.
  SmallVector<Value> scores(const Iteration &t, int64_t r, ArrayRef<Value> wideKeys) {
    SmallVector<Value> all(t.keys.size());
    const auto pieces = size_t(piecesOfThread);
    for (size_t n = 0; n < pieces; ++n) {
      Value q = widened(queries[size_t(r) * pieces + n]);
      for (size_t u = 0; u < all.size(); ++u)
        for (int64_t i = 0; i < lanes; ++i) {
          Value x = lane(q, i), y = lane(wideKeys[u * pieces + n], i);
          all[u] = all[u] ? fma(scalar(x), scalar(y), scalar(all[u])).value() : product(x, y);
        }
    }
    for (int64_t distance = threadsOfKey / 2; distance > 0; distance /= 2)
      for (Value &x : all)
        x = sum(x, shuffleAcross(k, x, distance));
    Value row = goToRow(rowOfSet(r)), factor = scale();
    for (auto [u, x] : llvm::enumerate(all)) {
      Value sees = t.exist[u];
      if (isCausal)
        sees = both(sees, isBelow(t.keys[u], k.add(row, k.constant(1))));
      x = applyMask(product(x, factor), t.masks.empty() ? Value() : t.masks[size_t(r) * all.size() + u], sees);
    }
    return all;
  }

  /// Adds the weighted values of an iteration to those of a row.
  void addValues(const Iteration &t, ArrayRef<Value> scores, Partial &own) {
    Value earlier = own.largest;
    for (Value x : scores)
      own.largest = largerOf(k, x, own.largest);
    Value shift = shiftOf(own.largest), shrink = weight(earlier, shift), total;
    SmallVector<Value> weights;
    for (Value x : scores) {
      weights.push_back(weight(x, shift));
      total = total ? sum(total, weights.back()) : weights.back();
    }
    own.weightSum = fma(scalar(own.weightSum), scalar(shrink), scalar(total)).value();
    for (auto [n, all] : llvm::enumerate(own.weightedValues)) {
      all = product(all, k.broadcast(shrink, lanes));
      for (size_t u = 0; u < weights.size(); ++u) {
        Value piece = t.valuePieces[u * size_t(piecesOfThread) + n];
        Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(piece.getType()));
        all = addScaled(widened(selected(t.exist[u], piece, none)), weights[u], all);
      }
    }
  }

  /// Joins the partials of the keys that a warp reads at once. The threads of the first key store the result.
  Partial ofWarp(Partial own) {
    for (int64_t distance = threadsOfKey; distance < kWarp; distance *= 2) {
      Partial other{shuffleAcross(k, own.largest, distance), shuffleAcross(k, own.weightSum, distance), {}};
      for (Value v : own.weightedValues) {
        SmallVector<Value> elements;
        for (int64_t i = 0; i < lanes; ++i)
          elements.push_back(shuffleAcross(k, lane(v, i), distance));
        other.weightedValues.push_back(vectorOf(elements));
      }
      own = joined({own, other});
    }
    return own;
  }

  Value sharedRowOf(Value ofSet, Value warp, Value row) {
    return k.add(k.mul(k.add(k.mul(ofSet, k.constant(warpsOfSet)), warp), k.constant(rowsOfSet)), row);
  }

  /// Joins the warps of a set, for vector i of the rows of the block.
  void finishPart(Value i) {
    Value row = k.div(i, k.constant(columnVectors())), ofSet = k.div(row, k.constant(rowsOfSet));
    Value column = k.mul(k.rem(i, k.constant(columnVectors())), k.constant(kColumns));
    Partials warps;
    for (int64_t w = 0; w < warpsOfSet; ++w)
      warps.push_back(
          loadSharedRow(sharedRowOf(ofSet, k.constant(w), k.rem(row, k.constant(rowsOfSet))), columns, column));
    storePart(row, column, joined(warps));
  }

  DType dtype;   // of query, key and value
  int64_t lanes; // elements of a piece
  JoinedRows queryRows, keyRows, valueRows;
  int64_t threadsOfKey = 1, piecesOfThread; // threads that share a key; pieces of a key, and of a value, of each
  int64_t keysOfWarp;                       // keys that a warp reads at once
  int64_t columns;                          // columns of all pieces of a key, at least depth and width
  int64_t sets, rowsOfSet, warpsOfSet;
  Dim keysOfPart = 0;
  // Of this thread: its set, its warp in the set, its key among those of the warp, its number among those of the key.
  Value set, warpOfSet, keyOfWarp, member;
  Value from, to;             // keys of the part: [from, to)
  bool hasPieces = false;     // the code being emitted runs only if movesPieces()
  SmallVector<Value> queries; // [row of the set][piece]
};

} // namespace

GpuLaunch emitSplitAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return SplitAttention(kernel, op).emit();
}

} // namespace burin::codegen
