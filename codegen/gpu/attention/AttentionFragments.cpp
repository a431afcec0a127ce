#include "codegen/gpu/attention/AttentionFragments.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/Results.h"
#include "codegen/scalar/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kPiece = SwizzledTile::kPiece, kPieces = SwizzledTile::kPieces, kBlock = SwizzledTile::kRow;

AttentionFragments::AttentionFragments(const KernelEmission &kernel, ScaledDotProductAttentionOp op)
    : AttentionSides(kernel.e, op), dtype(query.memory.dtype), p(kernel.e, *kernel.space), body(kernel.body),
      results(kernel.results) {}

void AttentionFragments::placeThread(Value index) {
  thread = index, lane = k.rem(thread, k.constant(kWarp));
  Value inTile = k.add(k.mul(k.div(thread, k.constant(kWarp)), k.constant(kWarpRows)), k.div(lane, k.constant(4)));
  ownRow = k.add(firstRow, inTile);
}

Value AttentionFragments::copiesPieces() {
  Value rest = k.constant(0);
  for (const StridedMemory *s : {&query, &key, &value}) {
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
  for (const StridedMemory *s : {&query, &key, &value})
    can = both(can, k.isAligned(s->memory.pointer, 16));
  return can;
}

void AttentionFragments::copyTile(const Tile &t, Value member, int64_t threads) {
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

void AttentionFragments::storeTile(const Tile &t, Value member, int64_t threads) {
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

AttentionFragments::Online AttentionFragments::start() {
  return {SmallVector<Value>(kHalves, number(-INFINITY)), SmallVector<Value>(kHalves, number(0))};
}

SmallVector<Value> AttentionFragments::maskedScores(Value firstKey, ArrayRef<Value> scores) {
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

AttentionFragments::Weights AttentionFragments::weigh(Value firstKey, ArrayRef<Value> scores, Online &online,
                                                      Value isCut) {
  // A weight is 2^(score * scale * log2(e)). The maximum is taken over the scores before they are multiplied, which is
  // right as long as the factor is positive; a negative scale, and one that a mask is added to, is multiplied first.
  const double log2e = 1 / std::log(2.0);
  const bool addsMask = op.getMask() && isFloat(dtypeOf(op.getMask()));
  SmallVector<Value> shown(scores);
  Value factor = product(scale(), number(log2e));
  if (addsMask || op.getScale().convertToDouble() < 0) {
    for (Value &score : shown)
      score = product(score, scale());
    factor = number(log2e);
  }
  shown = isCut ? k.when(isCut, shown, [&] { return maskedScores(firstKey, shown); }) : maskedScores(firstKey, shown);
  Weights weights{SmallVector<SmallVector<Value>>(scores.size() / 8, SmallVector<Value>(4)), {}};
  for (size_t half = 0; half < size_t(kHalves); ++half) {
    Value &top = online.tops[half];
    Value earlier = top;
    for (size_t i = 2 * half; i < shown.size(); i += 4)
      top = largerOf(k, largerOf(k, shown[i], shown[i + 1]), top);
    for (int64_t distance : {1, 2}) // the four lanes of a row
      top = largerOf(k, top, shuffleAcross(k, top, distance));
    Value shift = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top)).value(); // all keys masked so far
    Value away = product(shift, product(factor, number(-1)));
    auto weightOf = [&](Value score) {
      return exp2Approximately(k, fma(scalar(score), scalar(factor), scalar(away)).value());
    };
    weights.shrinks.push_back(weightOf(earlier));
    Value total;
    for (size_t i = 2 * half; i < shown.size(); i += 4) {
      Value pair[2];
      for (size_t n = 0; n < 2; ++n) {
        pair[n] = weightOf(shown[i + n]);
        total = total ? arith::AddFOp::create(k.b, k.loc, total, pair[n]).getResult() : pair[n];
      }
      weights.fragments[i / 8][i / 4 % 2 * 2 + half] = packPair(k, dtype, pair[0], pair[1]);
    }
    Value &sum = online.totals[half];
    sum = fma(scalar(sum), scalar(weights.shrinks[half]), scalar(total)).value();
  }
  return weights;
}

void AttentionFragments::rescale(llvm::MutableArrayRef<Value> sums, ArrayRef<Value> shrinks) {
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = product(sums[i], shrinks[i / 2 % kHalves]);
}

void AttentionFragments::stage(const Memory &staged, int64_t columns, const Online &online, ArrayRef<Value> sums) {
  Value sharedRow = k.mul(k.sub(ownRow, firstRow), k.constant(columns / 2)); // in pairs
  Value own = k.add(sharedRow, k.rem(lane, k.constant(4)));
  for (size_t half = 0; half < size_t(kHalves); ++half) {
    Value total = online.totals[half];
    for (int64_t distance : {1, 2})
      total = arith::AddFOp::create(k.b, k.loc, total, shuffleAcross(k, total, distance));
    Value inverse = select(scalar(total) == 0, scalar(number(0)), 1 / scalar(total)).value(); // all keys are masked
    for (size_t i = 2 * half; i < sums.size(); i += 4) {
      Value pair = packPair(k, dtype, product(sums[i], inverse), product(sums[i + 1], inverse));
      int64_t further = int64_t(half) * 8 * (columns / 2) + int64_t(i / 4) * (kColumns / 2);
      k.store({staged.pointer, DType::i32, {}}, {k.add(own, k.constant(further))}, pair, 1, {});
    }
  }
}

void AttentionFragments::finish(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads) {
  if (width.value() % kPiece)
    return finishRows(staged, columns, tileRows, threads, 1);
  Value areAligned = operandsAligned(e, body, results);
  k.when(areAligned, [&] {
    assumeOperandsAligned(e, body, results);
    finishRows(staged, columns, tileRows, threads, kPiece);
  });
  k.unless(areAligned, [&] { finishRows(staged, columns, tileRows, threads, 1); });
}

void AttentionFragments::finishRows(const Memory &staged, int64_t columns, int64_t tileRows, int64_t threads,
                                    int64_t lanes) {
  const int64_t pieces = (width.value() + lanes - 1) / lanes;
  k.loop(thread, k.constant(tileRows * pieces), k.constant(threads), [&](Value i) {
    Value sharedRow = k.div(i, k.constant(pieces)), column = k.mul(k.rem(i, k.constant(pieces)), k.constant(lanes));
    Value row = k.add(firstRow, sharedRow);
    k.when(isBelow(row, k.dim(rows)), [&] {
      at[leading] = {row};
      at[leading + 1] = {column, 1};
      Value mixed = k.load(staged, {k.add(k.mul(sharedRow, k.constant(columns)), column), 1}, lanes, {});
      k.width = lanes;
      p.finish(op.getResult(), at, mixed, body, results);
      k.width = 1;
    });
  });
}

} // namespace burin::codegen
