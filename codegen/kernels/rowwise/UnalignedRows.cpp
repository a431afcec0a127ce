// Walks over rows whose length is no multiple of the vector length, so that they begin at arbitrary addresses. A vector
// that crosses a cache line is loaded and stored at half the speed. Walks therefore use vectors that begin at vector
// boundaries (addresses that are multiples of the vector size, which never cross a line), and treat both ends of a row
// apart.
#include "codegen/kernels/rowwise/ReductionLoops.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

/// Number of elements from the last vector boundary up to the first element of the row of `v`, whose memory begins at
/// `pointer`.
Value ReductionLoops::vectorOffset(Row &row, Value v, Value pointer) {
  row.p.point[reduced[0]] = {k.constant(0)};
  int64_t bytes = byteWidth(dtypeOf(v));
  Value start = k.elementPointer({pointer, dtypeOf(v), {}}, row.p.position(v, row.p.point).base);
  Value address = LLVM::PtrToIntOp::create(k.b, k.loc, k.b.getI64Type(), start);
  return k.div(k.rem(address, k.constant(vectorWidth * bytes)), k.constant(bytes));
}

/// Number of elements of the row before its first vector boundary.
Value ReductionLoops::elementsBeforeBoundary(Row &row, Value v, Value pointer) {
  Value width = k.constant(vectorWidth);
  return k.rem(k.sub(width, vectorOffset(row, v, pointer)), width);
}

/// The values that these reductions reduce.
static SmallVector<Value> reads(ArrayRef<Operation *> level) {
  return llvm::map_to_vector(level, [](Operation *op) { return op->getOperand(0); });
}

/// How a walk may pass a row to these reductions:
///   Overlapping: from the first vector boundary on; some elements at both ends are passed twice.
///   Masked: in aligned vectors, each element once, by lanes that depend on the alignment of the row.
///   FromStart: in vectors that begin at the first element, whatever their alignment.
ReductionLoops::Order ReductionLoops::orderOf(ArrayRef<Operation *> level) {
  auto all = [&](auto test) { return llvm::all_of(level, [&](Operation *op) { return (Reducer(k, op).*test)(); }); };
  if (!hasUnalignedRows() || !rowRead(reads(level)))
    return Order::FromStart;
  if (all(&Reducer::isIdempotent))
    return Order::Overlapping;
  bool masked = k.target.avx512 && all(&Reducer::isSumOfF32) && isElementwise(reads(level));
  return masked ? Order::Masked : Order::FromStart;
}

/// Whether scratch memory keeps the values of a row at the same offset from a vector boundary as the row has in its
/// operand, so that walks are aligned in both.
bool ReductionLoops::keepsAlignment() {
  SmallVector<Value> written = llvm::map_to_vector(fullResults, [](auto &result) { return result.first; });
  return hasUnalignedRows() && !readsSharedRow(written) &&
         llvm::all_of(levels, [&](auto &level) { return orderOf(level) != Order::FromStart; });
}

SmallVector<Value> ReductionLoops::walkLevel(ArrayRef<Operation *> level, const SmallVector<Value> &carried,
                                             Step step) {
  Order order = orderOf(level);
  bool isAligned = keepsAlignment();
  if (order == Order::FromStart || (order == Order::Masked && !kept.empty() && !isAligned))
    return walkReduced(carried, step);
  Value read = rowRead(reads(level));
  for (Row &row : rows)
    if (isAligned && !row.keptFrom)
      row.keptFrom = vectorOffset(row, read, e.memoryOf(read)->pointer);
  SmallVector<Value> result =
      order == Order::Overlapping ? walkOverlapping(read, carried, step) : walkMasked(read, carried, step);
  for (Row &row : rows)
    row.firstAligned = {};
  for (auto &[value, slot] : kept)
    slot.written |= slot.touched;
  return result;
}

/// For idempotent reductions such as maxima, which may see an element twice: the unaligned vectors at both ends of the
/// row overlap the aligned ones between them.
SmallVector<Value> ReductionLoops::walkOverlapping(Value read, SmallVector<Value> carried, Step step) {
  for (Row &row : rows)
    row.firstAligned = elementsBeforeBoundary(row, read, e.memoryOf(read)->pointer);
  llvm::SaveAndRestore inLanes(k.width, vectorWidth);
  int64_t size = space[reduced[0]].value(), block = vectorWidth * kUnroll;
  // Elements in whole blocks from the first boundary on, for the worst alignment (vectorWidth - 1 elements before it).
  int64_t inBlocks = (size - vectorWidth + 1) / block * block;
  carried = walkBlocks(k.constant(0), k.constant(inBlocks), kUnroll, carried, step);
  for (Row &row : rows)
    row.firstAligned = {};
  SmallVector<int64_t> ends{0};
  for (int64_t from = size - vectorWidth; from > inBlocks - vectorWidth; from -= vectorWidth)
    ends.push_back(from);
  for (auto [i, from] : llvm::enumerate(ends))
    carried = vectorAt(k.constant(from), carried, i % kUnroll, step);
  return carried;
}

/// For reductions that need each element once, such as sums. The walk begins at the last vector boundary before the
/// row; lanes outside the row are masked. So element i is summed by the lane i + offset, modulo the lanes of all
/// accumulators, where the offset depends on the address. joined() adds opposite lanes of that ring, in a tree that is
/// the same for all rotations: the bits of the result do not depend on the address.
SmallVector<Value> ReductionLoops::walkMasked(Value read, SmallVector<Value> carried, Step step) {
  int64_t size = space[reduced[0]].value(), block = vectorWidth * kUnroll;
  SmallVector<Value> offsets;
  Value end = k.constant(0); // the last end of these rows, in elements from their boundaries
  for (Row &row : rows) {
    offsets.push_back(vectorOffset(row, read, e.memoryOf(read)->pointer));
    row.firstAligned = k.sub(k.constant(0), offsets.back());
    end = k.maximum(end, k.add(k.constant(size), offsets.back()));
  }
  llvm::SaveAndRestore inLanes(k.width, vectorWidth);
  // The vector r elements after the boundary, which holds the first or the last elements of rows.
  auto maskedAt = [&](int64_t r, const SmallVector<Value> &values, int64_t copy) {
    for (auto [row, offset] : llvm::zip(rows, offsets))
      row.mask = r ? lanesBelow(k.add(k.constant(size - r), offset)) : lanesFrom(offset);
    SmallVector<Value> next = vectorAt(k.constant(r), values, copy, step);
    for (Row &row : rows)
      row.mask = {};
    return next;
  };
  carried = maskedAt(0, carried, 0);
  for (int64_t copy = 1; copy < kUnroll; ++copy)
    carried = vectorAt(k.constant(copy * vectorWidth), carried, copy, step);
  int64_t inBlocks = size / block * block;
  carried = walkBlocks(k.constant(block), k.constant(inBlocks), kUnroll, carried, step);
  for (int64_t r = inBlocks; r < size + vectorWidth - 1; r += vectorWidth) {
    int64_t copy = (r - inBlocks) / vectorWidth % kUnroll;
    if (r + vectorWidth <= size)
      carried = vectorAt(k.constant(r), carried, copy, step);
    else if (r < size)
      carried = maskedAt(r, carried, copy);
    else // not every row reaches this vector
      carried = k.loop(k.constant(r), end, k.constant(vectorWidth), carried,
                       [&](Value, ValueRange values) { return maskedAt(r, SmallVector<Value>(values), copy); });
  }
  return carried;
}

/// The vectors of elements from r on: one per active row and result, rows first.
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

/// Stores a row in aligned vectors, and one unaligned vector at each end that overlaps them. Both ends are computed
/// before the first store: a result may be stored in the buffer of an operand.
void ReductionLoops::writeOverlapping(Row &row) {
  Value start = elementsBeforeBoundary(row, fullResults[0].first, fullResults[0].second);
  llvm::SaveAndRestore inLanes(k.width, vectorWidth);
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
}

/// For rows that read an aligned operand that all of them share, such as the weight of a norm. Vectors are computed
/// from the first element of the row on, so that loads of the shared operand are aligned and serve all active rows.
/// Stores are aligned in the result: each combines lanes of two neighbouring vectors.
void ReductionLoops::writeShifted() {
  int d = reduced[0];
  SmallVector<Value> offsets; // as the vectors of elementsFrom()
  for (Row *row : active)
    for (auto &[value, pointer] : fullResults)
      offsets.push_back(vectorOffset(*row, value, pointer));
  llvm::SaveAndRestore inLanes(k.width, vectorWidth);
  Value width = k.constant(vectorWidth);
  // Stores the aligned vector that begins offsets[i] elements before element r: the last elements of `before`, the
  // vector of elements before r, and the first ones of `from`, the vector from r on.
  auto storeAt = [&](Value r, ArrayRef<Value> before, ArrayRef<Value> from, llvm::function_ref<Value(Value)> mask) {
    size_t i = 0;
    for (Row *row : active)
      for (auto &[value, pointer] : fullResults) {
        row->p.point[d] = {k.sub(r, offsets[i]), 1};
        llvm::SaveAndRestore outer(e.mask, mask(offsets[i]));
        row->p.store(value, lanesAcross(before[i], from[i], k.sub(width, offsets[i])), pointer);
        ++i;
      }
  };
  int64_t size = space[d].value(), whole = size / vectorWidth * vectorWidth;
  SmallVector<Value> first = elementsFrom(k.constant(0));
  storeAt(k.constant(0), first, first, [&](Value offset) { return lanesFrom(offset); });
  // Computes `count` vectors before any is stored: a load waits for an earlier store whose address has the same lower
  // 12 bits (4K aliasing).
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
    storeAt(k.constant(r), before, rest, [&](Value offset) { return lanesBelow(k.add(k.constant(size - r), offset)); });
  };
  storeRest(whole, before);
  storeRest(whole + vectorWidth, rest);
}

// ---- masks and shuffles of i32 lanes
Value ReductionLoops::laneNumbers() {
  SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, vectorWidth));
  return arith::ConstantOp::create(k.b, k.loc, k.b.getI32VectorAttr(numbers));
}
Value ReductionLoops::number(Value n) {
  return k.broadcast(arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), n), vectorWidth);
}
Value ReductionLoops::lanesBelow(Value n) { return k.compare(arith::CmpIPredicate::slt, laneNumbers(), number(n)); }
Value ReductionLoops::lanesFrom(Value n) { return k.compare(arith::CmpIPredicate::sge, laneNumbers(), number(n)); }

/// The lanes of x from `from` (known at run time) on, followed by the first lanes of y.
Value ReductionLoops::lanesAcross(Value x, Value y, Value from) {
  Value picked = arith::AddIOp::create(k.b, k.loc, laneNumbers(), number(from));
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, x.getType(), k.b.getStringAttr("llvm.x86.avx512.vpermi2var.ps.512"),
                                       ValueRange{x, picked, y})
      .getResult(0);
}

} // namespace burin::codegen
