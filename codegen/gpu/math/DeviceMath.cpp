#include "codegen/gpu/math/DeviceMath.h"
#include "codegen/gpu/math/DoubleDouble.h"
#include "codegen/gpu/math/PiReduction.h"
#include "codegen/scalar/math/Math.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cmath>

using namespace mlir;

namespace burin::codegen {
namespace {

using Pair = DoubleDouble;

/// NaN; x provides the type and the builder.
Scalar nan(Scalar x) { return x.constant(NAN); }
Scalar isNaN(Scalar x) { return x != x; }
Scalar limited(Scalar x, double least, double most) {
  x = select(x < least, x.constant(least), x);
  return select(x > most, x.constant(most), x);
}
/// Applies `function` to |x| and restores the sign of x.
template <class F> Scalar odd(Scalar x, F function) { return copysign(function(abs(x)), x); }

// ---- exponentials
Scalar expOf(Pair x) {
  Pair inside(limited(x.hi, -760, 720), select(abs(x.hi) < 720, x.lo, x.lo.constant(0)));
  ExpParts e = expParts(inside);
  Scalar result = timesPowerOfTwoF64((Pair(x.hi.constant(1)) + e.m).rounded(), e.k);
  return select(isNaN(x.hi), x.hi, result);
}
Scalar exp64(Scalar x) { return expOf(x); }

Scalar expm1Of(Scalar x) {
  Scalar result = expm1(Pair(limited(x, -60, 690))).rounded();
  result = select(x > 690, expOf(x), result);
  return select(abs(x) < 0x1p-60, x, select(isNaN(x), x, result));
}

/// exp(x) / 2 and exp(-x) / 2, for 0 <= x < 800.
std::pair<Pair, Pair> halfExps(Scalar x) {
  ExpParts e = expParts(limited(x, 0, 720));
  Pair m = Pair(x.constant(1)) + e.m, half = scaled(m, x.constant(0.5));
  // Finite up to 2^1024, infinite beyond.
  Scalar part = shiftRight(e.k, 1);
  Pair grown = scaled(scaled(half, powerOfTwoF64(part)), powerOfTwoF64(e.k - part));
  Pair shrunk = Pair(x.constant(0.25)) / half;
  return {grown, scaled(scaled(shrunk, powerOfTwoF64(-part)), powerOfTwoF64(part - e.k))};
}
Scalar coshOf(Scalar x) {
  Scalar a = abs(x);
  auto [grown, shrunk] = halfExps(a);
  return select(a < 40, (grown + shrunk).rounded(), select(a < 720, grown.hi, a * INFINITY));
}
Scalar sinhOf(Scalar x) {
  return odd(x, [](Scalar a) {
    auto [grown, shrunk] = halfExps(a);
    Pair m = expm1(Pair(limited(a, 0, 1)));
    Scalar small = scaled(m + m / (m + Pair(a.constant(1))), a.constant(0.5)).rounded();
    Scalar large = select(a < 40, (grown - shrunk).rounded(), select(a < 720, grown.hi, a * INFINITY));
    return select(a < 0x1p-30, a, select(a < 1, small, select(isNaN(a), a, large)));
  });
}
Scalar tanhOf(Scalar x) {
  return odd(x, [](Scalar a) {
    Pair m = expm1(scaled(Pair(limited(a, 0, 25)), a.constant(2)));
    Scalar result = (m / (m + Pair(a.constant(2)))).rounded();
    return select(a < 0x1p-30, a, select(isNaN(a), a, result));
  });
}

// ---- logarithms
Pair ln2Of(Scalar like) { return Pair::constant(like, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56); }
/// Logarithm of positive numbers, denormals and infinity included.
Pair logOf(Pair x) {
  Scalar isSmall = x.hi < 0x1p-900;
  Pair inside = scaled(x, select(isSmall, x.hi.constant(0x1p120), x.hi.constant(1)));
  Pair result = log(inside);
  return select(isSmall, result - ln2Of(x.hi) * Pair(x.hi.constant(120)), result);
}
Scalar withPole(Scalar result, Scalar x, double pole) {
  result = select(x < INFINITY, result, x);
  return select(x <= pole, select(x == pole, x.constant(-INFINITY), nan(x)), result);
}
Scalar log64(Scalar x) { return withPole(logOf(x).rounded(), x, 0); }
/// log(1 + x) of a pair, x > -1.
Pair log1pOf(Pair x) { return logOf(Pair(x.hi.constant(1)) + x); }
Scalar log1p64(Scalar x) {
  Scalar result = log1pOf(x).rounded();
  return withPole(select(abs(x) < 0x1p-60, x, result), x, -1);
}

Scalar asinhOf(Scalar x) {
  return odd(x, [](Scalar a) {
    Pair inside = limited(a, 0, 0x1p30), one = a.constant(1), square = inside * inside;
    Scalar small = log1pOf(inside + square / (one + sqrt(one + square))).rounded();
    Scalar large = (logOf(a) + ln2Of(a)).rounded();
    large = select(a < INFINITY, large, a);
    return select(a < 0x1p-30, a, select(a < 0x1p30, small, large));
  });
}
Scalar acoshOf(Scalar x) {
  Pair t = sum(limited(x, 1, 0x1p30), x.constant(-1));
  Scalar small = log1pOf(t + sqrt(t * t + scaled(t, x.constant(2)))).rounded();
  Scalar large = select(x < INFINITY, (logOf(x) + ln2Of(x)).rounded(), x);
  return select(x < 1, nan(x), select(x < 0x1p30, small, large));
}
Scalar atanhOf(Scalar x) {
  return odd(x, [](Scalar a) {
    Pair inside = select(a < 1, a, a.constant(0));
    Pair z = scaled(inside, a.constant(2)) / (Pair(a.constant(1)) - inside);
    Scalar result = scaled(log1pOf(z), a.constant(0.5)).rounded();
    result = select(a < 0x1p-30, a, result);
    return select(a < 1, result, select(a == 1, a.constant(INFINITY), nan(a)));
  });
}

// ---- circles
SinCos sinCos(Scalar x, Scalar &quadrant) {
  PiReduced reduced = reducedByPiHalf(x);
  quadrant = reduced.quadrant;
  return sinCosReduced(reduced.rest);
}
/// The sine, or with quarter = 1 the cosine.
Scalar circle(Scalar x, int64_t quarter) {
  Scalar quadrant = x.bitcast(DType::i64);
  SinCos at = sinCos(x, quadrant);
  quadrant = quadrant + double(quarter);
  Scalar value = select((quadrant & quadrant.constant(1)) == 0, at.sin.rounded(), at.cos.rounded());
  value = select((quadrant & quadrant.constant(2)) == 0, value, -value);
  return select(abs(x) < INFINITY, value, nan(x));
}
Scalar sin64(Scalar x) { return select(abs(x) < 0x1p-30, x, circle(x, 0)); }
Scalar cos64(Scalar x) { return circle(x, 1); }
Scalar tan64(Scalar x) {
  Scalar quadrant = x.bitcast(DType::i64);
  SinCos at = sinCos(x, quadrant);
  Scalar isEven = (quadrant & quadrant.constant(1)) == 0;
  Scalar value = (select(isEven, at.sin, -at.cos) / select(isEven, at.cos, at.sin)).rounded();
  return select(abs(x) < 0x1p-30, x, select(abs(x) < INFINITY, value, nan(x)));
}
Pair piOf(Scalar like) { return scaled(piHalf(like), like.constant(2)); }

Scalar atan64(Scalar x) {
  return odd(x, [](Scalar a) {
    Scalar result = atan2Positive(limited(a, 0, 0x1p70), Pair(a.constant(1))).rounded();
    return select(a < 0x1p-30, a, select(isNaN(a), a, result));
  });
}
/// sqrt(1 - x^2) for |x| <= 1.
Pair beside(Scalar x) {
  Scalar one = x.constant(1);
  return sqrt(sum(one, x) * sum(one, -x));
}
Scalar asin64(Scalar x) {
  return odd(x, [](Scalar a) {
    Scalar result = atan2Positive(limited(a, 0, 1), beside(limited(a, 0, 1))).rounded();
    return select(a < 0x1p-30, a, select(a <= 1, result, nan(a)));
  });
}
Scalar acos64(Scalar x) {
  Scalar a = limited(abs(x), 0, 1);
  Pair angle = atan2Positive(beside(a), a);
  Scalar result = select(x < 0, piOf(x) - angle, angle).rounded();
  return select(abs(x) <= 1, result, nan(x));
}
Scalar atan2Of(Scalar y, Scalar x) {
  Scalar a = abs(y), b = abs(x), one = x.constant(1), zero = x.constant(0), infinity = x.constant(INFINITY);
  // Two infinities count as 1 and 1, two zeros as 0 and 1; other numbers are scaled to avoid overflow and underflow.
  Scalar bothInfinite = (a == infinity) & (b == infinity), bothZero = (a == 0) & (b == 0);
  Scalar largest = max(a, b),
         scale = select(largest > 0x1p500, one * 0x1p-600, select(largest < 0x1p-500, one * 0x1p600, one));
  Scalar dy = select(bothInfinite, one,
                     select(bothZero, zero, select(a == infinity, one, select(b == infinity, zero, a * scale))));
  Scalar dx = select(bothInfinite | bothZero, one, select(a == infinity, zero, select(b == infinity, one, b * scale)));
  Pair angle = atan2Positive(dy, dx);
  // For small angles the quotient is the angle, also if it is denormal.
  Scalar isTiny = (dy < dx * 0x1p-40) & !(bothInfinite | bothZero);
  Scalar isLeft = (x < 0) | ((x == 0) & (copysign(one, x) < 0));
  Scalar right = select(isTiny, a / b, angle.rounded());
  Scalar result = select(isLeft, (piOf(x) - angle).rounded(), right);
  return select(isNaN(x) | isNaN(y), nan(x), copysign(result, y));
}

// ---- powers
Scalar powOf(Scalar x, Scalar y) {
  Scalar a = abs(x), one = x.constant(1), zero = x.constant(0), infinity = x.constant(INFINITY);
  Scalar whole = abs(y) >= 0x1p53, floored = floor(y), isWhole = whole | (floored == y);
  Scalar isOdd = !whole & (floored == y) & (floor(y * 0.5) != y * 0.5);
  Scalar bounded = limited(y, -0x1p70, 0x1p70);
  Scalar isPlain = (a > 0) & (a < infinity);
  Pair exponent = logOf(select(isPlain, a, one)) * Pair(bounded);
  Scalar result = expOf(exponent);
  // Special cases: base 0 or infinity, infinite exponent.
  Scalar grows = y > 0;
  result = select(a == 0, select(grows, zero, infinity), result);
  result = select(a == infinity, select(grows, infinity, zero), result);
  Scalar far = select((a > 1) == grows, infinity, zero);
  result = select(abs(y) == infinity, select(a == 1, one, far), result);
  result = select((x < 0) & !isWhole & isPlain, nan(x), result);
  Scalar isNegative = (copysign(one, x) < 0) & isOdd;
  result = select(isNegative, -result, result);
  result = select(isNaN(x) | isNaN(y), nan(x), result);
  return select((y == 0) | (x == 1), one, result);
}

// ---- the error function
/// 2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!, whose terms are all positive.
Scalar erfNear(Scalar a) {
  OpBuilder &b = a.getBuilder();
  mlir::Location loc = a.getLoc();
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  constexpr int64_t terms = 48; // for a <= 2.5 the remainder is 2^-70 of the sum
  Pair first = a, twice = scaled(Pair(a) * Pair(a), a.constant(2));
  auto loop = scf::ForOp::create(
      b, loc, index(0), index(terms), index(1),
      ValueRange{first.hi.value(), first.lo.value(), first.hi.value(), first.lo.value(), a.constant(1).value()},
      [&](OpBuilder &inner, mlir::Location, Value, ValueRange v) {
        auto at = [&](size_t i) { return Scalar(inner, loc, v[i], DType::f64); };
        Scalar n = at(4) + 2;
        auto here = [&](Scalar x) { return Scalar(inner, loc, x.value(), DType::f64); };
        Pair term = Pair(at(2), at(3)) * Pair(here(twice.hi), here(twice.lo)) / Pair(n),
             total = Pair(at(0), at(1)) + term;
        scf::YieldOp::create(
            inner, loc, ValueRange{total.hi.value(), total.lo.value(), term.hi.value(), term.lo.value(), n.value()});
      });
  Pair total(a.with(loop.getResult(0)), a.with(loop.getResult(1)));
  ExpParts e = expParts(scaled(twice, a.constant(-0.5)));
  Pair factor = scaled(Pair(a.constant(1)) + e.m, powerOfTwoF64(e.k));
  return (total * factor * Pair::constant(a, 0x1.20dd750429b6dp0, 0x1.1ae3a914fed80p-56)).rounded();
}
/// 1 - exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / …))), for 2 <= x <= 6.5.
Scalar erfFar(Scalar a) {
  OpBuilder &b = a.getBuilder();
  mlir::Location loc = a.getLoc();
  auto index = [&](int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); };
  constexpr int64_t depth = 64;
  auto loop = scf::ForOp::create(
      b, loc, index(0), index(depth), index(1), ValueRange{a.value(), a.constant(0.5 * depth).value()},
      [&](OpBuilder &inner, mlir::Location, Value, ValueRange v) {
        Scalar below(inner, loc, v[0], DType::f64), n(inner, loc, v[1], DType::f64);
        Scalar x(inner, loc, a.value(), DType::f64);
        scf::YieldOp::create(inner, loc, ValueRange{(x + n / below).value(), (n - 0.5).value()});
      });
  Scalar rest = expOf(-(Pair(a) * Pair(a))) * (0.5 * M_2_SQRTPI) / a.with(loop.getResult(0));
  return 1 - rest;
}
Scalar erf64(Scalar x) {
  return odd(x, [](Scalar a) {
    Scalar near = erfNear(limited(a, 0, 2.5)), far = erfFar(limited(a, 2.5, 6.5));
    return select(isNaN(a), a, select(a < 0x1p-500, a * M_2_SQRTPI, select(a < 2.5, near, far)));
  });
}

// ---- remainders
/// Long division, bit by bit.
Scalar fmodOf(Scalar x, Scalar y) {
  OpBuilder &b = x.getBuilder();
  mlir::Location loc = x.getLoc();
  // Splits |x| and |y| into m * 2^e with an integer m whose highest bit is set; denormals are normalised.
  auto split = [](Scalar a, Scalar &m, Scalar &e) {
    Scalar isSmall = a < 0x1p-1022;
    Scalar bits = select(isSmall, a * 0x1p54, a).bitcast(DType::i64);
    Scalar mask = bits.constant(double((int64_t(1) << 52) - 1)), top = bits.constant(double(int64_t(1) << 52));
    m = (bits & mask) | top;
    e = shiftRight(bits, 52) - select(isSmall, bits.constant(54), bits.constant(0));
  };
  Scalar mx = x.bitcast(DType::i64), ex = mx, my = mx, ey = mx;
  split(abs(x), mx, ex);
  split(abs(y), my, ey);
  auto turns = scf::WhileOp::create(
      b, loc, TypeRange{mx.value().getType(), ex.value().getType()}, ValueRange{mx.value(), ex.value()},
      [&](OpBuilder &inner, mlir::Location, ValueRange v) {
        Scalar e(inner, loc, v[1], DType::i64);
        scf::ConditionOp::create(inner, loc, (e > ey).value(), v);
      },
      [&](OpBuilder &inner, mlir::Location, ValueRange v) {
        Scalar m(inner, loc, v[0], DType::i64), e(inner, loc, v[1], DType::i64);
        Scalar by(inner, loc, my.value(), DType::i64);
        Scalar rest = select(m >= by, m - by, m);
        scf::YieldOp::create(inner, loc, ValueRange{shiftLeft(rest, 1).value(), (e - 1).value()});
      });
  Scalar m = mx.with(turns.getResult(0));
  Scalar rest = select(m >= my, m - my, m);
  // Exact: the remainder is smaller than |y| and a multiple of the unit in the last place of y.
  constexpr double bias = 1023 + 52;
  Scalar result = timesPowerOfTwoF64(rest.to(DType::f64), ey - bias);
  result = select(abs(x) < abs(y), abs(x), result);
  result = copysign(result, x);
  return select((y == 0) | isNaN(y) | !(abs(x) < INFINITY), nan(x), result);
}

/// The function by its C name without the suffix of f32 forms; nullopt if kernels do not call it.
std::optional<Scalar> functionOf(llvm::StringRef name, ArrayRef<Scalar> x) {
  using One = Scalar (*)(Scalar);
  static const std::pair<llvm::StringLiteral, One> ones[] = {
      {"exp", exp64},     {"expm1", expm1Of}, {"sinh", sinhOf},   {"cosh", coshOf},   {"tanh", tanhOf}, {"log", log64},
      {"log1p", log1p64}, {"asinh", asinhOf}, {"acosh", acoshOf}, {"atanh", atanhOf}, {"sin", sin64},   {"cos", cos64},
      {"tan", tan64},     {"asin", asin64},   {"acos", acos64},   {"atan", atan64},   {"erf", erf64},
  };
  for (auto &[known, function] : ones)
    if (name == known)
      return function(x[0]);
  if (name == "atan2")
    return atan2Of(x[0], x[1]);
  if (name == "pow")
    return powOf(x[0], x[1]);
  if (name == "fmod")
    return fmodOf(x[0], x[1]);
  return std::nullopt;
}

void define(ModuleOp module, llvm::StringRef symbol, LLVM::LLVMFunctionType type) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  mlir::Location loc = module.getLoc();
  auto function = LLVM::LLVMFuncOp::create(b, loc, symbol, type, LLVM::Linkage::Internal);
  function.setNoInline(true);
  b.setInsertionPointToStart(function.addEntryBlock(b));
  bool isF32 = type.getReturnType().isF32();
  SmallVector<Scalar> arguments;
  for (Value argument : function.getArguments())
    arguments.push_back(Scalar(b, loc, argument, isF32 ? DType::f32 : DType::f64).to(DType::f64));
  if (isF32)
    symbol.consume_back("f");
  std::optional<Scalar> result = functionOf(symbol, arguments);
  if (!result) {
    function.erase();
    return;
  }
  LLVM::ReturnOp::create(b, loc, result->to(isF32 ? DType::f32 : DType::f64).value());
}

} // namespace

void defineLibm(ModuleOp module) {
  llvm::MapVector<llvm::StringRef, LLVM::LLVMFunctionType> called;
  module.walk([&](LLVM::CallOp call) {
    if (call.getCallee() && isLibmFunction(*call.getCallee()))
      called[*call.getCallee()] =
          LLVM::LLVMFunctionType::get(call.getResult().getType(), llvm::to_vector(call.getOperandTypes()));
  });
  for (auto &[symbol, type] : called)
    define(module, symbol, type);
}

} // namespace burin::codegen
