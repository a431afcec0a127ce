// Reductions along the innermost dimension: a warp or a block per slice, or per part of a slice.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/rowwise/PartialReduction.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

GpuLaunch emitGpuColumns(const KernelEmission &kernel);

namespace {

constexpr int64_t kMostThreads = 256, kUnknownThreads = 128; // per slice; for slices of unknown length
constexpr int64_t kWarpsOfBlock = 4;                         // with a slice each
constexpr int64_t kMostKept = 8; // vectors of a slice that a thread keeps in registers, of all operands
// A block has a slice to itself if that moves so many bytes, which takes an H200 the time to start a block (1 ns). A
// thread then gets up to kFewKept vectors: many blocks with little work overlap loads of some with computations of
// others.
constexpr int64_t kBytesOfBlock = 4 << 10, kFewKept = 2;
constexpr int64_t kFewThreads = 1 << 17; // of all slices: more threads share a slice
constexpr int64_t kUnroll = 4;
constexpr int64_t kLongestPart = 1 << 16, kShortestPart = 1 << 12, kUnknownPart = 1 << 13; // elements
constexpr int64_t kFewSlices = 264, kEnoughBlocks = 1024;
constexpr int64_t kLongSlice = 1 << 15; // cut if the number of slices is unknown
constexpr int64_t kSlotBytes = 16;      // at least those of an accumulator
constexpr int64_t kMovedBytes = 16;     // of a vector

class RowsKernel : PartialReduction {
public:
  explicit RowsKernel(const KernelEmission &kernel)
      : PartialReduction(kernel), slices(elements(pointShape)), length(elements(rowShape)) {}

  GpuLaunch emit() {
    vector = lanesReduce ? vectorLanes() : 1;
    findRowOperands();
    cut();
    chooseThreads();
    if (threadsOfSlice > kWarp)
      allocateShared(sharedBytes(threadsOfSlice));
    Value thread = threadIndex(k);
    threadOfSlice = k.rem(thread, k.constant(threadsOfSlice));
    lane = k.constant(0);
    auto body = [&] { threadsOfSlice == threads ? emitSlices() : emitWarps(thread); };
    if (vector > 1)
      forBothAlignments(body);
    else
      body();
    return launchOfParts();
  }

private:
  /// Operands with an element of their own for each element of the slices.
  void findRowOperands() {
    for (BlockArgument v : body.getArguments()) {
      auto dims = alignment.dims.find(v);
      if (dims == alignment.dims.end() || reduced.empty())
        continue;
      auto has = [&](int d) { return llvm::is_contained(dims->second, d); };
      if (has(reduced.back()) && (parallel.empty() || has(parallel.back()) || isOverwritten(v)))
        rowOperands.push_back(v);
    }
  }

  bool isOverwritten(BlockArgument v) const {
    auto inPlace = cast<KernelOp>(body.getParentOp()).getInPlace();
    return inPlace && llvm::is_contained(*inPlace, int64_t(v.getArgNumber()));
  }

  void cut() {
    parts.slices = slices;
    int64_t each = kUnknownPart;
    bool isWanted = !length.isStatic();
    if (length.isStatic() && slices.isStatic()) {
      isWanted = slices.value() < kFewSlices && length.value() >= 2 * kShortestPart;
      each = kLongestPart;
      while (each > kShortestPart && slices.value() * ((length.value() + each - 1) / each) < kEnoughBlocks)
        each /= 2;
    } else if (length.isStatic()) {
      isWanted = length.value() >= kLongSlice;
    }
    if (isWanted)
      parts.count = max(ceildiv(length, each), 1);
    elementsOfPart = each;
  }

  int64_t sharedBytes(int64_t count) {
    return kSlotBytes * mostBytesOfLevel() * (count / kWarp); // each accumulator has a byte or more
  }

  void chooseThreads() {
    int64_t mostThreads = kMostThreads;
    while (mostThreads > kWarp && sharedBytes(mostThreads) * copiesOfShared() > kMostShared)
      mostThreads /= 2;
    threadsOfSlice = threads = std::min(mostThreads, isCut() && length.isStatic() ? kMostThreads : kUnknownThreads);
    if (!length.isStatic() || isCut())
      return;
    const int64_t vectors = (length.value() + vector - 1) / vector;
    const int64_t most = std::max<int64_t>(kMostKept / std::max<int64_t>(int64_t(rowOperands.size()), 1), 1);
    const int64_t moved = vectors * kMovedBytes * int64_t(rowOperands.size() + full.stored.size());
    const int64_t wanted = moved < kBytesOfBlock ? most : std::min(most, kFewKept);
    threadsOfSlice = kWarp;
    while (threadsOfSlice < mostThreads && threadsOfSlice * wanted < vectors)
      threadsOfSlice *= 2;
    while (slices.isStatic() && threadsOfSlice < mostThreads && threadsOfSlice < vectors &&
           slices.value() * threadsOfSlice < kFewThreads)
      threadsOfSlice *= 2;
    iterations = (vectors + threadsOfSlice - 1) / threadsOfSlice;
    isKept = length.value() > 0 && iterations <= most && k.checks.empty(); // checks see no elements beyond the end
    threads = threadsOfSlice;
    if (threads == kWarp && !(slices.isStatic() && slices.value() < kWarpsOfBlock)) {
      threads *= kWarpsOfBlock;
      parts.slices = ceildiv(slices, kWarpsOfBlock);
    }
  }

  void emitSlices() {
    keptOfIterations.assign(size_t(iterations), {});
    emitLevels([&](Value slice, Value part) {
      place(slice, parallel);
      from = k.constant(0), to = k.dim(length);
      if (isCut()) {
        from = k.mul(part, k.constant(elementsOfPart));
        to = k.minimum(k.add(from, k.constant(elementsOfPart)), to);
      }
      from = k.add(from, k.mul(threadOfSlice, k.constant(vector)));
    });
  }

  /// A slice per warp.
  void emitWarps(Value thread) {
    Value slice = k.add(k.mul(k.lo, k.constant(kWarpsOfBlock)), k.div(thread, k.constant(kWarp)));
    k.when(k.compare(arith::CmpIPredicate::slt, slice, k.dim(slices)), [&] {
      keptOfIterations.assign(size_t(iterations), {});
      emitLevels([&](Value, Value) {
        place(slice, parallel);
        from = k.mul(threadOfSlice, k.constant(vector)), to = k.dim(length);
      });
    });
  }

  /// Visits the elements of an iteration in which only some threads may have elements; `inside` is null if all have.
  SmallVector<Value> visitKept(int64_t iteration,
                               llvm::function_ref<SmallVector<Value>(Value at, Value inside)> visit) {
    Value at = k.add(from, k.constant(iteration * threadsOfSlice * vector)), inside;
    if ((iteration + 1) * threadsOfSlice * vector > length.value()) {
      inside = k.compare(arith::CmpIPredicate::slt, at, k.dim(length));
      at = k.minimum(at, k.constant(length.value() - vector));
    }
    place(at, reduced, vector);
    return p.scoped([&] {
      for (auto [v, element] : keptOfIterations[size_t(iteration)])
        p.bind(v, element);
      return visit(at, inside);
    });
  }

  /// Remembers the elements of an iteration that later levels need.
  void keep(int64_t iteration) {
    auto remember = [&](Value v) {
      if (Value element = p.bound(v))
        keptOfIterations[size_t(iteration)][v] = element;
    };
    llvm::for_each(rowOperands, remember);
    for (auto &[v, slot] : kept)
      remember(v);
  }

  /// Loads all elements of this thread before the first one is used. Beyond the end they are zeros.
  void loadKept() {
    for (int64_t iteration = 0; iteration < iterations; ++iteration)
      visitKept(iteration, [&](Value, Value inside) {
        auto load = [&] {
          SmallVector<Value> loaded;
          for (Value v : rowOperands)
            loaded.push_back(k.broadcast(p.at(v), vector));
          return loaded;
        };
        if (inside) {
          SmallVector<Value> zeros;
          for (Value v : rowOperands) {
            Type type = k.storageType(dtypeOf(v));
            type = vector > 1 ? VectorType::get({vector}, type) : type;
            zeros.push_back(arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type)));
          }
          auto loaded = k.when(inside, zeros, [&] { return p.scoped(load); });
          for (auto [v, elements] : llvm::zip(rowOperands, loaded))
            p.bind(v, elements);
        } else {
          load();
        }
        keep(iteration);
        return SmallVector<Value>();
      });
  }

  SmallVector<Value> reducePart(MutableReducers reducers) override {
    llvm::SaveAndRestore inLanes(k.width, vector);
    SmallVector<Value> sums = identities(reducers, vector);
    const int64_t stride = vector > 1;
    if (!isKept) {
      sums = walk(sums, [&](Value at, ValueRange carried) { return step(reducers, carried, {at, stride}); });
    } else {
      if (keptOfIterations[0].empty())
        loadKept();
      for (int64_t iteration = 0; iteration < iterations; ++iteration)
        sums = visitKept(iteration, [&](Value at, Value inside) {
          auto next = step(reducers, sums, {at, stride}, inside);
          keep(iteration);
          return next;
        });
    }
    return sums;
  }

  /// Loops over this thread's elements of the part, several vectors per iteration, so that their loads overlap.
  SmallVector<Value> walk(SmallVector<Value> init,
                          llvm::function_ref<SmallVector<Value>(Value at, ValueRange carried)> visit) {
    auto visitAt = [&](Value at, ValueRange carried) {
      place(at, reduced, vector);
      return p.scoped([&] { return visit(at, carried); });
    };
    return loopTogether(from, to, threadsOfSlice * vector, isShort ? 1 : kUnroll, init, visitAt);
  }

  /// Combines lanes, halves of a warp, quarters, …, then the warps in order.
  SmallVector<Value> join(MutableReducers reducers, SmallVector<Value> sums) override {
    if (isa<VectorType>(sums[0].getType())) {
      SmallVector<Value> scalars;
      for (Reducer &reducer : reducers)
        llvm::append_range(scalars, reducer.acrossLanes(ArrayRef<Value>(sums).slice(scalars.size(), reducer.size())));
      sums = scalars;
    }
    for (int64_t distance = kWarp / 2; distance > 0; distance /= 2) {
      SmallVector<Value> others;
      for (Value v : sums)
        others.push_back(shuffleDown(k, v, distance));
      sums = combineAll(reducers, sums, others);
    }
    const int64_t warps = threadsOfSlice / kWarp;
    if (warps == 1) {
      for (Value &v : sums)
        v = shuffleFirst(k, v);
      return sums;
    }
    Value thread = threadIndex(k), warp = k.div(thread, k.constant(kWarp)), memory = useShared();
    SmallVector<Value> arrays;
    for (size_t n = 0; n < sums.size(); ++n)
      arrays.push_back(LLVM::GEPOp::create(k.b, k.loc, memory.getType(), k.b.getI8Type(), memory,
                                           k.constant(int64_t(n) * kSlotBytes * warps)));
    k.when(k.compare(arith::CmpIPredicate::eq, k.rem(thread, k.constant(kWarp)), k.constant(0)), [&] {
      for (auto [array, v] : llvm::zip(arrays, sums))
        storeLanes(array, warp, v);
    });
    barrier(k);
    SmallVector<Value> all;
    for (int64_t w = 0; w < warps; ++w) {
      SmallVector<Value> part;
      for (auto [array, v] : llvm::zip(arrays, sums))
        part.push_back(loadLanes(array, k.constant(w), v.getType()));
      all = w ? combineAll(reducers, all, part) : part;
    }
    return all;
  }

  void writeFull() override {
    llvm::SaveAndRestore inLanes(k.width, vector);
    if (!isKept)
      walk({}, [&](Value, ValueRange) {
        full.write(p);
        return SmallVector<Value>();
      });
    else
      for (int64_t iteration = 0; iteration < iterations; ++iteration)
        visitKept(iteration, [&](Value, Value inside) {
          if (inside)
            k.when(inside, [&] { p.scoped([&] { full.write(p); }); });
          else
            full.write(p);
          return SmallVector<Value>();
        });
  }

  void syncSlice() override { threadsOfSlice == kWarp ? warpBarrier(k) : barrier(k); }

  void writePoints(Value isWriter) override {
    Value isFirst = k.compare(arith::CmpIPredicate::eq, threadOfSlice, k.constant(0));
    if (!points.stored.empty())
      k.when(arith::AndIOp::create(k.b, k.loc, isFirst, isWriter), [&] { p.scoped([&] { points.write(p); }); });
  }

  Dim slices, length;
  SmallVector<Value> rowOperands;
  int64_t vector = 1; // elements that a thread loads at once
  int64_t elementsOfPart = 0;
  int64_t iterations = 0; // vectors of a slice per thread, if its length is known
  bool isKept = false;    // elements stay in registers between levels
  SmallVector<llvm::MapVector<Value, Value>> keptOfIterations;
  Value from, to; // elements of this thread
};

} // namespace

GpuLaunch emitGpuRows(const KernelEmission &kernel) {
  RowwiseSchedule schedule(kernel.body, *kernel.space, kernel.results, kernel.e.k.target);
  return schedule.lanesReduce || schedule.parallel.empty() ? RowsKernel(kernel).emit() : emitGpuColumns(kernel);
}

} // namespace burin::codegen
