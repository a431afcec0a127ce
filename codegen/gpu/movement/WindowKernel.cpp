// Windows over images: max_pool, and depthwise convolution with channels last. Adjacent threads compute adjacent
// elements of the result, each a run of positions along the dimension before, whose windows share elements of x.
// Elements outside of x are read from its border and replaced, so that no load waits for a branch.
#include "codegen/emit/element/Window.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256, kMovedBytes = 16;
constexpr int64_t kLongestRun = 4;
/// Results of fewer elements per position of a run would leave multiprocessors idle.
constexpr int64_t kFewElements = int64_t(1) << 19;

class GpuWindow {
public:
  GpuWindow(const KernelEmission &kernel, Operation *op, const Window &w)
      : e(kernel.e), k(e.k), p(e, *kernel.space), body(kernel.body), pointers(kernel.results),
        results(kernel.body, *kernel.space, kernel.results), op(op), w(w), rule(e, op),
        result(shapeOf(op->getResult(0))), x(shapeOf(w.x)), run(w.channelsLast() ? 1 : 0), along(w.firstSpatial + run),
        lanes(vectorLanes()), length(runLength()) {}

  GpuLaunch emit() {
    Shape counts = result;
    counts[along] = ceildiv(result[along], length);
    if (lanes > 1)
      counts.back() = Dim(result.back().value() / lanes);
    Dim total = 1;
    for (const Dim &count : counts)
      total = total * count;
    Value i = k.add(k.mul(k.lo, k.constant(kThreads)), threadIndex(k));
    k.when(k.compare(arith::CmpIPredicate::slt, i, k.dim(total)), [&] {
      at = e.delinearize({i}, counts);
      first = k.mul(at[along].base, k.constant(length));
      Value channel = at.back().base;
      if (lanes == 1)
        return e.scoped([&] { compute(); });
      channel = k.mul(channel, k.constant(lanes));
      Value areAligned = operandsAligned(e, body, pointers);
      k.when(areAligned, [&] {
        assumeOperandsAligned(e, body, pointers);
        at.back() = {channel, 1};
        llvm::SaveAndRestore inLanes(k.width, lanes);
        e.scoped([&] { compute(); });
      });
      k.unless(areAligned, [&] {
        k.loop(channel, k.add(channel, k.constant(lanes)), k.constant(1), [&](Value c) {
          at.back() = {c};
          e.scoped([&] { compute(); });
        });
      });
    });
    return {.blocks = ceildiv(total, kThreads), .threads = kThreads};
  }

private:
  /// A position of x along a dimension, moved inside, and whether it was inside; null: always.
  struct Place {
    Index position;
    Value isInside;
  };

  /// Channels of a vector of 16 bytes of the widest element type; 1 if they do not divide the channels.
  int64_t vectorLanes() {
    if (!w.channelsLast() || !result.back().isStatic())
      return 1;
    int64_t widest = 2;
    auto see = [&](Value v) { widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v))); };
    llvm::for_each(body.getArguments(), see);
    for (Operation &each : body.without_terminator())
      llvm::for_each(each.getResults(), see);
    int64_t count = kMovedBytes / widest;
    return result.back().value() % count == 0 ? count : 1;
  }

  int64_t runLength() {
    Dim all = elements(result);
    int64_t longest = kLongestRun;
    while (all.isStatic() && longest > 1 && all.value() / lanes / longest < kFewElements / lanes)
      longest /= 2;
    return longest;
  }

  /// The position origin + distance along spatial dimension d. `isRun`: there may be no result there.
  Place placeAt(size_t d, Value origin, int64_t distance, bool isRun) {
    bool isCut = isRun && !isMultipleOf(result[along], length);
    if (!w.isOpen(d) && !isCut)
      return {{k.add(origin, k.constant(distance))}, {}};
    // In 32 bits, in which a minimum is one instruction: sizes of images have no more.
    auto narrow = [&](Value v) -> Value { return arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), v); };
    Value position = narrow(k.add(origin, k.constant(distance))), end = narrow(k.dim(x[w.firstSpatial + d]));
    Value most = arith::SubIOp::create(k.b, k.loc, end, narrow(k.constant(1)));
    Value inside = arith::MinSIOp::create(k.b, k.loc, position, most);
    inside = arith::MaxSIOp::create(k.b, k.loc, inside, narrow(k.constant(0)));
    Place place{{arith::ExtSIOp::create(k.b, k.loc, k.b.getI64Type(), inside)}, {}};
    if (w.isOpen(d))
      place.isInside = k.compare(arith::CmpIPredicate::eq, inside, position);
    return place;
  }

  Value load(const SmallVector<Index> &position, Value isInside) {
    Value v = castLanes(k.b, k.loc, k.broadcast(e.element(w.x, position), k.width), rule.type, rule.sumType);
    return isInside ? arith::SelectOp::create(k.b, k.loc, isInside, v, rule.identity(k.width)).getResult() : v;
  }

  void compute() {
    Value origin = k.sub(k.mul(first, k.constant(w.strides[run])), k.constant(w.low[run]));
    int64_t reach = (length - 1) * w.strides[run] + (w.kernel[run] - 1) * w.dilations[run] + 1;
    SmallVector<std::optional<Place>> places(reach); // along the run
    for (int64_t i = 0; i < length; ++i)
      for (int64_t tap = 0; tap < w.kernel[run]; ++tap) {
        auto &place = places[i * w.strides[run] + tap * w.dilations[run]];
        if (!place)
          place = placeAt(run, origin, i * w.strides[run] + tap * w.dilations[run], true);
      }
    SmallVector<Value> sums(length, rule.identity(k.width));
    sums = w.channelsLast() ? lastChannels(places, sums) : planes(places, sums);
    for (int64_t i = 0; i < length; ++i) {
      Value there = k.add(first, k.constant(i));
      auto store = [&, i] { finish(there, castLanes(k.b, k.loc, sums[i], rule.sumType, rule.type)); };
      if (isMultipleOf(result[along], length))
        store();
      else
        k.when(k.compare(arith::CmpIPredicate::slt, there, k.dim(result[along])), store);
    }
  }

  /// Adds the elements of x at a distance along the run to all windows of the run that have it.
  void addTo(SmallVector<Value> &sums, int64_t distance, Value v,
             llvm::function_ref<SmallVector<Value>(int64_t)> tapAt) {
    for (int64_t i = 0; i < length; ++i) {
      int64_t way = distance - i * w.strides[run], tap = way / w.dilations[run];
      if (way >= 0 && way % w.dilations[run] == 0 && tap < w.kernel[run])
        sums[i] = rule.step(sums[i], v, tapAt(tap), at.back());
    }
  }

  /// Channels last: a loop over the rows of the windows that are in x; runs lie in rows.
  SmallVector<Value> lastChannels(ArrayRef<std::optional<Place>> places, ArrayRef<Value> begin) {
    size_t row = w.firstSpatial;
    Value origin = originOf(k, w, 0, at[row]).base;
    auto [from, to] = tapsInside(k, w, 0, origin);
    return k.loop(from, to, k.constant(1), begin, [&](Value i, ValueRange carried) {
      return e.scoped([&] {
        SmallVector<Value> sums(carried);
        SmallVector<Index> position(at);
        position[row] = {k.add(origin, k.mul(i, k.constant(w.dilations[0])))};
        SmallVector<std::pair<int64_t, Value>> loaded;
        for (auto [distance, place] : llvm::enumerate(places))
          if (place) {
            position[along] = place->position;
            loaded.push_back({int64_t(distance), load(position, place->isInside)});
          }
        for (auto [distance, v] : loaded)
          addTo(sums, distance, v, [&](int64_t tap) { return SmallVector<Value>{i, k.constant(tap)}; });
        return sums;
      });
    });
  }

  /// Channels first: runs lie in columns.
  SmallVector<Value> planes(ArrayRef<std::optional<Place>> places, ArrayRef<Value> begin) {
    size_t column = w.firstSpatial + 1;
    Value origin = originOf(k, w, 1, at[column]).base;
    SmallVector<Place> columns;
    for (int64_t tap = 0; tap < w.kernel[1]; ++tap)
      columns.push_back(placeAt(1, origin, tap * w.dilations[1], false));
    SmallVector<Value> sums(begin);
    SmallVector<Index> position(at);
    for (auto [distance, place] : llvm::enumerate(places)) {
      if (!place)
        continue;
      position[along] = place->position;
      for (auto [tap, there] : llvm::enumerate(columns)) {
        position[column] = there.position;
        Value isInside = place->isInside && there.isInside
                             ? arith::AndIOp::create(k.b, k.loc, place->isInside, there.isInside).getResult()
                         : place->isInside ? place->isInside
                                           : there.isInside;
        addTo(sums, int64_t(distance), load(position, isInside),
              [&, tap = int64_t(tap)](int64_t row) { return SmallVector<Value>{k.constant(row), k.constant(tap)}; });
      }
    }
    return sums;
  }

  /// Computes what follows the window at a position of the run, and stores it.
  void finish(Value there, Value v) {
    ArrayRef<int> dims = p.alignment.dims.find(op->getResult(0))->second;
    for (auto [d, index] : llvm::zip_equal(dims, at))
      if (d >= 0)
        p.point[size_t(d)] = index;
    if (dims[along] >= 0)
      p.point[size_t(dims[along])] = {there};
    p.scoped([&] {
      p.bind(op->getResult(0), v);
      results.write(p);
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  Block &body;
  ArrayRef<Value> pointers; // of the results
  GpuResults results;
  Operation *op;
  const Window &w;
  WindowRule rule;
  Shape result, x;
  size_t run, along; // the spatial dimension of the runs, and its number in the shapes
  int64_t lanes, length;
  SmallVector<Index> at; // in the result; of the run along its dimension
  Value first;           // position of the run
};

} // namespace

GpuLaunch emitGpuWindow(const KernelEmission &kernel) {
  Operation *op = passes::gpuWindowIn(kernel.body);
  std::optional<Window> w = windowOf(op);
  return GpuWindow(kernel, op, *w).emit();
}

} // namespace burin::codegen
