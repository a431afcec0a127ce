// Division and powers. Integers never trap: a zero divisor gives 0, the smallest integer divided by -1 wraps.
#include "codegen/scalar/math/MathParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

using namespace mlir;

namespace burin::codegen {

namespace {
struct Division {
  Scalar quotient, remainder; // truncated, as in C; both 0 if the divisor is 0
};
} // namespace

static Scalar asInteger(Scalar x) { return x.isBool() ? x.to(DType::i32) : x; }

static Division divideIntegers(Scalar x, Scalar y) {
  OpBuilder &b = x.getBuilder();
  Scalar byZero = y == 0, safe = select(byZero, y.constant(1), y);
  if (x.isUnsigned()) {
    Scalar q = x.with(arith::DivUIOp::create(b, x.getLoc(), x.value(), safe.value()));
    return {select(byZero, x.constant(0), q), select(byZero, x.constant(0), x - q * y)};
  }
  // Division by -1 is negation, so the only quotient that overflows (smallest integer by -1) never reaches the division
  // instruction, which would trap.
  Scalar byMinusOne = y == -1;
  safe = select(byMinusOne, y.constant(1), safe);
  Scalar q = x.with(arith::DivSIOp::create(b, x.getLoc(), x.value(), safe.value()));
  q = select(byZero, x.constant(0), select(byMinusOne, -x, q));
  return {q, select(byZero, x.constant(0), x - q * y)};
}

/// Whether the truncated quotient exceeds the floored one by 1: the remainder is not 0 and its sign differs from the
/// divisor's.
static Scalar roundsUp(Scalar remainder, Scalar divisor) {
  return (remainder != 0) & ((remainder < 0) ^ (divisor < 0));
}

Scalar floorDivide(Scalar x, Scalar y) {
  if (!x.isFloat()) {
    x = asInteger(x), y = asInteger(y);
    Division d = divideIntegers(x, y);
    return x.isUnsigned() ? d.quotient : select(roundsUp(d.remainder, y), d.quotient - 1, d.quotient);
  }
  // Computed from the exact remainder: floor(x / y) is wrong if the division rounds up to an integer.
  Scalar mod = fmod(x, y);
  Scalar q = (x - mod) / y;
  q = select(roundsUp(mod, y), q - 1, q);
  Scalar down = floor(q);
  down = select(q - down > 0.5, down + 1, down);
  Scalar result = select(q == 0, copysign(q.constant(0), x / y), down);
  return select(y == 0, x / y, result);
}

Scalar remainder(Scalar x, Scalar y) {
  if (!x.isFloat()) {
    x = asInteger(x), y = asInteger(y);
    Division d = divideIntegers(x, y);
    return x.isUnsigned() ? d.remainder : select(roundsUp(d.remainder, y), d.remainder + y, d.remainder);
  }
  Scalar mod = fmod(x, y);
  return select(roundsUp(mod, y), mod + y, mod);
}

Scalar fmod(Scalar x, Scalar y) {
  if (x.isFloat())
    return callLibm("fmod", {x, y});
  return divideIntegers(asInteger(x), asInteger(y)).remainder;
}

/// Square and multiply over all bits of the exponent, wrapping.
static Scalar integerPower(Scalar base, Scalar exponent) {
  OpBuilder &b = base.getBuilder();
  mlir::Location loc = base.getLoc();
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  int64_t bits = 8 * byteWidth(exponent.dtype());
  auto loop = scf::ForOp::create(
      b, loc, index(0), index(bits), index(1), ValueRange{base.constant(1).value(), base.value(), exponent.value()},
      [&](OpBuilder &inner, Location, Value, ValueRange state) {
        Scalar result(inner, loc, state[0], base.dtype()), square(inner, loc, state[1], base.dtype()),
            rest(inner, loc, state[2], exponent.dtype());
        result = select(rest & rest.constant(1), result * square, result);
        rest = shiftRight(rest, 1);
        scf::YieldOp::create(inner, loc, ValueRange{result.value(), (square * square).value(), rest.value()});
      });
  Scalar power = base.with(loop.getResult(0));
  if (base.isUnsigned())
    return power;
  // Negative exponents give 0 unless the base is 1 or -1, for which the loop's result is already right.
  return select((exponent < 0) & (base != 1) & (base != -1), base.constant(0), power);
}

Scalar pow(Scalar x, Scalar y) {
  if (!x.isFloat())
    return integerPower(asInteger(x), asInteger(y));
  // pow(x, 2) is x * x: common, correctly rounded, and the same whether or not the exponent is a constant.
  return exceptWhere(y != 2, x * x, "pow", {x, y});
}

} // namespace burin::codegen
