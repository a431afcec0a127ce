// Max pools over planes (channels first), with the ops fused around them.
//
// The rows of a task take two passes: the maxima over the window's rows in each column go to scratch memory, in whole
// vectors, between borders of the lowest value; then maxima along these rows. A window of h × w takes h + w steps
// instead of h * w, and neither pass needs masks for elements outside of x. Windows that overlap share maxima of 2, 4,
// … rows. Floats are compared as integers in an order with NaN above all numbers and -0 below 0.
#include "codegen/kernels/window/PlaneKernel.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class PlanePoolKernel : PlaneKernel {
public:
  PlanePoolKernel(ElementEmitter &e, MaxPoolOp op, const Window &w, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : PlaneKernel(e, op, w, body, a, results), op(op),
        keyType(isFloat(rule.sumType) ? (rule.sumType == DType::f64 ? DType::i64 : DType::i32) : rule.sumType) {
    Dim columns = ceildiv(x[3], lanes) * lanes;
    Dim seen = (ceildiv(result[3], lanes) * lanes - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
    length = ceildiv(max(columns, seen) + border, lanes) * lanes;
    int64_t all = (kRowsOfTask - 1) * w.strides[0] + w.kernel[0];
    together = seesSome() && all <= kMostRows ? kRowsOfTask : 1;
  }

  LaunchShape emit() {
    k.loop(k.constant(0), k.dim(length * Dim(kRowsOfTask)), k.constant(lanes), [&](Value i) { fill(i); });
    Dim tasks = eachTask([&](Value from, Value to) {
      // All rows of the task take the first pass before the second one, which reads what was just stored at other
      // alignments: the processor cannot forward that.
      eachRun(from, to, together, [&](Value first, int64_t rows) {
        e.scoped(
            [&] { seesSome() ? downRows(k.sub(first, from), first, rows) : downColumns(k.sub(first, from), first); });
      });
      k.loop(from, to, k.constant(1), [&](Value row) {
        at[2] = {row};
        e.scoped([&] { alongRow(k.sub(row, from)); });
      });
    });
    return {tasks, length * Dim(kRowsOfTask * int64_t(byteWidth(keyType)))};
  }

private:
  static constexpr int64_t kMostRows = 24; // of x, for rows of the result that are computed together

  /// Whether every window contains some row of x, and the rows between its first and last one in x. With this little
  /// padding an x without rows has no windows.
  bool seesSome() const { return w.dilations[0] == 1 && w.low[0] + w.high[0] < w.kernel[0] && !w.ceilMode; }

  // ---- integers in the order of the elements
  /// The key of the lowest number; of -infinity for floats.
  Value lowest() {
    unsigned bits = 8 * byteWidth(keyType);
    Type element = k.storageType(keyType);
    APInt value = keyType == DType::u8 ? APInt::getMinValue(bits) : APInt::getSignedMinValue(bits);
    if (isFloat(rule.sumType)) {
      auto &semantics = cast<FloatType>(k.storageType(rule.sumType)).getFloatSemantics();
      value = APFloat::getInf(semantics, /*Negative=*/true).bitcastToAPInt() ^ APInt::getSignedMaxValue(bits);
    }
    return k.broadcast(arith::ConstantOp::create(k.b, k.loc, k.b.getIntegerAttr(element, value)), lanes);
  }
  Value larger(Value a, Value b) {
    return keyType == DType::u8 ? Value(arith::MaxUIOp::create(k.b, k.loc, a, b))
                                : Value(arith::MaxSIOp::create(k.b, k.loc, a, b));
  }
  /// Flips all bits but the sign of negative numbers.
  Value turned(Value bits) {
    int64_t width = 8 * int64_t(byteWidth(keyType));
    Type element = k.storageType(keyType);
    auto constant = [&](const APInt &value) {
      return k.broadcast(arith::ConstantOp::create(k.b, k.loc, k.b.getIntegerAttr(element, value)), lanes);
    };
    Value sign = arith::ShRSIOp::create(k.b, k.loc, bits, constant(APInt(width, width - 1)));
    Value rest = arith::AndIOp::create(k.b, k.loc, sign, constant(APInt::getSignedMaxValue(width)));
    return arith::XOrIOp::create(k.b, k.loc, bits, rest);
  }
  Value keyOf(Value element) {
    element = castLanes(k.b, k.loc, k.broadcast(element, lanes), rule.type, rule.sumType);
    if (!isFloat(rule.sumType))
      return element;
    // A NaN of either sign is the largest element.
    auto type = cast<FloatType>(k.storageType(rule.sumType));
    Value isNaN = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNO, element, element);
    Value nan =
        arith::ConstantOp::create(k.b, k.loc, k.b.getFloatAttr(type, APFloat::getQNaN(type.getFloatSemantics())));
    element = arith::SelectOp::create(k.b, k.loc, isNaN, k.broadcast(nan, lanes), element);
    auto keys = VectorType::get({lanes}, k.storageType(keyType));
    return turned(arith::BitcastOp::create(k.b, k.loc, keys, element));
  }
  Value elementOf(Value key) {
    if (!isFloat(rule.sumType))
      return key;
    auto floats = VectorType::get({lanes}, k.storageType(rule.sumType));
    Value element = arith::BitcastOp::create(k.b, k.loc, floats, turned(key));
    return castLanes(k.b, k.loc, element, rule.sumType, rule.type);
  }

  // ---- the rows in scratch memory: border, columns of x, border
  Memory scratch() { return {k.scratch, keyType, {length}}; }
  Value place(Value row, Value column) { return k.add(k.mul(row, k.dim(length)), k.add(column, k.constant(border))); }
  void fill(Value i) { k.store(scratch(), {i, 1}, lowest(), lanes, {}); }

  // ---- maxima over the rows of x
  /// Of the windows of `rows` result rows from `first` on. Rows outside of x are replaced by the first or the last one,
  /// which the windows contain.
  void downRows(Value row, Value first, int64_t rows) {
    Value origin = originOf(k, w, 0, {first}).base, last = k.sub(k.dim(x[2]), k.constant(1));
    SmallVector<Value> from;
    for (int64_t r = 0; r < (rows - 1) * w.strides[0] + w.kernel[0]; ++r)
      from.push_back(k.maximum(k.minimum(k.add(origin, k.constant(r)), last), k.constant(0)));
    eachVectorOf(x[3], false, [&](Value column, Value mask) {
      llvm::SaveAndRestore lanesMask(e.mask, mask);
      llvm::SaveAndRestore width(k.width, lanes);
      e.scoped([&] {
        known.clear();
        fetch(k.add(origin, k.constant((rows - 1) * w.strides[0] + w.kernel[0])), rows * w.strides[0], column);
        for (int64_t i = 0; i < rows; ++i) {
          Value keys = ofRows(from, i * w.strides[0], w.kernel[0], column);
          k.store(scratch(), {place(k.add(row, k.constant(i)), column), 1}, keys, lanes, {});
        }
      });
    });
  }
  /// Prefetches a part of `count` rows of x, which the next rows of the result need. The processor foresees these loads
  /// badly, as the ones before go down several rows at once: on a Zen 3 a pool of 3x3 with stride 2 takes .87 of the
  /// time in L2 and .8 in memory. Where windows share rows, and for narrow elements, computing takes longer than loads.
  void fetch(Value first, int64_t count, Value column) {
    std::optional<Memory> memory = e.memoryOf(w.x);
    if (!memory || w.strides[0] == 1 || byteWidth(memory->dtype) < 4)
      return;
    for (int64_t r = 0; r < count; ++r) {
      const Index ahead = k.linear(x, {at[0], at[1], Index{k.add(first, k.constant(r))}, Index{column}});
      LLVM::Prefetch::create(k.b, k.loc, k.elementPointer(*memory, ahead.base), 0, 3, 1);
    }
  }
  /// The maxima of `count` rows of x, of which others may need a part.
  Value ofRows(ArrayRef<Value> from, int64_t first, int64_t count, Value column) {
    Value &keys = known[{first, count}];
    if (keys)
      return keys;
    Value found;
    if (count == 1) {
      found = keyOf(e.element(w.x, {at[0], at[1], {from[first]}, {column, 1}}));
      if (e.mask)
        found = arith::SelectOp::create(k.b, k.loc, e.mask, found, lowest());
    } else {
      int64_t part = w.strides[0] == 1 ? int64_t(llvm::bit_floor(uint64_t(count - 1))) : count - 1;
      Value one = ofRows(from, first, part, column);
      int64_t rest = w.strides[0] == 1 ? part : 1;
      found = larger(one, ofRows(from, first + count - rest, rest, column));
    }
    return known[{first, count}] = found;
  }

  /// Of the windows of result row y. Rows outside of x are replaced by repeated ones.
  void downColumns(Value row, Value y) {
    Value origin = originOf(k, w, 0, {y}).base;
    auto [first, end] = codegen::tapsInside(k, w, 0, origin);
    SmallVector<Value> rows;
    for (int64_t tap = 0; tap < w.kernel[0]; ++tap) {
      Value inside = k.maximum(k.minimum(k.constant(tap), k.sub(end, k.constant(1))), first);
      rows.push_back(k.add(origin, k.mul(inside, k.constant(w.dilations[0]))));
    }
    Value seesSome = k.compare(arith::CmpIPredicate::slt, first, end);
    k.when(seesSome,
           [&] { eachVectorOf(x[3], false, [&](Value column, Value mask) { downVector(row, rows, column, mask); }); });
    k.unless(seesSome, [&] {
      k.loop(k.constant(0), k.dim(length), k.constant(lanes),
             [&](Value i) { fill(k.add(k.mul(row, k.dim(length)), i)); });
    });
  }

  void downVector(Value row, ArrayRef<Value> rows, Value column, Value mask) {
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    llvm::SaveAndRestore width(k.width, lanes);
    e.scoped([&] {
      Value keys;
      for (Value row : rows) {
        Value key = keyOf(e.element(w.x, {at[0], at[1], {row}, {column, 1}}));
        keys = keys ? larger(keys, key) : key;
      }
      if (mask)
        keys = arith::SelectOp::create(k.b, k.loc, mask, keys, lowest());
      k.store(scratch(), {place(row, column), 1}, keys, lanes, {});
    });
  }

  void alongRow(Value row) {
    eachVectorOf(result[3], true, [&](Value column, Value mask) { alongVector(row, column, mask); });
  }

  void alongVector(Value row, Value column, Value mask) {
    llvm::SaveAndRestore width(k.width, lanes);
    Value from = place(row, k.add(k.mul(column, k.constant(w.strides[1])), k.constant(-w.low[1]))), keys;
    for (int64_t tap = 0; tap < w.kernel[1]; ++tap) {
      Index place{k.add(from, k.constant(tap * w.dilations[1])), w.strides[1]};
      Value key = k.load(scratch(), place, lanes, {});
      keys = keys ? larger(keys, key) : key;
    }
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    at[3] = {column, 1};
    e.scoped([&] { p.finish(op.getResult(), at, elementOf(keys), body, results); });
  }

  MaxPoolOp op;
  DType keyType;
  Dim length;                                         // of a row in scratch memory
  int64_t together = 1;                               // rows that take the first pass together
  std::map<std::pair<int64_t, int64_t>, Value> known; // maxima of a vector of columns: first row of x, number of rows
};

} // namespace

LaunchShape emitPlanePool(const KernelEmission &kernel) {
  MaxPoolOp op = *kernel.body.getOps<MaxPoolOp>().begin();
  return PlanePoolKernel(kernel.e, op, *windowOf(op), kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
