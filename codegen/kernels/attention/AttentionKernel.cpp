// Attention without a matrix of scores in memory: softmax(query · keyᵀ · scale + mask) · value, for a strip of query
// rows at a time.
//
// A task computes a block of query rows of one head. It packs keys and values into panels, then loops over tiles of
// rows: their scores against all keys go to a strip of scratch memory, which stays in cache, become weights there, and
// are multiplied by the values. Products are added in the order of the keys; the weights of a row are summed by lanes,
// in a fixed tree. A single tile, as in decoding one token, reads each key once; it transposes keys in registers
// and multiplies them there, as writing panels would take longer than reading the keys from memory.
#include "codegen/kernels/attention/AttentionRows.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kGroupsAhead = 2;  // groups of keys, one per lane, that are prefetched
constexpr int64_t kMostVectors = 8;  // of a row of values that are multiplied together
constexpr int64_t kRowsTogether = 4; // rows whose weights are computed together, see tile()

AttentionScores scoresOf(ScaledDotProductAttentionOp op) {
  Shape key = shapeOf(op.getKey());
  return {op.getMask(), op.getIsCausal(), op.getScale().convertToDouble(), key[key.size() - 2], key.back()};
}

class AttentionKernel : AttentionRows {
public:
  AttentionKernel(ElementEmitter &e, ScaledDotProductAttentionOp op, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : AttentionRows(e, scoresOf(op), shapeOf(op.getResult()).size() - 2), p(e, a), op(op), body(body),
        results(results), type(dtypeOf(op.getResult())), shape(shapeOf(op.getResult())), rows(shape[leading]),
        width(shape.back()), keys(scores.keys), depth(scores.depth), query(e.stridedMemoryOf(op.getQuery())),
        key(e.stridedMemoryOf(op.getKey())), value(e.stridedMemoryOf(op.getValue())) {}

  LaunchShape emit() {
    int64_t tileRows = k.target.tileRows;
    Dim panels = ceildiv(keys, panel), blocks = ceildiv(rows, passes::kQueryRows), tasks = blocks * headsOf(shape);
    Dim keyBytes = packsKeys() ? panels * Dim(panel * 4) * depth : Dim(0),
        stripBytes = panels * Dim(panel * 4 * tileRows);
    Dim valueBytes = packsValues() ? ceildiv(width, panel) * Dim(panel * 4) * keys : Dim(0);
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      setHead(k.div(task, k.dim(blocks)), shape);
      strip = {inScratch(0), k.mul(k.dim(ceildiv(keys, panel)), k.constant(panel))};
      packedKeys = inScratch(stripBytes);
      packedValues = inScratch(stripBytes + keyBytes);
      if (packsKeys())
        packTransposed(key, depth, packedKeys, [&](Value first, Value column) { prefetchKeys(first, column); });
      // Rows of one head are far apart in memory, so their values compete for few cache sets.
      if (packsValues())
        packRows(value, width, k.constant(0), k.dim(keys), keys, packedValues);
      Value from = k.mul(k.rem(task, k.dim(blocks)), k.constant(passes::kQueryRows));
      Value to = k.minimum(k.add(from, k.constant(passes::kQueryRows)), k.dim(rows));
      Value whole = k.add(from, k.mul(k.div(k.sub(to, from), k.constant(tileRows)), k.constant(tileRows)));
      k.loop(from, whole, k.constant(tileRows), [&](Value row) { tile(row, tileRows); });
      remainder(whole, to);
    });
    return {tasks, stripBytes + keyBytes + valueBytes, text(blocks)};
  }

private:
  std::string text(const Dim &blocks) {
    std::string result;
    llvm::raw_string_ostream out(result);
    out << "  tasks: " << headsOf(shape).str() << " head(s), " << blocks.str() << " block(s) of up to "
        << passes::kQueryRows << " query row(s)\n";
    out << "  tiles: up to " << k.target.tileRows << " of " << rows.str() << " query row(s), panels of " << panel
        << " of " << keys.str() << " key(s)" << (scores.isCausal ? ", up to the last one that a row sees" : "")
        << ", vectors of " << lanes << "\n";
    out << "  keys " << (packsKeys() ? "packed" : "read in place") << ", values "
        << (packsValues() ? "packed" : "read in place") << "\n";
    return result;
  }

  /// Prefetches a part of a group of `lanes` keys after `first`. The squares of a group prefetch all of a later one,
  /// row by row, as memory is fastest in the order of addresses. The addresses may lie beyond the last key.
  void prefetchKeys(Value first, Value column) {
    if (!isDense(key) || !depth.isStatic())
      return;
    first = k.add(first, k.constant(kGroupsAhead * lanes));
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
  /// Whether values are packed, too: that pays off if they are read at least twice, for two tiles of query rows.
  bool packsValues() { return upperBound(rows).value_or(INT64_MAX) >= 2 * k.target.tileRows; }

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
    Value seen = keysSeen(k.add(row, k.constant(count))), panels = panelsSeen(seen), none = k.constant(0);
    if (packsKeys())
      k.loop(k.constant(0), panels, k.constant(1), [&](Value index) {
        storeScores(strip, none, row, count, k.mul(index, k.constant(panel)),
                    packedProducts(query, packedKeys, depth, row, count, index));
      });
    else
      k.loop(k.constant(0), k.mul(panels, k.constant(panel)), k.constant(lanes),
             [&](Value first) { storeScores(strip, none, row, count, first, directProducts(row, count, first)); });
    SmallVector<Value> inverse;
    // Several rows together, so that one computes while another waits for lane shuffles.
    for (int64_t r = 0; r < count; r += kRowsTogether) {
      auto some = llvm::map_to_vector(llvm::seq(r, std::min(r + kRowsTogether, count)),
                                      [&](int64_t i) { return k.constant(i); });
      llvm::append_range(inverse, weigh(strip, some, panels));
    }
    const int64_t each = chunkVectors(count);
    k.loop(k.constant(0), k.dim(ceildiv(width, each * lanes)), k.constant(1),
           [&](Value chunk) { mix(row, count, chunk, seen, inverse); });
  }

  /// Products of a tile of query rows with the keys [first, first + lanes) in memory. The terms of a sum are added in
  /// the same order as those with packed keys.
  SmallVector<Value> directProducts(Value row, int64_t count, Value first) {
    auto add = [&](Value column, int64_t columns, ValueRange sums) {
      SmallVector<Value> next(sums);
      SmallVector<Value> square =
          transposedRows(key, depth, first, column, [&](Value at, Value column) { prefetchKeys(at, column); });
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

  // ---- weights times values, the epilogue, and the stores
  void mix(Value row, int64_t count, Value chunk, Value seen, ArrayRef<Value> inverse) {
    const int64_t each = chunkVectors(count);
    SmallVector<Value> columns = columnsOf(chunk, each), inside = insideOf(columns, width);
    auto valuesAt = [&](int64_t v, Value step) {
      return packsValues() ? k.load(packedValues, panelPlace(chunk, keys, step, v), lanes, {})
                           : loadLanes(value, rowStart(value, step), columns[v], inside[v]);
    };
    SmallVector<Value> starts;
    for (int64_t r = 0; r < count; ++r)
      starts.push_back(stripPlace(strip, k.constant(r), k.constant(0)));
    Microkernel tile(k, {strip.memory, starts, 1}, DType::f32, each, valuesAt);
    SmallVector<Value> sums = tile.add(k.constant(0), k.constant(0), seen, tile.zeros());
    llvm::SaveAndRestore inLanes(k.width, lanes);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t v = 0; v < each; ++v) {
        Value mixed = product(sums[r * each + v], k.broadcast(inverse[r], lanes));
        at[leading] = {k.add(row, k.constant(r))};
        at[leading + 1] = {columns[v], 1};
        llvm::SaveAndRestore existing(e.mask,
                                      isPartial(width, columns.size())
                                          ? k.below(columns[v], k.maskBound(width, narrowest(body, type)), lanes)
                                          : Value());
        p.finish(op.getResult(), at, castLanes(k.b, k.loc, mixed, DType::f32, type), body, results);
      }
  }

  PointEmitter p;
  ScaledDotProductAttentionOp op;
  Block &body;
  ArrayRef<Value> results;
  DType type;
  Shape shape;
  Dim rows, width, keys, depth;
  StridedMemory query, key, value;
  Strip strip;
  Memory packedKeys, packedValues;
};

} // namespace

LaunchShape emitAttention(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<ScaledDotProductAttentionOp>().begin();
  return AttentionKernel(kernel.e, op, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
