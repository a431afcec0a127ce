// Kernels without contraction. For each point of the parallel dimensions: the reductions, each level of dependent ones
// in one walk over the reduced dimensions, then a last walk that writes results of full size.
//
// The innermost dimension is vectorised. If it is reduced, four accumulators hide the latency of the additions and are
// combined in a fixed tree, and two rows go side by side, so that one computes while the other's tree is on its way; if
// it is parallel, each lane reduces its own column. The order of the additions depends on the shape alone.
#include "codegen/PointEmitter.h"
#include "codegen/Reducer.h"
#include <deque>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMapBlock = 1024;  // elements of a task that only maps
constexpr int64_t kColumnBlock = 64; // columns of a task that reduces columns
constexpr int64_t kUnroll = 4;       // accumulators of a row reduction
constexpr int64_t kRowsTogether = 2; // that are reduced side by side
/// Results from this size on are written past the cache: nobody finds them there, and lines that are overwritten whole
/// need not be read first.
constexpr int64_t kStreamedBytes = int64_t(128) << 20;

class LoopKernel {
public:
  LoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results)
      : e(e), k(e.k), alignment(a), body(body), space(a.space), results(results) {
    for (size_t d = 0; d < space.size(); ++d)
      (a.reduced[d] ? reduced : parallel).push_back(d);
    for (Value yielded : body.getTerminator()->getOperands())
      if (byteWidth(dtypeOf(yielded)) < byteWidth(narrowest))
        narrowest = dtypeOf(yielded);
    int64_t widest = 1;
    for (Operation &op : body)
      for (Value v : op.getResults())
        widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
    for (BlockArgument v : body.getArguments())
      widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
    // f32 lanes fill a register; wider elements take two.
    vectorWidth = k.target.lanes(std::clamp<int64_t>(widest, 2, 4));
    lanesReduce = !reduced.empty() && reduced.back() == int(space.size()) - 1;
    findLevels();
  }

  LaunchShape emit() {
    planScratch();
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
  struct Row {
    int64_t number; // among those that are worked on together
    PointEmitter p;
    SmallVector<Index> next; // where the row is that will have this number
  };

  template <class Body> auto scoped(Body &&body) {
    std::deque<PointEmitter::Scope> scopes;
    for (Row *row : active)
      scopes.emplace_back(row->p);
    return e.scoped(body);
  }

  void begin(int64_t count) {
    rows.clear();
    active.clear();
    for (int64_t i = 0; i < count; ++i) {
      rows.push_back({i, PointEmitter(e, alignment), SmallVector<Index>(space.size())});
      rows.back().p.streamed = streamed;
      active.push_back(&rows.back());
    }
  }

  /// Where the row is that is number `index` among those of the outer dimensions.
  void place(SmallVectorImpl<Index> &point, Value index, ArrayRef<int> outer) {
    for (size_t i = outer.size(); i-- > 0;) {
      Value size = k.dim(space[outer[i]]);
      point[outer[i]] = {i == 0 ? index : k.rem(index, size)};
      index = i == 0 ? index : k.div(index, size);
    }
  }

  void runRows(Value first, int64_t count, ArrayRef<int> outer) {
    begin(count);
    for (Row &row : rows) {
      place(row.p.point, k.add(first, k.constant(row.number)), outer);
      place(row.next, k.add(first, k.constant(count + row.number)), outer);
    }
    scoped([&] { pointOf(); });
  }

  void runBlock(Value task, ArrayRef<int> outer, const Dim &blocks, int64_t block) {
    begin(1);
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

  // ---- structure
  void findLevels() {
    llvm::DenseMap<Value, size_t> level; // number of reduction levels a value needs
    for (Operation &op : body.without_terminator()) {
      size_t needed = 0;
      for (Value operand : op.getOperands())
        needed = std::max(needed, level.lookup(operand));
      if (!passes::reducedAxes(&op).empty()) {
        if (levels.size() <= needed)
          levels.resize(needed + 1);
        levels[needed].push_back(&op);
        ++needed;
      }
      for (Value result : op.getResults())
        level[result] = needed;
    }
    for (auto [i, v] : llvm::enumerate(body.getTerminator()->getOperands())) {
      Value value = alignment.contains(v) ? Value(v) : passes::skipReshapes(v);
      bool full =
          llvm::any_of(alignment.dims.find(value)->second, [&](int d) { return d >= 0 && alignment.reduced[d]; });
      (full ? fullResults : pointResults).push_back({value, results[i]});
    }
  }

  // An expensive value needed in several walks is kept in scratch memory by the first.
  void planScratch() {
    if (levels.empty() || fullResults.empty())
      if (levels.size() < 2)
        return;
    SmallVector<SmallVector<Value>> roots;
    for (auto &level : levels) {
      roots.emplace_back();
      for (Operation *op : level)
        roots.back().push_back(op->getOperand(0));
    }
    roots.emplace_back();
    for (auto &[value, pointer] : fullResults)
      roots.back().push_back(value);
    Dim count = 1;
    for (int d : reduced)
      count = count * space[d];
    for (Operation &op : llvm::reverse(body.without_terminator())) {
      const OpInfo *info = opInfo(&op);
      if (!op.hasTrait<ir::Elementwise>() || info->domain != Domain::Float || !alignment.contains(op.getResult(0)))
        continue;
      ArrayRef<int> dims = alignment.dims.find(op.getResult(0))->second;
      if (llvm::count_if(dims, [&](int d) { return d >= 0 && alignment.reduced[d]; }) == 0)
        continue;
      int64_t walks = 0;
      for (auto &walk : roots)
        walks += needs(walk, op.getResult(0));
      if (walks < 2)
        continue;
      // Lanes that are columns keep a vector each; room for a whole vector at the end serves masked tails.
      int64_t element = byteWidth(dtypeOf(op.getResult(0)));
      Dim bytes = ceildiv(lanesReduce ? count + Dim(vectorWidth) : count * Dim(vectorWidth), 64) * Dim(64 * element);
      kept[op.getResult(0)] = {scratchBytes, bytes};
      scratchBytes = scratchBytes + bytes * Dim(lanesReduce ? kRowsTogether : 1);
    }
  }

  bool needs(ArrayRef<Value> walkRoots, Value v) {
    SmallVector<Value> stack(walkRoots);
    llvm::DenseSet<Value> seen;
    while (!stack.empty()) {
      Value next = stack.pop_back_val();
      if (next == v)
        return true;
      Operation *op = next.getDefiningOp();
      if (!op || !seen.insert(next).second || kept.count(next) || !passes::reducedAxes(op).empty())
        continue;
      llvm::append_range(stack, op->getOperands());
    }
    return false;
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

  /// The lanes from `from` on that are still inside; blocks end at whole vectors, so only the dimension's end cuts one.
  Value tailMask(Value from, const Dim &size) {
    Value lanes = k.lanesOf({from, 1}, vectorWidth);
    return k.compare(arith::CmpIPredicate::slt, lanes, k.broadcast(k.maskBound(size, narrowest), vectorWidth));
  }

  void pointOf() {
    for (auto &[value, slot] : kept)
      slot.written = slot.touched = false;
    // What the next rows are computed from is fetched while these are: by the second walk, when there are several.
    for (auto [i, level] : llvm::enumerate(levels)) {
      fetches = lanesReduce && i == 1;
      reduceLevel(level);
    }
    fetches = false;
    write(pointResults);
    if (fullResults.empty())
      return;
    // One row after the other: there is nothing to wait for, and stores that follow each other go to the same lines.
    lastWalk = true;
    for (Row &row : rows) {
      active = {&row};
      walkReduced({}, [&](ArrayRef<Value>, int64_t) {
        write(fullResults);
        return SmallVector<Value>();
      });
    }
    lastWalk = false;
  }

  /// All before the first store: it may go to memory that the others are computed from.
  void write(ArrayRef<std::pair<Value, Value>> stored) {
    for (Row *row : active)
      for (auto &[value, pointer] : stored)
        row->p.at(value);
    for (Row *row : active)
      for (auto &[value, pointer] : stored)
        row->p.store(value, row->p.at(value), pointer);
  }

  // ---- walks over the reduced dimensions
  void reduceLevel(ArrayRef<Operation *> level) {
    SmallVector<Reducer> reducers;
    for (Operation *op : level)
      reducers.emplace_back(k, op);
    int64_t copies = lanesReduce ? kUnroll : 1;
    int64_t width = lanesReduce ? vectorWidth : k.width;
    // Accumulators: copy by copy, row by row, reducer by reducer.
    SmallVector<Value> init;
    for (int64_t c = 0; c < copies; ++c)
      for (size_t row = 0; row < rows.size(); ++row)
        for (Reducer &r : reducers)
          llvm::append_range(init, r.identity(width));
    size_t perCopy = init.size() / copies;
    SmallVector<Value> sums = walkReduced(init, [&](ArrayRef<Value> carried, int64_t copy) {
      SmallVector<Value> next(carried);
      size_t at = copy * perCopy;
      for (Row &row : rows)
        for (Reducer &r : reducers) {
          Value x = k.broadcast(row.p.at(r.op->getOperand(0)), k.width);
          auto accumulator = ArrayRef<Value>(carried).slice(at, r.size());
          SmallVector<Value> updated = r.step(accumulator, x, rowPosition(), lanesReduce ? e.mask : Value());
          llvm::copy(updated, next.begin() + at);
          at += r.size();
        }
      return next;
    });
    Value count = k.constant(1);
    for (int d : reduced)
      count = k.mul(count, k.dim(space[d]));
    size_t at = 0;
    for (Row &row : rows)
      for (Reducer &r : reducers) {
        SmallVector<SmallVector<Value>> parts;
        for (int64_t c = 0; c < copies; ++c)
          parts.push_back(SmallVector<Value>(ArrayRef<Value>(sums).slice(c * perCopy + at, r.size())));
        row.p.bind(r.op->getResult(0), r.finish(joined(r, std::move(parts)), count));
        at += r.size();
      }
  }

  /// Accumulators that hold parts of a row as one, in a fixed tree.
  SmallVector<Value> joined(Reducer &r, SmallVector<SmallVector<Value>> parts) {
    while (parts.size() > 1) {
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = r.combine(parts[2 * i], parts[2 * i + 1]);
      parts.resize(parts.size() / 2);
    }
    return lanesReduce ? r.acrossLanes(parts[0]) : parts[0];
  }

  // Row-major position among the reduced elements, the same in all rows: what argmax gives, and the place in scratch.
  Index rowPosition() {
    Shape shape;
    SmallVector<Index> at;
    for (int d : reduced) {
      shape.push_back(space[d]);
      at.push_back(active[0]->p.point[d]);
    }
    return k.linear(shape, at);
  }

  using Step = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> carried, int64_t copy)>;

  SmallVector<Value> walkReduced(SmallVector<Value> init, Step step) {
    SmallVector<Value> result = walkDimension(0, init, step);
    for (auto &[value, slot] : kept)
      slot.written |= slot.touched;
    return result;
  }

  SmallVector<Value> walkDimension(size_t i, SmallVector<Value> carried, Step step) {
    if (reduced.empty()) // only sizes of 1 are reduced
      return scoped([&] { return visit(step, carried, 0); });
    int d = reduced[i];
    Value size = k.dim(space[d]), one = k.constant(1);
    bool inner = i + 1 == reduced.size();
    if (!inner || !lanesReduce)
      return k.loop(k.constant(0), size, one, carried, [&](Value r, ValueRange values) {
        moveTo(d, {r});
        return scoped([&] {
          return inner ? visit(step, SmallVector<Value>(values), 0)
                       : walkDimension(i + 1, SmallVector<Value>(values), step);
        });
      });
    // Blocks of kUnroll vectors, then single vectors, then a masked rest.
    k.width = vectorWidth;
    auto vectorAt = [&](Value r, SmallVector<Value> values, int64_t copy) {
      moveTo(d, {r, 1});
      return scoped([&] { return visit(step, values, copy); });
    };
    bool unrolled = !carried.empty();
    Value step1 = k.constant(vectorWidth), stepU = k.constant(vectorWidth * kUnroll);
    Value done = k.constant(0);
    if (unrolled) {
      Value wholeBlocks = k.mul(k.div(size, stepU), stepU);
      carried = k.loop(done, wholeBlocks, stepU, carried, [&](Value r, ValueRange values) {
        SmallVector<Value> next(values);
        for (int64_t copy = 0; copy < kUnroll; ++copy)
          next = vectorAt(k.add(r, k.constant(copy * vectorWidth)), next, copy);
        return next;
      });
      done = wholeBlocks;
    }
    Value whole = k.mul(k.div(size, step1), step1);
    carried = k.loop(done, whole, step1, carried,
                     [&](Value r, ValueRange values) { return vectorAt(r, SmallVector<Value>(values), 0); });
    if (!space[d].isStatic() || space[d].value() % vectorWidth) {
      Value outerMask = e.mask;
      e.mask = tailMask(whole, space[d]);
      carried = vectorAt(whole, carried, 0);
      e.mask = outerMask;
    }
    k.width = 1;
    return carried;
  }

  void moveTo(int d, const Index &to) {
    for (Row *row : active) {
      row->p.point[d] = row->next[d] = to;
      row->p.later = fetches ? row->next : SmallVector<Index>();
    }
  }

  // One step of a walk; values kept in scratch are read from it, or written by the walk that comes first to them.
  SmallVector<Value> visit(Step step, SmallVector<Value> carried, int64_t copy) {
    for (auto &[value, slot] : kept)
      for (Row *row : active)
        if (slot.written)
          row->p.bind(value, k.load(scratchOf(value, slot, *row), scratchPosition(), k.width, {}));
    SmallVector<Value> next = step(carried, copy);
    if (!lastWalk)
      for (auto &[value, slot] : kept)
        for (Row *row : active)
          if (Value element = slot.written ? Value() : row->p.bound(value)) {
            slot.touched = true;
            k.store(scratchOf(value, slot, *row), scratchPosition(), element, k.width, {});
          }
    return next;
  }

  struct Slot {
    Dim offset, bytes; // of one row
    bool written = false, touched = false;
  };
  Memory scratchOf(Value v, const Slot &slot, const Row &row) {
    Dim offset = slot.offset + slot.bytes * Dim(row.number);
    return {k.elementPointer({k.scratch, DType::i8, {}}, k.dim(offset)), dtypeOf(v), {}};
  }
  Index scratchPosition() {
    Index row = rowPosition();
    if (lanesReduce || k.width == 1)
      return row;
    return {k.mul(row.base, k.constant(k.width)), 1};
  }

  ElementEmitter &e;
  KernelBuilder &k;
  const passes::Alignment &alignment;
  std::deque<Row> rows;      // that are worked on together …
  SmallVector<Row *> active; // … and those of them that the present walk is over
  bool streamed = false, fetches = false;
  Block &body;
  const Shape &space;
  ArrayRef<Value> results;
  SmallVector<int> parallel, reduced;
  int64_t vectorWidth = 1;
  DType narrowest = DType::i64; // of the results
  bool lanesReduce = false, lastWalk = false;
  SmallVector<SmallVector<Operation *>> levels;
  SmallVector<std::pair<Value, Value>> fullResults, pointResults; // value, where it goes
  llvm::MapVector<Value, Slot> kept;
  Dim scratchBytes = 0;
};

} // namespace

LaunchShape emitLoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results) {
  return LoopKernel(e, body, a, results).emit();
}

} // namespace burin::codegen
