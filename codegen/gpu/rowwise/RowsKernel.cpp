// Reductions along the innermost dimension: a warp or a block per line, or per part of a line.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/rowwise/PartialReduction.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

GpuLaunch emitGpuColumns(const KernelEmission &kernel);

namespace {

constexpr int64_t kMostThreads = 256, kUnknownThreads = 128; // per line; for lines of unknown length
constexpr int64_t kWarpsOfBlock = 4;                         // with a line each
constexpr int64_t kMostKept = 8; // vectors of a line that a thread keeps in registers, of all operands
// A block has a line to itself if that moves so many bytes, which takes an H200 the time to start a block (1 ns). A
// thread then gets up to kFewKept vectors: many blocks with little work overlap loads of some with computations of
// others.
constexpr int64_t kBytesOfBlock = 4 << 10, kFewKept = 2;
constexpr int64_t kFewThreads = 1 << 17; // of all lines: more threads share a line
constexpr int64_t kUnroll = 4;
constexpr int64_t kLongestPart = 1 << 16, kShortestPart = 1 << 12, kUnknownPart = 1 << 13; // elements
constexpr int64_t kFewLines = 264, kEnoughBlocks = 1024;
constexpr int64_t kLongLine = 1 << 15; // cut if the number of lines is unknown
constexpr int64_t kSlotBytes = 16;     // at least those of an accumulator
constexpr int64_t kMovedBytes = 16;    // of a vector

class RowsKernel : PartialReduction {
public:
  explicit RowsKernel(const KernelEmission &kernel)
      : PartialReduction(kernel), lines(elements(pointShape)), length(elements(rowShape)) {}

  GpuLaunch emit() {
    vector = lanesReduce ? vectorLanes() : 1;
    findRowOperands();
    cut();
    chooseThreads();
    if (threadsOfLine > kWarp)
      allocateShared(sharedBytes(threadsOfLine));
    Value thread = threadIndex(k);
    lineOfThreads = k.rem(thread, k.constant(threadsOfLine));
    lane = k.constant(0);
    auto body = [&] { threadsOfLine == threads ? emitLines() : emitWarps(thread); };
    if (vector > 1)
      forBothAlignments(body);
    else
      body();
    return launchOfParts();
  }

private:
  /// Operands with an element of their own for each element of the lines.
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
    parts.lines = lines;
    int64_t each = kUnknownPart;
    bool isWanted = !length.isStatic();
    if (length.isStatic() && lines.isStatic()) {
      isWanted = lines.value() < kFewLines && length.value() >= 2 * kShortestPart;
      each = kLongestPart;
      while (each > kShortestPart && lines.value() * ((length.value() + each - 1) / each) < kEnoughBlocks)
        each /= 2;
    } else if (length.isStatic()) {
      isWanted = length.value() >= kLongLine;
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
    threadsOfLine = threads = std::min(mostThreads, isCut() && length.isStatic() ? kMostThreads : kUnknownThreads);
    if (!length.isStatic() || isCut())
      return;
    const int64_t vectors = (length.value() + vector - 1) / vector;
    const int64_t most = std::max<int64_t>(kMostKept / std::max<int64_t>(int64_t(rowOperands.size()), 1), 1);
    const int64_t moved = vectors * kMovedBytes * int64_t(rowOperands.size() + full.stored.size());
    const int64_t wanted = moved < kBytesOfBlock ? most : std::min(most, kFewKept);
    threadsOfLine = kWarp;
    while (threadsOfLine < mostThreads && threadsOfLine * wanted < vectors)
      threadsOfLine *= 2;
    while (lines.isStatic() && threadsOfLine < mostThreads && threadsOfLine < vectors &&
           lines.value() * threadsOfLine < kFewThreads)
      threadsOfLine *= 2;
    turns = (vectors + threadsOfLine - 1) / threadsOfLine;
    isKept = length.value() > 0 && turns <= most && k.checks.empty(); // checks see no elements beyond the end
    threads = threadsOfLine;
    if (threads == kWarp && !(lines.isStatic() && lines.value() < kWarpsOfBlock)) {
      threads *= kWarpsOfBlock;
      parts.lines = ceildiv(lines, kWarpsOfBlock);
    }
  }

  void emitLines() {
    keptOfTurns.assign(size_t(turns), {});
    emitLevels([&](Value line, Value part) {
      place(line, parallel);
      from = k.constant(0), to = k.dim(length);
      if (isCut()) {
        from = k.mul(part, k.constant(elementsOfPart));
        to = k.minimum(k.add(from, k.constant(elementsOfPart)), to);
      }
      from = k.add(from, k.mul(lineOfThreads, k.constant(vector)));
    });
  }

  /// A line per warp.
  void emitWarps(Value thread) {
    Value line = k.add(k.mul(k.lo, k.constant(kWarpsOfBlock)), k.div(thread, k.constant(kWarp)));
    k.when(k.compare(arith::CmpIPredicate::slt, line, k.dim(lines)), [&] {
      keptOfTurns.assign(size_t(turns), {});
      emitLevels([&](Value, Value) {
        place(line, parallel);
        from = k.mul(lineOfThreads, k.constant(vector)), to = k.dim(length);
      });
    });
  }

  /// Visits the elements of a turn in which only some threads may have elements; `inside` is null if all have.
  SmallVector<Value> visitKept(int64_t turn, llvm::function_ref<SmallVector<Value>(Value at, Value inside)> visit) {
    Value at = k.add(from, k.constant(turn * threadsOfLine * vector)), inside;
    if ((turn + 1) * threadsOfLine * vector > length.value()) {
      inside = k.compare(arith::CmpIPredicate::slt, at, k.dim(length));
      at = k.minimum(at, k.constant(length.value() - vector));
    }
    place(at, reduced, vector);
    return p.scoped([&] {
      for (auto [v, element] : keptOfTurns[size_t(turn)])
        p.bind(v, element);
      return visit(at, inside);
    });
  }

  /// Remembers the elements of a turn that later levels need.
  void keep(int64_t turn) {
    auto remember = [&](Value v) {
      if (Value element = p.bound(v))
        keptOfTurns[size_t(turn)][v] = element;
    };
    llvm::for_each(rowOperands, remember);
    for (auto &[v, slot] : kept)
      remember(v);
  }

  /// Loads all elements of this thread before the first one is used. Beyond the end they are zeros.
  void loadKept() {
    for (int64_t turn = 0; turn < turns; ++turn)
      visitKept(turn, [&](Value, Value inside) {
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
        keep(turn);
        return SmallVector<Value>();
      });
  }

  SmallVector<Value> reducePart(MutableReducers reducers) override {
    k.width = vector;
    SmallVector<Value> sums = identities(reducers, vector);
    const int64_t stride = vector > 1;
    if (!isKept) {
      sums = walk(sums, [&](Value at, ValueRange carried) { return step(reducers, carried, {at, stride}); });
    } else {
      if (keptOfTurns[0].empty())
        loadKept();
      for (int64_t turn = 0; turn < turns; ++turn)
        sums = visitKept(turn, [&](Value at, Value inside) {
          auto next = step(reducers, sums, {at, stride}, inside);
          keep(turn);
          return next;
        });
    }
    k.width = 1;
    return sums;
  }

  /// Loops over this thread's elements of the part, several vectors per turn, so that their loads overlap.
  SmallVector<Value> walk(SmallVector<Value> init,
                          llvm::function_ref<SmallVector<Value>(Value at, ValueRange carried)> visit) {
    auto visitAt = [&](Value at, ValueRange carried) {
      place(at, reduced, vector);
      return p.scoped([&] { return visit(at, carried); });
    };
    return loopTogether(from, to, threadsOfLine * vector, isShort ? 1 : kUnroll, init, visitAt);
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
    const int64_t warps = threadsOfLine / kWarp;
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
    k.width = vector;
    if (!isKept)
      walk({}, [&](Value, ValueRange) {
        full.write(p);
        return SmallVector<Value>();
      });
    else
      for (int64_t turn = 0; turn < turns; ++turn)
        visitKept(turn, [&](Value, Value inside) {
          if (inside)
            k.when(inside, [&] { p.scoped([&] { full.write(p); }); });
          else
            full.write(p);
          return SmallVector<Value>();
        });
    k.width = 1;
  }

  void syncLine() override { threadsOfLine == kWarp ? warpBarrier(k) : barrier(k); }

  void writePoints(Value isWriter) override {
    Value isFirst = k.compare(arith::CmpIPredicate::eq, lineOfThreads, k.constant(0));
    if (!points.stored.empty())
      k.when(arith::AndIOp::create(k.b, k.loc, isFirst, isWriter), [&] { p.scoped([&] { points.write(p); }); });
  }

  Dim lines, length;
  SmallVector<Value> rowOperands;
  int64_t vector = 1; // elements that a thread loads at once
  int64_t elementsOfPart = 0;
  int64_t turns = 0;   // vectors of a line per thread, if its length is known
  bool isKept = false; // elements stay in registers between levels
  SmallVector<llvm::MapVector<Value, Value>> keptOfTurns;
  Value from, to; // elements of this thread
};

} // namespace

GpuLaunch emitGpuRows(const KernelEmission &kernel) {
  RowwiseSchedule schedule(kernel.body, *kernel.space, kernel.results, kernel.e.k.target);
  return schedule.lanesReduce || schedule.parallel.empty() ? RowsKernel(kernel).emit() : emitGpuColumns(kernel);
}

} // namespace burin::codegen
