#include "codegen/LoopWalks.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

static constexpr int64_t kUnroll = 4; // accumulators of a row reduction

void LoopWalks::begin(int64_t count, Value scratch) {
  rows.clear();
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back({i, PointEmitter(e, alignment), scratch, SmallVector<Index>(space.size())});
    rows.back().p.streamed = streamed;
  }
  activate(rows);
}
void LoopWalks::activate(std::deque<Row> &some) {
  active.clear();
  for (Row &row : some)
    active.push_back(&row);
}

Value LoopWalks::tailMask(Value from, const Dim &size) {
  Value lanes = k.lanesOf({from, 1}, vectorWidth);
  return k.compare(arith::CmpIPredicate::slt, lanes, k.broadcast(k.maskBound(size, narrowest), vectorWidth));
}

void LoopWalks::reduceLevel(ArrayRef<Operation *> level) {
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
SmallVector<Value> LoopWalks::joined(Reducer &r, SmallVector<SmallVector<Value>> parts) {
  while (parts.size() > 1) {
    for (size_t i = 0; i < parts.size() / 2; ++i)
      parts[i] = r.combine(parts[2 * i], parts[2 * i + 1]);
    parts.resize(parts.size() / 2);
  }
  return lanesReduce ? r.acrossLanes(parts[0]) : parts[0];
}

// Row-major position among the reduced elements: what argmax gives, and the place in scratch.
Index LoopWalks::rowPosition(const Row &row) {
  Shape shape;
  SmallVector<Index> at;
  for (int d : reduced) {
    shape.push_back(space[d]);
    at.push_back(row.p.point[d]);
  }
  return k.linear(shape, at);
}

SmallVector<Value> LoopWalks::walkReduced(SmallVector<Value> init, Step step) {
  SmallVector<Value> result = walkDimension(0, init, step);
  for (auto &[value, slot] : kept)
    slot.written |= slot.touched;
  return result;
}

SmallVector<Value> LoopWalks::walkDimension(size_t i, SmallVector<Value> carried, Step step) {
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
Value LoopWalks::beforeLine(Row &row, Value v, Value pointer) {
  row.p.point[reduced[0]] = {k.constant(0)};
  int64_t bytes = byteWidth(dtypeOf(v));
  Value start = k.elementPointer({pointer, dtypeOf(v), {}}, row.p.position(v, row.p.point).base);
  Value past = k.sub(k.constant(0), LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), start));
  return k.div(k.rem(past, k.constant(vectorWidth * bytes)), k.constant(bytes));
}

void LoopWalks::vectorFrom(Value element) {
  for (Row *row : active)
    row->firstLine = {};
  moveTo(reduced[0], {element, 1});
}

SmallVector<Value> LoopWalks::walkLines(Value read, SmallVector<Value> carried, Step step) {
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
void LoopWalks::writeLines(Row &row) {
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

void LoopWalks::moveTo(int d, const Index &to) {
  for (Row *row : active) {
    row->p.point[d] = row->next[d] = row->firstLine ? k.shift(to, row->firstLine) : to;
    row->p.later = fetches ? row->next : SmallVector<Index>();
  }
}

// One step of a walk; values kept in scratch are read from it, or written by the walk that comes first to them.
SmallVector<Value> LoopWalks::visit(Step step, SmallVector<Value> carried, int64_t copy) {
  bindKept();
  SmallVector<Value> next = step(carried, copy);
  if (!lastWalk)
    for (auto &[value, slot] : kept)
      for (Row *row : active)
        if (Value element = slot.written ? Value() : row->p.bound(value)) {
          slot.touched = true;
          k.store(scratchOf(value, slot, *row), scratchPosition(*row), element, k.width, {});
        }
  if (writesBefore)
    writeBefore();
  return next;
}

void LoopWalks::bindKept() {
  for (Row *row : active)
    for (auto &[value, slot] : kept)
      if (slot.written || row->isReduced)
        row->p.bind(value, k.load(scratchOf(value, slot, *row), scratchPosition(*row), k.width, {}));
}

Memory LoopWalks::scratchOf(Value v, const Slot &slot, const Row &row) {
  Dim offset = slot.offset + slot.bytes * Dim(row.number);
  return {k.elementPointer({row.scratch, DType::i8, {}}, k.dim(offset)), dtypeOf(v), {}};
}
Index LoopWalks::scratchPosition(const Row &row) {
  Index at = rowPosition(row);
  if (lanesReduce || k.width == 1)
    return at;
  return {k.mul(at.base, k.constant(k.width)), 1};
}

// ---- results
void LoopWalks::writeRows() {
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

void LoopWalks::write(ArrayRef<std::pair<Value, Value>> stored) {
  for (Row *row : active)
    for (auto &[value, pointer] : stored)
      row->p.at(value);
  for (Row *row : active)
    for (auto &[value, pointer] : stored)
      row->p.store(value, row->p.at(value), pointer);
}

/// Writes the rows before where those are that are being reduced.
void LoopWalks::writeBefore() {
  SmallVector<Row *> reducing = active;
  for (Row &row : before)
    for (int d : reduced)
      row.p.point[d] = reducing[0]->p.point[d];
  activate(before);
  scoped([&] {
    bindKept();
    write(fullResults);
  });
  active = reducing;
}

} // namespace burin::codegen
