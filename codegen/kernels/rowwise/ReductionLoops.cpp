#include "codegen/kernels/rowwise/ReductionLoops.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

void ReductionLoops::begin(int64_t count, Value scratch) {
  rows.clear();
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back({i, PointEmitter(e, alignment), scratch, SmallVector<Index>(space.size())});
    rows.back().p.streamed = streamed;
  }
  activate(rows);
}
void ReductionLoops::activate(std::deque<Row> &some) {
  active.clear();
  for (Row &row : some)
    active.push_back(&row);
}

Value ReductionLoops::tailMask(Value from, const Dim &size) {
  return k.below(from, k.maskBound(size, narrowest), vectorWidth);
}

std::vector<Reducer> ReductionLoops::reducersOf(ArrayRef<Operation *> level) {
  std::vector<Reducer> reducers;
  for (Operation *op : level)
    reducers.emplace_back(k, op);
  return reducers;
}

void ReductionLoops::reduceLevel(ArrayRef<Operation *> level) {
  std::vector<Reducer> reducers = reducersOf(level);
  finish(reducers, accumulate(level, reducers, identities(reducers)));
}

void ReductionLoops::eachStrip(const Dim &columns, llvm::function_ref<void()> body) {
  constexpr int64_t kStripRows = 64; // 8 to 128 are alike on a Granite Rapids
  auto isKept = [&](Operation *op) { return Reducer(k, op).isSumOfF32(); };
  if (reduced.size() != 1 || levels.size() != 1 || !llvm::all_of(levels[0], isKept) ||
      upperBound(space[reduced[0]]).value_or(INT64_MAX) <= kStripRows)
    return body();
  scratchBytes = (columns + Dim(vectorWidth)) * Dim(int64_t(levels[0].size()) * 4); // the last vector may be masked
  Value rows = k.dim(space[reduced[0]]), height = k.constant(kStripRows);
  k.loop(k.constant(0), k.maximum(rows, k.constant(1)), height, [&](Value from) { // sums of no rows are stored, too
    Value to = k.minimum(k.add(from, height), rows);
    strip = {from, to, k.compare(arith::CmpIPredicate::ne, from, k.constant(0)),
             k.compare(arith::CmpIPredicate::eq, to, rows)};
    e.scoped(body);
  });
  strip.reset();
}

void ReductionLoops::reduceStrip(ArrayRef<Operation *> level, llvm::function_ref<void()> then) {
  std::vector<Reducer> reducers = reducersOf(level);
  Value first = k.mul(rows[0].p.point[parallel.back()].base, k.constant(int64_t(reducers.size())));
  const Memory memory{k.scratch, DType::f32, {}};
  auto place = [&](size_t i) { return Index{k.add(first, k.constant(int64_t(i) * k.width)), k.width > 1 ? 1 : 0}; };
  SmallVector<Value> sums;
  for (size_t i = 0; i < rows.size() * reducers.size(); ++i) // zeros before the first strip
    sums.push_back(k.load(memory, place(i), k.width, k.broadcast(strip->isLater, k.width)));
  sums = accumulate(level, reducers, sums);
  for (auto [i, sum] : llvm::enumerate(sums))
    k.store(memory, place(i), sum, k.width, {});
  k.when(strip->isLast, [&] {
    finish(reducers, sums);
    then();
  });
}

/// Accumulators over no elements: by copy, then row, then reducer.
SmallVector<Value> ReductionLoops::identities(std::vector<Reducer> &reducers) {
  SmallVector<Value> result;
  for (int64_t c = 0; c < (lanesReduce ? kUnroll : 1); ++c)
    for (size_t row = 0; row < rows.size(); ++row)
      for (Reducer &r : reducers)
        llvm::append_range(result, r.identity(lanesReduce ? vectorWidth : k.width));
  return result;
}

SmallVector<Value> ReductionLoops::accumulate(ArrayRef<Operation *> level, std::vector<Reducer> &reducers,
                                              SmallVector<Value> init) {
  size_t perCopy = init.size() / (lanesReduce ? kUnroll : 1);
  auto step = [&](ArrayRef<Value> carried, int64_t copy) {
    SmallVector<Value> next(carried);
    size_t at = copy * perCopy;
    for (Row &row : rows) {
      llvm::SaveAndRestore mask(e.mask, row.mask ? row.mask : e.mask);
      for (Reducer &r : reducers) {
        Value x = k.broadcast(row.p.at(r.op->getOperand(0)), k.width);
        auto accumulator = ArrayRef<Value>(carried).slice(at, r.size());
        SmallVector<Value> updated = r.step(accumulator, x, rowPosition(row), lanesReduce ? e.mask : Value());
        llvm::copy(updated, next.begin() + at);
        at += r.size();
      }
    }
    return next;
  };
  return walkLevel(level, init, step);
}

/// Binds the results of the reductions.
void ReductionLoops::finish(std::vector<Reducer> &reducers, ArrayRef<Value> sums) {
  const int64_t copies = lanesReduce ? kUnroll : 1;
  size_t perCopy = sums.size() / copies;
  Value count = k.constant(1);
  for (int d : reduced)
    count = k.mul(count, k.dim(space[d]));
  size_t at = 0;
  for (Row &row : rows)
    for (Reducer &r : reducers) {
      SmallVector<SmallVector<Value>> parts;
      for (int64_t c = 0; c < copies; ++c)
        parts.push_back(SmallVector<Value>(sums.slice(c * perCopy + at, r.size())));
      row.p.bind(r.op->getResult(0), r.finish(joined(r, std::move(parts)), count));
      at += r.size();
    }
}

/// Combines the partial accumulators of a row in a fixed tree. The lanes of all accumulators form a ring; each level
/// adds opposite lanes, so the result does not depend on where on the ring a row begins.
SmallVector<Value> ReductionLoops::joined(Reducer &r, SmallVector<SmallVector<Value>> parts) {
  while (parts.size() > 1) {
    size_t half = parts.size() / 2;
    for (size_t i = 0; i < half; ++i)
      parts[i] = r.combine(parts[i], parts[i + half]);
    parts.resize(half);
  }
  return lanesReduce ? r.acrossLanes(parts[0]) : parts[0];
}

// Row-major position among the reduced elements: the result of argmax, and the position in scratch memory.
Index ReductionLoops::rowPosition(const Row &row) {
  Shape shape;
  SmallVector<Index> at;
  for (int d : reduced) {
    shape.push_back(space[d]);
    at.push_back(row.p.point[d]);
  }
  return k.linear(shape, at);
}

SmallVector<Value> ReductionLoops::walkReduced(SmallVector<Value> init, Step step) {
  SmallVector<Value> result = walkDimension(0, init, step);
  for (auto &[value, slot] : kept)
    slot.written |= slot.touched;
  return result;
}

SmallVector<Value> ReductionLoops::walkDimension(size_t i, SmallVector<Value> carried, Step step) {
  if (reduced.empty()) // only sizes of 1 are reduced
    return scoped([&] { return visit(step, carried, 0); });
  int d = reduced[i];
  Value size = k.dim(space[d]), one = k.constant(1);
  Value begin = strip ? strip->from : k.constant(0), end = strip ? strip->to : size;
  bool inner = i + 1 == reduced.size();
  if (!inner || !lanesReduce)
    return k.loop(begin, end, one, carried, [&](Value r, ValueRange values) {
      moveTo(d, {r});
      return scoped([&] {
        return inner ? visit(step, SmallVector<Value>(values), 0)
                     : walkDimension(i + 1, SmallVector<Value>(values), step);
      });
    });
  llvm::SaveAndRestore inLanes(k.width, vectorWidth);
  int64_t copies = carried.empty() ? 1 : kUnroll;
  Value block = k.constant(copies * vectorWidth);
  Value whole = k.mul(k.div(size, block), block);
  carried = walkBlocks(k.constant(0), whole, copies, carried, step);
  // The remainder continues like a block of which only the first elements exist.
  std::optional<int64_t> known = k.constantOf(size);
  for (int64_t copy = 0; copy < copies; ++copy) {
    Value from = k.add(whole, k.constant(copy * vectorWidth));
    bool isWhole = known && *k.constantOf(from) + vectorWidth <= *known;
    carried = k.loop(from, size, block, carried, [&](Value r, ValueRange values) {
      llvm::SaveAndRestore mask(e.mask, isWhole ? e.mask : tailMask(r, space[d]));
      return vectorAt(r, SmallVector<Value>(values), copy, step);
    });
  }
  return carried;
}

/// Visits the vector from element r of the innermost reduced dimension on.
SmallVector<Value> ReductionLoops::vectorAt(Value r, const SmallVector<Value> &carried, int64_t copy, Step step) {
  moveTo(reduced.back(), {r, 1});
  return scoped([&] { return visit(step, carried, copy); });
}

/// Loops over blocks of `copies` vectors, one for each copy of the accumulators.
SmallVector<Value> ReductionLoops::walkBlocks(Value from, Value to, int64_t copies, ValueRange carried, Step step) {
  return k.loop(from, to, k.constant(copies * vectorWidth), carried, [&](Value r, ValueRange values) {
    SmallVector<Value> next(values);
    for (int64_t copy = 0; copy < copies; ++copy)
      next = vectorAt(k.add(r, k.constant(copy * vectorWidth)), next, copy, step);
    return next;
  });
}

void ReductionLoops::moveTo(int d, const Index &to) {
  for (Row *row : active) {
    row->p.point[d] = row->next[d] = row->firstAligned ? k.shift(to, row->firstAligned) : to;
    row->p.later = fetches ? row->next : SmallVector<Index>();
  }
}

// One step of a walk. Values kept in scratch memory are loaded, or stored by the first walk that computes them.
SmallVector<Value> ReductionLoops::visit(Step step, SmallVector<Value> carried, int64_t copy) {
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

void ReductionLoops::bindKept() {
  for (Row *row : active)
    for (auto &[value, slot] : kept)
      if (slot.written || row->isReduced)
        row->p.bind(value, k.load(scratchOf(value, slot, *row), scratchPosition(*row), k.width, {}));
}

Memory ReductionLoops::scratchOf(Value v, const Slot &slot, const Row &row) {
  Dim offset = slot.offset + slot.bytes * Dim(row.number);
  return {k.elementPointer({row.scratch, DType::i8, {}}, k.dim(offset)), dtypeOf(v), {}};
}
Index ReductionLoops::scratchPosition(const Row &row) {
  Index at = rowPosition(row);
  if (lanesReduce || k.width == 1)
    return row.keptFrom ? k.shift(at, row.keptFrom) : at;
  return {k.mul(at.base, k.constant(k.width)), 1};
}

// ---- results
void ReductionLoops::writeRows() {
  if (fullResults.empty())
    return;
  // Row by row, unless vectors are shifted: there is no latency to hide, and consecutive stores hit the same lines.
  lastWalk = true;
  SmallVector<Value> values;
  for (auto &[value, pointer] : fullResults)
    values.push_back(value);
  bool isAligned = hasUnalignedRows(), sharesRow = readsSharedRow(values);
  bool shifts = k.target.avx512 && k.target.machine.splitStoresWait &&
                llvm::all_of(values, [](Value v) { return dtypeOf(v) == DType::f32; }) && isElementwise(values);
  if (isAligned && sharesRow && shifts) {
    activate(rows);
    writeShifted();
  } else {
    for (Row &row : rows)
      writeRow(row, isAligned && !sharesRow);
  }
  lastWalk = false;
}

void ReductionLoops::writeRow(Row &row, bool isAligned) {
  active = {&row};
  if (isAligned)
    return writeOverlapping(row);
  walkReduced({}, [&](ArrayRef<Value>, int64_t) {
    write(fullResults);
    return SmallVector<Value>();
  });
}

void ReductionLoops::write(ArrayRef<std::pair<Value, Value>> stored) {
  for (Row *row : active)
    for (auto &[value, pointer] : stored)
      row->p.at(value);
  for (Row *row : active)
    for (auto &[value, pointer] : stored)
      row->p.store(value, row->p.at(value), pointer);
}

/// Stores the results of the previous rows at the position of the rows that are being reduced.
void ReductionLoops::writeBefore() {
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
