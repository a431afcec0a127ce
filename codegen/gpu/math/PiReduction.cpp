#include "codegen/gpu/math/PiReduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace burin::codegen {
namespace {

using Pair = DoubleDouble;

constexpr unsigned kTable = 1280, kWindow = 256;
/// 2 / pi * 2^1280.
constexpr const char *kTwoByPi =
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d";

/// Subtracts multiples of pi / 2 in three steps (Cody and Waite), for |x| < 2^20.
PiReduced ofModerate(Scalar x) {
  Whole k = nearestInteger(x * 0x1.45f306dc9c883p-1);
  Pair rest = Pair(x) - product(k.value, x.constant(0x1.921fb54442d18p0));
  rest = rest - product(k.value, x.constant(0x1.1a62633145c07p-54));
  rest = rest - Pair(k.value * -0x1.f1976b7ed8fbcp-110);
  return {k.bits, rest};
}

/// Multiplies x = m 2^e by the relevant bits of 2 / pi (Payne and Hanek); higher bits give multiples of four quadrants.
PiReduced ofLarge(Scalar x) {
  OpBuilder &b = x.getBuilder();
  mlir::Location loc = x.getLoc();
  Type i64 = b.getI64Type(), window = b.getIntegerType(kWindow), table = b.getIntegerType(kTable);
  auto number = [&](Type type, const llvm::APInt &n) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n));
  };
  auto small = [&](uint64_t n) { return number(window, llvm::APInt(kWindow, n)); };
  Scalar bits = abs(x).bitcast(DType::i64);
  Scalar m = (bits & bits.constant(double((int64_t(1) << 52) - 1))) | bits.constant(double(int64_t(1) << 52));
  Scalar shift = double(kTable + 2 - kWindow + 1075) - shiftRight(bits, 52);
  Value all = number(table, llvm::APInt(kTable, kTwoByPi, 16));
  Value part = arith::ShRUIOp::create(b, loc, all, arith::ExtUIOp::create(b, loc, table, shift.value()));
  part = arith::TruncIOp::create(b, loc, window, part);
  Value turns = arith::MulIOp::create(b, loc, arith::ExtUIOp::create(b, loc, window, m.value()), part);
  // The top two bits are the quadrant; the rest, as a signed number, is the distance from the nearest multiple of pi /
  // 2.
  Value quadrant = arith::ShRUIOp::create(b, loc, turns, small(kWindow - 2));
  Value rest = arith::ShLIOp::create(b, loc, turns, small(2));
  Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rest, small(0));
  quadrant = arith::AddIOp::create(b, loc, quadrant, arith::ExtUIOp::create(b, loc, window, isNegative));
  Value size = arith::SelectOp::create(b, loc, isNegative, arith::SubIOp::create(b, loc, small(0), rest), rest);
  Value zeros = math::CountLeadingZerosOp::create(b, loc, size);
  size = arith::ShLIOp::create(b, loc, size, zeros);
  // The leading 106 bits, which a double-double holds.
  auto bitsFrom = [&](unsigned first, unsigned count) {
    Value piece = arith::ShRUIOp::create(b, loc, size, small(kWindow - first - count));
    piece = arith::TruncIOp::create(b, loc, i64, piece);
    piece = arith::AndIOp::create(b, loc, piece, number(i64, llvm::APInt(64, (uint64_t(1) << count) - 1)));
    return Scalar(b, loc, piece, DType::i64).to(DType::f64);
  };
  Pair fraction(bitsFrom(0, 53) * 0x1p-53, bitsFrom(53, 53) * 0x1p-106);
  Scalar exponent(b, loc, arith::TruncIOp::create(b, loc, i64, zeros), DType::i64);
  exponent = select(exponent < 200, exponent, exponent.constant(200));
  fraction = scaled(fraction, powerOfTwoF64(-exponent)) * piHalf(x);
  Scalar isBelow(b, loc, isNegative, DType::boolean);
  Scalar places(b, loc, arith::TruncIOp::create(b, loc, i64, quadrant), DType::i64);
  fraction = select(isBelow, -fraction, fraction);
  Scalar isMirrored = x < 0; // sin(-x), cos(-x): the angle is negated
  return {select(isMirrored, -places, places), select(isMirrored, -fraction, fraction)};
}

} // namespace

PiReduced reducedByPiHalf(Scalar x) {
  OpBuilder &b = x.getBuilder();
  mlir::Location loc = x.getLoc();
  // Infinity and NaN take the cheap branch; the caller ignores the result.
  Scalar isLarge = (abs(x) >= 0x1p20) & (abs(x) < INFINITY);
  auto way = [&](PiReduced (*reduce)(Scalar)) {
    return [&x, loc, reduce](OpBuilder &inner, mlir::Location) {
      PiReduced r = reduce(Scalar(inner, loc, x.value(), DType::f64));
      scf::YieldOp::create(inner, loc, ValueRange{r.quadrant.value(), r.rest.hi.value(), r.rest.lo.value()});
    };
  };
  auto branch = scf::IfOp::create(b, loc, isLarge.value(), way(ofLarge), way(ofModerate));
  return {Scalar(b, loc, branch.getResult(0), DType::i64), {x.with(branch.getResult(1)), x.with(branch.getResult(2))}};
}

} // namespace burin::codegen
