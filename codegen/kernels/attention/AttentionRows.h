// What kernels of attention share: operands packed into panels, and rows of scores in scratch memory, which become
// weights there.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/element/Heads.h"
#include "codegen/kernels/contraction/microkernel/Microkernel.h"
#include "codegen/scalar/math/Math.h"

namespace burin::codegen {

/// Which keys a row of queries sees, and the factor of the products.
struct AttentionScores {
  Value mask; // null if there is none
  bool isCausal;
  double scale; // 0: 1 / sqrt(depth)
  Dim keys, depth;
};

/// Rows of f32 scores in scratch memory: row r begins at element r * pitch.
struct Strip {
  Memory memory;
  Value pitch;
};

class AttentionRows {
protected:
  AttentionRows(ElementEmitter &e, AttentionScores scores, size_t leading)
      : e(e), k(e.k), scores(std::move(scores)), lanes(k.target.lanes(4)), vectors(k.target.tileVectors),
        panel(lanes * vectors), leading(leading) {}

  // ---- numbers and memory
  Memory inScratch(const Dim &offset) {
    return {k.elementPointer({k.scratch, DType::i8, {}}, k.dim(offset)), DType::f32, {}};
  }
  Value toF32(Value v, DType from);
  Value number(double c);
  Value lanesOf(double c) { return k.broadcast(number(c), lanes); }
  Scalar scalar(Value v) { return Scalar(k.b, k.loc, v, DType::f32); }
  bool isDense(const StridedMemory &s) { return s.strides.back() == Dim(1); }
  Dim headsOf(const Shape &shape) {
    Dim heads = 1;
    for (size_t d = 0; d < leading; ++d)
      heads = heads * shape[d];
    return heads;
  }
  /// Sets `at` to a head, counted over the leading dimensions of `shape`.
  void setHead(Value head, const Shape &shape);
  /// Position of element [row, 0] of the current head.
  Value rowStart(const StridedMemory &s, Value row);
  /// Loads f32 lanes from `start + column` on along the last dimension.
  Value loadLanes(const StridedMemory &s, Value start, Value column, Value mask);

  // ---- keys, and other matrices of one row per key
  using Fetch = llvm::function_ref<void(Value first, Value column)>;
  /// Column `column` + i of the rows [first, first + lanes) in vector i. Rows after the last key repeat it; they are
  /// masked later.
  SmallVector<Value> transposedRows(const StridedMemory &from, const Dim &columns, Value first, Value column, Fetch);
  /// Packs a matrix into panels [panel of keys, column, width of a panel], which tiles of query rows multiply.
  void packTransposed(const StridedMemory &from, const Dim &columns, const Memory &to, Fetch);
  /// Products of a tile of rows of `left` with the packed keys of a panel, row by row.
  SmallVector<Value> packedProducts(const StridedMemory &left, const Memory &packed, const Dim &columns, Value row,
                                    int64_t count, Value index);
  /// Packs the rows [first, first + count) into panels [panel of columns, row, width of a panel] of `rows` rows.
  /// Columns that do not exist are 0.
  void packRows(const StridedMemory &from, const Dim &columns, Value first, Value count, const Dim &rows,
                const Memory &to);
  Index panelPlace(Value chunk, const Dim &rows, Value row, int64_t v) {
    Value line = k.add(k.mul(chunk, k.dim(rows)), row);
    return {k.add(k.mul(line, k.constant(panel)), k.constant(v * lanes)), 1};
  }
  /// First column of each vector of a chunk of `each` vectors, and masks of the existing columns (null: all).
  SmallVector<Value> columnsOf(Value chunk, int64_t each);
  bool isPartial(const Dim &width, size_t each) { return !isMultipleOf(width, int64_t(each) * lanes); }
  SmallVector<Value> insideOf(ArrayRef<Value> columns, const Dim &width);

  // ---- scores and weights
  /// Number of panels with these keys.
  Value panelsSeen(Value seen) { return k.div(k.add(seen, k.constant(panel - 1)), k.constant(panel)); }
  /// Number of keys that the rows before `end` see.
  Value keysSeen(Value end) { return scores.isCausal ? k.minimum(k.dim(scores.keys), end) : k.dim(scores.keys); }
  Value stripPlace(const Strip &strip, Value row, Value column) { return k.add(k.mul(row, strip.pitch), column); }
  Value scale();
  /// Applies the mask; -inf where the row may not see the key.
  Value masked(Value score, Value row, Value column);
  /// Stores the scores of the query rows from `row` on with some vectors of keys from `first` on, in the rows of the
  /// strip from `top` on.
  void storeScores(const Strip &strip, Value top, Value row, int64_t count, Value first, ArrayRef<Value> sums);

  using Join = llvm::function_ref<Value(Value, Value)>;
  /// Calls `body` for the elements of each of these rows of the strip, and reduces its results.
  SmallVector<Value> walk(const Strip &strip, ArrayRef<Value> rows, Value panels, Value init, Join join,
                          llvm::function_ref<Value(size_t i, Value place, Value x)> body);
  Value sum(Value x, Value y) { return mlir::arith::AddFOp::create(k.b, k.loc, x, y); }
  Value product(Value x, Value y) { return mlir::arith::MulFOp::create(k.b, k.loc, x, y); }
  /// Turns rows of the strip into unnormalised weights; returns the inverses of their sums, 0 for rows that are masked
  /// out as a whole.
  SmallVector<Value> weigh(const Strip &strip, ArrayRef<Value> rows, Value panels);

  ElementEmitter &e;
  KernelBuilder &k;
  const AttentionScores scores;
  const int64_t lanes, vectors, panel; // a panel is as wide as a tile
  const size_t leading;                // number of leading dimensions: heads
  SmallVector<Index> at;               // the current head, and a position in it

private:
  Value acrossLanes(Value v, Join join);
};

} // namespace burin::codegen
