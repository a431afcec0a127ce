// Element rules of the random ops: the formulas of ir/reference/ops/ReferenceRandom.h, one element at a time.
#include "codegen/emit/ElementEmitter.h"
#include "codegen/scalar/Math.h"
#include "codegen/scalar/Scalar.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Random words and unit numbers for lanes of positions (i64).
class Philox {
public:
  Philox(KernelBuilder &k, int64_t seed, Value position) : k(k), seed(seed), i(number(position)) {}

  /// A unit number in [0, 1), f32 or f64, of the element at `position + offset`'s place in the same block.
  Scalar unit(DType type, Scalar at) {
    bool wide = type == DType::f64;
    int64_t perBlock = wide ? 2 : 4;
    Scalar block = shiftRightLogical(at, wide ? 1 : 2), inBlock = at & constant(perBlock - 1);
    SmallVector<Scalar, 4> words = philox(block);
    if (!wide) {
      Scalar word = select(inBlock == 0.0, words[0],
                           select(inBlock == 1.0, words[1], select(inBlock == 2.0, words[2], words[3])));
      return shiftRightLogical(word, 8).to(DType::f32) * 0x1p-24;
    }
    Scalar low = select(inBlock == 0.0, words[0], words[2]), high = select(inBlock == 0.0, words[1], words[3]);
    return shiftRightLogical(low | shiftLeft(high, 32), 11).to(DType::f64) * 0x1p-53;
  }

  Scalar position() { return i; }
  Scalar constant(int64_t n) { return number(k.broadcast(k.constant(n), k.laneCount(i.value()))); }

private:
  Scalar number(Value v) { return Scalar(k.b, k.loc, v, DType::i64); }
  Scalar shiftRightLogical(Scalar x, int64_t by) {
    return number(arith::ShRUIOp::create(k.b, k.loc, x.value(), constant(by).value()));
  }

  SmallVector<Scalar, 4> philox(Scalar block) {
    Scalar low = constant(0xFFFFFFFF), zero = constant(0);
    Scalar x0 = block & low, x1 = shiftRightLogical(block, 32), x2 = zero, x3 = zero;
    uint32_t k0 = uint32_t(uint64_t(seed)), k1 = uint32_t(uint64_t(seed) >> 32);
    for (int round = 0; round < 10; ++round) {
      Scalar p0 = constant(0xD2511F53) * x0, p1 = constant(0xCD9E8D57) * x2;
      Scalar y0 = shiftRightLogical(p1, 32) ^ x1 ^ constant(k0), y2 = shiftRightLogical(p0, 32) ^ x3 ^ constant(k1);
      x1 = p1 & low;
      x3 = p0 & low;
      x0 = y0;
      x2 = y2;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {x0, x1, x2, x3};
  }

  KernelBuilder &k;
  int64_t seed;
  Scalar i;
};

/// The largest value of a float type below `x`.
double below(double x, DType type) {
  const llvm::fltSemantics &semantics = type == DType::f64   ? llvm::APFloat::IEEEdouble()
                                        : type == DType::f32 ? llvm::APFloat::IEEEsingle()
                                        : type == DType::f16 ? llvm::APFloat::IEEEhalf()
                                                             : llvm::APFloat::BFloat();
  llvm::APFloat value(x);
  bool inexact;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  if (value.convertToDouble() >= x)
    value.next(/*nextDown=*/true);
  return value.convertToDouble();
}

} // namespace

Value ElementEmitter::random(Operation *op, ArrayRef<Index> at) {
  DType type = dtypeOf(op->getResult(0)), computed = type == DType::f64 ? DType::f64 : DType::f32;
  Index linear = k.linear(shapeOf(op->getResult(0)), at);
  Value position = linear.uniform() ? linear.base : k.lanesOf(linear, k.width);
  Philox numbers(k, op->getAttrOfType<IntegerAttr>("seed").getInt(), position);

  if (auto uniform = dyn_cast<RandomUniformOp>(op)) {
    double low = uniform.getLow().convertToDouble(), high = uniform.getHigh().convertToDouble();
    Scalar unit = numbers.unit(computed, numbers.position());
    Scalar x = (unit * unit.constant(high - low) + unit.constant(low)).to(type).to(computed);
    if (low < high)
      x = burin::codegen::select(x >= high, x.constant(below(high, type)), x);
    return x.to(type).value();
  }
  if (auto normal = dyn_cast<RandomNormalOp>(op)) {
    double mean = normal.getMean().convertToDouble(), stddev = normal.getStddev().convertToDouble();
    Scalar even = numbers.position() & numbers.constant(~int64_t(1));
    Scalar first = numbers.unit(computed, even), second = numbers.unit(computed, even + numbers.constant(1));
    Scalar radius = sqrt(log(first + (type == DType::f64 ? 0x1p-53 : 0x1p-24)) * -2.0);
    Scalar angle = second * (2 * std::numbers::pi);
    Scalar part = burin::codegen::select((numbers.position() & numbers.constant(1)) == 0.0, cos(angle), sin(angle));
    return (radius * part * stddev + mean).to(type).value();
  }
  Value probability = element(op->getOperand(0), at);
  Scalar p = Scalar(k.b, k.loc, k.broadcast(probability, k.laneCount(position)), type).to(computed);
  return (numbers.unit(computed, numbers.position()) < p).to(type).value();
}

} // namespace burin::codegen
