// Max pools over planes (channels before rows and columns), with what is fused around them.
//
// A row of the result is made in two passes: the maximum down each column of the rows that its windows see, by whole
// vectors, goes to scratch memory between borders that lose against everything; then the maxima along that row. So a
// window of h x w takes h + w steps instead of h * w, and neither pass masks lanes for what lies outside of x. Floats
// are compared as integers in an order that has NaN above all numbers and -0 below 0.
#include "codegen/emit/PointEmitter.h"
#include "codegen/emit/Window.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kRowsOfTask = 8;
constexpr int64_t kFewestTaps = 5; // two passes do not pay below

class PlanePoolKernel {
public:
  PlanePoolKernel(ElementEmitter &e, MaxPoolOp op, const Window &w, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), op(op), w(w), rule(e, op), body(body), results(results), x(shapeOf(w.x)),
        result(shapeOf(op.getResult())), lanes(lanesFor(k.target, rule)),
        keyType(isFloat(rule.sumType) ? (rule.sumType == DType::f64 ? DType::i64 : DType::i32) : rule.sumType) {
    border = llvm::alignTo(w.low[1], lanes);
    Dim columns = ceildiv(x[3], lanes) * lanes;
    Dim seen = (ceildiv(result[3], lanes) * lanes - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
    length = ceildiv(max(columns, seen) + border, lanes) * lanes;
  }

  static int64_t lanesFor(const Target &target, const WindowRule &rule) {
    return target.lanes(byteWidth(rule.sumType));
  }

  LaunchShape emit() {
    Shape counts{result[0], result[1], ceildiv(result[2], kRowsOfTask)};
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) {
      e.scoped([&] {
        at = e.delinearize({task}, counts);
        Value from = k.mul(at[2].base, k.constant(kRowsOfTask));
        Value to = k.minimum(k.add(from, k.constant(kRowsOfTask)), k.dim(result[2]));
        at.push_back({});
        fillRow();
        k.loop(from, to, k.constant(1), [&](Value row) {
          at[2] = {row};
          e.scoped([&] { downColumns(row); });
          e.scoped([&] { alongRow(); });
        });
      });
    });
    return {counts[0] * counts[1] * counts[2], length * Dim(int64_t(byteWidth(keyType)))};
  }

private:
  // ---- integers in the order of the elements
  /// Of the lowest number; of floats, of the negative infinity.
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
  /// Of negative numbers all bits but the sign are turned over.
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
    // Whatever its sign, a NaN is the largest.
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

  // ---- the row in scratch memory: a border, the columns of x, a border
  Memory row() { return {k.scratch, keyType, {length}}; }

  void fillRow() {
    k.loop(k.constant(0), k.dim(length), k.constant(lanes),
           [&](Value i) { k.store(row(), {i, 1}, lowest(), lanes, {}); });
  }

  /// The rows of x that a row of the result sees. Where some lie outside, others are taken twice.
  void downColumns(Value y) {
    Value origin = w.origin(k, 0, {y}).base;
    auto [first, end] = w.tapsInside(k, 0, origin);
    SmallVector<Value> rows;
    for (int64_t tap = 0; tap < w.kernel[0]; ++tap) {
      Value inside = k.maximum(k.minimum(k.constant(tap), k.sub(end, k.constant(1))), first);
      rows.push_back(k.add(origin, k.mul(inside, k.constant(w.dilations[0]))));
    }
    Value seesSome = k.compare(arith::CmpIPredicate::slt, first, end);
    k.when(seesSome, [&] {
      Value whole = k.mul(k.div(k.dim(x[3]), k.constant(lanes)), k.constant(lanes));
      k.loop(k.constant(0), whole, k.constant(lanes), [&](Value column) { downVector(rows, column, {}); });
      if (!isMultipleOf(x[3], lanes))
        k.when(k.compare(arith::CmpIPredicate::slt, whole, k.dim(x[3])),
               [&] { downVector(rows, whole, k.below(whole, k.dim(x[3]), lanes)); });
    });
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
    const Dim &columns = result[3];
    Value whole = k.mul(k.div(k.dim(columns), k.constant(lanes)), k.constant(lanes));
    k.loop(k.constant(0), whole, k.constant(lanes), [&](Value column) { alongVector(column, {}); });
    if (!isMultipleOf(columns, lanes)) {
      Value bound = k.maskBound(columns, narrowest(body, rule.type));
      k.when(k.compare(arith::CmpIPredicate::slt, whole, k.dim(columns)),
             [&] { alongVector(whole, k.below(whole, bound, lanes)); });
    }
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

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  MaxPoolOp op;
  const Window &w;
  WindowRule rule;
  Block &body;
  ArrayRef<Value> results;
  Shape x, result;
  int64_t lanes;
  DType keyType;
  int64_t border;        // before the columns of x, in scratch memory
  Dim length;            // of the row there
  SmallVector<Index> at; // in the result
};

} // namespace

std::optional<LaunchShape> emitPlanePoolKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a,
                                               ArrayRef<Value> results) {
  constexpr int64_t kMostTaps = 32; // that are written out
  auto pools = body.getOps<MaxPoolOp>();
  if (pools.empty())
    return std::nullopt;
  MaxPoolOp op = *pools.begin();
  std::optional<Window> w = windowOf(op);
  if (w->channelsLast() || w->spatial != 2 || w->kernel[0] * w->kernel[1] < kFewestTaps ||
      std::min(w->kernel[0], w->kernel[1]) < 2 || std::max(w->kernel[0], w->kernel[1]) > kMostTaps)
    return std::nullopt;
  // Short rows fill vectors better together.
  const Dim columns = shapeOf(op.getResult())[3];
  int64_t lanes = PlanePoolKernel::lanesFor(e.k.target, WindowRule(e, op));
  if (upperBound(columns).value_or(INT64_MAX) < lanes / 2)
    return std::nullopt;
  return PlanePoolKernel(e, op, *w, body, a, results).emit();
}

} // namespace burin::codegen
