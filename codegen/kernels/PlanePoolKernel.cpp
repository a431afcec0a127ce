// Max pools over planes (channels first), with the ops fused around them.
//
// A row of the result takes two passes: the maxima over the window's rows in each column go to scratch memory, in whole
// vectors, between borders of the lowest value; then maxima along that row. A window of h × w takes h + w steps instead
// of h * w, and neither pass needs masks for elements outside of x. Floats are compared as integers in an order with
// NaN above all numbers and -0 below 0.
#include "codegen/kernels/PlaneKernel.h"
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
  }

  LaunchShape emit() {
    Dim tasks = eachTask([&](Value from, Value to) {
      fillRow();
      k.loop(from, to, k.constant(1), [&](Value row) {
        at[2] = {row};
        e.scoped([&] { downColumns(row); });
        e.scoped([&] { alongRow(); });
      });
    });
    return {tasks, length * Dim(int64_t(byteWidth(keyType)))};
  }

private:
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

  // ---- the row in scratch memory: border, columns of x, border
  Memory row() { return {k.scratch, keyType, {length}}; }

  void fillRow() {
    k.loop(k.constant(0), k.dim(length), k.constant(lanes),
           [&](Value i) { k.store(row(), {i, 1}, lowest(), lanes, {}); });
  }

  /// Maxima over the rows of x in the windows of result row y. Rows outside of x are replaced by repeated ones.
  void downColumns(Value y) {
    Value origin = originOf(k, w, 0, {y}).base;
    auto [first, end] = codegen::tapsInside(k, w, 0, origin);
    SmallVector<Value> rows;
    for (int64_t tap = 0; tap < w.kernel[0]; ++tap) {
      Value inside = k.maximum(k.minimum(k.constant(tap), k.sub(end, k.constant(1))), first);
      rows.push_back(k.add(origin, k.mul(inside, k.constant(w.dilations[0]))));
    }
    Value seesSome = k.compare(arith::CmpIPredicate::slt, first, end);
    k.when(seesSome,
           [&] { eachVectorOf(x[3], false, [&](Value column, Value mask) { downVector(rows, column, mask); }); });
    k.unless(seesSome, [&] { fillRow(); });
  }

  void downVector(ArrayRef<Value> rows, Value column, Value mask) {
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
      k.store(row(), {k.add(column, k.constant(border)), 1}, keys, lanes, {});
    });
  }

  void alongRow() {
    eachVectorOf(result[3], true, [&](Value column, Value mask) { alongVector(column, mask); });
  }

  void alongVector(Value column, Value mask) {
    llvm::SaveAndRestore width(k.width, lanes);
    Value from = k.add(k.mul(column, k.constant(w.strides[1])), k.constant(border - w.low[1])), keys;
    for (int64_t tap = 0; tap < w.kernel[1]; ++tap) {
      Index place{k.add(from, k.constant(tap * w.dilations[1])), w.strides[1]};
      Value key = k.load(row(), place, lanes, {});
      keys = keys ? larger(keys, key) : key;
    }
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    at[3] = {column, 1};
    e.scoped([&] { p.finish(op.getResult(), at, elementOf(keys), body, results); });
  }

  MaxPoolOp op;
  DType keyType;
  Dim length; // of the row in scratch memory
};

} // namespace

LaunchShape emitPlanePool(const KernelEmission &kernel) {
  MaxPoolOp op = *kernel.body.getOps<MaxPoolOp>().begin();
  return PlanePoolKernel(kernel.e, op, *windowOf(op), kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
