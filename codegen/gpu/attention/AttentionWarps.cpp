#include "codegen/gpu/attention/AttentionWarps.h"
#include "codegen/gpu/Block.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kPiece = SwizzledTile::kPiece, kPieces = SwizzledTile::kPieces, kBlock = SwizzledTile::kRow;

void AttentionWarps::placeThread(Value index) {
  thread = index, lane = k.rem(thread, k.constant(kWarp));
  Value inTile = k.add(k.mul(k.div(thread, k.constant(kWarp)), k.constant(kWarpRows)), k.div(lane, k.constant(4)));
  ownRow = k.add(firstRow, inTile);
}

Value AttentionWarps::copiesPieces(ArrayRef<const StridedMemory *> operands) {
  Value rest = k.constant(0);
  for (const StridedMemory *s : operands) {
    if (s->strides.back() != Dim(1))
      return {};
    for (const Dim &d : ArrayRef<Dim>(s->strides).drop_back()) {
      if (isMultipleOf(d, kPiece))
        continue;
      if (d.isStatic())
        return {};
      rest = arith::OrIOp::create(k.b, k.loc, rest, k.rem(k.dim(d), k.constant(kPiece)));
    }
  }
  if (depth.value() % kPiece || width.value() % kPiece)
    return {};
  Value can = k.compare(arith::CmpIPredicate::eq, rest, k.constant(0));
  for (const StridedMemory *s : operands)
    can = both(can, k.isAligned(s->memory.pointer, 16));
  return can;
}

void AttentionWarps::copyTile(const Tile &t, Value member, int64_t threads) {
  const int64_t atOnce = threads / kPieces; // shared rows
  Value own = k.div(member, k.constant(kPieces)), piece = k.rem(member, k.constant(kPieces));
  for (int64_t sharedRow = 0; sharedRow < t.blocks * t.rows; sharedRow += atOnce) {
    Value row = k.add(t.first, k.add(own, k.constant(sharedRow % t.rows)));
    Value column = k.add(k.mul(piece, k.constant(kPiece)), k.constant(sharedRow / t.rows * kBlock));
    Value isThere = both(isBelow(row, k.dim(t.allRows)), isBelow(column, k.dim(t.allColumns)));
    Value position = k.add(rowStart(t.source, row), column);
    Value from = arith::SelectOp::create(k.b, k.loc, isThere, position, k.constant(0));
    Value to = SwizzledTile::pieceAt(k, k.add(t.sharedRow, k.add(own, k.constant(sharedRow))), piece);
    copyAsync(k, k.elementPointer(t.to.memory(), to), k.elementPointer(t.source.memory, from), isThere);
  }
}

void AttentionWarps::storeTile(const Tile &t, Value member, int64_t threads) {
  k.loop(member, k.constant(t.blocks * t.rows * kBlock), k.constant(threads), [&](Value i) {
    Value at = k.rem(i, k.constant(kBlock)), sharedRow = k.div(i, k.constant(kBlock));
    Value row = k.add(t.first, k.rem(sharedRow, k.constant(t.rows)));
    Value column = k.add(k.mul(k.div(sharedRow, k.constant(t.rows)), k.constant(kBlock)), at);
    Value isThere = both(isBelow(row, k.dim(t.allRows)), isBelow(column, k.dim(t.allColumns)));
    Value position = k.add(rowStart(t.source, row), k.mul(column, k.dim(t.source.strides.back())));
    Value to = SwizzledTile::pieceAt(k, k.add(t.sharedRow, sharedRow), k.div(at, k.constant(kPiece)));
    k.store(t.to.memory(), {k.add(to, k.rem(at, k.constant(kPiece)))}, k.load(t.source.memory, {position}, 1, isThere),
            1, {});
  });
}

AttentionWarps::Fragments AttentionWarps::loadRows(const SwizzledTile &tile, Value sharedRow, int64_t tileRows,
                                                   int64_t steps) {
  Value row = k.add(k.mul(k.div(thread, k.constant(kWarp)), k.constant(kWarpRows)), k.rem(lane, k.constant(kWarpRows)));
  row = k.add(sharedRow, row);
  Fragments fragments;
  for (int64_t step = 0; step < steps; ++step) {
    Value piece = k.add(k.div(lane, k.constant(kWarpRows)), k.constant(step % 2 * 2));
    fragments.push_back(tile.load(k, k.add(row, k.constant(step / 2 * tileRows)), piece, /*transposed=*/false));
  }
  return fragments;
}

SmallVector<Value> AttentionWarps::multiplyRows(const Fragments &left, const SwizzledTile &tile, Value sharedRow,
                                                int64_t tileRows) {
  SmallVector<Value> sums(size_t(tileRows / kColumns * 4), number(0));
  // ldmatrix loads four 8 by 8 matrices, whose rows eight lanes each address: rows 0 to 7, first and second half of the
  // 16 steps, then rows 8 to 15.
  Value row = k.add(k.rem(lane, k.constant(8)), k.mul(k.div(lane, k.constant(16)), k.constant(8)));
  Value half = k.rem(k.div(lane, k.constant(8)), k.constant(2));
  for (int64_t step = 0; step < int64_t(left.size()); ++step)
    for (int64_t n = 0; n < tileRows / kColumns; n += 2) {
      Value from = k.add(sharedRow, k.add(row, k.constant(step / 2 * tileRows + n * kColumns)));
      SmallVector<Value> both = tile.load(k, from, k.add(half, k.constant(step % 2 * 2)), /*transposed=*/false);
      for (int64_t i = 0; i < 2; ++i)
        multiply(left[size_t(step)], ArrayRef<Value>(both).slice(size_t(2 * i), 2), sums, n + i);
    }
  return sums;
}

void AttentionWarps::addProducts(const Fragments &weights, const SwizzledTile &tile, Value sharedRow, int64_t tileRows,
                                 llvm::MutableArrayRef<Value> sums) {
  const int64_t matrices = int64_t(sums.size()) / 4;
  Value row = k.rem(lane, k.constant(kSteps)), half = k.div(lane, k.constant(kSteps));
  for (int64_t step = 0; step < tileRows / kSteps; ++step)
    for (int64_t n = 0; n < matrices; n += 2) {
      Value from = k.add(sharedRow, k.add(row, k.constant(n / kPieces * tileRows + step * kSteps)));
      SmallVector<Value> both = tile.load(k, from, k.add(half, k.constant(n % kPieces)), /*transposed=*/true);
      for (int64_t i = 0; i < 2 && n + i < matrices; ++i)
        multiply(weights[size_t(step)], ArrayRef<Value>(both).slice(size_t(2 * i), 2), sums, n + i);
    }
}

void AttentionWarps::multiply(ArrayRef<Value> left, ArrayRef<Value> right, llvm::MutableArrayRef<Value> sums,
                              int64_t matrix) {
  auto sum = sums.slice(size_t(matrix * 4), 4);
  llvm::copy(multiplyMatrices(k, dtype, left, right, sum), sum.begin());
}

AttentionWarps::Fragments AttentionWarps::fragmentsOf(ArrayRef<Value> elements) {
  Fragments fragments(elements.size() / 8, SmallVector<Value>(4));
  for (size_t i = 0; i < elements.size(); i += 2)
    fragments[i / 8][i / 4 % 2 * 2 + i / 2 % kHalves] = packPair(k, dtype, elements[i], elements[i + 1]);
  return fragments;
}

SmallVector<Value> AttentionWarps::maskedScores(Value firstKey, ArrayRef<Value> scores) {
  SmallVector<Value> shown(scores);
  Value ownKey = k.add(firstKey, k.mul(k.rem(lane, k.constant(4)), k.constant(2)));
  for (size_t i = 0; i < scores.size(); i += 2) {
    Value row = k.add(ownRow, k.constant(8 * int64_t(i / 2 % kHalves)));
    Value key = k.add(ownKey, k.constant(int64_t(i / 4) * kColumns));
    Value pair = vector::FromElementsOp::create(k.b, k.loc, VectorType::get({2}, k.b.getF32Type()),
                                                ValueRange{scores[i], scores[i + 1]});
    pair = masked(pair, row, key, 2);
    for (size_t n = 0; n < 2; ++n)
      shown[i + n] = vector::ExtractOp::create(k.b, k.loc, pair, ArrayRef<int64_t>{int64_t(n)});
  }
  return shown;
}

} // namespace burin::codegen
