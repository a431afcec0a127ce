// Channels-last windows: depthwise convolution and max_pool with their epilogues.
//
// A vector holds channels. A tile is a run of adjacent positions of the last spatial dimension, in one row or in
// several, with one accumulator each; an element of x is loaded once for all windows of the tile that contain it. Tiles
// at the ends of a row skip the taps that lie outside of x, tiles at the top and bottom the rows, so nothing is padded
// or masked. If the last channels do not fill a vector, several positions share one. An accumulator adds its taps in
// row-major order, as in other kernels.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/kernels/LongEpilogue.h"
#include "codegen/kernels/window/WindowSchedule.h"
#include "passes/kernels/families/KernelFamily.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class WindowKernel : WindowSchedule {
public:
  WindowKernel(const KernelEmission &kernel, Operation *op, const Window &w)
      : WindowSchedule(w, dtypeOf(op->getResult(0)), shapeOf(op->getResult(0)), kernel.e.k.target,
                       bool(kernel.e.memoryOf(w.x))),
        e(kernel.e), k(e.k), p(e, *kernel.space), op(op), rule(e, op), body(kernel.body), results(kernel.results) {}

  LaunchShape emit() {
    Shape steps(result.begin(), result.begin() + last);
    steps.back() = bands();
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      Value rest = k.div(task, k.dim(blocks));
      at.assign(result.size(), Index());
      for (size_t d = last; d-- > 0;) {
        at[d] = {d ? k.rem(rest, k.dim(steps[d])) : rest};
        rest = d ? k.div(rest, k.dim(steps[d])) : rest;
      }
      Value block = k.rem(task, k.dim(blocks));
      channelFrom = k.mul(block, k.constant(channelBlock));
      channelTo = k.dim(result.back());
      if (blocks != 1) {
        Value isLast = k.compare(arith::CmpIPredicate::eq, block, k.sub(k.dim(blocks), k.constant(1)));
        Value next = k.add(channelFrom, k.constant(channelBlock));
        channelTo = arith::SelectOp::create(k.b, k.loc, isLast, channelTo, next);
      }
      rowsOfTask == 1 ? tiles() : band(at[last - 1].base);
    });
    return {tasks(), 0, text()};
  }

private:
  /// Computes the rows of a task by tiles with all of these rows. With a static number of rows, tasks are of nearly
  /// equal height; otherwise the rows of the last task may be computed one by one.
  void band(Value number) {
    const Dim &size = result[last - 1];
    auto tilesFrom = [&](Value row, int64_t height) {
      at[last - 1] = {row};
      rows = height;
      tiles();
    };
    if (size.isStatic()) {
      int64_t all = size.value(), count = std::max<int64_t>(bands().value(), 1), height = all / count;
      auto begin = [&](Value band) { return k.div(k.mul(band, k.constant(all)), k.constant(count)); };
      Value first = begin(number);
      if (all % count == 0)
        return tilesFrom(first, height);
      Value end = begin(k.add(number, k.constant(1)));
      Value isHigher = k.compare(arith::CmpIPredicate::sgt, k.sub(end, first), k.constant(height));
      k.when(isHigher, [&] { tilesFrom(first, height + 1); });
      k.unless(isHigher, [&] { tilesFrom(first, height); });
      return;
    }
    Value first = k.mul(number, k.constant(rowsOfTask)), end = k.add(first, k.constant(rowsOfTask));
    Value isWhole = k.compare(arith::CmpIPredicate::sle, end, k.dim(size));
    k.when(isWhole, [&] { tilesFrom(first, rowsOfTask); });
    k.unless(isWhole, [&] { k.loop(first, k.dim(size), k.constant(1), [&](Value row) { tilesFrom(row, 1); }); });
  }

  // ---- the tiles of a row in order, each for all channels of the task, so that memory is accessed sequentially
  void tiles() {
    int64_t about = positions(rows), count = std::max<int64_t>((columns + about / 2) / about, 1);
    for (TileRun run : tilesOf(columns, count, [&](int64_t from, int64_t size) { return isInside(from, size); })) {
      if (!run.inside) {
        channels([&] { tile(k.constant(run.from), run.from, run.size); });
        continue;
      }
      k.loop(k.constant(0), k.constant(run.tiles), k.constant(1), [&](Value i) {
        Value from = k.add(k.constant(run.from), k.mul(i, k.constant(run.size)));
        channels([&] { tile(from, std::nullopt, run.size); });
      });
    }
  }

  void channels(llvm::function_ref<void()> visit) {
    Dim size = result.back();
    Value step = k.constant(lanes);
    Value whole = k.add(channelFrom, k.mul(k.div(k.sub(channelTo, channelFrom), step), step));
    auto vectorAt = [&](Value channel) {
      llvm::SaveAndRestore inLanes(k.width, lanes);
      at.back() = {channel, 1};
      visit();
    };
    k.loop(channelFrom, whole, step, vectorAt);
    if (isMultipleOf(size, lanes))
      return;
    k.when(k.compare(arith::CmpIPredicate::slt, whole, channelTo), [&] {
      // With a single active lane known to LLVM, it would make scalars of all lanes, in long dependency chains. Without
      // AVX-512 these are short, and a static size saves branches.
      Value bound = k.target.avx512 ? k.runtimeSize(size) : k.dim(size);
      int64_t few = lanesOfRest();
      bool masked = !size.isStatic() || size.value() % lanes != few;
      llvm::SaveAndRestore several(together, lanes / few), fewer(lanes, few);
      llvm::SaveAndRestore existing(e.mask, masked ? k.below(whole, bound, lanes) : Value());
      vectorAt(whole);
    });
  }

  /// `known`: the value of `from`; nullopt if all windows lie inside.
  void tile(Value from, std::optional<int64_t> known, int64_t size) {
    llvm::SaveAndRestore alone(together, known ? 1 : together); // skipped taps are skipped for whole vectors
    int64_t vectors = llvm::divideCeil(size, together);         // vectors per row
    Index first = at[last - 1];
    auto eachOf = [&](int64_t row, llvm::function_ref<void(int64_t place)> visit) {
      at[last - 1] = k.shift(first, k.constant(row));
      for (int64_t i = 0; i < size; ++i) {
        at[last] = {k.add(from, k.constant(i))};
        visit(i);
      }
      at[last - 1] = first;
    };
    e.scoped([&] {
      if (storesSplit())
        for (int64_t row = 0; row < rows; ++row)
          eachOf(row, [&](int64_t) { p.fetchResults(op->getResult(0), at, body, results); });
      SmallVector<Index> position(at.begin(), at.end());
      SmallVector<Value> sums(rows * vectors, rule.identity(lanes * together));
      auto step = [&](ArrayRef<Index> where, ArrayRef<RowTap> seen, ArrayRef<Value> carried) {
        return innerTaps(where, seen, from, known, size, carried);
      };
      auto finish = [&](int64_t row, ArrayRef<Value> sums) {
        if (hasLongEpilogue.value_or(false) && size > 1)
          return finishInLoop(row, from, size, sums.slice(row * vectors, vectors));
        eachOf(row, [&](int64_t i) {
          Value sum = k.slice(sums[row * vectors + i / together], i % together * lanes, lanes);
          finishPosition(sum);
        });
      };
      if (w.spatial == 2 && rowsOfTask > 1) {
        rowTaps(position, {}, sums, step, finish);
        return 0;
      }
      sums = outerTaps(0, position, {}, sums, step);
      for (int64_t row = 0; row < rows; ++row)
        finish(row, sums);
      return 0;
    });
  }

  /// Computes the epilogue of a position and stores its results.
  void finishPosition(Value sum) {
    const int64_t ops = opsOf(
        k, [&] { p.finish(op->getResult(0), at, castLanes(k.b, k.loc, sum, rule.sumType, rule.type), body, results); });
    if (!hasLongEpilogue)
      hasLongEpilogue = ops >= kOpsOfLoop;
  }

  /// Finishes the positions of a row of a tile in a loop.
  void finishInLoop(int64_t row, Value from, int64_t size, ArrayRef<Value> sums) {
    if (!rowSums)
      rowSums = stackMemory(k, kMostVectors * k.target.vectorBytes);
    const Memory memory{rowSums, rule.sumType, {}};
    for (auto [v, sum] : llvm::enumerate(sums))
      k.store(memory, {k.constant(int64_t(v) * together * lanes), 1}, sum, together * lanes, {});
    const Index first = at[last - 1];
    at[last - 1] = k.shift(first, k.constant(row));
    k.loop(k.constant(0), k.constant(size), k.constant(1), [&](Value i) {
      e.scoped([&] {
        at[last] = {k.add(from, i)};
        finishPosition(k.load(memory, {k.mul(i, k.constant(lanes)), 1}, lanes, {}));
        return 0;
      });
    });
    at[last - 1] = first;
  }

  /// So many of the row of x that `position` is in.
  void fetchPixels(SmallVector<Index> position, Value from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      position[last] = {k.add(from, k.constant(i))};
      LLVM::Prefetch::create(k.b, k.loc, k.elementPointer(*e.memoryOf(w.x), k.linear(x, position).base), 0, 3, 1);
    }
  }

  // ---- the taps
  /// A row of taps, and the row of the tile that reads a row of x through it.
  struct RowTap {
    int64_t row;
    SmallVector<Value> tap;
  };
  /// Adds a row of x to the accumulators `carried` of all rows of the tile.
  using Step =
      llvm::function_ref<SmallVector<Value>(ArrayRef<Index> position, ArrayRef<RowTap> seen, ArrayRef<Value> carried)>;

  /// Loops over all dimensions of the window but the last, restricted to taps inside x.
  SmallVector<Value> outerTaps(size_t d, SmallVector<Index> position, SmallVector<Value> tap, ArrayRef<Value> carried,
                               Step step) {
    if (d + 1 == w.spatial)
      return step(position, {{0, tap}}, carried);
    if (d + 2 == w.spatial && rowsOfTask > 1)
      return rowTaps(position, tap, carried, step, [](int64_t, ArrayRef<Value>) {});
    size_t axis = w.firstSpatial + d;
    Index origin = originOf(k, w, d, position[axis]);
    auto [begin, end] = codegen::tapsInside(k, w, d, origin.base);
    return k.loop(begin, end, k.constant(1), carried, [&](Value i, ValueRange values) {
      return e.scoped([&] {
        SmallVector<Index> inner(position);
        inner[axis] = k.shift(origin, k.mul(i, k.constant(w.dilations[d])));
        SmallVector<Value> taps(tap);
        taps.push_back(i);
        return outerTaps(d + 1, inner, taps, SmallVector<Value>(values), step);
      });
    });
  }

  /// For the second last dimension of tiles with several rows: visits each existing row of x once, for all rows of the
  /// tile that read it. `finish` is called as soon as a row of the tile is complete, because values that live across a
  /// branch would be spilled.
  SmallVector<Value> rowTaps(SmallVector<Index> position, ArrayRef<Value> outerTap, ArrayRef<Value> carried, Step step,
                             llvm::function_ref<void(int64_t row, ArrayRef<Value> sums)> finish) {
    size_t d = w.spatial - 2;
    int64_t stride = w.strides[d], dilation = w.dilations[d];
    Index origin = originOf(k, w, d, position[last - 1]);
    SmallVector<Value> sums(carried);
    int64_t end = reach(d, rows);
    for (int64_t r = 0; r < end; ++r) {
      SmallVector<RowTap> seen;
      for (int64_t row = 0; row < rows; ++row)
        if (int64_t way = r - row * stride; way >= 0 && way % dilation == 0 && way / dilation < w.kernel[d]) {
          seen.push_back({row, SmallVector<Value>(outerTap)});
          seen.back().tap.push_back(k.constant(way / dilation));
        }
      if (seen.empty())
        continue;
      position[last - 1] = k.shift(origin, k.constant(r));
      if (r >= w.low[d] && r < end - w.high[d] - (w.ceilMode ? stride : 0)) {
        sums = step(position, seen, sums);
      } else {
        Value inside = e.inRange(position[last - 1], k.constant(0), k.dim(x[last - 1]));
        sums = k.when(inside, sums, [&] { return e.scoped([&] { return step(position, seen, sums); }); });
      }
      for (const RowTap &s : seen)
        if (r == s.row * stride + (w.kernel[d] - 1) * dilation)
          finish(s.row, sums);
    }
    return sums;
  }

  SmallVector<Value> innerTaps(ArrayRef<Index> where, ArrayRef<RowTap> seen, Value from, std::optional<int64_t> known,
                               int64_t size, ArrayRef<Value> carried) {
    size_t d = last - 1;
    int64_t stride = w.strides[d], dilation = w.dilations[d], low = w.low[d], vectors = int64_t(carried.size()) / rows;
    SmallVector<Value> sums(carried);
    SmallVector<Index> position(where);
    Value base = k.sub(k.mul(from, k.constant(stride)), k.constant(low));
    // By distance from the first window of the tile; joined elements also by the number of windows.
    std::map<int64_t, Value> loaded;
    std::map<std::pair<int64_t, int64_t>, Value> joined;
    auto load = [&](int64_t distance) {
      Value &element = loaded[distance];
      if (!element) {
        position[last] = {k.add(base, k.constant(distance))};
        element = castLanes(k.b, k.loc, k.broadcast(e.element(w.x, position), lanes), rule.type, rule.sumType);
      }
      return element;
    };
    if (fetchesNext && !known)
      fetchPixels(position, k.add(base, k.constant(reach(d, size))), size * stride);
    // Elements at tap t of the windows from position i on; the last one is repeated to fill the vector.
    auto elementsOf = [&](int64_t t, int64_t i) {
      int64_t distance = i * stride + t * dilation, count = std::min(together, size - i);
      Value &elements = joined[{distance, count}];
      if (elements)
        return elements;
      if (Value before = joined[{distance - stride, count}]; before && count > 1 && count == together)
        return elements = k.slideIn(before, load(distance + (count - 1) * stride), lanes);
      SmallVector<Value> each;
      for (int64_t j = 0; j < together; ++j)
        each.push_back(load(distance + std::min(j, count - 1) * stride));
      return elements = k.concat(each);
    };
    for (int64_t t = 0; t < w.kernel[d]; ++t)
      for (int64_t v = 0; v < vectors; ++v) {
        int64_t i = v * together, column = known.value_or(0) * stride - low + i * stride + t * dilation;
        if (known && (column < 0 || column >= width))
          continue;
        Value elements = elementsOf(t, i);
        for (const RowTap &s : seen) {
          SmallVector<Value> tap(s.tap);
          tap.push_back(k.constant(t));
          Value &sum = sums[s.row * vectors + v];
          sum = rule.step(sum, elements, tap, at.back());
        }
      }
    return sums;
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  Operation *op;
  WindowRule rule;
  Block &body;
  ArrayRef<Value> results;
  // An epilogue of so many ops is a loop over the positions of a row (silu has 60): storing and loading the sums costs
  // little beside them.
  static constexpr int64_t kOpsOfLoop = 40;
  static constexpr int64_t kMostVectors = 32; // of a row of a tile: it fits in the registers
  std::optional<bool> hasLongEpilogue;        // once a position is finished
  Value rowSums;                              // stack memory for the sums of such a row
  int64_t rows = 1;                           // of the tile
  int64_t together = 1;                       // positions of the tile that share a vector
  SmallVector<Index> at;                      // in the result
  Value channelFrom, channelTo;               // of the task
};

} // namespace

LaunchShape emitWindow(const KernelEmission &kernel) {
  Operation *op = passes::tiledWindowIn(kernel.body);
  std::optional<Window> w = windowOf(op);
  return WindowKernel(kernel, op, *w).emit();
}

} // namespace burin::codegen
