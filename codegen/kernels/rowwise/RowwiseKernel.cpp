// Kernels without contraction. For each point of the parallel dimensions: the reductions, each level of dependent ones
// in one walk over the reduced dimensions, then a last walk that writes results of full size.
//
// The innermost dimension is vectorised. If it is reduced, four accumulators hide the latency of the additions and are
// combined in a fixed tree, and two rows go side by side, so that one computes while the other's tree is on its way; if
// it is parallel, each lane reduces its own column. The order of the additions depends on the shape alone.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/kernels/rowwise/ReductionLoops.h"
#include <numeric>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

using passes::kColumnBlock;
using passes::kMapBlock;

/// Tasks that are worked on side by side where they only map from memory to memory.
constexpr int64_t kBlocksTogether = 4;

class RowwiseKernel : ReductionLoops {
public:
  RowwiseKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : ReductionLoops(e, body, a, results) {}

  LaunchShape emit() {
    SmallVector<int> outer(parallel);
    bool blocked = !lanesReduce && !parallel.empty();
    if (blocked) {
      chooseWalk();
      outer.truncate(outer.size() - walked.size());
    }
    Dim tasks = 1;
    for (int d : outer)
      tasks = tasks * space[d];
    int64_t block = reduced.empty() ? mapBlock() : columnBlock();
    Dim blocks = blocked ? ceildiv(elements(walked), block) : Dim(1);
    tasks = tasks * blocks;
    bool isAlone = upperBound(tasks).value_or(INT64_MAX) < kRowsTogether;
    auto run = [&] {
      Value rest = k.lo;
      if (lanesReduce && !isAlone) {
        rest = takeTogether(kRowsTogether);
        if (overlaps())
          runOverlapped(outer);
        else
          k.loop(k.lo, firstEnd, step, [&](Value task) { runRows(task, kRowsTogether, outer); });
      } else if (streamed && reduced.empty() && blocksAreEven(block)) {
        rest = takeTogether(kBlocksTogether);
        k.loop(k.lo, firstEnd, step, [&](Value task) { runBlocks(task, outer, blocks, block); });
      }
      apart = step = k.constant(1);
      if (blocked)
        runBlocksInOrder(rest, outer, blocks, block);
      else
        k.loop(rest, k.hi, step, [&](Value task) { runRows(task, 1, outer); });
    };
    SmallVector<std::pair<Value, Value>> large = streamedResults();
    if (large.empty()) {
      run();
      return {tasks, scratchBytes, text() + how(isAlone, blocked, block)};
    }
    ownScratch = scratchBytes;
    if (lanesReduce && reducesExpensive)
      scratchBytes = scratchBytes * Dim(2); // see runOverlapped
    Value aligned = allAligned(large);
    k.when(aligned, [&] {
      streamed = true;
      e.scoped(run);
      streamed = false;
      k.fence();
    });
    k.unless(aligned, [&] { e.scoped(run); });
    return {tasks, scratchBytes, text() + how(isAlone, blocked, block) + "  results past the caches, where aligned\n"};
  }

private:
  /// For people: how tasks are worked on.
  std::string how(bool isAlone, bool blocked, int64_t block) const {
    std::string rows = isAlone ? "1 row" : std::to_string(kRowsTogether) + " rows";
    return lanesReduce ? "  tasks of a row, " + rows + " together\n"
           : blocked   ? "  tasks of " + std::to_string(block) + " elements\n"
                       : "  one task\n";
  }

  // ---- tasks that are worked on together
  // They are neighbours; but where stores go past the cache each comes from a part of the range of its own, as memory
  // serves several pages at a time faster than one after the other.
  Value firstEnd;    // where those end that come first among those together
  Value apart, step; // from one to the next among those together; from these to the next ones

  /// Sets them for as many as can be; gives where the rest begins.
  Value takeTogether(int64_t count) {
    Value together = k.constant(count), part = k.div(k.sub(k.hi, k.lo), together);
    Value rest = k.add(k.lo, k.mul(part, together));
    firstEnd = streamed ? k.add(k.lo, part) : rest;
    apart = streamed ? part : k.constant(1);
    step = streamed ? k.constant(1) : together;
    return rest;
  }
  /// The task with that number among those together, so many steps later.
  Value taskAt(Value first, int64_t number, int64_t later = 0) {
    Value task = k.add(first, k.mul(apart, k.constant(number)));
    return k.add(task, k.mul(step, k.constant(later)));
  }

  /// Where the row is that is number `index` among those of the outer dimensions.
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

  /// How many rows are worked on before those that are fetched. From memory they come earlier: two rows, of more than a
  /// page one; where they take long to reduce, one more.
  int64_t fetchedAhead() {
    Dim row = 1;
    for (int d : reduced)
      row = row * space[d];
    bool isShort = upperBound(row).value_or(INT64_MAX) <= kMapBlock;
    return streamed ? 1 + isShort + overlaps() : 1;
  }

  void runRows(Value first, int64_t count, ArrayRef<int> outer) {
    beginRows(first, count, outer, k.scratch);
    scoped([&] { pointOf(); });
  }

  // ---- rows that are written while the next ones are reduced
  // Memory takes stores past the cache one by one, and those to scratch memory wait behind them: side by side with the
  // reductions they hold up nothing. Where reductions take no longer than memory there is nothing to gain.

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

  /// What the reductions give.
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

  /// All tasks from `first` on. Divisions by sizes that only a run knows would take longer than a short row: the
  /// positions of the first task are counted on.
  void runBlocksInOrder(Value first, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    Shape sizes; // of all positions but the first, the last one first
    if (!outer.empty())
      sizes.push_back(blocks);
    for (size_t i = outer.size(); i-- > 1;)
      sizes.push_back(space[outer[i]]);
    bool areKnown = llvm::all_of(sizes, [](const Dim &size) { return size.isStatic(); });
    auto split = [&](Value task) {
      SmallVector<Value> at;
      for (const Dim &size : sizes) {
        at.push_back(k.rem(task, k.dim(size)));
        task = k.div(task, k.dim(size));
      }
      at.push_back(task);
      return at;
    };
    auto run = [&](ArrayRef<Value> at) {
      SmallVector<Index> place(space.size());
      for (size_t i = 0; i < outer.size(); ++i)
        place[outer[i]] = {at[outer.size() - i]};
      e.scoped([&] { columns(place, at[0], block); });
    };
    if (areKnown)
      return k.loop(first, k.hi, step, [&](Value task) { run(split(task)); });
    k.loop(first, k.hi, step, split(first), [&](Value, ValueRange values) {
      SmallVector<Value> at(values);
      for (Value position : at)
        k.assumeNatural(position);
      run(at);
      Value zero = k.constant(0), carry = k.constant(1);
      for (auto [i, size] : llvm::enumerate(sizes)) {
        Value next = k.add(at[i], carry), isEnd = k.compare(arith::CmpIPredicate::eq, next, k.dim(size));
        at[i] = arith::SelectOp::create(k.b, k.loc, isEnd, zero, next);
        carry = arith::SelectOp::create(k.b, k.loc, isEnd, k.constant(1), zero);
      }
      at.back() = k.add(at.back(), carry);
      return at;
    });
  }

  // ---- vectors
  /// The dimensions that vectors run along: the last one. Where that is too short to fill them, or what is left of it
  /// is, those before it, too, as if they were one; then as many vectors are worked on at a time as it takes until the
  /// next one begins where the first did, so that each has its lanes at known places.
  Shape walked;
  int64_t period = 1; // vectors at a time

  void chooseWalk() {
    constexpr int64_t kLongest = 8; // vectors at a time
    constexpr double kWellFilled = 0.8;
    size_t last = parallel.size() - 1;
    walked = {space[parallel[last]]};
    int64_t inner = 1;
    while (reduced.empty() && last > 0 && walked[0].isStatic()) {
      inner *= walked[0].value();
      int64_t whole = llvm::divideCeil(inner, vectorWidth) * vectorWidth, repeat = std::lcm(inner, vectorWidth);
      if (inner == 0 || double(inner) >= kWellFilled * double(whole) || repeat > kLongest * vectorWidth)
        break;
      period = repeat / vectorWidth;
      walked.insert(walked.begin(), space[parallel[--last]]);
    }
  }

  /// Goes to element i of the walked dimensions, or to the vector from it on.
  void moveAlong(SmallVectorImpl<Index> &point, Value i) {
    size_t first = parallel.size() - walked.size();
    for (auto [n, index] : llvm::enumerate(e.delinearize({i, k.width > 1 ? 1 : 0}, walked)))
      point[parallel[first + n]] = index;
  }

  /// Of the sizes that divide the walked dimensions the largest one up to kMapBlock, unless that is small.
  int64_t mapBlock() {
    int64_t unit = period * vectorWidth, most = kMapBlock / unit * unit;
    if (!elements(walked).isStatic())
      return most;
    int64_t size = elements(walked).value(), block = std::min(size, most) / unit * unit;
    while (block > kMapBlock / 4 && size % block)
      block -= unit;
    return block > kMapBlock / 4 ? block : most;
  }
  bool blocksAreEven(int64_t block) {
    int64_t size = elements(walked).value();
    return size <= block || size % block == 0;
  }

  /// The blocks of several tasks, all of one size, a vector of each at a time.
  void runBlocks(Value first, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    begin(kBlocksTogether, k.scratch);
    int64_t size = std::min(elements(walked).value(), block);
    Value count = k.dim(blocks);
    auto beginning = [&](SmallVectorImpl<Index> &point, Value task) {
      place(point, k.div(task, count), outer);
      return k.mul(k.rem(task, count), k.constant(block));
    };
    SmallVector<std::pair<Value, Value>> from; // of each row here, and of the one that is fetched: a page ahead or more
    for (Row &row : rows)
      from.push_back({beginning(row.p.point, taskAt(first, row.number)),
                      beginning(row.next, taskAt(first, row.number, llvm::divideCeil(kMapBlock, size)))});
    k.width = vectorWidth;
    k.loop(k.constant(0), k.constant(size), k.constant(vectorWidth), [&](Value i) {
      for (auto [row, from] : llvm::zip(rows, from)) {
        moveAlong(row.p.point, k.add(from.first, i));
        moveAlong(row.next, k.add(from.second, i));
        row.p.later = row.next;
      }
      scoped([&] { write(pointResults); });
    });
    k.width = 1;
  }

  // ---- stores past the cache
  /// The results that vectors are stored to, if they are so large that nobody finds them in a cache, and all their
  /// vectors are whole and aligned when the results are. Otherwise none.
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
    bool allOfIt = lanesReduce || fullResults.empty();
    return bytes >= k.target.machine.streamFromBytes && allOfIt ? candidates : SmallVector<std::pair<Value, Value>>();
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
  /// Vectors of columns that are reduced side by side: elements that lie behind each other are read one after the
  /// other, and each addition has time until the next one that waits for it.
  int64_t columnsTogether() {
    const int64_t mostAccumulators = k.target.tileRows * k.target.tileVectors * 2 / 3; // as registers of contractions
    if (reduced.empty() || lanesReduce || !kept.empty() || !fullResults.empty())
      return 1;
    int64_t accumulators = 1;
    for (auto &level : levels) {
      int64_t ofLevel = 0;
      for (Operation *op : level)
        ofLevel += int64_t(Reducer(k, op).size());
      accumulators = std::max(accumulators, ofLevel);
    }
    int64_t most = std::max<int64_t>(mostAccumulators / accumulators, 1);
    if (!walked[0].isStatic())
      return most;
    int64_t vectors = std::max<int64_t>(walked[0].value() / vectorWidth, 1);
    return llvm::divideCeil(vectors, llvm::divideCeil(vectors, most));
  }

  int64_t columnBlock() {
    int64_t together = walked.empty() ? 1 : columnsTogether();
    return together > 1 ? together * vectorWidth : kColumnBlock;
  }

  /// Some vectors of columns from `i` on.
  void vectors(ArrayRef<Index> place, Value i, int64_t count, Value mask) {
    begin(count, k.scratch);
    k.width = vectorWidth;
    e.mask = mask;
    for (Row &row : rows) {
      row.p.point.assign(place.begin(), place.end());
      moveAlong(row.p.point, k.add(i, k.constant(row.number * vectorWidth)));
    }
    scoped([&] { pointOf(); });
    e.mask = {};
    k.width = 1;
  }

  void columns(ArrayRef<Index> place, Value blockIndex, int64_t block) {
    Dim extent = elements(walked);
    Value size = k.dim(extent), from = k.mul(blockIndex, k.constant(block));
    Value to = k.minimum(k.add(from, k.constant(block)), size);
    if (auto known = k.constantOf(size); known && *known <= block) {
      from = k.constant(0);
      to = size;
    }
    Value begin = from;
    // Steps of as many vectors as are worked on together, then of a single one, then what is left.
    int64_t together = columnsTogether();
    auto steps = [&](int64_t count, llvm::function_ref<void(Value)> visit) {
      Value step = k.constant(count * vectorWidth);
      Value whole = k.add(from, k.mul(k.div(k.sub(to, from), step), step));
      k.loop(from, whole, step, visit);
      from = whole;
    };
    for (int64_t count = together; count > 1; count = extent.isStatic() ? 1 : count / 2)
      steps(count, [&](Value i) { vectors(place, i, count, {}); });
    bool isEven = isMultipleOf(extent, vectorWidth);
    int64_t group = together * vectorWidth;
    bool isDone = together > 1 && isEven && block % group == 0 && isMultipleOf(extent, group);
    if (!isDone)
      steps(period, [&](Value i) {
        for (int64_t n = 0; n < period; ++n)
          vectors(place, k.add(i, k.constant(n * vectorWidth)), 1, {});
      });
    if (isMultipleOf(extent, period * vectorWidth))
      return;
    auto tail = [&] {
      for (int64_t n = 0; n < period; ++n) {
        Value at = k.add(from, k.constant(n * vectorWidth));
        k.when(k.compare(arith::CmpIPredicate::slt, at, to), [&] { vectors(place, at, 1, tailMask(at, extent)); });
      }
    };
    if (extent.isStatic() || k.sharesMemory() || !reduced.empty())
      return tail();
    // What is left of a size that only a run knows needs no masks where it is the end of whole vectors, some of whose
    // elements are then computed twice.
    Value last = k.sub(size, k.constant(period * vectorWidth)), isLeft = k.compare(arith::CmpIPredicate::slt, from, to);
    Value isLong = k.compare(arith::CmpIPredicate::sge, last, begin);
    k.when(arith::AndIOp::create(k.b, k.loc, isLeft, isLong), [&] {
      for (int64_t n = 0; n < period; ++n)
        vectors(place, k.add(last, k.constant(n * vectorWidth)), 1, {});
    });
    k.unless(isLong, tail);
  }

  void pointOf() {
    reducePoint();
    writeRows();
  }

  void reducePoint() {
    for (auto &[value, slot] : kept)
      slot.written = slot.touched = false;
    // What the next rows are computed from is fetched while these are: by the second walk, when there are several.
    for (auto [i, level] : llvm::enumerate(levels)) {
      fetches = lanesReduce && i == 1;
      writesBefore = !before.empty() && i + 1 == levels.size();
      reduceLevel(level);
    }
    fetches = writesBefore = false;
    write(pointResults);
  }

  Dim ownScratch = 0; // of rows that are worked on together
};

} // namespace

LaunchShape emitRowwise(const KernelEmission &kernel) {
  return RowwiseKernel(kernel.e, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
