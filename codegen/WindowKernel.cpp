// Channels-last windows: depthwise convolution and max_pool, with what is fused behind them.
//
// A vector holds channels. A tile is a run of neighbouring positions of the last spatial dimension, each with an
// accumulator; an element of x is loaded once for all the windows of the tile that see it. Tiles at the ends of a row
// know which of their taps lie outside x and leave them out, so nothing is padded and no lane is masked for it. An
// accumulator adds its taps in row-major order, as everywhere.
#include "codegen/PointEmitter.h"
#include "codegen/Window.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMostChannels = 256; // of a task
constexpr int64_t kMostUnrolled = 160; // taps of all windows of a tile that are written out

class WindowKernel {
public:
  WindowKernel(ElementEmitter &e, Operation *op, const Window &w, Block &body, const passes::Alignment &a,
               ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), op(op), w(w), rule(e, op), body(body), results(results), x(shapeOf(w.x)),
        result(shapeOf(op->getResult(0))), last(w.spatial), columns(result[last].value()), width(x[last].value()) {
    lanes = k.target.lanes(byteWidth(rule.sumType));
    // Tasks with about as many channels each: what is read of a pixel follows on itself for as long as can be.
    if (result.back().isStatic()) {
      int64_t all = result.back().value(), parts = std::max<int64_t>(llvm::divideCeil(all, kMostChannels), 1);
      channelBlock = llvm::alignTo(llvm::divideCeil(all, parts), lanes);
    }
  }

  LaunchShape emit() {
    Dim blocks = ceildiv(result.back(), channelBlock), tasks = blocks;
    for (size_t d = 0; d < last; ++d)
      tasks = tasks * result[d];
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      Value rest = k.div(task, k.dim(blocks));
      at.assign(result.size(), Index());
      for (size_t d = last; d-- > 0;) {
        at[d] = {d ? k.rem(rest, k.dim(result[d])) : rest};
        rest = d ? k.div(rest, k.dim(result[d])) : rest;
      }
      channelFrom = k.mul(k.rem(task, k.dim(blocks)), k.constant(channelBlock));
      row();
    });
    return {tasks, 0};
  }

private:
  // ---- a row of positions: tiles in order, all channels of the task in each, so that memory is read in order
  void row() {
    // A third of the registers that contractions use as accumulators: elements of x and of the filter take the others.
    int64_t most = std::min(k.target.tileRows * k.target.tileVectors / 3, kMostUnrolled / w.kernel[last - 1]);
    for (TileRun run : tilesOf(columns, most, [&](int64_t from, int64_t size) { return isInside(from, size); })) {
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
    Value step = k.constant(lanes), to = k.minimum(k.add(channelFrom, k.constant(channelBlock)), k.dim(size));
    Value whole = k.add(channelFrom, k.mul(k.div(k.sub(to, channelFrom), step), step));
    auto vectorAt = [&](Value channel) {
      k.width = lanes;
      at.back() = {channel, 1};
      visit();
      k.width = 1;
    };
    k.loop(channelFrom, whole, step, vectorAt);
    if (size.isStatic() && size.value() % lanes == 0)
      return;
    k.when(k.compare(arith::CmpIPredicate::slt, whole, to), [&] {
      e.mask = k.below(whole, k.maskBound(size, narrowest(body, rule.type)), lanes);
      vectorAt(whole);
      e.mask = {};
    });
  }

  /// Whether no window of `size` positions from `from` on reaches beyond the row.
  bool isInside(int64_t from, int64_t size) {
    size_t d = last - 1;
    int64_t first = from * w.strides[d] - w.low[d];
    int64_t end = (from + size - 1) * w.strides[d] - w.low[d] + (w.kernel[d] - 1) * w.dilations[d];
    return first >= 0 && end < width;
  }

  /// `known`: the value of `from`, unless all windows are inside.
  void tile(Value from, std::optional<int64_t> known, int64_t size) {
    e.scoped([&] {
      SmallVector<Value> sums(size, rule.identity());
      SmallVector<Index> position(at.begin(), at.end());
      sums = outerTaps(0, position, {}, sums, [&](ArrayRef<Index> where, ArrayRef<Value> tap, ArrayRef<Value> carried) {
        return innerTaps(where, tap, from, known, carried);
      });
      for (int64_t i = 0; i < size; ++i) {
        at[last] = {k.add(from, k.constant(i))};
        Value element = castLanes(k.b, k.loc, sums[i], rule.sumType, rule.type);
        p.finish(op->getResult(0), at, element, body, results);
      }
      return 0;
    });
  }

  // ---- the taps
  using Step =
      llvm::function_ref<SmallVector<Value>(ArrayRef<Index> position, ArrayRef<Value> tap, ArrayRef<Value> carried)>;

  /// Loops over the window's dimensions but the last, over the part of each that lies inside x.
  SmallVector<Value> outerTaps(size_t d, SmallVector<Index> position, SmallVector<Value> tap, ArrayRef<Value> carried,
                               Step step) {
    if (d + 1 == w.spatial)
      return step(position, tap, carried);
    size_t axis = w.firstSpatial + d;
    Index origin = w.origin(k, d, position[axis]);
    auto [begin, end] = w.tapsInside(k, d, origin.base);
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

  SmallVector<Value> innerTaps(ArrayRef<Index> where, ArrayRef<Value> outerTap, Value from,
                               std::optional<int64_t> known, ArrayRef<Value> carried) {
    size_t d = last - 1;
    int64_t stride = w.strides[d], dilation = w.dilations[d], low = w.low[d];
    SmallVector<Value> sums(carried);
    SmallVector<Index> position(where);
    std::map<int64_t, Value> loaded; // elements of x by their distance from the tile's first window
    SmallVector<Value> tap(outerTap);
    tap.push_back({});
    Value base = k.sub(k.mul(from, k.constant(stride)), k.constant(low));
    for (int64_t t = 0; t < w.kernel[d]; ++t) {
      tap.back() = k.constant(t);
      for (size_t i = 0; i < sums.size(); ++i) {
        int64_t distance = int64_t(i) * stride + t * dilation;
        if (int64_t column = known.value_or(0) * stride - low + distance; known && (column < 0 || column >= width))
          continue;
        Value &element = loaded[distance];
        if (!element) {
          position[last] = {k.add(base, k.constant(distance))};
          element = castLanes(k.b, k.loc, k.broadcast(e.element(w.x, position), lanes), rule.type, rule.sumType);
        }
        sums[i] = rule.step(sums[i], element, tap, at.back());
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
  int64_t columns, width, lanes, channelBlock = kMostChannels;
  SmallVector<Index> at; // in the result
  Value channelFrom;     // the first channel of the task
};

} // namespace

std::optional<LaunchShape> emitWindowKernel(ElementEmitter &e, Block &body, const passes::Alignment &a,
                                            ArrayRef<Value> results) {
  for (Operation &op : body) {
    std::optional<Window> w = windowOf(&op);
    if (!w)
      continue;
    size_t last = w->spatial;
    // The mean of a window that reaches beyond x needs the number of its taps.
    bool tiled = !isa<AvgPoolOp>(op) && w->channelsLast() && w->kernel.back() <= kMostUnrolled &&
                 shapeOf(w->x)[last].isStatic() && shapeOf(op.getResult(0))[last].isStatic();
    if (tiled)
      return WindowKernel(e, &op, *w, body, a, results).emit();
  }
  return std::nullopt;
}

} // namespace burin::codegen
