#include "codegen/gpu/attention/AttentionTiles.h"
#include "codegen/gpu/Block.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kSlice = 16; // steps of the depth in shared memory at once

void AttentionTiles::allocate() {
  auto shared = [&](int64_t steps) { return Memory{sharedArray(k, k.b.getF32Type(), steps * kTile), DType::f32, {}}; };
  leftSlice = shared(kSlice), rightSlice = shared(kSlice), weights = shared(kTile), values = shared(kTile);
}

void AttentionTiles::placeThread() {
  thread = threadIndex(k);
  ownRow = k.mul(k.div(thread, k.constant(kSide)), k.constant(kOwn));
  ownColumn = k.mul(k.rem(thread, k.constant(kSide)), k.constant(kOwn));
}

/// Stores an element as f32; 0 outside of the tensor.
void AttentionTiles::store(const Memory &tile, Value place, const Rows &rows, Value row, Value column) {
  Value isThere =
      arith::AndIOp::create(k.b, k.loc, isBelow(row, k.dim(rows.count)), isBelow(column, k.dim(rows.columns)));
  const StridedMemory &source = rows.source;
  Value position = k.add(rowStart(source, row), k.mul(column, k.dim(source.strides.back())));
  Value element = k.load(source.memory, {position}, 1, isThere);
  k.store(tile, {place}, castLanes(k.b, k.loc, element, source.memory.dtype, DType::f32), 1, {});
}

/// Loads columns `from` to `from` + kSlice of the rows, transposed.
void AttentionTiles::loadSlice(const Memory &tile, const Rows &rows, Value from) {
  k.loop(thread, k.constant(kSlice * kTile), k.constant(kThreads), [&](Value i) {
    Value step = k.rem(i, k.constant(kSlice)), sharedRow = k.div(i, k.constant(kSlice));
    store(tile, k.add(k.mul(step, k.constant(kTile)), sharedRow), rows, k.add(rows.first, sharedRow),
          k.add(from, step));
  });
}

void AttentionTiles::loadValues(const Rows &rows, int64_t chunk) {
  k.loop(thread, k.constant(kTile * kTile), k.constant(kThreads), [&](Value i) {
    Value sharedRow = k.div(i, k.constant(kTile)), column = k.rem(i, k.constant(kTile));
    store(values, i, rows, k.add(rows.first, sharedRow), k.add(column, k.constant(chunk * kTile)));
  });
}

void AttentionTiles::storeWeights(int64_t row, Value vector, bool turned) {
  Value ownRow = k.add(this->ownRow, k.constant(row));
  if (!turned)
    return k.store(weights, {k.add(k.mul(ownRow, k.constant(kTile)), ownColumn), 1}, vector, kOwn, {});
  for (int64_t i = 0; i < kOwn; ++i) {
    Value step = k.mul(k.add(ownColumn, k.constant(i)), k.constant(kTile));
    k.store(weights, {k.add(step, ownRow)}, lane(vector, i), 1, {});
  }
}

void AttentionTiles::addProducts(const Memory &left, const Memory &right, int64_t steps,
                                 llvm::MutableArrayRef<Value> sums) {
  SmallVector<Value> before(sums);
  llvm::copy(k.loop(k.constant(0), k.constant(steps), k.constant(1), before,
                    [&](Value step, ValueRange carried) {
                      Value sharedRow = k.mul(step, k.constant(kTile));
                      Value x = k.load(left, {k.add(sharedRow, ownRow), 1}, kOwn, {});
                      Value y = k.load(right, {k.add(sharedRow, ownColumn), 1}, kOwn, {});
                      SmallVector<Value> next;
                      for (int64_t r = 0; r < kOwn; ++r)
                        next.push_back(k.multiplyAdd(DType::f32, vectorOf(lane(x, r)), y, carried[size_t(r)]));
                      return next;
                    }),
             sums.begin());
}

SmallVector<Value> AttentionTiles::products(const Rows &left, const Rows &right) {
  SmallVector<Value> none(kOwn, vectorOf(number(0)));
  return k.loop(k.constant(0), k.dim(left.columns), k.constant(kSlice), none, [&](Value from, ValueRange carried) {
    loadSlice(leftSlice, left, from);
    loadSlice(rightSlice, right, from);
    barrier(k);
    SmallVector<Value> next(carried);
    addProducts(leftSlice, rightSlice, kSlice, next);
    barrier(k);
    return next;
  });
}

Value AttentionTiles::overRow(Value v, llvm::function_ref<Value(Value, Value)> join) {
  for (int64_t distance = kSide / 2; distance > 0; distance /= 2)
    v = join(v, shuffleAcross(k, v, distance));
  return v;
}

Value AttentionTiles::largestOfRow(Value v) {
  Value top = lane(v, 0);
  for (int64_t i = 1; i < kOwn; ++i)
    top = largerOf(k, top, lane(v, i));
  return overRow(top, [&](Value x, Value y) { return largerOf(k, x, y); });
}

Value AttentionTiles::sumOfRow(Value v) {
  Value total = lane(v, 0);
  for (int64_t i = 1; i < kOwn; ++i)
    total = sum(total, lane(v, i));
  return overRow(total, [&](Value x, Value y) { return sum(x, y); });
}

} // namespace burin::codegen
