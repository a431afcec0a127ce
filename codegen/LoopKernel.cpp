// Kernels without contraction. For each point of the parallel dimensions: the reductions, each level of dependent ones
// in one walk over the reduced dimensions, then a last walk that writes results of full size.
//
// The innermost dimension is vectorised. If it is reduced, four accumulators hide the latency of the additions and are
// combined in a fixed tree, and two rows go side by side, so that one computes while the other's tree is on its way; if
// it is parallel, each lane reduces its own column. The order of the additions depends on the shape alone.
#include "codegen/LoopWalks.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMapBlock = 1024;  // elements of a task that only maps
constexpr int64_t kColumnBlock = 64; // columns of a task that reduces columns
/// Results from this size on are written past the cache: nobody finds them there, and lines that are overwritten whole
/// need not be read first.
constexpr int64_t kStreamedBytes = int64_t(128) << 20;

/// How many rows together are worked on before those that are fetched from memory, where these take long to reduce.
constexpr int64_t kFetchedAhead = 3;

class LoopKernel : LoopWalks {
public:
  LoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results)
      : LoopWalks(e, body, a, results) {}

  LaunchShape emit() {
    SmallVector<int> outer(parallel);
    bool blocked = !lanesReduce && !parallel.empty();
    if (blocked)
      outer.pop_back();
    Dim tasks = 1;
    for (int d : outer)
      tasks = tasks * space[d];
    int64_t block = reduced.empty() ? kMapBlock : kColumnBlock;
    Dim blocks = blocked ? ceildiv(space[parallel.back()], block) : Dim(1);
    tasks = tasks * blocks;
    bool isAlone = tasks.isStatic() && tasks.value() < kRowsTogether;
    auto run = [&] {
      Value from = k.lo, one = k.constant(1);
      if (lanesReduce && !isAlone) {
        Value together = k.constant(kRowsTogether);
        Value whole = k.add(from, k.mul(k.div(k.sub(k.hi, from), together), together));
        if (overlaps())
          runOverlapped(from, whole, outer);
        else
          k.loop(from, whole, together, [&](Value task) { runRows(task, kRowsTogether, outer); });
        from = whole;
      }
      k.loop(from, k.hi, one,
             [&](Value task) { blocked ? runBlock(task, outer, blocks, block) : runRows(task, 1, outer); });
    };
    SmallVector<std::pair<Value, Value>> large = streamedResults();
    if (large.empty()) {
      run();
      return {tasks, scratchBytes};
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
    return {tasks, scratchBytes};
  }

private:
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
    int64_t ahead = count * (overlaps() ? kFetchedAhead : 1);
    for (Row &row : rows) {
      place(row.p.point, k.add(first, k.constant(row.number)), outer);
      place(row.next, k.add(first, k.constant(ahead + row.number)), outer);
    }
  }

  void runRows(Value first, int64_t count, ArrayRef<int> outer) {
    beginRows(first, count, outer, k.scratch);
    scoped([&] { pointOf(); });
  }

  // ---- rows that are written while the next ones are reduced
  // Memory takes stores past the cache one by one, and those to scratch memory wait behind them: side by side with the
  // reductions they hold up nothing. Where reductions take no longer than memory there is nothing to gain.

  bool overlaps() { return streamed && reducesExpensive && !fullResults.empty(); }

  void runOverlapped(Value from, Value whole, ArrayRef<int> outer) {
    Value together = k.constant(kRowsTogether), second = k.add(from, together);
    k.when(k.compare(arith::CmpIPredicate::slt, from, whole), [&] {
      Value other = k.elementPointer({k.scratch, DType::i8, {}}, k.dim(ownScratch));
      before.clear();
      SmallVector<Value> carried = reduceRows(from, outer, k.scratch);
      carried.append({k.scratch, other});
      carried = k.loop(second, whole, together, carried, [&](Value task, ValueRange values) {
        Value written = values[values.size() - 2], free = values.back();
        beginRows(k.sub(task, together), kRowsTogether, outer, written);
        bindReduced(values);
        std::swap(rows, before);
        SmallVector<Value> next = reduceRows(task, outer, free);
        before.clear();
        next.append({free, written});
        return next;
      });
      beginRows(k.sub(whole, together), kRowsTogether, outer, carried[carried.size() - 2]);
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

  void runBlock(Value task, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    begin(1, k.scratch);
    Value count = k.dim(blocks);
    place(rows[0].p.point, k.div(task, count), outer);
    scoped([&] { columns(k.rem(task, count), block); });
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
    return bytes >= kStreamedBytes && allOfIt ? candidates : SmallVector<std::pair<Value, Value>>();
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
  void columns(Value blockIndex, int64_t block) {
    int last = parallel.back();
    Value size = k.dim(space[last]);
    auto vector = [&](Value i, Value mask) {
      k.width = vectorWidth;
      e.mask = mask;
      rows[0].p.point[last] = {i, 1};
      scoped([&] { pointOf(); });
      e.mask = {};
      k.width = 1;
    };
    Value from = k.mul(blockIndex, k.constant(block));
    Value to = k.minimum(k.add(from, k.constant(block)), size);
    if (auto known = k.constantOf(size); known && *known <= block) {
      from = k.constant(0);
      to = size;
    }
    Value step = k.constant(vectorWidth);
    Value whole = k.add(from, k.mul(k.div(k.sub(to, from), step), step));
    k.loop(from, whole, step, [&](Value i) { vector(i, {}); });
    if (space[last].isStatic() && space[last].value() % vectorWidth == 0)
      return;
    k.when(k.compare(arith::CmpIPredicate::slt, whole, to), [&] { vector(whole, tailMask(whole, space[last])); });
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

LaunchShape emitLoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results) {
  return LoopKernel(e, body, a, results).emit();
}

} // namespace burin::codegen
