// Reductions whose innermost dimension is not reduced. The threads of a block are a grid: adjacent ones have adjacent
// columns, 16 bytes of them each where sizes and addresses allow it, and all see every n-th row of the block's part.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/rowwise/PartialReduction.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256, kLeastThreads = 32;
constexpr int64_t kEnoughBlocks = 512; // columns are cut until there are so many
constexpr int64_t kMostRowsOfThread = 128, kLeastRowsOfThread = 8, kUnknownRowsOfThread = 32; // of a part
constexpr int64_t kMovedBytes = 16;
constexpr int64_t kFewThreads = 16; // of a column, whose accumulators are combined without a loop

int64_t powerOf2From(int64_t n) {
  int64_t power = 1;
  while (power < n)
    power *= 2;
  return power;
}

class ColumnsKernel : PartialReduction {
public:
  explicit ColumnsKernel(const KernelEmission &kernel)
      : PartialReduction(kernel), columns(elements(pointShape)), rows(elements(rowShape)) {}

  GpuLaunch emit() {
    chooseGrid();
    cut();
    if (threadsOfSlice > 1)
      allocateShared(sharedBytes(threads));
    Value thread = threadIndex(k);
    threadOfSlice = k.div(thread, k.constant(across));
    lane = k.mul(k.rem(thread, k.constant(across)), k.constant(lanes));
    auto body = [&] {
      emitLevels([&](Value tile, Value part) {
        Value column = k.add(k.mul(tile, k.constant(across * lanes)), lane);
        isInside = k.compare(arith::CmpIPredicate::slt, column, k.dim(columns));
        // Threads beyond the last column have no rows.
        place(k.minimum(column, k.sub(k.dim(columns), k.constant(lanes))), parallel, lanes);
        from = k.mul(part, k.constant(rowsOfPart));
        to = isCut() ? k.minimum(k.add(from, k.constant(rowsOfPart)), k.dim(rows)) : k.dim(rows);
        to = arith::SelectOp::create(k.b, k.loc, isInside, to, from);
        from = k.add(from, threadOfSlice);
      });
    };
    if (lanes > 1)
      forBothAlignments(body);
    else
      body();
    return launchOfParts();
  }

private:
  /// Of the accumulators of a level, each in a region of its own.
  int64_t sharedBytes(int64_t count) {
    return mostBytesOfLevel() * (count * lanes + kMovedBytes); // each accumulator has a byte or more
  }

  void chooseGrid() {
    lanes = vectorLanes();
    int64_t most = kThreads;
    auto isTooMuch = [&] { return sharedBytes(most) * copiesOfShared() > kMostShared; };
    while (lanes > 1 && isTooMuch())
      lanes /= 2;
    while (most > kLeastThreads && isTooMuch())
      most /= 2;
    across = kLeastThreads;
    if (columns.isStatic())
      across = std::min(across, powerOf2From((columns.value() + lanes - 1) / lanes));
    threadsOfSlice = most / across;
    if (rows.isStatic()) { // few rows: more columns
      threadsOfSlice = std::min(threadsOfSlice, powerOf2From(std::max<int64_t>((rows.value() + 3) / 4, 1)));
      threadsOfSlice = std::max(threadsOfSlice, kLeastThreads / across);
      while (across * threadsOfSlice < most && columns.isStatic() && across * lanes < columns.value())
        across *= 2;
    }
    threads = across * threadsOfSlice;
  }

  void cut() {
    Dim tiles = ceildiv(columns, across * lanes);
    int64_t each = kUnknownRowsOfThread;
    if (rows.isStatic() && columns.isStatic()) {
      each = kMostRowsOfThread;
      while (each > kLeastRowsOfThread &&
             tiles.value() * ((rows.value() + threadsOfSlice * each - 1) / (threadsOfSlice * each)) < kEnoughBlocks)
        each /= 2;
    }
    rowsOfPart = threadsOfSlice * each;
    const bool isEnough = tiles.isStatic() && 2 * tiles.value() > kEnoughBlocks;
    parts = {.count = isEnough ? Dim(1) : max(ceildiv(rows, rowsOfPart), 1),
             .slices = tiles,
             .columns = across * lanes,
             .isAdjacent = false};
  }

  SmallVector<Value> reducePart(MutableReducers reducers) override {
    llvm::SaveAndRestore inLanes(k.width, lanes);
    auto sums = walk(identities(reducers, lanes),
                     [&](Value row, ValueRange carried) { return step(reducers, carried, {row}); });
    return sums;
  }

  /// Loops over this thread's rows, several per iteration, so that their loads overlap.
  SmallVector<Value> walk(SmallVector<Value> init,
                          llvm::function_ref<SmallVector<Value>(Value row, ValueRange carried)> visit) {
    const int64_t unroll = isShort ? 1 : lanes >= 4 ? 4 : 8;
    auto at = [&](Value row, ValueRange carried) {
      place(row, reduced);
      return p.scoped([&] { return visit(row, carried); });
    };
    return loopTogether(from, to, threadsOfSlice, unroll, init, at);
  }

  SmallVector<Value> join(MutableReducers reducers, SmallVector<Value> sums) override {
    if (threadsOfSlice == 1)
      return sums;
    Value memory = useShared(), width = k.constant(across * lanes);
    SmallVector<Value> regions;
    int64_t offset = 0;
    for (Value v : sums) {
      regions.push_back(LLVM::GEPOp::create(k.b, k.loc, memory.getType(), k.b.getI8Type(), memory, k.constant(offset)));
      offset += (bytesOf(v) * threads * lanes + kMovedBytes - 1) / kMovedBytes * kMovedBytes;
      storeLanes(regions.back(), k.add(k.mul(threadOfSlice, width), lane), v);
    }
    barrier(k);
    auto load = [&](Value number) {
      SmallVector<Value> part;
      for (auto [region, v] : llvm::zip(regions, sums))
        part.push_back(loadLanes(region, k.add(k.mul(number, width), lane), v.getType()));
      return part;
    };
    SmallVector<Value> all = load(k.constant(0));
    if (threadsOfSlice > kFewThreads)
      return k.loop(k.constant(1), k.constant(threadsOfSlice), k.constant(1), all, [&](Value n, ValueRange carried) {
        return combineAll(reducers, SmallVector<Value>(carried), load(n));
      });
    for (int64_t n = 1; n < threadsOfSlice; ++n)
      all = combineAll(reducers, all, load(k.constant(n)));
    return all;
  }

  void writeFull() override {
    llvm::SaveAndRestore inLanes(k.width, lanes);
    k.when(isInside, [&] {
      walk({}, [&](Value, ValueRange) {
        full.write(p);
        return SmallVector<Value>();
      });
    });
  }

  void syncSlice() override { barrier(k); }

  void writePoints(Value isWriter) override {
    llvm::SaveAndRestore inLanes(k.width, lanes);
    Value isFirst = k.compare(arith::CmpIPredicate::eq, threadOfSlice, k.constant(0));
    isWriter = arith::AndIOp::create(k.b, k.loc, isWriter, arith::AndIOp::create(k.b, k.loc, isInside, isFirst));
    if (!points.stored.empty())
      k.when(isWriter, [&] { p.scoped([&] { points.write(p); }); });
  }

  Dim columns, rows;
  int64_t across = 0;     // threads of a block along columns
  int64_t rowsOfPart = 0; // if columns are cut
  Value isInside;         // whether this thread has columns
  Value from, to;         // rows of this thread
};

} // namespace

GpuLaunch emitGpuColumns(const KernelEmission &kernel) { return ColumnsKernel(kernel).emit(); }

} // namespace burin::codegen
