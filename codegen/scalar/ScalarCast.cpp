// Conversions between element types.
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/math/MathParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;

namespace burin::codegen {

static Type lanesOf(Scalar x, DType to) {
  Type element = laneType(x.getBuilder().getContext(), to);
  if (auto vector = dyn_cast<VectorType>(x.value().getType()))
    return vector.clone(element);
  return element;
}

template <class Op> static Scalar convert(Scalar x, DType to) {
  return x.with(Op::create(x.getBuilder(), x.getLoc(), lanesOf(x, to), x.value()).getResult(), to);
}

static unsigned widthOf(DType type) { return isBool(type) ? 1 : 8 * byteWidth(type); }

/// Integer to integer, modulo 2^bits. Only u8 is zero-extended; the other types are signed.
static Scalar integerToInteger(Scalar x, DType to) {
  if (widthOf(to) < widthOf(x.dtype()))
    return convert<arith::TruncIOp>(x, to);
  if (widthOf(to) == widthOf(x.dtype()))
    return x.with(x.value(), to);
  return x.isUnsigned() ? convert<arith::ExtUIOp>(x, to) : convert<arith::ExtSIOp>(x, to);
}

// bf16 is the upper half of an f32. Integer arithmetic works on every target: without a bf16 instruction the compiler
// would call a support library, and the instruction flushes denormals.
static Scalar widenBf16(Scalar x) {
  Scalar bits = integerToInteger(x.bitcast(DType::i16), DType::i32);
  return shiftLeft(bits, 16).bitcast(DType::f32);
}

/// By the instruction of GPUs, which converts two numbers and keeps subnormal ones. The pairs are integers: the
/// compiler would not treat extracted numbers as bits alone.
static Scalar narrowPairs(Scalar x) {
  OpBuilder &b = x.getBuilder();
  mlir::Location loc = x.getLoc();
  auto vector = dyn_cast<VectorType>(x.value().getType());
  SmallVector<Value> lanes{x.value()};
  if (vector)
    lanes = llvm::to_vector_of<Value>(vector::ToElementsOp::create(b, loc, x.value()).getElements());
  auto pairOf = [&](Value low, Value high) -> Value {
    auto type = VectorType::get({2}, b.getBF16Type());
    Value pair = LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr("llvm.nvvm.ff2bf16x2.rn"), {high, low})
                     .getResult(0);
    return LLVM::BitcastOp::create(b, loc, b.getI32Type(), pair);
  };
  if (lanes.size() == 1) {
    Value low = arith::TruncIOp::create(b, loc, b.getI16Type(), pairOf(lanes[0], lanes[0]));
    return x.with(vector ? vector::FromElementsOp::create(b, loc, vector.clone(b.getI16Type()), low).getResult() : low,
                  DType::bf16);
  }
  SmallVector<Value> pairs;
  for (size_t i = 0; i < lanes.size(); i += 2)
    pairs.push_back(pairOf(lanes[i], lanes[i + 1]));
  auto words = VectorType::get({int64_t(pairs.size())}, b.getI32Type());
  Value all = vector::FromElementsOp::create(b, loc, words, pairs);
  return x.with(LLVM::BitcastOp::create(b, loc, vector.clone(b.getI16Type()), all), DType::bf16);
}

static Scalar narrowToBf16(Scalar x) {
  if (isOnGpu(x))
    return narrowPairs(x);
  Scalar bits = x.bitcast(DType::i32);
  Scalar isOdd = shiftRight(bits, 16) & bits.constant(1);
  Scalar rounded = shiftRight(bits + 0x7fff + isOdd, 16);
  Scalar quietNan = shiftRight(bits, 16) | bits.constant(0x40);
  return integerToInteger(select(x != x, quietNan, rounded), DType::i16).bitcast(DType::bf16);
}

// The exponent and mantissa of an 8-bit float are moved to their places in an f16, whose bias is 8 more than that of
// f8e4m3fn. Both steps are exact, subnormal numbers included: they become normal as f32.
static Scalar widenFloat8(Scalar x) {
  Scalar bits = integerToInteger(x.bitcast(DType::i8), DType::i16);
  if (x.dtype() == DType::f8e5m2)
    return convert<arith::ExtFOp>(shiftLeft(bits, 8).bitcast(DType::f16), DType::f32);
  // Without the copy of the sign in bit 14. NaN is the only number that gets to this bit when its last bit is added.
  Scalar half = shiftLeft(bits, 7) & bits.constant(int16_t(0xbf80));
  Scalar isNan = (half + 0x80) & bits.constant(0x4000);
  return convert<arith::ExtFOp>((half | isNan).bitcast(DType::f16), DType::f32) * 256;
}

static Scalar narrowToFloat8(Scalar x, DType to) {
  const bool hasInfinity = to == DType::f8e5m2;
  const unsigned dropped = hasInfinity ? 21 : 20; // bits of the mantissa
  const int bias = hasInfinity ? 15 : 7;
  Scalar bits = x.bitcast(DType::i32), magnitude = bits & bits.constant(0x7fffffff);
  Scalar isOdd = shiftRight(magnitude, dropped) & bits.constant(1);
  Scalar rounded = shiftRight(magnitude + ((1 << (dropped - 1)) - 1) + isOdd, dropped);
  Scalar normal = rounded - double((127 - bias) << (23 - dropped));
  // Subnormal numbers: the last bit of the sum with a power of two is the unit of the result.
  Scalar power = x.constant(std::ldexp(1.0, int(dropped) + 1 - bias));
  Scalar subnormal = (abs(x) + power).bitcast(DType::i32) - power.bitcast(DType::i32);
  Scalar result = select(magnitude < double((128 - bias) << 23), subnormal, normal);
  // Above the last number that rounds to a finite one: infinity, or NaN.
  const double overflow = hasInfinity ? 0x7c : 0x7f, most = hasInfinity ? 61440 : 464;
  result = select(hasInfinity ? abs(x) < most : abs(x) <= most, result, bits.constant(overflow));
  result = select(x == x, result, bits.constant(0x7f));
  return integerToInteger(result | (shiftRight(bits, 24) & bits.constant(0x80)), DType::u8).bitcast(to);
}

static Scalar floatToFloat(Scalar x, DType to) {
  if (x.dtype() == DType::bf16)
    return floatToFloat(widenBf16(x), to);
  if (x.dtype() == to)
    return x;
  if (isFloat8(x.dtype()))
    return floatToFloat(widenFloat8(x), to);
  if (isFloat8(to))
    return narrowToFloat8(floatToFloat(x, DType::f32), to);
  if (x.dtype() == to)
    return x;
  if (x.dtype() == DType::f16)
    return floatToFloat(convert<arith::ExtFOp>(x, DType::f32), to);
  if (to == DType::bf16)
    return narrowToBf16(floatToFloat(x, DType::f32));
  if (to == DType::f64)
    return convert<arith::ExtFOp>(x, to);
  if (to == DType::f16)
    return convert<arith::TruncFOp>(floatToFloat(x, DType::f32), to);
  return convert<arith::TruncFOp>(x, to);
}

/// Float to integer: truncates, saturates, and gives 0 for NaN. The operand of arith.fptosi is clamped first, because
/// its result is undefined out of range.
static Scalar floatToInteger(Scalar x, DType to) {
  DType via = byteWidth(to) < 4 ? DType::i32 : to; // instructions exist for 32 and 64 bits
  unsigned digits = widthOf(to) - (to == DType::u8 ? 0 : 1);
  double low = to == DType::u8 ? 0 : -std::ldexp(1.0, digits);
  // The largest value of x's type that is at most 2^digits - 1.
  unsigned mantissa = x.dtype() == DType::f64 ? 53 : 24;
  double high = std::ldexp(1.0, digits) - (digits > mantissa ? std::ldexp(1.0, digits - mantissa) : 1);
  Scalar lowest = x.constant(low), highest = x.constant(high);
  Scalar inRange = select(x > low, x, lowest);
  inRange = select(inRange < high, inRange, highest);
  Scalar result = convert<arith::FPToSIOp>(inRange, via);
  if (digits > mantissa)
    result = select(x > high, ~result.constant(low), result);
  return integerToInteger(select(x == x, result, result.constant(0)), to);
}

Scalar Scalar::to(DType target) const {
  const Scalar &x = *this;
  if (target == type)
    return x;
  const bool isNarrow = isFloat() && byteWidth(type) <= 2;
  if (burin::isBool(target))
    return (isNarrow ? floatToFloat(x, DType::f32) : x).nonZero();
  if (isFloat()) {
    if (burin::isFloat(target))
      return floatToFloat(x, target);
    return floatToInteger(isNarrow ? floatToFloat(x, DType::f32) : x, target);
  }
  if (!burin::isFloat(target))
    return integerToInteger(x, target);
  DType via = byteWidth(target) <= 2 ? DType::f32 : target;
  Scalar converted = isUnsigned() ? convert<arith::UIToFPOp>(x, via) : convert<arith::SIToFPOp>(x, via);
  return floatToFloat(converted, target);
}

Value castLanes(OpBuilder &builder, mlir::Location loc, Value lane, DType from, DType to) {
  return Scalar(builder, loc, lane, from).to(to).value();
}

} // namespace burin::codegen
