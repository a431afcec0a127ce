#include "codegen/kernels/attention/AttentionRows.h"
#include "llvm/Support/SaveAndRestore.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

// ---- numbers and memory

Value AttentionRows::toF32(Value v, DType from) { return castLanes(k.b, k.loc, v, from, DType::f32); }

Value AttentionRows::number(double c) { return arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(float(c))); }

void AttentionRows::setHead(Value head, const Shape &shape) {
  at.assign(shape.size(), Index());
  placeHead(k, ArrayRef(shape).take_front(leading), head, at);
}

Value AttentionRows::rowStart(const StridedMemory &s, Value row) {
  return rowStartOf(k, s, ArrayRef(at).take_front(leading), row);
}

Value AttentionRows::loadLanes(const StridedMemory &s, Value start, Value column, Value mask) {
  if (isDense(s))
    return toF32(k.load(s.memory, {k.add(start, column), 1}, lanes, mask), s.memory.dtype);
  Value places = k.lanesOf({column, 1}, lanes);
  places = arith::MulIOp::create(k.b, k.loc, places, k.broadcast(k.dim(s.strides.back()), lanes));
  places = arith::AddIOp::create(k.b, k.loc, places, k.broadcast(start, lanes));
  return toF32(k.load(s.memory, {{}, 0, places}, lanes, mask), s.memory.dtype);
}

// ---- keys, and other matrices of one row per key

SmallVector<Value> AttentionRows::transposedRows(const StridedMemory &from, const Dim &columns, Value first,
                                                 Value column, Fetch fetch) {
  Value inside = isMultipleOf(columns, lanes) ? Value() : k.below(column, k.dim(columns), lanes);
  Value last = k.sub(k.dim(scores.keys), k.constant(1));
  SmallVector<Value> square;
  for (int64_t i = 0; i < lanes; ++i)
    square.push_back(loadLanes(from, rowStart(from, k.minimum(k.add(first, k.constant(i)), last)), column, inside));
  if (fetch)
    fetch(first, column);
  k.transpose(square);
  return square;
}

void AttentionRows::packTransposed(const StridedMemory &from, const Dim &columns, const Memory &to, Fetch fetch) {
  Value columnCount = k.dim(columns), step = k.constant(lanes);
  k.loop(k.constant(0), k.mul(k.dim(ceildiv(scores.keys, panel)), k.constant(panel)), step, [&](Value first) {
    Value inPanel = k.rem(first, k.constant(panel));
    Value start = k.add(k.mul(k.sub(first, inPanel), columnCount), inPanel);
    k.loop(k.constant(0), columnCount, step, [&](Value column) {
      SmallVector<Value> square = transposedRows(from, columns, first, column, fetch);
      for (int64_t i = 0; i < lanes; ++i) {
        Value row = k.add(column, k.constant(i));
        auto write = [&] { k.store(to, {k.add(start, k.mul(row, k.constant(panel))), 1}, square[i], lanes, {}); };
        if (isMultipleOf(columns, lanes))
          write();
        else
          k.when(k.compare(arith::CmpIPredicate::slt, row, columnCount), write);
      }
    });
  });
}

SmallVector<Value> AttentionRows::packedProducts(const StridedMemory &left, const Memory &packed, const Dim &columns,
                                                 Value row, int64_t count, Value index) {
  Value panelStart = k.mul(index, k.mul(k.dim(columns), k.constant(panel)));
  SmallVector<Value> starts;
  for (int64_t r = 0; r < count; ++r)
    starts.push_back(k.mul(k.constant(r), k.dim(left.strides[leading])));
  auto keysAt = [&](int64_t v, Value step) {
    Value place = k.add(panelStart, k.add(k.mul(step, k.constant(panel)), k.constant(v * lanes)));
    return k.load(packed, {place, 1}, lanes, {});
  };
  Microkernel tile(k, {left.memory, starts, left.strides.back()}, DType::f32, vectors, keysAt);
  return tile.add(rowStart(left, row), k.constant(0), k.dim(columns), tile.zeros());
}

void AttentionRows::packRows(const StridedMemory &from, const Dim &columns, Value first, Value count, const Dim &rows,
                             const Memory &to) {
  k.loop(k.constant(0), k.dim(ceildiv(columns, panel)), k.constant(1), [&](Value chunk) {
    SmallVector<Value> places = columnsOf(chunk, vectors), inside = insideOf(places, columns);
    k.loop(k.constant(0), count, k.constant(1), [&](Value row) {
      Value start = rowStart(from, k.add(first, row));
      for (int64_t v = 0; v < vectors; ++v)
        k.store(to, panelPlace(chunk, rows, row, v), loadLanes(from, start, places[v], inside[v]), lanes, {});
    });
  });
}

SmallVector<Value> AttentionRows::columnsOf(Value chunk, int64_t each) {
  SmallVector<Value> columns;
  for (int64_t v = 0; v < each; ++v)
    columns.push_back(k.add(k.mul(chunk, k.constant(each * lanes)), k.constant(v * lanes)));
  return columns;
}

SmallVector<Value> AttentionRows::insideOf(ArrayRef<Value> columns, const Dim &width) {
  SmallVector<Value> inside;
  for (Value column : columns)
    inside.push_back(isPartial(width, columns.size()) ? k.below(column, k.dim(width), lanes) : Value());
  return inside;
}

// ---- scores and weights

Value AttentionRows::scale() {
  if (scores.scale != 0)
    return number(scores.scale);
  if (scores.depth.isStatic())
    return number(1 / std::sqrt(double(scores.depth.value())));
  Value size = castLanes(k.b, k.loc, k.dim(scores.depth), DType::i64, DType::f32);
  return (1 / sqrt(scalar(size))).value();
}

Value AttentionRows::masked(Value score, Value row, Value column) {
  Value sees;
  auto require = [&](Value condition) {
    sees = sees ? Value(arith::AndIOp::create(k.b, k.loc, sees, condition)) : condition;
  };
  if (!isMultipleOf(scores.keys, panel))
    require(k.below(column, k.dim(scores.keys), lanes));
  if (scores.isCausal)
    require(k.below(column, k.add(row, k.constant(1)), lanes));
  if (Value mask = scores.mask) {
    Shape sizes = shapeOf(mask);
    SmallVector<Index> place(at);
    place[leading] = {row};
    place[leading + 1] = {column, 1};
    place.erase(place.begin(), place.end() - sizes.size());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] == Dim(1))
        place[d] = {k.constant(0)};
    llvm::SaveAndRestore inLanes(k.width, lanes);
    llvm::SaveAndRestore existing(e.mask, k.below(column, k.dim(scores.keys), lanes));
    Value element = k.broadcast(e.scoped([&] { return e.element(mask, place); }), lanes);
    if (isFloat(dtypeOf(mask)))
      score = sum(score, toF32(element, dtypeOf(mask)));
    else
      require(element);
  }
  return sees ? Value(arith::SelectOp::create(k.b, k.loc, sees, score, lanesOf(-INFINITY))) : score;
}

void AttentionRows::storeScores(const Strip &strip, Value top, Value row, int64_t count, Value first,
                                ArrayRef<Value> sums) {
  Value factor = k.broadcast(scale(), lanes);
  const int64_t each = int64_t(sums.size()) / count;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t v = 0; v < each; ++v) {
      Value column = k.add(first, k.constant(v * lanes));
      Value score = masked(product(sums[r * each + v], factor), k.add(row, k.constant(r)), column);
      k.store(strip.memory, {stripPlace(strip, k.add(top, k.constant(r)), column), 1}, score, lanes, {});
    }
}

SmallVector<Value> AttentionRows::walk(const Strip &strip, ArrayRef<Value> rows, Value panels, Value init, Join join,
                                       llvm::function_ref<Value(size_t i, Value place, Value x)> body) {
  // One accumulator per vector of a panel breaks the dependency chain of additions and comparisons.
  Value end = k.mul(panels, k.constant(panel));
  SmallVector<Value> none(rows.size() * vectors, init);
  SmallVector<Value> parts = k.loop(k.constant(0), end, k.constant(panel), none, [&](Value column, ValueRange carried) {
    SmallVector<Value> next;
    for (auto [i, row] : llvm::enumerate(rows))
      for (int64_t v = 0; v < vectors; ++v) {
        Value place = stripPlace(strip, row, k.add(column, k.constant(v * lanes)));
        next.push_back(join(carried[next.size()], body(i, place, k.load(strip.memory, {place, 1}, lanes, {}))));
      }
    return next;
  });
  SmallVector<Value> whole;
  for (size_t i = 0; i < rows.size(); ++i) {
    Value joined = parts[i * vectors];
    for (int64_t v = 1; v < vectors; ++v)
      joined = join(joined, parts[i * vectors + v]);
    whole.push_back(acrossLanes(joined, join));
  }
  return whole;
}

SmallVector<Value> AttentionRows::weigh(const Strip &strip, ArrayRef<Value> rows, Value panels) {
  // The comparison may drop a NaN, which makes its own weight, and so the sum, NaN.
  SmallVector<Value> tops = walk(
      strip, rows, panels, lanesOf(-INFINITY),
      [&](Value best, Value x) -> Value {
        Value above = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT, best, x);
        return arith::SelectOp::create(k.b, k.loc, above, best, x);
      },
      [](size_t, Value, Value x) { return x; });
  SmallVector<Scalar> shifts;
  for (Value top : tops) {
    Scalar bound = select(scalar(top) == -INFINITY, scalar(number(0)), scalar(top));
    shifts.push_back(scalar(k.broadcast(bound.value(), lanes)));
  }
  SmallVector<Value> sums = walk(
      strip, rows, panels, lanesOf(0), [&](Value total, Value x) { return sum(total, x); },
      [&](size_t i, Value place, Value x) {
        Value weight = exp(scalar(x) - shifts[i]).value();
        k.store(strip.memory, {place, 1}, weight, lanes, {});
        return weight;
      });
  for (Value &total : sums)
    total = select(scalar(total) == 0, scalar(number(0)), 1 / scalar(total)).value();
  return sums;
}

Value AttentionRows::acrossLanes(Value v, Join join) {
  while (k.laneCount(v) > 1) {
    auto [low, high] = k.halves(v);
    v = join(low, high);
  }
  return vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{0});
}

} // namespace burin::codegen
