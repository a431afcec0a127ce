// Rows that begin at arbitrary offsets in a cache line. Vectors that cross lines are loaded and stored at half speed,
// so walks use vectors aligned to lines, except at both ends of a row.
#include "codegen/kernels/rowwise/ReductionLoops.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

/// Number of elements between the start of the row's first cache line and the row.
Value ReductionLoops::intoLine(Row &row, Value v, Value pointer) {
  row.p.point[reduced[0]] = {k.constant(0)};
  int64_t bytes = byteWidth(dtypeOf(v));
  Value start = k.elementPointer({pointer, dtypeOf(v), {}}, row.p.position(v, row.p.point).base);
  Value address = LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), start);
  return k.div(k.rem(address, k.constant(vectorWidth * bytes)), k.constant(bytes));
}

/// Number of elements of the row before its first line boundary.
Value ReductionLoops::beforeLine(Row &row, Value v, Value pointer) {
  Value width = k.constant(vectorWidth);
  return k.rem(k.sub(width, intoLine(row, v, pointer)), width);
}

static SmallVector<Value> reads(ArrayRef<Operation *> level) {
  return llvm::map_to_vector(level, [](Operation *op) { return op->getOperand(0); });
}

/// The order in which the vectors of a row can be passed to these reductions.
ReductionLoops::Order ReductionLoops::orderOf(ArrayRef<Operation *> level) {
  auto all = [&](auto test) { return llvm::all_of(level, [&](Operation *op) { return (Reducer(k, op).*test)(); }); };
  if (!startsAnywhere() || !rowRead(reads(level)))
    return Order::FromStart;
  if (all(&Reducer::isIdempotent))
    return Order::Lines;
  bool masked = k.target.avx512 && all(&Reducer::isSumOfF32) && isElementwise(reads(level));
  return masked ? Order::MaskedLines : Order::FromStart;
}

/// Whether the kept values of a row have the same alignment in scratch memory as the row in its operand.
bool ReductionLoops::keepsLines() {
  SmallVector<Value> written = llvm::map_to_vector(fullResults, [](auto &result) { return result.first; });
  return startsAnywhere() && !readsSharedRow(written) &&
         llvm::all_of(levels, [&](auto &level) { return orderOf(level) != Order::FromStart; });
}

SmallVector<Value> ReductionLoops::walkLevel(ArrayRef<Operation *> level, const SmallVector<Value> &carried,
                                             Step step) {
  Order order = orderOf(level);
  bool inLines = keepsLines();
  if (order == Order::FromStart || (order == Order::MaskedLines && !kept.empty() && !inLines))
    return walkReduced(carried, step);
  Value read = rowRead(reads(level));
  for (Row &row : rows)
    if (inLines && !row.keptFrom)
      row.keptFrom = intoLine(row, read, e.memoryOf(read)->pointer);
  SmallVector<Value> result =
      order == Order::Lines ? walkLines(read, carried, step) : walkMaskedLines(read, carried, step);
  for (Row &row : rows)
    row.firstLine = {};
  for (auto &[value, slot] : kept)
    slot.written |= slot.touched;
  return result;
}

/// For reductions that accept elements in any order and repeatedly: the vectors at both ends overlap their neighbours.
SmallVector<Value> ReductionLoops::walkLines(Value read, SmallVector<Value> carried, Step step) {
  for (Row &row : rows)
    row.firstLine = beforeLine(row, read, e.memoryOf(read)->pointer);
  k.width = vectorWidth;
  int64_t size = space[reduced[0]].value(), block = vectorWidth * kUnroll;
  int64_t inBlocks = (size - vectorWidth + 1) / block * block; // wherever the row begins
  carried = walkBlocks(k.constant(0), k.constant(inBlocks), kUnroll, carried, step);
  for (Row &row : rows)
    row.firstLine = {};
  SmallVector<int64_t> ends{0};
  for (int64_t from = size - vectorWidth; from > inBlocks - vectorWidth; from -= vectorWidth)
    ends.push_back(from);
  for (auto [i, from] : llvm::enumerate(ends))
    carried = vectorAt(k.constant(from), carried, i % kUnroll, step);
  k.width = 1;
  return carried;
}

/// For reductions that need each element once. Rows start at any offset in a cache line. Rotating the accumulators by
/// that offset keeps the summation tree, and so the bits of the result, independent of alignment (see joined()). Lanes
/// outside the row are masked.
SmallVector<Value> ReductionLoops::walkMaskedLines(Value read, SmallVector<Value> carried, Step step) {
  int64_t size = space[reduced[0]].value(), block = vectorWidth * kUnroll;
  SmallVector<Value> into;
  Value end = k.constant(0); // end of the longest of these rows
  for (Row &row : rows) {
    into.push_back(intoLine(row, read, e.memoryOf(read)->pointer));
    row.firstLine = k.sub(k.constant(0), into.back());
    end = k.maximum(end, k.add(k.constant(size), into.back()));
  }
  k.width = vectorWidth;
  auto cutAt = [&](int64_t r, const SmallVector<Value> &values, int64_t copy) {
    for (auto [row, before] : llvm::zip(rows, into))
      row.mask = r ? lanesBelow(k.add(k.constant(size - r), before)) : lanesFrom(before);
    SmallVector<Value> next = vectorAt(k.constant(r), values, copy, step);
    for (Row &row : rows)
      row.mask = {};
    return next;
  };
  carried = cutAt(0, carried, 0);
  for (int64_t copy = 1; copy < kUnroll; ++copy)
    carried = vectorAt(k.constant(copy * vectorWidth), carried, copy, step);
  int64_t inBlocks = size / block * block;
  carried = walkBlocks(k.constant(block), k.constant(inBlocks), kUnroll, carried, step);
  for (int64_t r = inBlocks; r < size + vectorWidth - 1; r += vectorWidth) {
    int64_t copy = (r - inBlocks) / vectorWidth % kUnroll;
    if (r + vectorWidth <= size)
      carried = vectorAt(k.constant(r), carried, copy, step);
    else if (r < size)
      carried = cutAt(r, carried, copy);
    else // not every row reaches this vector
      carried = k.loop(k.constant(r), end, k.constant(vectorWidth), carried,
                       [&](Value, ValueRange values) { return cutAt(r, SmallVector<Value>(values), copy); });
  }
  k.width = 1;
  return carried;
}

/// The vectors from element r on, per row and result.
SmallVector<Value> ReductionLoops::elementsFrom(Value r) {
  SmallVector<Value> elements;
  vectorAt(r, {}, 0, [&](ArrayRef<Value>, int64_t) {
    for (Row *row : active)
      for (auto &[value, pointer] : fullResults)
        elements.push_back(k.broadcast(row->p.at(value), k.width));
    return SmallVector<Value>();
  });
  return elements;
}

/// Computes both ends before the first store, which may overwrite memory that they are computed from.
void ReductionLoops::writeLines(Row &row) {
  Value start = beforeLine(row, fullResults[0].first, fullResults[0].second);
  k.width = vectorWidth;
  Value last = k.constant(space[reduced[0]].value() - vectorWidth);
  auto storeFrom = [&](Value from, ArrayRef<Value> elements) {
    moveTo(reduced[0], {from, 1});
    for (auto [stored, element] : llvm::zip(fullResults, elements))
      row.p.store(stored.first, element, stored.second);
  };
  SmallVector<Value> head = elementsFrom(k.constant(0)), tail = elementsFrom(last);
  k.loop(start, last, k.constant(vectorWidth), [&](Value r) { storeFrom(r, elementsFrom(r)); });
  storeFrom(k.constant(0), head);
  storeFrom(last, tail);
  k.width = 1;
}

/// For operands that all rows share and that are aligned: vectors are computed aligned to the row, shifted, and stored
/// aligned to cache lines. Shared operands are loaded once for all rows computed together.
void ReductionLoops::writeTurned() {
  int d = reduced[0];
  SmallVector<Value> into;
  for (Row *row : active)
    for (auto &[value, pointer] : fullResults)
      into.push_back(intoLine(*row, value, pointer));
  k.width = vectorWidth;
  Value width = k.constant(vectorWidth);
  // Stores the cache line that ends in the vector from element r on. `before` and `from`: the vectors before and from
  // r.
  auto storeAt = [&](Value r, ArrayRef<Value> before, ArrayRef<Value> from, llvm::function_ref<Value(Value)> mask) {
    size_t i = 0;
    for (Row *row : active)
      for (auto &[value, pointer] : fullResults) {
        row->p.point[d] = {k.sub(r, into[i]), 1};
        llvm::SaveAndRestore outer(e.mask, mask(into[i]));
        row->p.store(value, lanesAcross(before[i], from[i], k.sub(width, into[i])), pointer);
        ++i;
      }
  };
  int64_t size = space[d].value(), whole = size / vectorWidth * vectorWidth;
  SmallVector<Value> first = elementsFrom(k.constant(0));
  storeAt(k.constant(0), first, first, [&](Value into) { return lanesFrom(into); });
  // Several vectors are computed before any is stored, because loads wait for earlier stores with the same page offset.
  auto steps = [&](int64_t begin, int64_t end, int64_t count, ValueRange carried) -> SmallVector<Value> {
    return k.loop(k.constant(begin), k.constant(end), k.constant(count * vectorWidth), carried,
                  [&](Value r, ValueRange last) {
                    SmallVector<SmallVector<Value>> vectors{SmallVector<Value>(last)};
                    auto at = [&](int64_t i) { return k.add(r, k.constant(i * vectorWidth)); };
                    for (int64_t i = 0; i < count; ++i)
                      vectors.push_back(elementsFrom(at(i)));
                    for (int64_t i = 0; i < count; ++i)
                      storeAt(at(i), vectors[i], vectors[i + 1], [](Value) { return Value(); });
                    return vectors.back();
                  });
  };
  int64_t single = whole - (whole - vectorWidth) % (kUnroll * vectorWidth);
  SmallVector<Value> before = steps(single, whole, 1, steps(vectorWidth, single, kUnroll, first));
  llvm::SaveAndRestore inside(e.mask, lanesBelow(k.constant(size - whole)));
  SmallVector<Value> rest = elementsFrom(k.constant(whole));
  auto storeRest = [&](int64_t r, ArrayRef<Value> before) {
    storeAt(k.constant(r), before, rest, [&](Value into) { return lanesBelow(k.add(k.constant(size - r), into)); });
  };
  storeRest(whole, before);
  storeRest(whole + vectorWidth, rest);
  k.width = 1;
}

// ---- lanes
Value ReductionLoops::laneNumbers() {
  SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth));
  return arith::ConstantOp::create(k.b, k.loc, k.b.getI32VectorAttr(numbers));
}
Value ReductionLoops::number(Value n) {
  return k.broadcast(arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), n), vectorWidth);
}
Value ReductionLoops::lanesBelow(Value n) { return k.compare(arith::CmpIPredicate::slt, laneNumbers(), number(n)); }
Value ReductionLoops::lanesFrom(Value n) { return k.compare(arith::CmpIPredicate::sge, laneNumbers(), number(n)); }

/// A vector of the lanes of x from `from` on, followed by lanes of y.
Value ReductionLoops::lanesAcross(Value x, Value y, Value from) {
  Value picked = arith::AddIOp::create(k.b, k.loc, laneNumbers(), number(from));
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, x.getType(), k.b.getStringAttr("llvm.x86.avx512.vpermi2var.ps.512"),
                                       ValueRange{x, picked, y})
      .getResult(0);
}

} // namespace burin::codegen
