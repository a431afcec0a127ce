#include "codegen/gpu/attention/AttentionPartials.h"
#include "codegen/gpu/Block.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/Math.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

// Not tuned one by one.
constexpr int64_t kMostJoining = 16; // threads that join the parts of one vector of columns
constexpr int64_t kFewThreads = 128; // of a block
constexpr int64_t kTogether = 4;     // parts that a thread loads at once when it joins them

AttentionPartials::AttentionPartials(const KernelEmission &kernel, ScaledDotProductAttentionOp op)
    : AttentionOperands(kernel.e, op), shared(passes::rowsOfSharedKeys(op)), rowCount(shared.rows),
      p(kernel.e, *kernel.space), body(kernel.body), results(kernel.results),
      slotColumns((width.value() + kColumns - 1) / kColumns * kColumns) {}

// ---- partials

AttentionPartials::Partial AttentionPartials::nothing(size_t vectors, int64_t lanes) {
  return {number(-INFINITY), number(0), SmallVector<Value>(vectors, zeros(lanes))};
}

SmallVector<Value> AttentionPartials::flat(ArrayRef<Partial> partials) {
  SmallVector<Value> all;
  for (const Partial &x : partials) {
    all.append({x.largest, x.weightSum});
    llvm::append_range(all, x.weightedValues);
  }
  return all;
}

AttentionPartials::Partials AttentionPartials::ofFlat(ValueRange all, size_t vectors) {
  Partials partials;
  for (size_t i = 0; i < all.size(); i += 2 + vectors)
    partials.push_back({all[i], all[i + 1], SmallVector<Value>(all.slice(i + 2, vectors))});
  return partials;
}

Value AttentionPartials::shiftOf(Value largest) {
  return select(scalar(largest) == -INFINITY, scalar(number(0)), scalar(largest)).value();
}

Value AttentionPartials::weight(Value score, Value shift) {
  Scalar x = scalar(score) - scalar(shift);
  return exp(byteWidth(type) == 2 ? x.for16Bits() : x).value();
}

AttentionPartials::Partial AttentionPartials::joined(ArrayRef<Partial> all) {
  Partial result = all[0];
  for (const Partial &x : all.drop_front())
    result.largest = largerOf(k, result.largest, x.largest);
  Value shift = shiftOf(result.largest);
  for (auto [i, x] : llvm::enumerate(all)) {
    Value factor = weight(x.largest, shift);
    result.weightSum =
        i ? fma(scalar(x.weightSum), scalar(factor), scalar(result.weightSum)).value() : product(x.weightSum, factor);
    for (auto [own, added] : llvm::zip_equal(result.weightedValues, x.weightedValues))
      own = i ? addScaled(added, factor, own) : product(added, k.broadcast(factor, k.laneCount(added)));
  }
  return result;
}

Value AttentionPartials::selected(Value condition, Value x, Value otherwise) {
  return condition ? arith::SelectOp::create(k.b, k.loc, condition, x, otherwise).getResult() : x;
}

Value AttentionPartials::vectorOf(ArrayRef<Value> elements) {
  auto type = VectorType::get({int64_t(elements.size())}, elements[0].getType());
  return vector::FromElementsOp::create(k.b, k.loc, type, elements);
}

Value AttentionPartials::addScaled(Value x, Value factor, Value y) {
  return k.multiplyAdd(DType::f32, x, k.broadcast(factor, k.laneCount(x)), y);
}

// ---- rows and heads

void AttentionPartials::goToKeys(Value head) {
  for (size_t d = leading; d-- > 0;) {
    const bool isShared = d >= shared.leading;
    at[d] = {isShared ? k.constant(0) : d ? k.rem(head, k.dim(shape[d])) : head};
    head = isShared || !d ? head : k.div(head, k.dim(shape[d]));
  }
}

Value AttentionPartials::goToRow(Value row) {
  if (shared.leading == leading)
    return row;
  Value head = k.div(row, k.dim(rows));
  for (size_t d = leading; d-- > shared.leading;) {
    at[d] = {d > shared.leading ? k.rem(head, k.dim(shape[d])) : head};
    head = k.div(head, k.dim(shape[d]));
  }
  return k.rem(row, k.dim(rows));
}

// ---- shared rows

Memory AttentionPartials::sharedFloats(int64_t count) {
  return {sharedArray(k, k.b.getF32Type(), count), DType::f32, {}};
}

/// Threads that join the parts of one vector of columns.
int64_t AttentionPartials::threadsPerVector() const {
  return std::clamp<int64_t>(threads / columnVectors(), 1, kMostJoining);
}

void AttentionPartials::allocateSharedRows(int64_t count, int64_t columns) {
  const int64_t joined = isCut() ? threadsPerVector() : 0;
  sums = sharedFloats(std::max(count * columns, joined * slotColumns));
  tops = sharedFloats(std::max(count, joined));
  totals = sharedFloats(std::max(count, joined));
}

void AttentionPartials::storeSharedRow(Value sharedRow, int64_t columns, Value column, const Partial &x, Value vector) {
  k.store(sums, {k.add(k.mul(sharedRow, k.constant(columns)), column), 1}, vector, k.laneCount(vector), {});
  k.when(isFirst(column), [&] {
    k.store(tops, {sharedRow}, x.largest, 1, {});
    k.store(totals, {sharedRow}, x.weightSum, 1, {});
  });
}

AttentionPartials::Partial AttentionPartials::loadSharedRow(Value sharedRow, int64_t columns, Value column) {
  return {k.load(tops, {sharedRow}, 1, {}),
          k.load(totals, {sharedRow}, 1, {}),
          {k.load(sums, {k.add(k.mul(sharedRow, k.constant(columns)), column), 1}, kColumns, {})}};
}

// ---- parts: in scratch memory a slot of each block has, per row, the sums, then the largest scores, then the totals

int64_t AttentionPartials::slotFloats() const {
  return (rowCount * (slotColumns + 2) + kColumns - 1) / kColumns * kColumns;
}
Value AttentionPartials::sumsAt(Value slot, Value row, Value column) {
  return k.add(k.add(slot, k.mul(row, k.constant(slotColumns))), column);
}
Value AttentionPartials::topAt(Value slot, Value row) {
  return k.add(k.add(slot, row), k.constant(rowCount * slotColumns));
}
Value AttentionPartials::totalAt(Value slot, Value row) { return k.add(topAt(slot, row), k.constant(rowCount)); }

void AttentionPartials::storePart(Value row, Value column, const Partial &x) {
  if (!isCut())
    return storeResult(row, column, x);
  Value isSingle = k.compare(arith::CmpIPredicate::eq, k.dim(parts), k.constant(1));
  if (!parts.isStatic())
    k.when(isSingle, [&] { e.scoped([&] { storeResult(row, column, x); }); });
  k.unless(isSingle, [&] {
    Value slot = slotOf(k.lo);
    k.store(scratch(), {sumsAt(slot, row, column), 1}, x.weightedValues[0], kColumns, {});
    k.when(isFirst(column), [&] {
      k.store(scratch(), {topAt(slot, row)}, x.largest, 1, {});
      k.store(scratch(), {totalAt(slot, row)}, x.weightSum, 1, {});
    });
  });
}

AttentionPartials::Partial AttentionPartials::loadPart(Value row, Value column, Value slot, Value isThere) {
  Value top = k.load(scratch(), {topAt(slot, row)}, 1, {}), total = k.load(scratch(), {totalAt(slot, row)}, 1, {});
  Value own = k.load(scratch(), {sumsAt(slot, row, column), 1}, kColumns, {});
  return {selected(isThere, top, number(-INFINITY)),
          selected(isThere, total, number(0)),
          {selected(isThere, own, zeros(kColumns))}};
}

/// min(parts, rows) blocks share the rows of a head.
void AttentionPartials::joinParts(Value block) {
  Value count = k.dim(min(parts, rowCount)), head = k.div(block, count), first = k.rem(block, count);
  goToKeys(head);
  if (parts.isStatic() && parts.value() >= rowCount)
    return joinRow(head, first);
  k.loop(first, k.constant(rowCount), count, [&](Value row) {
    e.scoped([&] { joinRow(head, row); });
    barrier(k); // before the shared rows of the next row
  });
}

/// Joins every threadsPerVector()-th part of a row, from number `subset` on.
AttentionPartials::Partial AttentionPartials::joinSubset(Value head, Value row, Value column, Value subset) {
  Value firstPart = k.mul(head, k.dim(parts)), end = k.dim(parts);
  auto iteration = [&](Value part, ValueRange carried) {
    Partials all = ofFlat(carried, 1);
    for (int64_t n = 0; n < kTogether; ++n) {
      Value number = k.add(part, k.constant(n * threadsPerVector())), isThere = n ? isBelow(number, end) : Value();
      number = n ? k.minimum(number, k.sub(end, k.constant(1))) : number;
      all.push_back(loadPart(row, column, slotOf(k.add(firstPart, number)), isThere));
    }
    return flat(joined(all));
  };
  return ofFlat(k.loop(subset, end, k.constant(threadsPerVector() * kTogether), flat(nothing(1, kColumns)), iteration),
                1)[0];
}

void AttentionPartials::joinRow(Value head, Value row) {
  Value subset = k.div(thread, k.constant(columnVectors()));
  Value column = k.mul(k.rem(thread, k.constant(columnVectors())), k.constant(kColumns));
  k.when(isBelow(subset, k.constant(threadsPerVector())), [&] {
    Partial own = joinSubset(head, row, column, subset);
    storeSharedRow(subset, slotColumns, column, own, own.weightedValues[0]);
  });
  barrier(k);
  k.when(isFirst(subset), [&] {
    Partials subsets;
    for (int64_t n = 0; n < threadsPerVector(); ++n)
      subsets.push_back(loadSharedRow(k.constant(n), slotColumns, column));
    e.scoped([&] { storeResult(row, column, joined(subsets)); });
  });
}

GpuLaunch AttentionPartials::launchOfParts() const {
  const Dim blocks = shared.heads * parts;
  // Without a number of blocks, ptxas may limit the registers of large blocks so that more of them fit, and spill.
  const int64_t leastBlocks = threads > kFewThreads ? 1 : 0;
  if (!isCut())
    return {.blocks = blocks, .threads = threads, .leastBlocks = leastBlocks};
  // A single part needs no second launch: its block stores the results.
  Dim more = parts.isStatic() ? Dim(1) : min(parts, 2) - 1;
  return {.blocks = blocks + shared.heads * min(parts, rowCount) * more,
          .threads = threads,
          .scratchOfThread = (slotFloats() * int64_t(sizeof(float)) + threads - 1) / threads,
          .leastBlocks = leastBlocks,
          .group = blocks};
}

void AttentionPartials::storeResult(Value rowOfBlock, Value column, const Partial &x) {
  Value row = goToRow(rowOfBlock);
  Scalar total = scalar(x.weightSum);
  Value inverse = select(total == 0, scalar(number(0)), 1 / total).value(); // a row whose keys are all masked
  at[leading] = {row};
  at[leading + 1] = {column, 1};
  llvm::SaveAndRestore inLanes(k.width, kColumns);
  const bool isPartial = !isMultipleOf(width, kColumns);
  llvm::SaveAndRestore existing(e.mask, isPartial ? k.below(column, k.maskBound(width, narrowest(body, type)), kColumns)
                                                  : Value());
  Value mixed = product(x.weightedValues[0], k.broadcast(inverse, kColumns));
  p.finish(result, at, castLanes(k.b, k.loc, mixed, DType::f32, type), body, results);
}

} // namespace burin::codegen
