// Attention without a matrix of scores in memory: softmax(query · keyᵀ · scale + mask) · value, for a strip of query
// rows at a time.
//
// A task computes a block of query rows of one head. It packs keys and values into panels, then loops over tiles of
// rows: their scores against all keys go to a strip of scratch memory, which stays in cache, become weights there, and
// are multiplied by the values. Products are added in the order of the keys; the weights of a row are summed by lanes,
// in a fixed tree. A single tile, as in decoding one token, reads each key once; it transposes keys in registers
// and multiplies them there, as writing panels would take longer than reading the keys from memory.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/kernels/contraction/microkernel/Microkernel.h"
#include "codegen/scalar/math/Math.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kGroupsAhead = 2; // groups of keys, one per lane, that are prefetched
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMostVectors = 8;  // of a row of values that are multiplied together
constexpr int64_t kRowsTogether = 4; // rows whose weights are computed together, see weigh()

class AttentionKernel {
public:
  AttentionKernel(ElementEmitter &e, ScaledDotProductAttentionOp op, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), op(op), body(body), results(results), type(dtypeOf(op.getResult())),
        lanes(k.target.lanes(4)), vectors(k.target.tileVectors), panel(lanes * vectors), shape(shapeOf(op.getResult())),
        leading(shape.size() - 2), rows(shape[leading]), width(shape.back()), keys(shapeOf(op.getKey())[leading]),
        depth(shapeOf(op.getKey()).back()), query(e.stridedMemoryOf(op.getQuery())),
        key(e.stridedMemoryOf(op.getKey())), value(e.stridedMemoryOf(op.getValue())) {}

  LaunchShape emit() {
    int64_t tileRows = k.target.tileRows;
    Dim panels = ceildiv(keys, panel), blocks = ceildiv(rows, passes::kQueryRows), tasks = blocks;
    for (size_t d = 0; d < leading; ++d)
      tasks = tasks * shape[d];
    Dim keyBytes = packsKeys() ? panels * Dim(panel * 4) * depth : Dim(0),
        stripBytes = panels * Dim(panel * 4 * tileRows);
    Dim valueBytes = packsValues() ? ceildiv(width, panel) * Dim(panel * 4) * keys : Dim(0);
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      Value rest = k.div(task, k.dim(blocks));
      at.assign(shape.size(), Index());
      for (size_t d = leading; d-- > 0;) {
        at[d] = {d ? k.rem(rest, k.dim(shape[d])) : rest};
        rest = d ? k.div(rest, k.dim(shape[d])) : rest;
      }
      strip = inScratch(0);
      packedKeys = inScratch(stripBytes);
      packedValues = inScratch(stripBytes + keyBytes);
      if (packsKeys())
        packKeys();
      if (packsValues())
        packValues();
      Value from = k.mul(k.rem(task, k.dim(blocks)), k.constant(passes::kQueryRows));
      Value to = k.minimum(k.add(from, k.constant(passes::kQueryRows)), k.dim(rows));
      Value whole = k.add(from, k.mul(k.div(k.sub(to, from), k.constant(tileRows)), k.constant(tileRows)));
      k.loop(from, whole, k.constant(tileRows), [&](Value row) { tile(row, tileRows); });
      remainder(whole, to);
    });
    return {tasks, stripBytes + keyBytes + valueBytes};
  }

private:
  Memory inScratch(const Dim &offset) {
    return {k.elementPointer({k.scratch, DType::i8, {}}, k.dim(offset)), DType::f32, {}};
  }
  /// Position of element [row, 0] of the current head.
  Value rowStart(const StridedMemory &s, Value row) {
    Value start = k.mul(row, k.dim(s.strides[leading]));
    for (size_t d = 0; d < leading; ++d)
      start = k.add(start, k.mul(at[d].base, k.dim(s.strides[d])));
    return start;
  }
  bool isDense(const StridedMemory &s) { return s.strides.back() == Dim(1); }
  /// Loads f32 lanes from `start + column` on along the last dimension.
  Value loadLanes(const StridedMemory &s, Value start, Value column, Value mask) {
    if (isDense(s))
      return toF32(k.load(s.memory, {k.add(start, column), 1}, lanes, mask), s.memory.dtype);
    Value places = k.lanesOf({column, 1}, lanes);
    places = arith::MulIOp::create(k.b, k.loc, places, k.broadcast(k.dim(s.strides.back()), lanes));
    places = arith::AddIOp::create(k.b, k.loc, places, k.broadcast(start, lanes));
    return toF32(k.load(s.memory, {{}, 0, places}, lanes, mask), s.memory.dtype);
  }
  Value toF32(Value v, DType from) { return castLanes(k.b, k.loc, v, from, DType::f32); }
  Value number(double c) { return arith::ConstantOp::create(k.b, k.loc, k.b.getF32FloatAttr(float(c))); }
  Value lanesOf(double c) { return k.broadcast(number(c), lanes); }
  Scalar scalar(Value v) { return Scalar(k.b, k.loc, v, DType::f32); }

  // ---- keys
  /// Column `column` + i of the keys [first, first + lanes) in vector i. Keys after the last one repeat it; they are
  /// masked later.
  SmallVector<Value> transposedKeys(Value first, Value column) {
    Value inside = isMultipleOf(depth, lanes) ? Value() : k.below(column, k.dim(depth), lanes);
    Value last = k.sub(k.dim(keys), k.constant(1));
    SmallVector<Value> square;
    for (int64_t i = 0; i < lanes; ++i)
      square.push_back(loadLanes(key, rowStart(key, k.minimum(k.add(first, k.constant(i)), last)), column, inside));
    prefetchKeys(k.add(first, k.constant(kGroupsAhead * lanes)), column);
    k.transpose(square);
    return square;
  }

  /// Prefetches a part of the group of `lanes` keys at `first`. The squares of a group prefetch all of a later one, row
  /// by row, as memory is fastest in the order of addresses. The addresses may lie beyond the last key.
  void prefetchKeys(Value first, Value column) {
    if (!isDense(key) || !depth.isStatic())
      return;
    const int64_t rowsPerSquare = llvm::divideCeil(lanes, llvm::divideCeil(depth.value(), lanes));
    const int64_t line = kLineBytes / int64_t(byteWidth(key.memory.dtype));
    Value row = k.add(first, k.mul(k.div(column, k.constant(lanes)), k.constant(rowsPerSquare)));
    for (int64_t r = 0; r < rowsPerSquare; ++r) {
      Value start = rowStart(key, k.add(row, k.constant(r)));
      for (int64_t c = 0; c < depth.value(); c += line)
        LLVM::Prefetch::create(k.b, k.loc, k.elementPointer(key.memory, k.add(start, k.constant(c))), 0, 3, 1);
    }
  }

  /// Whether keys are packed into panels [panel, depth, width of a panel], which several tiles of query rows read.
  bool packsKeys() { return !depth.isStatic() || upperBound(rows).value_or(INT64_MAX) > k.target.tileRows; }

  void packKeys() {
    Value depthSize = k.dim(depth), step = k.constant(lanes);
    k.loop(k.constant(0), k.mul(k.dim(ceildiv(keys, panel)), k.constant(panel)), step, [&](Value first) {
      Value inPanel = k.rem(first, k.constant(panel));
      Value start = k.add(k.mul(k.sub(first, inPanel), depthSize), inPanel);
      k.loop(k.constant(0), depthSize, step, [&](Value column) {
        SmallVector<Value> square = transposedKeys(first, column);
        for (int64_t i = 0; i < lanes; ++i) {
          Value row = k.add(column, k.constant(i));
          auto write = [&] {
            k.store(packedKeys, {k.add(start, k.mul(row, k.constant(panel))), 1}, square[i], lanes, {});
          };
          if (isMultipleOf(depth, lanes))
            write();
          else
            k.when(k.compare(arith::CmpIPredicate::slt, row, depthSize), write);
        }
      });
    });
  }

  // ---- values in panels [panel, keys, width of a panel]
  // Rows of one head are far apart in memory, so their values compete for few cache sets. Packing pays off if they are
  // read at least twice: for two tiles of query rows.
  bool packsValues() { return upperBound(rows).value_or(INT64_MAX) >= 2 * k.target.tileRows; }

  void packValues() {
    k.loop(k.constant(0), k.dim(ceildiv(width, panel)), k.constant(1), [&](Value chunk) {
      SmallVector<Value> columns = columnsOf(chunk, vectors), inside = insideOf(columns);
      k.loop(k.constant(0), k.dim(keys), k.constant(1), [&](Value row) {
        for (int64_t v = 0; v < vectors; ++v)
          k.store(packedValues, valuePlace(chunk, row, v),
                  loadLanes(value, rowStart(value, row), columns[v], inside[v]), lanes, {});
      });
    });
  }
  Index valuePlace(Value chunk, Value row, int64_t v) {
    Value line = k.add(k.mul(chunk, k.dim(keys)), row);
    return {k.add(k.mul(line, k.constant(panel)), k.constant(v * lanes)), 1};
  }
  /// First column of each vector of a chunk of `each` vectors, and masks of the existing columns (null: all).
  SmallVector<Value> columnsOf(Value chunk, int64_t each) {
    SmallVector<Value> columns;
    for (int64_t v = 0; v < each; ++v)
      columns.push_back(k.add(k.mul(chunk, k.constant(each * lanes)), k.constant(v * lanes)));
    return columns;
  }
  bool isPartial(ArrayRef<Value> columns) { return !isMultipleOf(width, int64_t(columns.size()) * lanes); }
  SmallVector<Value> insideOf(ArrayRef<Value> columns) {
    SmallVector<Value> inside;
    for (Value column : columns)
      inside.push_back(isPartial(columns) ? k.below(column, k.dim(width), lanes) : Value());
    return inside;
  }
  /// Vectors of a chunk of values that a tile of `count` rows multiplies at a time. Few rows leave registers for more
  /// vectors than a panel has: the values are then read once, each row of them as a whole.
  int64_t chunkVectors(int64_t count) {
    if (packsValues() || !width.isStatic())
      return vectors;
    const int64_t most = std::min(kMostVectors, k.target.tileRows * vectors / count);
    return std::max(vectors, std::min(most, int64_t(llvm::divideCeil(width.value(), lanes))));
  }

  // ---- tiles of rows
  void remainder(Value from, Value to) {
    int64_t tileRows = k.target.tileRows;
    if (rows.isStatic()) {
      // Blocks are multiples of a tile, so only the last block has a remainder, of known size.
      if (int64_t rest = rows.value() % tileRows)
        k.when(k.compare(arith::CmpIPredicate::slt, from, to), [&] { tile(from, rest); });
      return;
    }
    k.loop(from, to, k.constant(1), [&](Value row) { tile(row, 1); });
  }

  void tile(Value row, int64_t count) {
    // Causal rows see no key after the last row of the tile.
    Value seen = k.dim(keys);
    if (op.getIsCausal())
      seen = k.minimum(seen, k.add(row, k.constant(count)));
    Value panels = k.div(k.add(seen, k.constant(panel - 1)), k.constant(panel));
    if (packsKeys())
      k.loop(k.constant(0), panels, k.constant(1), [&](Value index) {
        storeScores(row, count, k.mul(index, k.constant(panel)), packedProducts(row, count, index));
      });
    else
      k.loop(k.constant(0), k.mul(panels, k.constant(panel)), k.constant(lanes),
             [&](Value first) { storeScores(row, count, first, directProducts(row, count, first)); });
    SmallVector<Value> inverse;
    // Several rows together, so that one computes while another waits for lane shuffles.
    for (int64_t r = 0; r < count; r += kRowsTogether)
      llvm::append_range(inverse, weigh(llvm::to_vector(llvm::seq(r, std::min(r + kRowsTogether, count))), panels));
    const int64_t each = chunkVectors(count);
    k.loop(k.constant(0), k.dim(ceildiv(width, each * lanes)), k.constant(1),
           [&](Value chunk) { mix(row, count, chunk, seen, inverse); });
  }

  Value stripPlace(int64_t row, Value column) {
    Value rowLength = k.mul(k.dim(ceildiv(keys, panel)), k.constant(panel));
    return k.add(k.mul(k.constant(row), rowLength), column);
  }

  /// Products of a tile of query rows with the packed keys of a panel, row by row.
  SmallVector<Value> packedProducts(Value row, int64_t count, Value index) {
    Value panelStart = k.mul(index, k.mul(k.dim(depth), k.constant(panel)));
    SmallVector<Value> starts;
    for (int64_t r = 0; r < count; ++r)
      starts.push_back(k.mul(k.constant(r), k.dim(query.strides[leading])));
    auto keysAt = [&](int64_t v, Value step) {
      Value place = k.add(panelStart, k.add(k.mul(step, k.constant(panel)), k.constant(v * lanes)));
      return k.load(packedKeys, {place, 1}, lanes, {});
    };
    Microkernel tile(k, {query.memory, starts, query.strides.back()}, DType::f32, vectors, keysAt);
    return tile.add(rowStart(query, row), k.constant(0), k.dim(depth), tile.zeros());
  }

  /// The same with the keys [first, first + lanes) in memory. The terms of a sum are added in the same order.
  SmallVector<Value> directProducts(Value row, int64_t count, Value first) {
    auto add = [&](Value column, int64_t columns, ValueRange sums) {
      SmallVector<Value> next(sums), square = transposedKeys(first, column);
      for (int64_t i = 0; i < columns; ++i)
        for (int64_t r = 0; r < count; ++r) {
          Value step = k.mul(k.add(column, k.constant(i)), k.dim(query.strides.back()));
          Value place = k.add(rowStart(query, k.add(row, k.constant(r))), step);
          Value element = toF32(k.load(query.memory, {place}, 1, {}), query.memory.dtype);
          next[r] = k.multiplyAdd(DType::f32, k.broadcast(element, lanes), square[i], next[r]);
        }
      return next;
    };
    const int64_t rest = depth.value() % lanes, whole = depth.value() - rest;
    SmallVector<Value> sums(count, lanesOf(0));
    sums = k.loop(k.constant(0), k.constant(whole), k.constant(lanes), sums,
                  [&](Value column, ValueRange carried) { return add(column, lanes, carried); });
    return rest ? add(k.constant(whole), rest, sums) : sums;
  }

  /// Stores the scores of a tile with some vectors of keys from `first` on.
  void storeScores(Value row, int64_t count, Value first, ArrayRef<Value> sums) {
    Value factor = k.broadcast(scale(), lanes);
    const int64_t each = int64_t(sums.size()) / count;
    for (int64_t r = 0; r < count; ++r)
      for (int64_t v = 0; v < each; ++v) {
        Value column = k.add(first, k.constant(v * lanes));
        Value score = arith::MulFOp::create(k.b, k.loc, sums[r * each + v], factor);
        score = masked(score, k.add(row, k.constant(r)), column);
        k.store(strip, {stripPlace(r, column), 1}, score, lanes, {});
      }
  }

  Value scale() {
    if (double given = op.getScale().convertToDouble(); given != 0)
      return number(given);
    if (depth.isStatic())
      return number(1 / std::sqrt(double(depth.value())));
    Value size = castLanes(k.b, k.loc, k.dim(depth), DType::i64, DType::f32);
    return (1 / sqrt(scalar(size))).value();
  }

  /// Applies the mask; -inf where the row may not see the key.
  Value masked(Value score, Value row, Value column) {
    Value sees;
    auto require = [&](Value condition) {
      sees = sees ? Value(arith::AndIOp::create(k.b, k.loc, sees, condition)) : condition;
    };
    if (!isMultipleOf(keys, panel))
      require(k.below(column, k.dim(keys), lanes));
    if (op.getIsCausal())
      require(k.below(column, k.add(row, k.constant(1)), lanes));
    if (Value mask = op.getMask()) {
      Shape sizes = shapeOf(mask);
      SmallVector<Index> place(at);
      place[leading] = {row};
      place[leading + 1] = {column, 1};
      place.erase(place.begin(), place.end() - sizes.size());
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] == Dim(1))
          place[d] = {k.constant(0)};
      k.width = lanes;
      e.mask = k.below(column, k.dim(keys), lanes);
      Value element = k.broadcast(e.scoped([&] { return e.element(mask, place); }), lanes);
      e.mask = {};
      k.width = 1;
      if (isFloat(dtypeOf(mask)))
        score = arith::AddFOp::create(k.b, k.loc, score, toF32(element, dtypeOf(mask)));
      else
        require(element);
    }
    return sees ? Value(arith::SelectOp::create(k.b, k.loc, sees, score, lanesOf(-INFINITY))) : score;
  }

  using Join = llvm::function_ref<Value(Value, Value)>;
  /// Reduces `body` over the elements of each of these rows of the strip.
  SmallVector<Value> walk(ArrayRef<int64_t> strips, Value panels, Value init, Join join,
                          llvm::function_ref<Value(size_t i, Value place, Value x)> body) {
    // One accumulator per vector of a panel breaks the dependency chain of additions and comparisons.
    Value end = k.mul(panels, k.constant(panel));
    SmallVector<Value> none(strips.size() * vectors, init);
    SmallVector<Value> parts =
        k.loop(k.constant(0), end, k.constant(panel), none, [&](Value column, ValueRange carried) {
          SmallVector<Value> next;
          for (auto [i, row] : llvm::enumerate(strips))
            for (int64_t v = 0; v < vectors; ++v) {
              Value place = stripPlace(row, k.add(column, k.constant(v * lanes)));
              next.push_back(join(carried[next.size()], body(i, place, k.load(strip, {place, 1}, lanes, {}))));
            }
          return next;
        });
    SmallVector<Value> whole;
    for (size_t i = 0; i < strips.size(); ++i) {
      Value joined = parts[i * vectors];
      for (int64_t v = 1; v < vectors; ++v)
        joined = join(joined, parts[i * vectors + v]);
      whole.push_back(acrossLanes(joined, join));
    }
    return whole;
  }

  /// Turns rows of the strip into unnormalised weights; returns the inverses of their sums, 0 for rows that are masked
  /// out as a whole.
  SmallVector<Value> weigh(ArrayRef<int64_t> strips, Value panels) {
    // The comparison may drop a NaN, which makes its own weight, and so the sum, NaN.
    SmallVector<Value> tops = walk(
        strips, panels, lanesOf(-INFINITY),
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
        strips, panels, lanesOf(0),
        [&](Value total, Value x) -> Value { return arith::AddFOp::create(k.b, k.loc, total, x); },
        [&](size_t i, Value place, Value x) {
          Value weight = exp(scalar(x) - shifts[i]).value();
          k.store(strip, {place, 1}, weight, lanes, {});
          return weight;
        });
    for (Value &sum : sums)
      sum = select(scalar(sum) == 0, scalar(number(0)), 1 / scalar(sum)).value();
    return sums;
  }
  Value acrossLanes(Value v, llvm::function_ref<Value(Value, Value)> join) {
    while (k.laneCount(v) > 1) {
      auto [low, high] = k.halves(v);
      v = join(low, high);
    }
    return vector::ExtractOp::create(k.b, k.loc, v, ArrayRef<int64_t>{0});
  }

  // ---- weights times values, the epilogue, and the stores
  void mix(Value row, int64_t count, Value chunk, Value seen, ArrayRef<Value> inverse) {
    const int64_t each = chunkVectors(count);
    SmallVector<Value> columns = columnsOf(chunk, each), inside = insideOf(columns);
    auto valuesAt = [&](int64_t v, Value step) {
      return packsValues() ? k.load(packedValues, valuePlace(chunk, step, v), lanes, {})
                           : loadLanes(value, rowStart(value, step), columns[v], inside[v]);
    };
    SmallVector<Value> starts;
    for (int64_t r = 0; r < count; ++r)
      starts.push_back(stripPlace(r, k.constant(0)));
    Microkernel tile(k, {strip, starts, 1}, DType::f32, each, valuesAt);
    SmallVector<Value> sums = tile.add(k.constant(0), k.constant(0), seen, tile.zeros());
    k.width = lanes;
    for (int64_t r = 0; r < count; ++r)
      for (int64_t v = 0; v < each; ++v) {
        Value mixed = arith::MulFOp::create(k.b, k.loc, sums[r * each + v], k.broadcast(inverse[r], lanes));
        at[leading] = {k.add(row, k.constant(r))};
        at[leading + 1] = {columns[v], 1};
        if (isPartial(columns))
          e.mask = k.below(columns[v], k.maskBound(width, narrowest(body, type)), lanes);
        p.finish(op.getResult(), at, castLanes(k.b, k.loc, mixed, DType::f32, type), body, results);
        e.mask = {};
      }
    k.width = 1;
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  ScaledDotProductAttentionOp op;
  Block &body;
  ArrayRef<Value> results;
  DType type;
  int64_t lanes, vectors, panel; // a panel is as wide as a tile
  Shape shape;
  size_t leading; // number of leading dimensions: heads
  Dim rows, width, keys, depth;
  StridedMemory query, key, value;
  Memory strip, packedKeys, packedValues;
  SmallVector<Index> at; // position in the result
};

} // namespace

LaunchShape emitAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return AttentionKernel(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
