// Copies that transpose. A block reads a tile along the dimension in which the source is contiguous, and writes it
// along the one in which the result is, so that adjacent threads access adjacent memory on both sides; the tile changes
// its order in shared memory.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "passes/analysis/StridedView.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

using passes::StridedCopy;

constexpr int64_t kThreads = 256;

/// What both forms share: the place of a block, accesses of several elements, loops of the threads over a tile.
class TransposingCopy {
protected:
  TransposingCopy(ElementEmitter &e, const StridedCopy &m, Value result)
      : e(e), k(e.k), m(m), source{e.memoryOf(m.source)->pointer, m.type, {}}, target{result, m.type, {}},
        inner(m.dims[m.inner]), last(m.dims.back()), width(int64_t(byteWidth(m.type))) {}

  /// Goes to the tile of this block, of `rows` positions along the dimension in which the source is contiguous and
  /// `columns` along that of the result. Returns the number of blocks.
  Dim place(int64_t rows, int64_t columns) {
    Shape counts;
    Dim blocks = 1;
    for (size_t i = 0; i < m.dims.size(); ++i) {
      int64_t step = int(i) == m.inner ? rows : i + 1 == m.dims.size() ? columns : 1;
      counts.push_back(ceildiv(m.dims[i].size, step));
      blocks = blocks * counts.back();
    }
    SmallVector<Index> at = e.delinearize({k.lo}, counts);
    from = to = k.constant(0);
    for (size_t i = 0; i + 1 < m.dims.size(); ++i)
      if (int(i) != m.inner) {
        from = k.add(from, k.mul(at[i].base, k.dim(m.dims[i].from)));
        to = k.add(to, k.mul(at[i].base, k.dim(m.dims[i].to)));
      }
    row0 = k.mul(at[m.inner].base, k.constant(rows));
    column0 = k.mul(at.back().base, k.constant(columns));
    if (m.panels && !isMultipleOf(m.filled, m.panels))
      filledEnd =
          k.minimum(k.dim(last.size), k.sub(k.dim(m.filled), k.mul(at[m.dims.size() - 3].base, k.constant(m.panels))));
    return blocks;
  }

  /// Whether vectors of n elements along a dimension lie at multiples of their size in the source, or in the result,
  /// if its address is one.
  bool areAligned(const StridedCopy::Along &along, bool inResult, int64_t n) const {
    return llvm::all_of(m.dims, [&](const StridedCopy::Along &d) {
      return isMultipleOf(&d == &along ? d.size : inResult ? d.to : d.from, n);
    });
  }

  /// Calls `body` with the number of elements of one access: `lanes` if the address is a multiple of their size,
  /// else 1.
  void withLanes(const Memory &memory, int64_t lanes, llvm::function_ref<void(int64_t)> body) {
    if (lanes == 1)
      return body(1);
    Value areAligned = k.isAligned(memory.pointer, lanes * width);
    k.when(areAligned, [&] { body(lanes); });
    llvm::SaveAndRestore rare(unrolled, int64_t(1));
    k.unless(areAligned, [&] { body(1); });
  }

  /// Calls `body` for the numbers [0, count), so many of them at once that their accesses are concurrent.
  void inRounds(int64_t count, int64_t accesses, llvm::function_ref<void(ArrayRef<Value>)> body) {
    int64_t together = std::clamp<int64_t>(unrolled / accesses, 1, count);
    while (count % together)
      --together;
    auto round = [&](Value first) {
      SmallVector<Value> numbers;
      for (int64_t i = 0; i < together; ++i)
        numbers.push_back(k.add(first, k.constant(i)));
      body(numbers);
    };
    if (together == count)
      return round(k.constant(0));
    k.loop(k.constant(0), k.constant(count), k.constant(together), [&](Value i) { e.scoped([&] { round(i); }); });
  }

  Type vectorOf(int64_t lanes) const {
    Type element = k.storageType(m.type);
    return lanes == 1 ? element : Type(VectorType::get({lanes}, element));
  }
  Value load(const Memory &memory, Value position, int64_t lanes) const {
    return LLVM::LoadOp::create(k.b, k.loc, vectorOf(lanes), k.elementPointer(memory, position),
                                unsigned(lanes * width));
  }
  void store(const Memory &memory, Value position, Value v, int64_t lanes) const {
    LLVM::StoreOp::create(k.b, k.loc, v, k.elementPointer(memory, position), unsigned(lanes * width));
  }
  Value less(Value x, Value y) { return k.compare(arith::CmpIPredicate::slt, x, y); }

  ElementEmitter &e;
  KernelBuilder &k;
  const StridedCopy &m;
  Memory source, target;
  const StridedCopy::Along &inner, &last;
  int64_t width;         // bytes of an element
  int64_t unrolled = 16; // accesses of a thread that are emitted one after the other
  Value from, to;        // where the slice of the block begins in source and result
  Value row0, column0;   // the first positions of the tile
  Value filledEnd = {};  // the columns of a panel that are no padding; null: all
};

/// Tiles of two long dimensions. Threads exchange words of 4 bytes; of narrower elements a thread transposes small
/// squares, so that a word has elements that are adjacent in the result. Rows of a tile in shared memory have one word
/// more than elements, so that neither the words of a row nor those of a column lie in one bank.
class TileCopy : TransposingCopy {
public:
  TileCopy(ElementEmitter &e, const StridedCopy &m, Value result)
      : TransposingCopy(e, m, result), perWord(std::max<int64_t>(4 / width, 1)), rows(sideOf(inner.size)),
        columns(sideOf(last.size)), pitch(columns + perWord) {}

  GpuLaunch emit() {
    tile = {sharedArray(k, k.storageType(m.type), rows * pitch), m.type, {}};
    Dim blocks = place(rows, columns);
    rowsEnd = k.dim(inner.size), columnsEnd = k.dim(last.size);
    thread = threadIndex(k);
    withLanes(source, areAligned(inner, false, perWord) ? perWord : 1, [&](int64_t lanes) { read(lanes); });
    barrier(k);
    withLanes(target, areAligned(last, true, perWord) ? perWord : 1, [&](int64_t lanes) { write(lanes); });
    return {.blocks = blocks, .threads = kThreads};
  }

private:
  int64_t sideOf(const Dim &size) const {
    int64_t most = width == 1 ? 128 : width == 8 ? 32 : 64;
    return size.isStatic() && size.value() <= most / 2 ? most / 2 : most;
  }

  /// Where a row of the tile begins in shared memory: rows are ordered by their position in a square first.
  Value sharedRowOf(Value row) {
    Value part = k.rem(row, k.constant(perWord)), square = k.div(row, k.constant(perWord));
    return k.mul(k.add(k.mul(part, k.constant(rows / perWord)), square), k.constant(pitch));
  }

  Value loadElements(Value row, Value column, int64_t lanes) {
    // Positions beyond the end repeat the last one.
    Value r = k.add(row0, row), c = k.add(column0, column);
    if (!isMultipleOf(inner.size, rows))
      r = k.minimum(r, k.sub(rowsEnd, k.constant(lanes)));
    Value there = c;
    if (filledEnd || !isMultipleOf(last.size, columns))
      there = k.minimum(c, k.sub(filledEnd ? filledEnd : columnsEnd, k.constant(1)));
    Value v = load(source, k.add(k.add(from, r), k.mul(there, k.dim(last.from))), lanes);
    if (!filledEnd)
      return v;
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(v.getType()));
    return arith::SelectOp::create(k.b, k.loc, less(c, filledEnd), v, zero);
  }

  /// Reads squares of `lanes` by `lanes` elements.
  void read(int64_t lanes) {
    int64_t across = rows / lanes, step = kThreads / across;
    Value square = k.rem(thread, k.constant(across)), first = k.div(thread, k.constant(across));
    Value row = k.mul(square, k.constant(lanes));
    inRounds(columns / lanes / step, lanes, [&](ArrayRef<Value> numbers) {
      SmallVector<Value> begins;
      SmallVector<SmallVector<Value>> squares;
      for (Value number : numbers) {
        begins.push_back(k.mul(k.add(first, k.mul(number, k.constant(step))), k.constant(lanes)));
        SmallVector<Value> &vectors = squares.emplace_back();
        for (int64_t i = 0; i < lanes; ++i)
          vectors.push_back(loadElements(row, k.add(begins.back(), k.constant(i)), lanes));
      }
      for (auto [column, vectors] : llvm::zip_equal(begins, squares)) {
        if (lanes > 1)
          k.transpose(vectors);
        for (int64_t i = 0; i < lanes; ++i) {
          Value sharedRow =
              lanes > 1 ? k.mul(k.add(square, k.constant(i * across)), k.constant(pitch)) : sharedRowOf(row);
          store(tile, k.add(sharedRow, column), vectors[i], lanes);
        }
      }
    });
  }

  void write(int64_t lanes) {
    int64_t across = columns / lanes, step = kThreads / across;
    Value column = k.mul(k.rem(thread, k.constant(across)), k.constant(lanes)),
          first = k.div(thread, k.constant(across));
    Value c = k.add(column0, column);
    Value isInside = isMultipleOf(last.size, columns) ? Value() : less(c, columnsEnd);
    inRounds(rows / step, 1, [&](ArrayRef<Value> numbers) {
      SmallVector<Value> elements;
      for (Value number : numbers) {
        Value sharedRow = step % perWord ? sharedRowOf(k.add(first, k.mul(number, k.constant(step))))
                                         : k.add(sharedRowOf(first), k.mul(number, k.constant(step / perWord * pitch)));
        elements.push_back(load(tile, k.add(sharedRow, column), lanes));
      }
      for (auto [number, v] : llvm::zip_equal(numbers, elements)) {
        Value r = k.add(row0, k.add(first, k.mul(number, k.constant(step))));
        Value here = isInside;
        if (!isMultipleOf(inner.size, rows)) {
          Value isRow = less(r, rowsEnd);
          here = here ? arith::AndIOp::create(k.b, k.loc, here, isRow).getResult() : isRow;
        }
        auto put = [&, v = v] { store(target, k.add(k.add(to, c), k.mul(r, k.dim(inner.to))), v, lanes); };
        here ? k.when(here, put) : put();
      }
    });
  }

  int64_t perWord, rows, columns, pitch; // elements
  Memory tile;
  Value thread, rowsEnd, columnsEnd;
};

/// A long dimension and a short one next to it, which is the last one of the source or of the result: a piece of that
/// side is contiguous, as channels of an image are. In shared memory each position of the short one has a shared row.
class PlaneCopy : TransposingCopy {
public:
  PlaneCopy(ElementEmitter &e, const StridedCopy &m, Value result)
      : TransposingCopy(e, m, result), isLastShort(passes::shortSideOf(m) == passes::ShortSide::Last),
        lengthwise(isLastShort ? inner : last), few((isLastShort ? last : inner).size.value()),
        piece(int64_t(llvm::bit_floor(uint64_t(kTileBytes / (few * width))))), pitch(piece + kMovedBytes / width) {}

  GpuLaunch emit() {
    tile = {sharedArray(k, k.storageType(m.type), few * pitch), m.type, {}};
    Dim blocks = isLastShort ? place(piece, few) : place(few, piece);
    begin = isLastShort ? row0 : column0;
    length = k.minimum(k.constant(piece), k.sub(k.dim(lengthwise.size), begin));
    thread = threadIndex(k);
    int64_t most = kMovedBytes / width;
    while (most > 1 && !areWhole(most))
      most /= 2;
    withLanes(source, most, [&](int64_t lanes) { isLastShort ? sharedRows(lanes, true) : whole(lanes, true); });
    barrier(k);
    withLanes(target, most, [&](int64_t lanes) { isLastShort ? whole(lanes, false) : sharedRows(lanes, false); });
    return {.blocks = blocks, .threads = kThreads};
  }

private:
  static constexpr int64_t kMovedBytes = 16, kTileBytes = 12 << 10;

  /// Whether rows and slices of memory begin and end between vectors of n elements.
  bool areWhole(int64_t n) const {
    return isMultipleOf(lengthwise.size, n) && llvm::all_of(m.dims, [&](const StridedCopy::Along &d) {
             if (&d == &inner || &d == &last)
               return &d == &lengthwise || isMultipleOf(isLastShort ? d.from : d.to, n);
             return isMultipleOf(d.from, n) && isMultipleOf(d.to, n);
           });
  }

  /// Calls `body` for each vector of `total` elements of the tile.
  void eachVector(int64_t total, int64_t lanes, llvm::function_ref<void(ArrayRef<Value> firsts)> body) {
    int64_t rounds = llvm::divideCeil(total / lanes, kThreads);
    inRounds(rounds, lanes > 1 ? 4 : 2, [&](ArrayRef<Value> numbers) {
      SmallVector<Value> firsts;
      for (Value number : numbers)
        firsts.push_back(k.mul(k.add(thread, k.mul(number, k.constant(kThreads))), k.constant(lanes)));
      body(firsts);
    });
  }

  /// Copies the tile by shared rows, from memory or to it.
  void sharedRows(int64_t lanes, bool isRead) {
    eachVector(few * piece, lanes, [&](ArrayRef<Value> firsts) {
      SmallVector<Value> loaded;
      auto places = [&](Value first) {
        Value sharedRow = k.div(first, k.constant(piece)), along = k.rem(first, k.constant(piece));
        Value inMemory = k.add(isRead ? from : to, k.add(begin, along));
        inMemory = k.add(inMemory, k.mul(sharedRow, k.dim(isRead ? last.from : inner.to)));
        Value isInside = arith::AndIOp::create(k.b, k.loc, less(along, length), less(sharedRow, k.constant(few)));
        return std::tuple{inMemory, k.add(k.mul(sharedRow, k.constant(pitch)), along), isInside};
      };
      move(
          firsts, lanes, isRead, places, [&](Value inTile) { return load(tile, inTile, lanes); },
          [&](Value inTile, Value v) { store(tile, inTile, v, lanes); });
    });
  }

  /// Copies the tile as the contiguous piece that it is in memory, from there or to there.
  void whole(int64_t lanes, bool isRead) {
    Value count = k.mul(length, k.constant(few));
    eachVector(few * piece, lanes, [&](ArrayRef<Value> firsts) {
      auto places = [&](Value first) {
        Value inMemory = k.add(k.add(isRead ? from : to, k.mul(begin, k.constant(few))), first);
        return std::tuple{inMemory, first, less(first, count)};
      };
      auto spread = [&](Value first, int64_t lane) {
        Value i = k.add(first, k.constant(lane));
        return k.add(k.mul(k.rem(i, k.constant(few)), k.constant(pitch)), k.div(i, k.constant(few)));
      };
      auto gather = [&](Value first) -> Value {
        if (lanes == 1)
          return load(tile, spread(first, 0), 1);
        SmallVector<Value> elements;
        for (int64_t lane = 0; lane < lanes; ++lane)
          elements.push_back(load(tile, spread(first, lane), 1));
        return vector::FromElementsOp::create(k.b, k.loc, cast<VectorType>(vectorOf(lanes)), elements);
      };
      auto scatter = [&](Value first, Value v) {
        for (int64_t lane = 0; lane < lanes; ++lane)
          store(tile, spread(first, lane),
                lanes == 1 ? v : vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{lane}).getResult(), 1);
      };
      move(firsts, lanes, isRead, places, gather, scatter);
    });
  }

  /// Moves vectors between memory and tile where `places` says: position in memory, in the tile, whether it exists.
  void move(ArrayRef<Value> firsts, int64_t lanes, bool isRead,
            llvm::function_ref<std::tuple<Value, Value, Value>(Value)> places,
            llvm::function_ref<Value(Value)> fromTile, llvm::function_ref<void(Value, Value)> toTile) {
    SmallVector<std::tuple<Value, Value, Value>> all(llvm::map_range(firsts, places));
    if (!isRead) {
      for (auto &[inMemory, inTile, isInside] : all)
        k.when(isInside, [&, a = inMemory, t = inTile] { store(target, a, fromTile(t), lanes); });
      return;
    }
    SmallVector<Value> loaded;
    for (auto &[inMemory, inTile, isInside] : all) {
      Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(vectorOf(lanes)));
      loaded.push_back(
          k.when(isInside, {zero}, [&, a = inMemory] { return SmallVector<Value>{load(source, a, lanes)}; })[0]);
    }
    for (auto [place, v] : llvm::zip_equal(all, loaded))
      k.when(std::get<2>(place), [&, t = std::get<1>(place), v = v] { toTile(t, v); });
  }

  bool isLastShort;
  const StridedCopy::Along &lengthwise;
  int64_t few, piece, pitch; // elements: positions of the short dimension; of the long one in a tile; of a shared row
  Memory tile;
  Value begin, length, thread;
};

} // namespace

GpuLaunch emitGpuTranspose(const KernelEmission &kernel) {
  std::optional<StridedCopy> copy = passes::gpuTransposeOf(kernel.body);
  if (passes::shortSideOf(*copy) == passes::ShortSide::None)
    return TileCopy(kernel.e, *copy, kernel.results[0]).emit();
  return PlaneCopy(kernel.e, *copy, kernel.results[0]).emit();
}

} // namespace burin::codegen
