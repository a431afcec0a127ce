// Kernels without contraction. For each point of the parallel dimensions: the reductions, each level of dependent ones
// in one walk over the reduced dimensions, then a last walk that writes results of full size.
//
// The innermost dimension is vectorised. If it is reduced, four accumulators hide the latency of the additions and are
// combined in a fixed tree, and two rows go side by side, so that one computes while the other's tree is on its way; if
// it is parallel, each lane reduces its own column. The order of the additions depends on the shape alone.
#include "codegen/LoopPlan.h"
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
/// Results from this size on are written past the cache: nobody finds them there, and lines that are overwritten whole
/// need not be read first.
constexpr int64_t kStreamedBytes = int64_t(128) << 20;

class LoopKernel : LoopPlan {
public:
  LoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results)
      : LoopPlan(body, a, results, e.k.target), e(e), k(e.k) {}

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
    Value firstLine = {};    // see walkLines
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
    SmallVector<Value> values;
    for (auto &[value, pointer] : fullResults)
      values.push_back(value);
    // Operands that all rows share begin where a line does: they would be read across lines then.
    bool inLines = startsAnywhere() && !readsSharedRow(values);
    for (Row &row : rows) {
      active = {&row};
      if (inLines) {
        writeLines(row);
        continue;
      }
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
    auto step = [&](ArrayRef<Value> carried, int64_t copy) {
      SmallVector<Value> next(carried);
      size_t at = copy * perCopy;
      for (Row &row : rows)
        for (Reducer &r : reducers) {
          Value x = k.broadcast(row.p.at(r.op->getOperand(0)), k.width);
          auto accumulator = ArrayRef<Value>(carried).slice(at, r.size());
          SmallVector<Value> updated = r.step(accumulator, x, rowPosition(row), lanesReduce ? e.mask : Value());
          llvm::copy(updated, next.begin() + at);
          at += r.size();
        }
      return next;
    };
    bool inLines = startsAnywhere() && llvm::all_of(reducers, [](Reducer &r) { return r.isIdempotent(); });
    SmallVector<Value> reads;
    for (Operation *op : level)
      reads.push_back(op->getOperand(0));
    Value read = inLines ? rowRead(reads) : Value();
    SmallVector<Value> sums = read ? walkLines(read, init, step) : walkReduced(init, step);
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

  // Row-major position among the reduced elements: what argmax gives, and the place in scratch.
  Index rowPosition(const Row &row) {
    Shape shape;
    SmallVector<Index> at;
    for (int d : reduced) {
      shape.push_back(space[d]);
      at.push_back(row.p.point[d]);
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

  // ---- rows that begin anywhere in a line of the cache
  // A vector that crosses lines is read and written at half speed. Where elements may come in any order, and more than
  // once, vectors lie in lines, but for those at both ends of a row, which overlap their neighbours.

  /// How many elements of the row lie before the first line that begins in it.
  Value beforeLine(Row &row, Value v, Value pointer) {
    row.p.point[reduced[0]] = {k.constant(0)};
    int64_t bytes = byteWidth(dtypeOf(v));
    Value start = k.elementPointer({pointer, dtypeOf(v), {}}, row.p.position(v, row.p.point).base);
    Value past = k.sub(k.constant(0), LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), start));
    return k.div(k.rem(past, k.constant(vectorWidth * bytes)), k.constant(bytes));
  }

  void vectorFrom(Value element) {
    for (Row *row : active)
      row->firstLine = {};
    moveTo(reduced[0], {element, 1});
  }

  SmallVector<Value> walkLines(Value read, SmallVector<Value> carried, Step step) {
    for (Row &row : rows)
      row.firstLine = beforeLine(row, read, e.memoryOf(read)->pointer);
    k.width = vectorWidth;
    int64_t size = space[reduced[0]].value(), block = vectorWidth * kUnroll;
    int64_t inBlocks = (size - vectorWidth + 1) / block * block; // wherever the row begins
    carried = k.loop(k.constant(0), k.constant(inBlocks), k.constant(block), carried, [&](Value r, ValueRange values) {
      SmallVector<Value> next(values);
      for (int64_t copy = 0; copy < kUnroll; ++copy) {
        moveTo(reduced[0], {k.add(r, k.constant(copy * vectorWidth)), 1});
        next = scoped([&] { return visit(step, next, copy); });
      }
      return next;
    });
    SmallVector<int64_t> ends{0};
    for (int64_t from = size - vectorWidth; from > inBlocks - vectorWidth; from -= vectorWidth)
      ends.push_back(from);
    for (auto [i, from] : llvm::enumerate(ends)) {
      vectorFrom(k.constant(from));
      carried = scoped([&] { return visit(step, carried, i % kUnroll); });
    }
    k.width = 1;
    for (auto &[value, slot] : kept)
      slot.written |= slot.touched;
    return carried;
  }

  /// Both ends are computed before anything is stored, which may go to memory that they are computed from.
  void writeLines(Row &row) {
    Value start = beforeLine(row, fullResults[0].first, fullResults[0].second);
    k.width = vectorWidth;
    Value last = k.constant(space[reduced[0]].value() - vectorWidth);
    auto elementsFrom = [&](Value from) {
      vectorFrom(from);
      SmallVector<Value> elements;
      auto compute = [&](ArrayRef<Value>, int64_t) {
        for (auto &[value, pointer] : fullResults)
          elements.push_back(k.broadcast(row.p.at(value), k.width));
        return SmallVector<Value>();
      };
      scoped([&] { visit(compute, {}, 0); });
      return elements;
    };
    auto storeFrom = [&](Value from, ArrayRef<Value> elements) {
      vectorFrom(from);
      for (auto [stored, element] : llvm::zip(fullResults, elements))
        row.p.store(stored.first, element, stored.second);
    };
    SmallVector<Value> head = elementsFrom(k.constant(0)), tail = elementsFrom(last);
    k.loop(start, last, k.constant(vectorWidth), [&](Value r) { storeFrom(r, elementsFrom(r)); });
    storeFrom(k.constant(0), head);
    storeFrom(last, tail);
    k.width = 1;
  }

  void moveTo(int d, const Index &to) {
    for (Row *row : active) {
      row->p.point[d] = row->next[d] = row->firstLine ? k.shift(to, row->firstLine) : to;
      row->p.later = fetches ? row->next : SmallVector<Index>();
    }
  }

  // One step of a walk; values kept in scratch are read from it, or written by the walk that comes first to them.
  SmallVector<Value> visit(Step step, SmallVector<Value> carried, int64_t copy) {
    for (auto &[value, slot] : kept)
      for (Row *row : active)
        if (slot.written)
          row->p.bind(value, k.load(scratchOf(value, slot, *row), scratchPosition(*row), k.width, {}));
    SmallVector<Value> next = step(carried, copy);
    if (!lastWalk)
      for (auto &[value, slot] : kept)
        for (Row *row : active)
          if (Value element = slot.written ? Value() : row->p.bound(value)) {
            slot.touched = true;
            k.store(scratchOf(value, slot, *row), scratchPosition(*row), element, k.width, {});
          }
    return next;
  }

  Memory scratchOf(Value v, const Slot &slot, const Row &row) {
    Dim offset = slot.offset + slot.bytes * Dim(row.number);
    return {k.elementPointer({k.scratch, DType::i8, {}}, k.dim(offset)), dtypeOf(v), {}};
  }
  Index scratchPosition(const Row &row) {
    Index at = rowPosition(row);
    if (lanesReduce || k.width == 1)
      return at;
    return {k.mul(at.base, k.constant(k.width)), 1};
  }

  ElementEmitter &e;
  KernelBuilder &k;
  std::deque<Row> rows;      // that are worked on together …
  SmallVector<Row *> active; // … and those of them that the present walk is over
  bool streamed = false, fetches = false;
  bool lastWalk = false;
};

} // namespace

LaunchShape emitLoopKernel(ElementEmitter &e, Block &body, const passes::Alignment &a, ArrayRef<Value> results) {
  return LoopKernel(e, body, a, results).emit();
}

} // namespace burin::codegen
