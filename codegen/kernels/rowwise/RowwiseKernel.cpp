// Kernels without contraction. For each point of the parallel dimensions: the reductions, one walk over the reduced
// dimensions per level of dependent reductions, then a last walk that stores results of full size.
//
// The innermost dimension is vectorised. If it is reduced, four accumulators hide the latency of additions and are
// combined in a fixed tree, and two rows are interleaved, so that one computes during the other's tree. If it is
// parallel, each lane reduces a column, of wide matrices strip by strip (eachStrip). The order of additions depends on
// the values of the sizes alone (SumOrder.h) and, along rows, on the length of vectors.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/kernels/rowwise/Pieces.h"
#include "codegen/kernels/rowwise/ReductionLoops.h"
#include "codegen/kernels/rowwise/SumOrder.h"
#include "passes/analysis/StridedView.h"
#include "llvm/Support/SaveAndRestore.h"
#include <numeric>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

using passes::kColumnBlock;
using passes::kColumnVectors;
using passes::kMapBlock;

/// Number of elementwise tasks that are interleaved if results are streamed: gelu of 131072x768 takes .84 of the time
/// of tasks one by one, and .76 on two threads.
constexpr int64_t kBlocksTogether = 4;

class RowwiseKernel : ReductionLoops {
public:
  RowwiseKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : ReductionLoops(e, body, a, results), pieces(e, body, a) {}

  LaunchShape emit() {
    SmallVector<int> outer(parallel);
    bool blocked = !lanesReduce && !parallel.empty();
    if (blocked) {
      chooseVectorDims();
      outer.truncate(outer.size() - vectorDims.size());
    }
    if (auto d = llvm::find(outer, passes::interleavedDimension(body, alignment));
        reduced.empty() && d != outer.end()) {
      std::rotate(d, d + 1, outer.end());
      deinterleaves = true;
    }
    Dim tasks = 1;
    for (int d : outer)
      tasks = tasks * space[d];
    int64_t block = reduced.empty() ? mapBlock() : columnBlock();
    Dim blocks = blocked ? ceildiv(elements(vectorDims), block) : Dim(1);
    tasks = tasks * blocks;
    bool hasFewTasks = upperBound(tasks).value_or(INT64_MAX) < kRowsTogether;
    auto run = [&] {
      Value rest = k.lo;
      if (lanesReduce && !hasFewTasks) {
        rest = takeTogether(kRowsTogether);
        if (overlaps())
          runOverlapped(outer);
        else
          k.loop(k.lo, firstEnd, step, [&](Value task) { runRows(task, kRowsTogether, outer); });
      } else if (streamed && reduced.empty() && !deinterleaves && blocksAreEven(block)) {
        rest = takeTogether(kBlocksTogether);
        k.loop(k.lo, firstEnd, step, [&](Value task) { runBlocks(task, outer, blocks, block); });
      }
      apart = step = k.constant(1);
      if (blocked && outer.empty() && accumulatorsOfColumn() && upperBound(blocks) != 1)
        eachStrip(elements(vectorDims), [&] { runBlocksInOrder(rest, outer, blocks, block); });
      else if (blocked)
        runBlocksInOrder(rest, outer, blocks, block);
      else
        k.loop(rest, k.hi, step, [&](Value task) { runRows(task, 1, outer); });
    };
    SmallVector<std::pair<Value, Value>> large = streamedResults();
    if (large.empty()) {
      run();
      return {tasks, scratchBytes, text() + scheduleText(hasFewTasks, blocked, block)};
    }
    ownScratch = scratchBytes;
    if (lanesReduce && reducesExpensive)
      scratchBytes = scratchBytes * Dim(2); // see runOverlapped
    Value aligned = allAligned(large);
    k.when(aligned, [&] {
      llvm::SaveAndRestore pastCaches(streamed, true);
      e.scoped(run);
      k.fence();
    });
    k.unless(aligned, [&] { e.scoped(run); });
    return {tasks, scratchBytes,
            text() + scheduleText(hasFewTasks, blocked, block) + "  results past the caches, where aligned\n"};
  }

private:
  /// Text for `--emit schedule`: how tasks are computed.
  std::string scheduleText(bool hasFewTasks, bool blocked, int64_t block) const {
    std::string rows = hasFewTasks ? "1 row" : std::to_string(kRowsTogether) + " rows";
    return lanesReduce ? "  tasks of a row, " + rows + " together\n"
           : blocked   ? "  tasks of " + std::to_string(block) + " elements\n"
                       : "  one task\n";
  }

  /// Whether an operand is deinterleaved along the last outer dimension, as by space to depth and from NHWC to NCHW of
  /// few channels. That dimension is then the innermost one in the order of tasks, inside of the blocks of a row, so
  /// that tasks that read the same cache lines follow each other.
  bool deinterleaves = false;

  // ---- tasks that are interleaved
  // They are adjacent. With non-temporal stores each comes from a different part of the range instead, because memory
  // serves several pages concurrently faster than one after the other.
  Value firstEnd;    // end of the first tasks of the groups
  Value apart, step; // distance of tasks in a group; of consecutive groups

  /// Sets firstEnd, apart and step for groups of `count` tasks; returns the first remaining task.
  Value takeTogether(int64_t count) {
    Value together = k.constant(count), part = k.div(k.sub(k.hi, k.lo), together);
    Value rest = k.add(k.lo, k.mul(part, together));
    firstEnd = streamed ? k.add(k.lo, part) : rest;
    apart = streamed ? part : k.constant(1);
    step = streamed ? k.constant(1) : together;
    return rest;
  }
  /// Task `number` of the group of task `first`, `later` groups further.
  Value taskAt(Value first, int64_t number, int64_t later = 0) {
    Value task = k.add(first, k.mul(apart, k.constant(number)));
    return k.add(task, k.mul(step, k.constant(later)));
  }

  /// Sets `point` to the row with row-major number `index` in the outer dimensions.
  void place(SmallVectorImpl<Index> &point, Value index, ArrayRef<int> outer) {
    for (size_t i = outer.size(); i-- > 0;) {
      Value size = k.dim(space[outer[i]]);
      point[outer[i]] = {i == 0 ? index : k.rem(index, size)};
      index = i == 0 ? index : k.div(index, size);
    }
  }

  void beginRows(Value first, int64_t count, ArrayRef<int> outer, Value scratch) {
    begin(count, scratch);
    for (Row &row : rows) {
      place(row.p.point, taskAt(first, row.number), outer);
      place(row.next, taskAt(first, row.number, fetchedAhead()), outer);
    }
  }

  /// Distance of prefetches, in groups of rows as in takeTogether(): 1. With non-temporal stores 2 if a row has at most
  /// kMapBlock elements, and one more if stores overlap reductions.
  int64_t fetchedAhead() {
    Dim row = 1;
    for (int d : reduced)
      row = row * space[d];
    bool isShort = upperBound(row).value_or(INT64_MAX) <= kMapBlock;
    return streamed ? 1 + isShort + overlaps() : 1;
  }

  void runRows(Value first, int64_t count, ArrayRef<int> outer) {
    beginRows(first, count, outer, k.scratch);
    scoped([&] { computePoint(); });
  }

  // ---- rows whose results are stored while the next ones are reduced
  // Memory accepts non-temporal stores one by one, and stores to scratch memory wait behind them. Interleaved with
  // reductions they block nothing. If reductions are no slower than memory there is nothing to gain.

  bool overlaps() { return streamed && reducesExpensive && !fullResults.empty(); }

  void runOverlapped(ArrayRef<int> outer) {
    k.when(k.compare(arith::CmpIPredicate::slt, k.lo, firstEnd), [&] {
      Value other = k.elementPointer({k.scratch, DType::i8, {}}, k.dim(ownScratch));
      before.clear();
      SmallVector<Value> carried = reduceRows(k.lo, outer, k.scratch);
      carried.append({k.scratch, other});
      carried = k.loop(k.add(k.lo, step), firstEnd, step, carried, [&](Value task, ValueRange values) {
        Value written = values[values.size() - 2], free = values.back();
        beginRows(k.sub(task, step), kRowsTogether, outer, written);
        bindReduced(values);
        std::swap(rows, before);
        SmallVector<Value> next = reduceRows(task, outer, free);
        before.clear();
        next.append({free, written});
        return next;
      });
      beginRows(k.sub(firstEnd, step), kRowsTogether, outer, carried[carried.size() - 2]);
      bindReduced(carried);
      scoped([&] { writeRows(); });
    });
  }

  /// Returns the results of the reductions.
  SmallVector<Value> reduceRows(Value first, ArrayRef<int> outer, Value scratch) {
    beginRows(first, kRowsTogether, outer, scratch);
    SmallVector<Value> reduced;
    scoped([&] {
      reducePoint();
      for (Row &row : rows)
        for (auto &level : levels)
          for (Operation *op : level)
            reduced.push_back(row.p.bound(op->getResult(0)));
    });
    return reduced;
  }

  void bindReduced(ValueRange values) {
    size_t i = 0;
    for (Row &row : rows) {
      row.isReduced = true;
      for (auto &level : levels)
        for (Operation *op : level)
          row.p.bind(op->getResult(0), values[i++]);
    }
  }

  /// Runs all tasks from `first` on. If a row of symbolic size has one block when the kernel runs, a second copy of the
  /// loop does without the number of the block, and computes the bounds of rows once.
  void runBlocksInOrder(Value first, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    if (blocks.isStatic() || outer.empty() || !isSmall())
      return runBlockTasks(first, outer, blocks, block, blocks == Dim(1));
    Value isOne = k.compare(arith::CmpIPredicate::eq, k.dim(blocks), k.constant(1));
    k.when(isOne, [&] { runBlockTasks(first, outer, blocks, block, true); });
    k.unless(isOne, [&] { runBlockTasks(first, outer, blocks, block, false); });
  }

  void runBlockTasks(Value first, ArrayRef<int> outer, const Dim &blocks, int64_t block, bool isOne) {
    Shape sizes; // of the outer dimensions, and the number of blocks
    for (int d : outer)
      sizes.push_back(space[d]);
    if (outer.empty() || !isOne)
      sizes.push_back(blocks);
    const bool swaps = deinterleaves && !isOne;
    if (swaps)
      std::swap(sizes.back(), sizes[sizes.size() - 2]);
    k.eachPosition(first, k.hi, sizes, [&](ArrayRef<Value> position) {
      SmallVector<Value> at(position);
      if (swaps)
        std::swap(at.back(), at[at.size() - 2]);
      SmallVector<Index> place(space.size());
      for (size_t i = 0; i < outer.size(); ++i)
        place[outer[i]] = {at[i]};
      Value number = isOne ? k.constant(0) : at.back();
      e.scoped([&] { pieces.choose(place, outer, [&] { emitColumns(place, number, block); }); });
    });
  }

  /// Whether the code of a row may be emitted several times: random numbers are long code.
  bool isSmall() const {
    constexpr int64_t kMost = 16; // ops; bounds the size of the code, not tuned
    return std::distance(body.begin(), body.end()) <= kMost && llvm::none_of(body, [](Operation &op) {
             return isa<RandomUniformOp, RandomNormalOp, RandomIntegersOp, BernoulliOp>(op);
           });
  }

  // ---- vectors
  /// The dimensions that vectors run along: the last one, and, if it does not fill vectors well, the ones before it as
  /// if merged. Vectors are then computed in groups of `period`, after which the lane positions repeat, so that each
  /// vector of the group has constant lane positions.
  Shape vectorDims;
  int64_t period = 1;    // vectors per group
  int64_t blockUnit = 1; // tasks are a multiple of so many elements, which are whole groups on all targets

  void chooseVectorDims() {
    constexpr int64_t kLongest = 8;     // group, in vectors of taskWidth; bounds the size of the code, not tuned
    constexpr double kWellFilled = 0.8; // not tuned
    size_t last = parallel.size() - 1;
    vectorDims = {space[parallel[last]]};
    blockUnit = taskWidth;
    int64_t inner = 1;
    while (reduced.empty() && last > 0 && vectorDims[0].isStatic()) {
      inner *= vectorDims[0].value();
      int64_t whole = llvm::divideCeil(inner, taskWidth) * taskWidth, repeat = std::lcm(inner, taskWidth);
      if (inner == 0 || double(inner) >= kWellFilled * double(whole) || repeat > kLongest * taskWidth)
        break;
      period = std::lcm(inner, vectorWidth) / vectorWidth;
      blockUnit = repeat;
      vectorDims.insert(vectorDims.begin(), space[parallel[--last]]);
    }
  }

  /// Moves to element i of the vectorDims dimensions, or to the vector that begins there.
  void moveAlong(SmallVectorImpl<Index> &point, Value i) {
    size_t first = parallel.size() - vectorDims.size();
    for (auto [n, index] : llvm::enumerate(e.delinearize({i, k.width > 1 ? 1 : 0}, vectorDims)))
      point[parallel[first + n]] = index;
  }

  /// The largest block size up to kMapBlock that divides the vectorDims dimensions, unless that is small.
  int64_t mapBlock() {
    const int64_t unit = blockUnit, most = kMapBlock / unit * unit;
    if (!elements(vectorDims).isStatic())
      return most;
    int64_t size = elements(vectorDims).value(), block = std::min(size, most) / unit * unit;
    while (block > kMapBlock / 4 && size % block)
      block -= unit;
    return block > kMapBlock / 4 ? block : most;
  }
  bool blocksAreEven(int64_t block) {
    int64_t size = elements(vectorDims).value();
    return size <= block || size % block == 0;
  }

  /// Computes the blocks of several tasks, all of equal size, interleaved by vectors.
  void runBlocks(Value first, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    begin(kBlocksTogether, k.scratch);
    int64_t size = std::min(elements(vectorDims).value(), block);
    Value count = k.dim(blocks);
    auto beginning = [&](SmallVectorImpl<Index> &point, Value task) {
      place(point, k.div(task, count), outer);
      return k.mul(k.rem(task, count), k.constant(block));
    };
    SmallVector<std::pair<Value, Value>> from; // of each row, and of the row to prefetch, at least a page ahead
    for (Row &row : rows)
      from.push_back({beginning(row.p.point, taskAt(first, row.number)),
                      beginning(row.next, taskAt(first, row.number, llvm::divideCeil(kMapBlock, size)))});
    llvm::SaveAndRestore inLanes(k.width, vectorWidth);
    k.loop(k.constant(0), k.constant(size), k.constant(vectorWidth), [&](Value i) {
      for (auto [row, from] : llvm::zip(rows, from)) {
        moveAlong(row.p.point, k.add(from.first, i));
        moveAlong(row.next, k.add(from.second, i));
        row.p.later = row.next;
      }
      scoped([&] { write(pointResults); });
    });
  }

  // ---- non-temporal stores
  /// The results to store with non-temporal stores: if together they are too large to stay in a cache, and all their
  /// vectors are whole and, given aligned results, aligned. Empty otherwise, and if an element has fewer than 4 bytes
  /// (not tuned).
  SmallVector<std::pair<Value, Value>> streamedResults() {
    auto &candidates = lanesReduce ? fullResults : pointResults;
    int64_t bytes = 0;
    for (auto &[value, pointer] : candidates) {
      Shape shape = shapeOf(value);
      ArrayRef<int> dims = alignment.dims.find(value)->second;
      bool whole = !shape.empty() && shape.back().isStatic() && shape.back().value() % vectorWidth == 0 &&
                   dims.back() == int(space.size()) - 1 && elements(shape).isStatic();
      if (!whole || byteWidth(dtypeOf(value)) < 4)
        return {};
      bytes += elements(shape).value() * int64_t(byteWidth(dtypeOf(value)));
    }
    bool areAll = lanesReduce || fullResults.empty();
    return bytes >= k.target.machine.streamFromBytes && areAll ? candidates : SmallVector<std::pair<Value, Value>>();
  }

  Value allAligned(ArrayRef<std::pair<Value, Value>> stored) {
    Value aligned;
    for (auto [value, pointer] : stored) {
      Value own = k.isAligned(pointer, vectorWidth * int64_t(byteWidth(dtypeOf(value))));
      aligned = aligned ? Value(arith::AndIOp::create(k.b, k.loc, aligned, own)) : own;
    }
    return aligned;
  }

  // ---- parallel points
  /// Number of accumulators of a column; 0 if vectors of columns are reduced one at a time.
  int64_t accumulatorsOfColumn() {
    if (vectorDims.empty() || reduced.empty() || lanesReduce || !kept.empty() || !fullResults.empty())
      return 0;
    int64_t accumulators = 1;
    for (auto &level : levels) {
      int64_t ofLevel = 0;
      for (Operation *op : level)
        ofLevel += int64_t(Reducer(k, op).size());
      accumulators = std::max(accumulators, ofLevel);
    }
    return accumulators;
  }

  /// Splits `vectors` into groups of at most `most`, as equal as possible; returns the size of a group.
  static int64_t evenGroup(int64_t vectors, int64_t most) {
    vectors = std::max<int64_t>(vectors, 1);
    return llvm::divideCeil(vectors, llvm::divideCeil(vectors, most));
  }

  /// Number of columns of a task.
  int64_t columnBlock() {
    const int64_t accumulators = accumulatorsOfColumn();
    if (!accumulators)
      return kColumnBlock;
    int64_t vectors = std::max<int64_t>(kColumnVectors / accumulators, 1);
    if (vectorDims[0].isStatic())
      vectors = evenGroup(vectorDims[0].value() / taskWidth, vectors);
    return vectors > 1 ? vectors * taskWidth : kColumnBlock;
  }

  /// Number of vectors of columns that are reduced together: adjacent elements are loaded consecutively, and additions
  /// have time until the next one depends on them.
  int64_t columnsTogether() {
    const int64_t accumulators = accumulatorsOfColumn();
    if (!accumulators)
      return 1;
    // Accumulators take two thirds of the registers of a contraction's tile; the rest is for operands (not tuned).
    const int64_t registers = k.target.tileRows * k.target.tileVectors * 2 / 3;
    const int64_t most = std::max<int64_t>(registers / accumulators, 1);
    return vectorDims[0].isStatic() ? evenGroup(std::min(vectorDims[0].value(), columnBlock()) / vectorWidth, most)
                                    : most;
  }

  /// Computes `count` vectors of columns from `i` on.
  void emitVectors(ArrayRef<Index> place, Value i, int64_t count, Value mask, int64_t lanes) {
    begin(count, k.scratch);
    llvm::SaveAndRestore inLanes(k.width, lanes);
    llvm::SaveAndRestore existing(e.mask, mask);
    for (Row &row : rows) {
      row.p.point.assign(place.begin(), place.end());
      moveAlong(row.p.point, k.add(i, k.constant(row.number * lanes)));
    }
    scoped([&] { computePoint(); });
  }

  void emitColumns(ArrayRef<Index> place, Value blockIndex, int64_t block) {
    Dim extent = elements(vectorDims);
    Value size = k.dim(extent), from = k.mul(blockIndex, k.constant(block));
    Value to = k.minimum(k.add(from, k.constant(block)), size);
    if (auto known = k.constantOf(size); known && *known <= block) {
      from = k.constant(0);
      to = size;
    }
    // Steps of several vectors together, then single vectors and the remainder.
    int64_t together = columnsTogether();
    auto steps = [&](int64_t count, llvm::function_ref<void(Value)> visit) {
      Value step = k.constant(count * vectorWidth);
      Value whole = k.add(from, k.mul(k.div(k.sub(to, from), step), step));
      k.loop(from, whole, step, visit);
      from = whole;
    };
    // 16, 12, 8, 6, 4, 3, 2: most widths take one or two loops, each of which reads whole cache lines of several rows.
    auto fewer = [](int64_t count) { return llvm::isPowerOf2_64(uint64_t(count)) ? count * 3 / 4 : count * 2 / 3; };
    const int64_t group = together * vectorWidth;
    const bool areWhole = extent.isStatic() && block % group == 0; // groups of a task; the last task may have a rest
    for (int64_t count = together; count > 1; count = areWhole ? 1 : fewer(count))
      steps(count, [&](Value i) { emitVectors(place, i, count, {}, vectorWidth); });
    if (together > 1 && block % group == 0 && isMultipleOf(extent, group)) // nothing is left
      return;
    if (period == 1) {
      RowRange row{.from = from,
                   .to = to,
                   .begin = 0,
                   .end = extent,
                   .lanes = vectorWidth,
                   .stored = narrowest,
                   .mayRepeat = reduced.empty() && !k.sharesMemory(),
                   .varies = reduced.empty() && isSmall()};
      auto visit = [&](Value i, int64_t lanes, Value mask) { emitVectors(place, i, 1, mask, lanes); };
      return vectorDims.size() == 1 && pieces.areSeveral(parallel.back()) ? pieces.walk(parallel.back(), row, visit)
                                                                          : eachVector(k, row, visit);
    }
    steps(period, [&](Value i) {
      for (int64_t n = 0; n < period; ++n)
        emitVectors(place, k.add(i, k.constant(n * vectorWidth)), 1, {}, vectorWidth);
    });
    if (isMultipleOf(extent, period * vectorWidth))
      return;
    for (int64_t n = 0; n < period; ++n) {
      Value at = k.add(from, k.constant(n * vectorWidth));
      k.when(k.compare(arith::CmpIPredicate::slt, at, to),
             [&] { emitVectors(place, at, 1, tailMask(at, extent), vectorWidth); });
    }
  }

  void computePoint() {
    reducePoint();
    writeRows();
  }

  void reducePoint() {
    for (auto &[value, slot] : kept)
      slot.written = slot.touched = false;
    if (strip)
      return reduceStrip(levels[0], [&] { write(pointResults); });
    // While the second level of reductions runs, if there is one, the operands of the next rows are prefetched.
    for (auto [i, level] : llvm::enumerate(levels)) {
      llvm::SaveAndRestore prefetches(fetches, lanesReduce && i == 1);
      llvm::SaveAndRestore writes(writesBefore, !before.empty() && i + 1 == levels.size());
      reduceLevel(level);
    }
    write(pointResults);
  }

  Pieces pieces;
  Dim ownScratch = 0; // bytes for the rows computed together
};

} // namespace

LaunchShape emitRowwise(const KernelEmission &kernel) {
  return emitInOrderOfSums(kernel, [&](const passes::IterationSpace &space) {
    return RowwiseKernel(kernel.e, kernel.body, space, kernel.results).emit();
  });
}

} // namespace burin::codegen
