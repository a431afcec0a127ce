#include "codegen/scalar/base/Scalar.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace burin::codegen {

Type laneType(MLIRContext *context, DType type) {
  switch (type) {
  case DType::f32:
    return Float32Type::get(context);
  case DType::f64:
    return Float64Type::get(context);
  case DType::f16:
    return Float16Type::get(context);
  case DType::boolean:
    return IntegerType::get(context, 1);
  default:
    return IntegerType::get(context, 8 * byteWidth(type));
  }
}

/// The type of `value` with another element type and the same number of lanes.
static Type lanesLike(Value value, Type element) {
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    return vector.clone(element);
  return element;
}

Scalar Scalar::constant(double c) const {
  Type element = laneType(builder->getContext(), type);
  TypedAttr one;
  if (isFloat())
    one = builder->getFloatAttr(element, c);
  else
    one = builder->getIntegerAttr(element, isBool() ? c != 0 : static_cast<int64_t>(c));
  if (auto vector = dyn_cast<VectorType>(lane.getType()))
    one = DenseElementsAttr::get(vector.clone(element), Attribute(one));
  return with(arith::ConstantOp::create(*builder, loc, one));
}

Scalar Scalar::bitcast(DType to) const {
  return with(arith::BitcastOp::create(*builder, loc, lanesLike(lane, laneType(builder->getContext(), to)), lane), to);
}

Scalar Scalar::nonZero() const { return isBool() ? *this : *this != 0; }

// ---- building blocks

/// Bools are i32 0 or 1 in arithmetic.
static Scalar arithmetic(Scalar x) { return x.isBool() ? x.to(DType::i32) : x; }

template <class FloatOp, class IntOp> static Scalar binary(Scalar x, Scalar y) {
  x = arithmetic(x), y = arithmetic(y);
  if (x.isFloat())
    return x.with(FloatOp::create(x.getBuilder(), x.getLoc(), x.value(), y.value()));
  return x.with(IntOp::create(x.getBuilder(), x.getLoc(), x.value(), y.value()));
}

template <class Op> static Scalar unary(Scalar x) {
  return x.with(Op::create(x.getBuilder(), x.getLoc(), x.value()).getResult());
}

/// Integers and bools only: an operation on the bits.
template <class Op> static Scalar bits(Scalar x, Scalar y) {
  return x.with(Op::create(x.getBuilder(), x.getLoc(), x.value(), y.value()).getResult());
}

static Scalar compare(Scalar x, Scalar y, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofSigned,
                      arith::CmpIPredicate ofUnsigned) {
  OpBuilder &b = x.getBuilder();
  if (x.isFloat())
    return x.with(arith::CmpFOp::create(b, x.getLoc(), ofFloats, x.value(), y.value()), DType::boolean);
  auto predicate = x.isUnsigned() ? ofUnsigned : ofSigned;
  return x.with(arith::CmpIOp::create(b, x.getLoc(), predicate, x.value(), y.value()), DType::boolean);
}

// ---- arithmetic

Scalar operator+(Scalar x, Scalar y) { return binary<arith::AddFOp, arith::AddIOp>(x, y); }
Scalar operator-(Scalar x, Scalar y) { return binary<arith::SubFOp, arith::SubIOp>(x, y); }
Scalar operator*(Scalar x, Scalar y) { return binary<arith::MulFOp, arith::MulIOp>(x, y); }
Scalar operator/(Scalar x, Scalar y) {
  assert(x.isFloat() && "integers divide by floorDivide");
  return x.with(arith::DivFOp::create(x.getBuilder(), x.getLoc(), x.value(), y.value()));
}
Scalar operator-(Scalar x) {
  x = arithmetic(x);
  return x.isFloat() ? unary<arith::NegFOp>(x) : x.constant(0) - x;
}
Scalar fma(Scalar a, Scalar b, Scalar c) {
  return a.with(math::FmaOp::create(a.getBuilder(), a.getLoc(), a.value(), b.value(), c.value()));
}

Scalar abs(Scalar x) {
  x = arithmetic(x);
  if (x.isFloat())
    return unary<math::AbsFOp>(x);
  return x.isUnsigned() ? x : select(x < 0, -x, x);
}

// Written so that LLVM emits the comparison and first select as one instruction, and drops the second select (for NaN
// in `y`) if `y` is a constant.
Scalar max(Scalar x, Scalar y) {
  x = arithmetic(x), y = arithmetic(y);
  Scalar larger = select(y > x, y, x);
  return x.isFloat() ? select(y != y, y, larger) : larger;
}
Scalar min(Scalar x, Scalar y) {
  x = arithmetic(x), y = arithmetic(y);
  Scalar smaller = select(y < x, y, x);
  return x.isFloat() ? select(y != y, y, smaller) : smaller;
}

// ---- comparisons

using FP = arith::CmpFPredicate;
using IP = arith::CmpIPredicate;
Scalar operator<(Scalar x, Scalar y) { return compare(x, y, FP::OLT, IP::slt, IP::ult); }
Scalar operator<=(Scalar x, Scalar y) { return compare(x, y, FP::OLE, IP::sle, IP::ule); }
Scalar operator>(Scalar x, Scalar y) { return compare(x, y, FP::OGT, IP::sgt, IP::ugt); }
Scalar operator>=(Scalar x, Scalar y) { return compare(x, y, FP::OGE, IP::sge, IP::uge); }
Scalar operator==(Scalar x, Scalar y) { return compare(x, y, FP::OEQ, IP::eq, IP::eq); }
Scalar operator!=(Scalar x, Scalar y) { return compare(x, y, FP::UNE, IP::ne, IP::ne); }

Scalar isInf(Scalar x) {
  if (x.isFloat())
    return abs(x) == INFINITY;
  return x != x;
}

// ---- bits and selection

Scalar operator&(Scalar x, Scalar y) { return bits<arith::AndIOp>(x, y); }
Scalar operator|(Scalar x, Scalar y) { return bits<arith::OrIOp>(x, y); }
Scalar operator^(Scalar x, Scalar y) { return bits<arith::XOrIOp>(x, y); }
Scalar operator~(Scalar x) { return x ^ x.constant(x.isBool() ? 1 : -1); }
Scalar operator!(Scalar x) { return ~x.nonZero(); }

Scalar select(Scalar condition, Scalar ifTrue, Scalar ifFalse) {
  return ifTrue.with(arith::SelectOp::create(ifTrue.getBuilder(), ifTrue.getLoc(), condition.nonZero().value(),
                                             ifTrue.value(), ifFalse.value()));
}

Scalar copysign(Scalar magnitude, Scalar sign) {
  return magnitude.with(
      math::CopySignOp::create(magnitude.getBuilder(), magnitude.getLoc(), magnitude.value(), sign.value()));
}

/// Whether `y` is a legal shift amount, 0 <= y < width: an unsigned comparison, so that negative amounts are illegal.
static Scalar isLegalShift(Scalar y) {
  Scalar width = y.constant(8 * byteWidth(y.dtype()));
  return y.with(arith::CmpIOp::create(y.getBuilder(), y.getLoc(), IP::ult, y.value(), width.value()), DType::boolean);
}

Scalar shiftLeft(Scalar x, Scalar y) {
  if (x.isBool())
    return x & ~y; // bool: a shift by 1 clears the only bit
  Scalar legal = isLegalShift(y);
  return select(legal, bits<arith::ShLIOp>(x, select(legal, y, y.constant(0))), x.constant(0));
}

Scalar shiftRight(Scalar x, Scalar y) {
  if (x.isBool())
    return x & ~y;
  Scalar legal = isLegalShift(y);
  if (x.isUnsigned())
    return select(legal, bits<arith::ShRUIOp>(x, select(legal, y, y.constant(0))), x.constant(0));
  return bits<arith::ShRSIOp>(x, select(legal, y, y.constant(8.0 * byteWidth(y.dtype()) - 1)));
}

Scalar shiftLeft(Scalar x, unsigned count) { return bits<arith::ShLIOp>(x, x.constant(count)); }
Scalar shiftRight(Scalar x, unsigned count) {
  return x.isUnsigned() ? bits<arith::ShRUIOp>(x, x.constant(count)) : bits<arith::ShRSIOp>(x, x.constant(count));
}

// ---- rounding

template <class Op> static Scalar rounded(Scalar x) {
  x = arithmetic(x);
  return x.isFloat() ? unary<Op>(x) : x;
}
Scalar floor(Scalar x) { return rounded<math::FloorOp>(x); }
Scalar ceil(Scalar x) { return rounded<math::CeilOp>(x); }
Scalar round(Scalar x) { return rounded<math::RoundEvenOp>(x); }
Scalar trunc(Scalar x) { return rounded<math::TruncOp>(x); }
Scalar sqrt(Scalar x) { return unary<math::SqrtOp>(x); }

} // namespace burin::codegen
