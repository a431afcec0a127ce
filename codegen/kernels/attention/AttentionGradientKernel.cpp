// The gradients of attention without a matrix of weights in memory.
//
// A task computes one head. It packs keys and values into panels, then loops over blocks of query rows. The scores of a
// block against all keys go to a strip of scratch memory and become weights there, as in the forward kernel; the
// products of the output's gradient and the values go to a second strip and become the gradients of scores:
//   dP = g · vᵀ, dS = P * (dP - rowsum(P * dP)).
// These are multiplied by the keys to the gradients of the block's queries. The transposed strips are multiplied by the
// block's rows of g and of the queries, and added to the gradients of values and keys, in the order of the query rows.
// So a score is computed once, and one task adds all terms of a sum, whatever the number of threads.
#include "codegen/kernels/attention/AttentionRows.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

// Query rows of a block: whole tiles on all targets. More rows read and write the sums of keys and values less often,
// but make the strips longer than L2 for fewer keys.
constexpr int64_t kBlockRows = 48;
constexpr int64_t kRowsTogether = 4; // rows whose weights are computed together
constexpr int64_t kApart = 16;       // elements between rows of a strip, so that a column is in different sets of L1

AttentionScores scoresOf(AttentionGradientOp op) {
  Shape key = shapeOf(op.getKey());
  return {op.getMask(), op.getIsCausal(), op.getScale().convertToDouble(), key[key.size() - 2], key.back()};
}

/// The largest number of rows that a register tile may have, of those that divide a panel of keys.
int64_t keysPerTile(const Target &target, int64_t panel) {
  int64_t count = target.tileRows;
  while (panel % count)
    --count;
  return count;
}

class AttentionGradientKernel : AttentionRows {
public:
  AttentionGradientKernel(ElementEmitter &e, AttentionGradientOp op, Value result)
      : AttentionRows(e, scoresOf(op), shapeOf(op.getResult()).size() - 2), type(dtypeOf(op.getResult())),
        shape(shapeOf(op.getResult())), rows(shapeOf(op.getQuery())[leading]), width(shape.back()), keys(scores.keys),
        pitch(ceildiv(keys, panel) * Dim(panel) + Dim(kApart)), tileKeys(keysPerTile(k.target, panel)),
        query(e.stridedMemoryOf(op.getQuery())), key(e.stridedMemoryOf(op.getKey())),
        value(e.stridedMemoryOf(op.getValue())), gradient(e.stridedMemoryOf(op.getGradient())),
        result{result, type, {}} {}

  LaunchShape emit() {
    Dim bytes = placeScratch();
    k.loop(k.lo, k.hi, k.constant(1), [&](Value head) {
      setHead(head, shape);
      start = k.mul(head, k.dim(shape[leading] * width));
      packTransposed(key, width, packedKeys, {});
      packTransposed(value, width, packedValues, {});
      packRows(key, width, k.constant(0), k.dim(keys), keys, keyRows);
      clear(ofKeys);
      clear(ofValues);
      k.loop(k.constant(0), k.dim(rows), k.constant(kBlockRows),
             [&](Value from) { block(from, k.minimum(k.add(from, k.constant(kBlockRows)), k.dim(rows))); });
      storeSums(ofKeys, rows);
      storeSums(ofValues, rows + keys);
    });
    return {headsOf(shape), bytes, text()};
  }

private:
  std::string text() {
    std::string result;
    llvm::raw_string_ostream out(result);
    out << "  tasks: " << headsOf(shape).str() << " head(s), each in blocks of " << kBlockRows << " of " << rows.str()
        << " query row(s)\n";
    out << "  tiles: up to " << k.target.tileRows << " row(s), panels of " << panel << " of " << keys.str()
        << " key(s), vectors of " << lanes << "; keys and values packed\n";
    return result;
  }

  /// Places the parts of scratch memory; returns their size in bytes.
  Dim placeScratch() {
    const Dim panels = ceildiv(keys, panel), chunks = ceildiv(width, panel), panelBytes = Dim(panel * 4);
    Dim bytes = 0;
    auto take = [&](const Dim &size) {
      Memory memory = inScratch(bytes);
      bytes = bytes + size;
      return memory;
    };
    Value apart = k.dim(pitch);
    weights = {take(pitch * Dim(kBlockRows * 4)), apart};
    ofScores = {take(pitch * Dim(kBlockRows * 4)), apart};
    packedKeys = take(panels * panelBytes * width);
    packedValues = take(panels * panelBytes * width);
    keyRows = take(chunks * panelBytes * keys);
    queryRows = take(chunks * panelBytes * Dim(kBlockRows));
    gradientRows = take(chunks * panelBytes * Dim(kBlockRows));
    ofKeys = take(chunks * panelBytes * panels * Dim(panel));
    ofValues = take(chunks * panelBytes * panels * Dim(panel));
    return bytes;
  }

  // ---- sums for each key: panels [panel of columns, key, width of a panel], of whole panels of keys
  Dim paddedKeys() { return ceildiv(keys, panel) * Dim(panel); }
  void clear(const Memory &sums) {
    Value end = k.dim(ceildiv(width, panel) * Dim(panel) * paddedKeys());
    k.loop(k.constant(0), end, k.constant(lanes), [&](Value i) { k.store(sums, {i, 1}, lanesOf(0), lanes, {}); });
  }
  /// Stores the sums in the rows of the result from `first` on.
  void storeSums(const Memory &sums, const Dim &first) {
    k.loop(k.constant(0), k.dim(ceildiv(width, panel)), k.constant(1), [&](Value chunk) {
      SmallVector<Value> columns = columnsOf(chunk, vectors);
      k.loop(k.constant(0), k.dim(keys), k.constant(1), [&](Value row) {
        for (int64_t v = 0; v < vectors; ++v)
          storeLanes(k.add(k.dim(first), row), columns[v],
                     k.load(sums, panelPlace(chunk, paddedKeys(), row, v), lanes, {}));
      });
    });
  }
  void storeLanes(Value row, Value column, Value element) {
    Value inside = isPartial(width, size_t(vectors)) ? k.below(column, k.maskBound(width, type), lanes) : Value();
    Value place = k.add(start, k.add(k.mul(row, k.dim(width)), column));
    k.store(result, {place, 1}, castLanes(k.b, k.loc, element, DType::f32, type), lanes, inside);
  }

  // ---- a block of query rows
  void block(Value from, Value to) {
    const int64_t tileRows = k.target.tileRows;
    Value count = k.sub(to, from);
    Value whole = k.add(from, k.mul(k.div(count, k.constant(tileRows)), k.constant(tileRows)));
    k.loop(from, whole, k.constant(tileRows), [&](Value row) { tile(from, row, tileRows, to); });
    if (!rows.isStatic())
      k.loop(whole, to, k.constant(1), [&](Value row) { tile(from, row, 1, to); });
    else if (int64_t rest = rows.value() % tileRows)
      k.when(k.compare(arith::CmpIPredicate::slt, whole, to), [&] { tile(from, whole, rest, to); });
    packRows(query, width, from, count, kBlockRows, queryRows);
    packRows(gradient, width, from, count, kBlockRows, gradientRows);
    Value end = k.mul(panelsSeen(keysSeen(to)), k.constant(panel));
    k.loop(k.constant(0), end, k.constant(tileKeys), [&](Value first) {
      k.loop(k.constant(0), k.dim(ceildiv(width, panel)), k.constant(1), [&](Value chunk) {
        addTransposed(weights, gradientRows, ofValues, first, chunk, count);
        addTransposed(ofScores, queryRows, ofKeys, first, chunk, count);
      });
    });
  }

  /// Adds the products of the transposed strip and the rows of a block to the sums of the keys from `first` on.
  void addTransposed(const Strip &strip, const Memory &right, const Memory &sums, Value first, Value chunk,
                     Value count) {
    auto rowsAt = [&](int64_t v, Value step) {
      return k.load(right, panelPlace(chunk, kBlockRows, step, v), lanes, {});
    };
    SmallVector<Value> starts, terms;
    for (int64_t r = 0; r < tileKeys; ++r)
      starts.push_back(k.constant(r));
    auto place = [&](int64_t r, int64_t v) { return panelPlace(chunk, paddedKeys(), k.add(first, k.constant(r)), v); };
    for (int64_t r = 0; r < tileKeys; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        terms.push_back(k.load(sums, place(r, v), lanes, {}));
    Microkernel tile(k, {strip.memory, starts, pitch}, DType::f32, vectors, rowsAt);
    terms = tile.add(first, k.constant(0), count, terms);
    for (int64_t r = 0; r < tileKeys; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        k.store(sums, place(r, v), terms[r * vectors + v], lanes, {});
  }

  /// Computes the rows [row, row + count) of both strips, and their gradients. The block begins at `from`; all of its
  /// rows have the keys that one before `to` sees.
  void tile(Value from, Value row, int64_t count, Value to) {
    Value seen = keysSeen(to), panels = panelsSeen(seen), top = k.sub(row, from);
    k.loop(k.constant(0), panels, k.constant(1), [&](Value index) {
      Value first = k.mul(index, k.constant(panel));
      storeScores(weights, top, row, count, first, packedProducts(query, packedKeys, width, row, count, index));
      SmallVector<Value> products = packedProducts(gradient, packedValues, width, row, count, index);
      for (int64_t r = 0; r < count; ++r)
        for (int64_t v = 0; v < vectors; ++v)
          k.store(ofScores.memory,
                  {stripPlace(ofScores, k.add(top, k.constant(r)), k.add(first, k.constant(v * lanes))), 1},
                  products[r * vectors + v], lanes, {});
    });
    for (int64_t r = 0; r < count; r += kRowsTogether)
      differentiate(llvm::map_to_vector(llvm::seq(r, std::min(r + kRowsTogether, count)),
                                        [&](int64_t i) { return k.add(top, k.constant(i)); }),
                    panels);
    k.loop(k.constant(0), k.dim(ceildiv(width, panel)), k.constant(1),
           [&](Value chunk) { mix(top, row, count, chunk, seen); });
  }

  /// Turns rows of scores into weights, and rows of the weights' gradients into those of the scores.
  void differentiate(ArrayRef<Value> strips, Value panels) {
    SmallVector<Value> inverse = weigh(weights, strips, panels);
    auto add = [&](Value x, Value y) { return sum(x, y); };
    auto all = [&](Value x) { return k.broadcast(x, lanes); };
    SmallVector<Value> sums = walk(weights, strips, panels, lanesOf(0), add, [&](size_t i, Value place, Value x) {
      Value weight = product(x, all(inverse[i]));
      k.store(weights.memory, {place, 1}, weight, lanes, {});
      return product(weight, k.load(ofScores.memory, {place, 1}, lanes, {}));
    });
    k.loop(k.constant(0), k.mul(panels, k.constant(panel)), k.constant(lanes), [&](Value column) {
      for (auto [row, total] : llvm::zip_equal(strips, sums)) {
        Index place{stripPlace(weights, row, column), 1};
        Value ofWeight = k.load(ofScores.memory, place, lanes, {});
        Value difference = arith::SubFOp::create(k.b, k.loc, ofWeight, all(total));
        k.store(ofScores.memory, place, product(k.load(weights.memory, place, lanes, {}), difference), lanes, {});
      }
    });
  }

  /// Stores the gradients of query rows: those of their scores times the keys.
  void mix(Value top, Value row, int64_t count, Value chunk, Value seen) {
    SmallVector<Value> columns = columnsOf(chunk, vectors), starts;
    auto keysAt = [&](int64_t v, Value step) { return k.load(keyRows, panelPlace(chunk, keys, step, v), lanes, {}); };
    for (int64_t r = 0; r < count; ++r)
      starts.push_back(stripPlace(ofScores, k.constant(r), k.constant(0)));
    Microkernel tile(k, {ofScores.memory, starts, 1}, DType::f32, vectors, keysAt);
    SmallVector<Value> sums = tile.add(stripPlace(ofScores, top, k.constant(0)), k.constant(0), seen, tile.zeros());
    for (int64_t r = 0; r < count; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        storeLanes(k.add(row, k.constant(r)), columns[v], sums[r * vectors + v]);
  }

  const DType type;
  const Shape shape; // of the result
  const Dim rows, width, keys, pitch;
  const int64_t tileKeys;
  const StridedMemory query, key, value, gradient;
  const Memory result;
  Value start; // of the current head in the result
  Strip weights, ofScores;
  Memory packedKeys, packedValues, keyRows, queryRows, gradientRows, ofKeys, ofValues;
};

} // namespace

LaunchShape emitAttentionGradient(const KernelEmission &kernel) {
  auto op = *kernel.body.getOps<AttentionGradientOp>().begin();
  return AttentionGradientKernel(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
