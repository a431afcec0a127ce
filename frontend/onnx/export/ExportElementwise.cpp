// Elementwise ops that are not a single operator with the same attributes.
#include "frontend/onnx/export/Emitter.h"
#include "ir/reference/ReferenceTensor.h"
#include <cmath>
#include <numbers>

namespace burin::onnx {

namespace {

/// Operators in short notation.
class Formula {
public:
  explicit Formula(const OpEmitter &e) : graph(e.graph) {}
  Ref constant(double value, const Ref &like) const { return graph.number(value, like.dtype); }
  Ref unary(const char *op, const Ref &x) const { return graph.node(op, {x}); }
  Ref test(const char *op, const Ref &x) const { return graph.node(op, {x}, {}, DType::boolean); }
  Ref binary(const char *op, const Ref &x, const Ref &y) const { return graph.node(op, {x, y}); }
  Ref binary(const char *op, const Ref &x, double y) const { return binary(op, x, constant(y, x)); }
  Ref compare(const char *op, const Ref &x, const Ref &y) const { return graph.node(op, {x, y}, {}, DType::boolean); }
  Ref compare(const char *op, const Ref &x, double y) const { return compare(op, x, constant(y, x)); }
  Ref where(const Ref &condition, const Ref &x, const Ref &y) const {
    return graph.node("Where", {condition, x, y}, {}, x.dtype);
  }
  Ref where(const Ref &condition, double x, const Ref &y) const { return where(condition, constant(x, y), y); }

private:
  GraphEmitter &graph;
};

DType onIntegers(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype == DType::u8 ? DType::i16 : dtype; }
DType withoutBool(DType dtype) { return isBool(dtype) ? DType::i32 : inSingle(dtype); }
DType widePower(DType dtype) { return isInteger(dtype) && byteWidth(dtype) < 4 ? DType::i64 : inSingle(dtype); }

// ---- arithmetic

/// Integers are unchanged.
Refs rounding(const OpEmitter &e) { return {isFloat(e.spec().dtype) ? e.same({e.in(0)}) : e.raw(0)}; }

Refs trunc(const OpEmitter &e) {
  Ref x = e.in(0);
  if (!isFloat(x.dtype))
    return {x};
  Formula f(e);
  return {f.where(f.compare("Less", x, 0), f.unary("Ceil", x), f.unary("Floor", x))};
}

/// Whether the divisor is a constant other than 0 and -1.
bool isSafeDivisor(const OpEmitter &e) {
  auto value = ir::uniformValue(e.operands[1]);
  return value && *value != 0 && *value != -1;
}

/// Replaces divisors 0 and -1 by 1, which leaves no remainder either, because some processors trap on them.
Ref safeDivisor(const OpEmitter &e, const Ref &y) {
  Formula f(e);
  if (isSafeDivisor(e))
    return y;
  Ref isZero = f.compare("Equal", y, 0);
  if (y.dtype == DType::u8)
    return f.where(isZero, 1, y);
  return f.where(f.compare("Or", isZero, f.compare("Equal", y, -1)), 1, y);
}

Ref modulo(const OpEmitter &e, const Ref &x, const Ref &y, bool signOfDividend) {
  return e.graph.node("Mod", {x, y}, {{"fmod", int64_t(signOfDividend)}});
}

Refs fmod(const OpEmitter &e) {
  Refs x = e.broadcasting();
  return {modulo(e, x[0], isFloat(x[0].dtype) ? x[1] : safeDivisor(e, x[1]), true)};
}

/// The remainder of x, with the sign of x, and whether that differs from the sign of the divisor.
struct Rest {
  Ref rest, isOff;
  Rest(const OpEmitter &e, const Ref &y, const Ref &rest) : rest(rest) {
    Formula f(e);
    Ref differs = f.compare("Xor", f.compare("Less", rest, 0), f.compare("Less", y, 0));
    isOff = f.compare("And", differs, f.test("Not", f.compare("Equal", rest, 0)));
  }
};

Refs remainder(const OpEmitter &e) {
  Refs x = e.broadcasting();
  if (!isFloat(x[0].dtype))
    return {modulo(e, x[0], safeDivisor(e, x[1]), false)};
  Formula f(e);
  Rest r(e, x[1], modulo(e, x[0], x[1], true));
  return {f.where(r.isOff, f.binary("Add", r.rest, x[1]), r.rest)};
}

Refs floorDivide(const OpEmitter &e) {
  Formula f(e);
  Refs operands = e.broadcasting();
  const Ref &x = operands[0], &y = operands[1];
  if (isFloat(x.dtype)) {
    Rest r(e, y, modulo(e, x, y, true));
    Ref whole = f.unary("Round", f.binary("Div", f.binary("Sub", x, r.rest), y)); // close to a whole number
    whole = f.binary("Sub", whole, e.graph.cast(r.isOff, x.dtype));
    Ref ratio = f.binary("Div", x, y); // for the sign of a quotient of 0
    Ref quotient = f.where(f.compare("Equal", whole, 0), f.binary("Mul", ratio, 0), whole);
    return {f.where(f.compare("Equal", y, 0), ratio, quotient)};
  }
  Ref safe = safeDivisor(e, y), quotient = f.binary("Div", x, safe);
  if (x.dtype != DType::u8) {
    Rest r(e, safe, f.binary("Sub", x, f.binary("Mul", quotient, safe)));
    quotient = f.binary("Sub", quotient, e.graph.cast(r.isOff, x.dtype));
  }
  if (isSafeDivisor(e))
    return {quotient};
  if (x.dtype != DType::u8)
    quotient = f.where(f.compare("Equal", y, -1), f.binary("Sub", f.constant(0, x), x), quotient);
  return {f.where(f.compare("Equal", y, 0), 0, quotient)};
}

Refs power(const OpEmitter &e) {
  Formula f(e);
  Refs operands = e.broadcasting();
  const Ref &x = operands[0], &y = operands[1];
  auto exponent = ir::uniformValue(e.operands[1]);
  if (isFloat(x.dtype) || e.spec().dtype == DType::u8 || (exponent && *exponent >= 0))
    return {e.same({x, y})};
  // Negative exponents give 0, except for bases 1 and -1.
  Ref isOdd = f.compare("Equal", modulo(e, y, f.constant(2, y), false), 1);
  Ref alternating = f.where(isOdd, f.constant(-1, x), f.constant(1, x));
  Ref inverse = f.where(f.compare("Equal", x, 1), 1, f.where(f.compare("Equal", x, -1), alternating, f.constant(0, x)));
  return {f.where(f.compare("Less", y, 0), inverse, e.same({x, f.binary("Max", y, 0)}))};
}

Refs atan2(const OpEmitter &e) {
  Formula f(e);
  Refs operands = e.broadcasting();
  const Ref &s = operands[0], &c = operands[1];
  auto isNegative = [&](const Ref &x) { // also for -0
    return f.compare("Or", f.compare("Less", x, 0), f.compare("Less", f.unary("Reciprocal", x), 0));
  };
  Ref areInfinite = f.compare("And", f.test("IsInf", s), f.test("IsInf", c));
  Ref diagonal = f.binary("Mul", f.unary("Sign", s), f.unary("Sign", c));
  Ref ratio = f.where(areInfinite, diagonal, f.binary("Div", s, c));
  ratio = f.where(f.compare("And", f.compare("Equal", s, 0), f.compare("Equal", c, c)), s, ratio);
  Ref angle = f.unary("Atan", ratio);
  Ref half = f.where(isNegative(s), f.constant(-std::numbers::pi, s), f.constant(std::numbers::pi, s));
  return {f.where(isNegative(c), f.binary("Add", angle, half), angle)};
}

Refs rsqrt(const OpEmitter &e) {
  Formula f(e);
  return {f.unary("Reciprocal", f.unary("Sqrt", e.in(0)))};
}

/// Accurate near 0 (Kahan): the error of u = exp(x) cancels against that of log(u).
Refs expm1(const OpEmitter &e) {
  Formula f(e);
  Ref x = e.in(0), u = f.unary("Exp", x), less = f.binary("Sub", u, 1);
  Ref exact = f.binary("Mul", less, f.binary("Div", x, f.unary("Log", u)));
  Ref isFar = f.compare("Or", f.compare("Equal", less, -1), f.test("IsInf", u));
  return {f.where(f.compare("Equal", u, 1), x, f.where(isFar, less, exact))};
}

Refs log1p(const OpEmitter &e) {
  Formula f(e);
  Ref x = e.in(0), u = f.binary("Add", x, 1), plain = f.unary("Log", u);
  Ref exact = f.binary("Mul", plain, f.binary("Div", x, f.binary("Sub", u, 1)));
  return {f.where(f.compare("Equal", u, 1), x, f.where(f.test("IsInf", u), plain, exact))};
}

// ---- activations

Refs relu(const OpEmitter &e) { return {e.spec().dtype == DType::u8 ? e.raw(0) : e.same({e.in(0)})}; }

/// Attributes of nodes are f32, which is not precise enough for f64 unless the value is exact.
bool isAttribute(double value, DType dtype) { return dtype != DType::f64 || double(float(value)) == value; }

Refs leakyRelu(const OpEmitter &e) {
  Formula f(e);
  double slope = e.attr<double>("negative_slope");
  Ref x = e.in(0);
  if (isAttribute(slope, x.dtype))
    return {e.graph.node("LeakyRelu", {x}, {{"alpha", slope}})};
  return {f.where(f.compare("Greater", x, 0), x, f.binary("Mul", x, slope))};
}

Refs elu(const OpEmitter &e) {
  Formula f(e);
  double alpha = e.attr<double>("alpha");
  Ref x = e.in(0);
  if (isAttribute(alpha, x.dtype))
    return {e.same({x})};
  return {f.where(f.compare("Greater", x, 0), x, f.binary("Mul", f.unary("Elu", x), alpha))};
}

Refs silu(const OpEmitter &e) {
  Formula f(e);
  Ref x = e.in(0);
  return {f.binary("Mul", x, f.unary("Sigmoid", x))};
}

Refs softplus(const OpEmitter &e) {
  Formula f(e);
  double beta = e.attr<double>("beta"), threshold = e.attr<double>("threshold");
  Ref x = e.in(0);
  if (beta == 1 && threshold == 20 && x.dtype != DType::f64) // for x > 20 the difference is less than half an ulp
    return {f.unary("Softplus", x)};
  Ref scaled = f.binary("Mul", x, beta);
  return {f.where(f.compare("Greater", scaled, threshold), x, f.binary("Div", f.unary("Softplus", scaled), beta))};
}

Refs hardsigmoid(const OpEmitter &e) {
  Formula f(e);
  Ref x = e.in(0);
  if (isAttribute(1.0 / 6, x.dtype))
    return {e.graph.node("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})};
  Ref inside = e.graph.node("Clip", {f.binary("Add", x, 3), f.constant(0, x), f.constant(6, x)});
  return {f.binary("Div", inside, 6)};
}

Refs clamp(const OpEmitter &e) {
  Formula f(e);
  auto low = ir::uniformValue(e.operands[1]), high = ir::uniformValue(e.operands[2]);
  Refs x = e.broadcasting();
  if (low && high)
    return {e.graph.node("Clip", {e.in(0), f.constant(*low, x[0]), f.constant(*high, x[0])})};
  return {f.binary("Min", f.binary("Max", x[0], x[1]), x[2])};
}

// ---- tests, logic, bits

Refs notEqual(const OpEmitter &e) {
  Formula f(e);
  Refs x = e.broadcasting();
  return {f.test("Not", f.compare("Equal", x[0], x[1]))};
}

/// And, Or, Xor, Not accept bool only; non-zero is true.
Refs logical(const OpEmitter &e) {
  Refs x = e.broadcasting();
  for (Ref &ref : x)
    ref = e.graph.cast(ref, DType::boolean);
  return {e.same(x)};
}

Refs floatTest(const OpEmitter &e) {
  Formula f(e);
  Ref x = e.in(0);
  return {isFloat(x.dtype) ? e.same({x}) : f.test("Not", f.compare("Equal", x, x))};
}

Refs bitwise(const OpEmitter &e) {
  Refs x = e.broadcasting();
  std::string op(onnxName(e.info.name));
  if (isBool(x[0].dtype))
    op = op.substr(sizeof("Bitwise") - 1);
  return {e.graph.node(op, x)};
}

/// Powers of two for shifts by less than the width; `beyond` is the result of larger shifts.
struct Shift {
  Ref factor, isInside;
  Shift(const OpEmitter &e, const Ref &by, int64_t last, int64_t beyond) {
    Formula f(e);
    std::vector<int64_t> powers;
    for (int64_t i = 0; i <= last; ++i)
      powers.push_back(ir::wrapTo(by.dtype, int64_t(uint64_t(1) << i)));
    powers.push_back(beyond);
    Ref index = e.graph.cast(by, DType::i64);
    isInside = f.compare("LessOrEqual", index, double(last));
    isInside = f.compare("And", isInside, f.compare("GreaterOrEqual", index, 0));
    index = f.where(isInside, index, f.constant(double(last + 1), index));
    factor = e.graph.node("Gather", {e.graph.table(powers, by.dtype), index}, {}, by.dtype);
  }
};

Refs shiftLeft(const OpEmitter &e) {
  Formula f(e);
  Refs x = e.broadcasting();
  if (isBool(x[0].dtype))
    return {f.compare("And", x[0], f.test("Not", x[1]))};
  Shift shift(e, x[1], int64_t(8 * byteWidth(x[0].dtype)) - 1, 0);
  return {f.binary("Mul", x[0], shift.factor)};
}

Refs shiftRight(const OpEmitter &e) {
  Formula f(e);
  Refs operands = e.broadcasting();
  const Ref &x = operands[0];
  if (isBool(x.dtype))
    return {f.compare("And", x, f.test("Not", operands[1]))};
  bool isSigned = x.dtype != DType::u8;
  // A shift by the width minus one leaves only the sign, like larger shifts.
  Shift shift(e, operands[1], int64_t(8 * byteWidth(x.dtype)) - (isSigned ? 2 : 1), 1);
  Ref rest = modulo(e, x, shift.factor, false);
  Ref quotient = f.binary("Div", f.binary("Sub", x, rest), shift.factor);
  Ref sign = isSigned ? f.where(f.compare("Less", x, 0), f.constant(-1, x), f.constant(0, x)) : f.constant(0, x);
  return {f.where(shift.isInside, quotient, sign)};
}

Refs select(const OpEmitter &e) {
  Refs x = e.broadcasting();
  return {e.graph.node("Where", x, {}, x[1].dtype)};
}

/// ONNX has no operator that fails, so the check is dropped.
Refs unchecked(const OpEmitter &e) { return {e.broadcasting()[1]}; }

Refs convert(const OpEmitter &e) { return {e.graph.cast(e.graph.valueOf(e.operands[0]), e.attr<DType>("dtype"))}; }

} // namespace

std::span<const ExportRule> elementwiseExports() {
  static const ExportRule rules[] = {
      {"floor_divide", floorDivide, inSingleThroughout},
      {"remainder", remainder, inSingleThroughout},
      {"fmod", fmod},
      {"pow", power, widePower},
      {"atan2", atan2, inSingleThroughout},
      {"neg", nullptr, onIntegers},
      {"floor", rounding},
      {"ceil", rounding},
      {"round", rounding},
      {"trunc", trunc},
      {"rsqrt", rsqrt, inSingleThroughout},
      {"expm1", expm1, inSingleThroughout},
      {"log1p", log1p, inSingleThroughout},
      {"relu", relu},
      {"leaky_relu", leakyRelu},
      {"elu", elu},
      {"silu", silu, inSingleThroughout},
      {"softplus", softplus, inSingleThroughout},
      {"hardsigmoid", hardsigmoid},
      {"clamp", clamp},
      {"ne", notEqual},
      {"lt", nullptr, withoutBool},
      {"le", nullptr, withoutBool},
      {"gt", nullptr, withoutBool},
      {"ge", nullptr, withoutBool},
      {"logical_and", logical, asIs},
      {"logical_or", logical, asIs},
      {"logical_xor", logical, asIs},
      {"logical_not", logical, asIs},
      {"is_nan", floatTest},
      {"is_inf", floatTest},
      {"bitwise_and", bitwise},
      {"bitwise_or", bitwise},
      {"bitwise_xor", bitwise},
      {"bitwise_not", bitwise},
      {"shift_left", shiftLeft},
      {"shift_right", shiftRight},
      {"where", select, asIs},
      {"check", unchecked, asIs},
      {"cast", convert, asIs},
  };
  return rules;
}

} // namespace burin::onnx
