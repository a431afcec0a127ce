// Channels-last windows: depthwise convolution and max_pool with their epilogues.
//
// A vector holds channels. A tile is a run of adjacent positions of the last spatial dimension, in one row or in
// several, with one accumulator each; an element of x is loaded once for all windows of the tile that contain it. Tiles
// at the ends of a row skip the taps that lie outside of x, tiles at the top and bottom the rows, so nothing is padded
// or masked. If the last channels do not fill a vector, several positions share one. An accumulator adds its taps in
// row-major order, as in other kernels.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/Window.h"
#include "passes/kernels/KernelFamily.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kFewestLanes = 4; // lanes of a position: those of the shortest register
constexpr int64_t kFewVectors = 4;  // vectors per pixel; fewer lie in few cache lines
/// Accumulators of a contraction's tile on the target that has most: tasks are equal on all targets.
constexpr int64_t kMostAccumulators = 24;

class WindowKernel {
public:
  WindowKernel(ElementEmitter &e, Operation *op, const Window &w, Block &body, const passes::IterationSpace &a,
               ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), op(op), w(w), rule(e, op), body(body), results(results), x(shapeOf(w.x)),
        result(shapeOf(op->getResult(0))), last(w.spatial), columns(result[last].value()), width(x[last].value()) {
    lanes = k.target.lanes(byteWidth(rule.sumType));
    const passes::WindowShare &most = isFar() ? passes::kFarWindow : passes::kNearWindow;
    // Tasks that split a cache line between pixels would both load it.
    cutChannels(endsWithLine() ? most.channels : passes::kFarWindow.channels);
    if (w.spatial > 1) {
      size_t d = w.spatial - 2;
      if (w.strides[d] % w.dilations[d] == 0)
        sharing = llvm::divideCeil(w.kernel[d], w.strides[d] / w.dilations[d]);
      fetchesNext = shouldFetchNext(most.rows);
      int64_t tapsOfRow = positions(sharing, kMostAccumulators) * w.kernel[d] * w.kernel.back();
      mostRows = std::max<int64_t>(passes::kMostUnrolledTaps / tapsOfRow, 1);
      rowsOfTask = sharing > 1 ? std::min(most.rows, mostRows) : 1;
    }
  }

  LaunchShape emit() {
    Dim tasks = blocks;
    Shape steps(result.begin(), result.begin() + last);
    steps.back() = bands();
    for (const Dim &count : steps)
      tasks = tasks * count;
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
    return {tasks, 0};
  }

private:
  /// Whether an image exceeds L2.
  bool isFar() { return bytesOfImage() > passes::kCachedBytes; }

  /// Bytes of x and of the result, per image.
  int64_t bytesOfImage() {
    int64_t read = byteWidth(dtypeOf(w.x)), written = byteWidth(rule.type);
    for (size_t d = 1; d < x.size(); ++d) {
      if (!x[d].isStatic() || !result[d].isStatic())
        return std::numeric_limits<int64_t>::max();
      read *= x[d].value(), written *= result[d].value();
    }
    return read + written;
  }

  /// Splits channels into tasks of about equal size, in whole vectors of the widest target. The channels of an
  /// incomplete last vector belong to the last task.
  void cutChannels(int64_t most) {
    const Dim &size = result.back();
    channelBlock = most;
    blocks = ceildiv(size, most);
    if (size.isStatic() && size.value() > 0) {
      int64_t unit = kLineBytes / int64_t(byteWidth(rule.sumType));
      int64_t whole = std::max<int64_t>(size.value() / unit, 1), parts = llvm::divideCeil(whole * unit, most);
      channelBlock = unit * llvm::divideCeil(whole, parts);
      blocks = llvm::divideCeil(whole * unit, channelBlock);
    }
  }

  /// Approximate number of positions per row of a tile. A single row uses a third of the registers that contractions
  /// use as accumulators; elements of x and of the filter use the others. Several rows that share elements use up to
  /// two thirds.
  int64_t positions(int64_t rowsOfTile, int64_t accumulators) {
    int64_t single = std::min(accumulators / 3, passes::kMostUnrolledTaps / w.kernel.back());
    return rowsOfTile == 1 ? single : std::max<int64_t>(2 * single / (std::min(rowsOfTile, sharing) + 1), 2);
  }
  /// On this target; one position less if each tile prefetches the pixels of the next tile.
  int64_t positions(int64_t rowsOfTile) {
    int64_t all = positions(rowsOfTile, k.target.tileRows * k.target.tileVectors);
    return fetchesNext && rowsOfTile > 1 ? std::max<int64_t>(all - 1, 2) : all;
  }

  /// Extent in spatial dimension d of x that `windows` adjacent windows cover.
  int64_t reach(size_t d, int64_t windows) {
    return (windows - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
  }

  /// Loads from L2 that cross cache lines take longer than the computation of a tile. So each tile prefetches to L1 the
  /// pixels that only the next tile needs, if L1 holds both and pixels have many vectors.
  bool shouldFetchNext(int64_t rowsOfTile) {
    const Dim &channels = result.back();
    bool ofMany = channels.isStatic() && channels.value() >= kFewVectors * lanes;
    if (!ofMany || !storesSplit() || !isFar() || !e.memoryOf(w.x) || sharing == 1)
      return false;
    int64_t narrower = positions(rowsOfTile) - 1;
    int64_t pixels = reach(w.spatial - 2, rowsOfTile) * reach(w.spatial - 1, 2 * narrower);
    int64_t ofTask = blocks == 1 ? channels.value() : channelBlock;
    return narrower > 2 && pixels * ofTask * int64_t(byteWidth(dtypeOf(w.x))) <= passes::kWindowTileBytes;
  }

  /// Number of tasks along the rows of an image: even, so that two threads get equal shares.
  Dim bands() {
    const Dim &size = result[last - 1];
    if (!size.isStatic() || rowsOfTask == 1 || size.value() <= rowsOfTask)
      return ceildiv(size, rowsOfTask);
    int64_t about = (size.value() + rowsOfTask) / (2 * rowsOfTask),
            fewest = llvm::divideCeil(size.value(), 2 * mostRows);
    return 2 * std::max(about, fewest);
  }

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
      k.width = lanes;
      at.back() = {channel, 1};
      visit();
      k.width = 1;
    };
    k.loop(channelFrom, whole, step, vectorAt);
    if (isMultipleOf(size, lanes))
      return;
    k.when(k.compare(arith::CmpIPredicate::slt, whole, channelTo), [&] {
      // With a single active lane known to LLVM, it would make scalars of all lanes, in long dependency chains. Without
      // AVX-512 these are short, and a static size saves branches.
      Value bound = k.target.avx512 ? k.handedIn(size) : k.dim(size);
      int64_t few = lanesOfRest();
      bool masked = !size.isStatic() || size.value() % lanes != few;
      llvm::SaveAndRestore several(together, lanes / few), fewer(lanes, few);
      if (masked)
        e.mask = k.below(whole, bound, lanes);
      vectorAt(whole);
      e.mask = {};
    });
  }

  /// Lanes per position of the last channels: the rest of the vector holds other positions.
  int64_t lanesOfRest() {
    const Dim &size = result.back();
    if (!size.isStatic() || byteWidth(rule.type) < 4)
      return lanes;
    return std::min(lanes, std::max<int64_t>(llvm::PowerOf2Ceil(size.value() % lanes), kFewestLanes));
  }

  /// Whether all windows of `size` positions from `from` on lie inside the row.
  bool isInside(int64_t from, int64_t size) {
    size_t d = last - 1;
    int64_t first = from * w.strides[d] - w.low[d];
    return first >= 0 && first + reach(d, size) <= width;
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
        eachOf(row, [&](int64_t i) {
          Value sum = k.slice(sums[row * vectors + i / together], i % together * lanes, lanes);
          p.finish(op->getResult(0), at, castLanes(k.b, k.loc, sum, rule.sumType, rule.type), body, results);
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

  /// Whether all vectors of the result cross cache lines and stores would wait for both: then the lines are prefetched.
  /// Shorter vectors share lines, so that prefetching costs more than it saves.
  bool storesSplit() {
    return k.target.machine.splitStoresWait && k.target.vectorBytes == kLineBytes && !endsWithLine();
  }

  /// Whether the channels of a pixel fill whole cache lines.
  bool endsWithLine() {
    return result.back().isStatic() && result.back().value() * byteWidth(rule.type) % kLineBytes == 0;
  }

  /// Prefetches `count` pixels of the row of x that contains `position`.
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
        return elements = k.shiftedIn(before, load(distance + (count - 1) * stride), lanes);
      SmallVector<Value> each;
      for (int64_t j = 0; j < together; ++j)
        each.push_back(load(distance + std::min(j, count - 1) * stride));
      return elements = k.sideBySide(each);
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
  const Window &w;
  WindowRule rule;
  Block &body;
  ArrayRef<Value> results;
  Shape x, result;
  size_t last; // the dimension of x and the result that tiles run along
  int64_t columns, width, lanes;
  int64_t channelBlock;
  Dim blocks;                           // blocks of channels
  int64_t sharing = 1;                  // number of rows of the result that read a row of x
  bool fetchesNext = false;             // prefetch the pixels of the next tile
  int64_t mostRows = 1, rowsOfTask = 1; // limit for a tile with unrolled taps; rows of a task
  int64_t rows = 1;                     // rows of the current tile
  int64_t together = 1;                 // positions of the tile that share a vector
  SmallVector<Index> at;                // position in the result
  Value channelFrom, channelTo;         // channels of the task
};

} // namespace

LaunchShape emitWindow(const KernelEmission &kernel) {
  Operation *op = passes::tiledWindowIn(kernel.body);
  return WindowKernel(kernel.e, op, *windowOf(op), kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
