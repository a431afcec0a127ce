// Attention with few query rows (split-KV, as in FlashDecoding): partial results of rows over some of the keys, each
// the running maximum, the sum of exponentials and the output before division, and how blocks join them.
//
// A block computes the rows that share keys. If their keys are cut into parts, one per block, a second group of blocks
// (GpuLaunch::group) joins the parts, which have passed through scratch memory. All orders depend on sizes alone.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/gpu/attention/AttentionOperands.h"
#include "passes/kernels/families/GpuFamilies.h"

namespace burin::codegen {

class AttentionPartials : protected AttentionOperands {
protected:
  AttentionPartials(const KernelEmission &, ir::ScaledDotProductAttentionOp);

  /// Of a row, over some of the keys: the largest score, the sum of weights relative to it, and the weighted sums of
  /// values of some columns, in vectors.
  struct Partial {
    Value largest, weightSum;
    SmallVector<Value> weightedValues;
  };
  using Partials = SmallVector<Partial>;
  /// The partial over no keys.
  Partial nothing(size_t vectors, int64_t lanes);
  /// Partials as the carried values of a loop, and back.
  static SmallVector<Value> flat(ArrayRef<Partial>);
  static Partials ofFlat(ValueRange, size_t vectors);

  /// The number that is subtracted from scores before exp: the largest one, or 0 if no key has been seen.
  Value shiftOf(Value largest);
  Value weight(Value score, Value shift);
  /// The partial over the keys of all of them. Partials over no keys add nothing.
  Partial joined(ArrayRef<Partial>);

  /// Sets `at` to the first query head of key/value head `head`.
  void goToKeys(Value head);
  /// Sets `at` to the query head of a row of the block; returns the row in that head.
  Value goToRow(Value row);

  // ---- shared rows (rows of a tile in shared memory): partials of all columns

  static constexpr int64_t kColumns = 4; // of a thread that joins partials
  /// Allocates shared rows of `columns` elements for this block, and for joinParts().
  void allocateSharedRows(int64_t count, int64_t columns);
  /// Stores a vector of sums, from a column on; the thread of the first column also stores the other numbers.
  void storeSharedRow(Value sharedRow, int64_t columns, Value column, const Partial &, Value vector);
  Partial loadSharedRow(Value sharedRow, int64_t columns, Value column);

  // ---- parts

  bool isCut() const { return !parts.isStatic() || parts.value() > 1; }
  /// Vectors of kColumns of a row.
  int64_t columnVectors() const { return slotColumns / kColumns; }
  /// Stores vector sums of a row for the blocks that join the parts, or, of a single part, as results.
  void storePart(Value row, Value column, const Partial &);
  /// The body of number `block` of the blocks that join parts.
  void joinParts(Value block);
  /// Launch parameters.
  GpuLaunch launchOfParts() const;

  Value sum(Value x, Value y) { return mlir::arith::AddFOp::create(k.b, k.loc, x, y); }
  Value product(Value x, Value y) { return mlir::arith::MulFOp::create(k.b, k.loc, x, y); }
  Value both(Value x, Value y) { return mlir::arith::AndIOp::create(k.b, k.loc, x, y); }
  Value isFirst(Value x) { return k.compare(mlir::arith::CmpIPredicate::eq, x, k.constant(0)); }
  /// `x` where `condition` is true, or if there is no condition.
  Value selected(Value condition, Value x, Value otherwise);
  Value lane(Value v, int64_t i) { return mlir::vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{i}); }
  Value zeros(int64_t lanes) { return k.broadcast(number(0), lanes); }
  Value vectorOf(ArrayRef<Value> elements);
  /// x * factor + y, lane by lane.
  Value addScaled(Value x, Value factor, Value y);

  const passes::SharedKeys shared;
  const int64_t rowCount; // of a block
  int64_t threads = 0;    // of a block; set before the functions on shared rows and parts are called
  Dim parts = 1;
  Value thread;

private:
  int64_t threadsPerVector() const;
  int64_t slotFloats() const;
  Memory sharedFloats(int64_t count);
  Value sumsAt(Value slot, Value row, Value column);
  Value topAt(Value slot, Value row);
  Value totalAt(Value slot, Value row);
  Value slotOf(Value block) { return k.mul(block, k.constant(slotFloats())); }
  Memory scratch() { return {k.scratch, DType::f32, {}}; }
  Partial loadPart(Value row, Value column, Value slot, Value isThere);
  void joinRow(Value head, Value row);
  Partial joinSubset(Value head, Value row, Value column, Value subset);
  void storeResult(Value row, Value column, const Partial &);

  PointEmitter p;
  mlir::Block &body;
  ArrayRef<Value> results;
  const int64_t slotColumns; // of a row in scratch memory
  Memory sums, tops, totals; // in shared memory, per shared row
};

} // namespace burin::codegen
