// Elementwise ops. OpBase.td describes the fields.
#ifndef BURIN_ELEMENTWISE_OPS
#define BURIN_ELEMENTWISE_OPS
include "ir/ops/OpBase.td"

// ---- arithmetic
def Burin_AddOp : Burin_Binary<"add", [{ return x + y; }], [{ return x + y; }]> {
  let summary = "Sum `x + y`"; let onnx = "Add"; let source = "torch.add"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["g", "g"];
}
def Burin_SubOp : Burin_Binary<"sub", [{ return x - y; }], [{ return x - y; }]> {
  let summary = "Difference `x - y`"; let onnx = "Sub"; let source = "torch.sub"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["g", "-g"];
}
def Burin_MulOp : Burin_Binary<"mul", [{ return x * y; }], [{ return x * y; }]> {
  let summary = "Product `x * y`"; let onnx = "Mul"; let source = "torch.mul"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["g * y", "g * x"];
}
def Burin_DivOp : Burin_BinaryFloat<"div", [{ return x / y; }], [{ return x / y; }]> {
  let summary = "True division `x / y`; integers become f32 first"; let onnx = "Div"; let source = "torch.div"; let hasFolder = 1;
  let gradient = ["g / y", "-g * result / y"];
}
def Burin_FloorDivideOp : Burin_Binary<"floor_divide", [{ return floorDivide(x, y); }], [{ return floorDivide(x, y); }]> {
  let summary = "Quotient rounded towards minus infinity; an integer divided by 0 gives 0";
  let source = "torch.floor_divide";
  let gradient = ["zero", "zero"];
}
def Burin_RemainderOp : Burin_Binary<"remainder", [{ return remainder(x, y); }], [{ return remainder(x, y); }]> {
  let summary = "Remainder with the sign of the divisor (Python's `%`); an integer modulo 0 gives 0";
  let source = "torch.remainder";
  let gradient = ["g", "-g * floor_divide(x, y)"];
}
def Burin_FmodOp : Burin_Binary<"fmod", [{ return fmod(x, y); }], [{ return cRemainder(x, y); }]> {
  let summary = "Remainder with the sign of the dividend (C's `fmod`); an integer modulo 0 gives 0";
  let source = "torch.fmod";
  let gradient = ["g", "-g * trunc(x / y)"];
}
def Burin_PowOp : Burin_Binary<"pow", [{ return pow(x, y); }], [{ return power(x, y); }]> {
  let summary = "`x` to the power `y`; integers wrap, a negative integer exponent gives 0 (1 and -1 excepted)"; let onnx = "Pow";
  let autocast = "f32";
  let source = "torch.pow"; let hasFolder = 1;
  let gradient = ["powerGradient(g, x, y)", "exponentGradient(g, x, y, result)"];
}
def Burin_MaximumOp : Burin_Binary<"maximum", [{ return max(x, y); }], [{ return maximum(x, y); }]> {
  let summary = "The larger; NaN if either is NaN"; let onnx = "Max"; let source = "torch.maximum"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["larger(g, x, y)", "larger(g, y, x)"];
}
def Burin_MinimumOp : Burin_Binary<"minimum", [{ return min(x, y); }], [{ return minimum(x, y); }]> {
  let summary = "The smaller; NaN if either is NaN"; let onnx = "Min"; let source = "torch.minimum"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["larger(g, y, x)", "larger(g, x, y)"];
}
def Burin_Atan2Op : Burin_BinaryFloat<"atan2", [{ return atan2(x, y); }], [{ return std::atan2(x, y); }]> {
  let summary = "Angle of the point (y, x) in radians, in (-pi, pi]"; let source = "torch.atan2";
  let gradient = ["g * y / (x * x + y * y)", "-g * x / (x * x + y * y)"];
}
def Burin_NegOp : Burin_UnaryNumeric<"neg", [{ return -x; }], [{ return -x; }]> {
  let summary = "Negation"; let onnx = "Neg"; let source = "torch.neg"; let hasFolder = 1;
  let gradient = ["-g"];
}
def Burin_AbsOp : Burin_UnaryNumeric<"abs", [{ return abs(x); }], [{ return x < 0 || isNegativeZero(x) ? -x : x; }]> {
  let summary = "Absolute value; the smallest integer wraps to itself"; let onnx = "Abs"; let source = "torch.abs"; let hasFolder = 1;
  let gradient = ["g * sign(x)"];
}
def Burin_SignOp : Burin_UnaryNumeric<"sign",
    [{ return select(x > 0, x.constant(1), select(x < 0, x.constant(x.isUnsigned() ? 0 : -1), x * 0)); }],
    [{ return x > 0 ? T(1) : x < 0 ? T(-1) : x * 0; }]> {
  let summary = "-1, 0 or 1; NaN stays NaN"; let onnx = "Sign"; let source = "jnp.sign";
  let gradient = ["zero"];
}

// ---- rounding
def Burin_FloorOp : Burin_UnaryNumeric<"floor", [{ return floor(x); }], [{ return floor(x); }]> {
  let summary = "Largest integer not above"; let onnx = "Floor"; let source = "torch.floor"; let hasFolder = 1;
  let gradient = ["zero"];
}
def Burin_CeilOp : Burin_UnaryNumeric<"ceil", [{ return ceil(x); }], [{ return ceil(x); }]> {
  let summary = "Smallest integer not below"; let onnx = "Ceil"; let source = "torch.ceil"; let hasFolder = 1;
  let gradient = ["zero"];
}
def Burin_RoundOp : Burin_UnaryNumeric<"round", [{ return round(x); }], [{ return nearbyint(x); }]> {
  let summary = "Nearest integer, halves to even"; let onnx = "Round"; let source = "torch.round"; let hasFolder = 1;
  let gradient = ["zero"];
}
def Burin_TruncOp : Burin_UnaryNumeric<"trunc", [{ return trunc(x); }], [{ return trunc(x); }]> {
  let summary = "Towards zero"; let source = "torch.trunc"; let hasFolder = 1;
  let gradient = ["zero"];
}

// ---- exponentials and roots
def Burin_ExpOp : Burin_UnaryFloat<"exp", [{ return exp(x); }], [{ return std::exp(x); }]> {
  let summary = "e to the power x"; let onnx = "Exp"; let source = "torch.exp"; let autocast = "f32";
  let gradient = ["g * result"];
}
def Burin_Expm1Op : Burin_UnaryFloat<"expm1", [{ return expm1(x); }], [{ return std::expm1(x); }]> {
  let summary = "e to the power x, minus 1, accurate near 0"; let source = "torch.expm1"; let autocast = "f32";
  let gradient = ["g * (result + 1.0)"];
}
def Burin_LogOp : Burin_UnaryFloat<"log", [{ return log(x); }], [{ return std::log(x); }]> {
  let summary = "Natural logarithm; NaN below 0, -inf at 0"; let onnx = "Log"; let source = "torch.log";
  let autocast = "f32";
  let gradient = ["g / x"];
}
def Burin_Log1pOp : Burin_UnaryFloat<"log1p", [{ return log1p(x); }], [{ return std::log1p(x); }]> {
  let summary = "log(1 + x), accurate near 0"; let source = "torch.log1p"; let autocast = "f32";
  let gradient = ["g / (x + 1.0)"];
}
def Burin_SqrtOp : Burin_UnaryFloat<"sqrt", [{ return sqrt(x); }], [{ return std::sqrt(x); }]> {
  let summary = "Square root; NaN below 0"; let onnx = "Sqrt"; let source = "torch.sqrt";
  let gradient = ["g / (result * 2.0)"];
}
def Burin_RsqrtOp : Burin_UnaryFloat<"rsqrt", [{ return x.constant(1) / sqrt(x); }], [{ return 1 / std::sqrt(x); }]> {
  let summary = "1 / sqrt(x)"; let source = "torch.rsqrt"; let autocast = "f32";
  let gradient = ["g * result / x * -0.5"];
}
def Burin_ReciprocalOp : Burin_UnaryFloat<"reciprocal", [{ return x.constant(1) / x; }], [{ return 1 / x; }]> {
  let summary = "1 / x"; let onnx = "Reciprocal"; let source = "torch.reciprocal"; let autocast = "f32";
  let gradient = ["-g * result * result"];
}

// ---- trigonometry
class Burin_Function<string f, string slope> : Burin_UnaryFloat<f, "return " # f # "(x);", "return std::" # f # "(x);"> {
  let summary = "Elementwise " # f # "; angles in radians, NaN outside the domain";
  let source = "torch." # f; let onnx = !toupper(!substr(f, 0, 1)) # !substr(f, 1);
  let gradient = [slope];
}
def Burin_AcosOp : Burin_Function<"acos", "-g * rsqrt(1.0 - x * x)">;
def Burin_AcoshOp : Burin_Function<"acosh", "g * rsqrt(x * x - 1.0)">;
def Burin_AsinOp : Burin_Function<"asin", "g * rsqrt(1.0 - x * x)">;
def Burin_AsinhOp : Burin_Function<"asinh", "g * rsqrt(x * x + 1.0)">;
def Burin_AtanOp : Burin_Function<"atan", "g / (x * x + 1.0)">;
def Burin_AtanhOp : Burin_Function<"atanh", "g / (1.0 - x * x)">;
def Burin_CosOp : Burin_Function<"cos", "-g * sin(x)">;
def Burin_CoshOp : Burin_Function<"cosh", "g * sinh(x)">;
def Burin_ErfOp : Burin_Function<"erf", "g * exp(-x * x) * M_2_SQRTPI">;
def Burin_SinOp : Burin_Function<"sin", "g * cos(x)">;
def Burin_SinhOp : Burin_Function<"sinh", "g * cosh(x)">;
def Burin_TanOp : Burin_Function<"tan", "g * (result * result + 1.0)">;
def Burin_TanhOp : Burin_Function<"tanh", "g * (1.0 - result * result)">;

// ---- activations
def Burin_SigmoidOp : Burin_UnaryFloat<"sigmoid", [{ return sigmoid(x); }], [{ return 1 / (1 + std::exp(-x)); }]> {
  let summary = "1 / (1 + exp(-x))"; let onnx = "Sigmoid"; let source = "torch.sigmoid";
  let gradient = ["g * result * (1.0 - result)"];
}
def Burin_ReluOp : Burin_UnaryNumeric<"relu", [{ return max(x, x.constant(0)); }], [{ return maximum(x, T(0)); }]> {
  let summary = "max(x, 0); NaN stays NaN"; let onnx = "Relu"; let source = "torch.relu"; let hasFolder = 1;
  let gradient = ["where(x > 0, g, 0.0)"];
}
def Burin_LeakyReluOp : Burin_UnaryFloat<"leaky_relu", [{ return select(x > 0, x, x * negative_slope); }],
    [{ return x > 0 ? x : x * negative_slope; }], (ins DefaultValuedAttr<F64Attr, "0.01">:$negative_slope)> {
  let summary = "x above 0, `negative_slope * x` below"; let source = "torch.nn.functional.leaky_relu";
  let gradient = ["where(x > 0, g, g * negative_slope)"];
}
def Burin_EluOp : Burin_UnaryFloat<"elu", [{ return select(x > 0, x, expm1(x) * alpha); }],
    [{ return x > 0 ? x : alpha * std::expm1(x); }], (ins DefaultValuedAttr<F64Attr, "1.0">:$alpha)> {
  let summary = "x above 0, `alpha * (exp(x) - 1)` below"; let onnx = "Elu"; let source = "torch.nn.functional.elu";
  let gradient = ["where(x > 0, g, g * (result + alpha))"];
}
def Burin_GeluOp : Burin_UnaryFloat<"gelu", [{ return gelu(x, approximate == "tanh"); }],
    [{ return gelu(x, approximate == "tanh"); }], (ins DefaultValuedStrAttr<StrAttr, "none">:$approximate)> {
  let summary = "x times the normal distribution function of x"; let onnx = "Gelu";
  let description = [{ `approximate` is `"none"` (erf) or `"tanh"`. At -inf the result is 0, the limit. }];
  let source = "torch.nn.functional.gelu";
  let gradient = ["g * geluSlope(x, approximate == \"tanh\")"];
}
def Burin_SiluOp : Burin_UnaryFloat<"silu", [{ return silu(x); }], [{ return x / (1 + std::exp(-x)); }]> {
  let summary = "x * sigmoid(x)"; let source = "torch.nn.functional.silu";
  let gradient = ["g * sigmoid(x) * (x - result + 1.0)"];
}
def Burin_SoftplusOp : Burin_UnaryFloat<"softplus", [{ return softplus(x, beta, threshold); }],
    [{ return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta; }],
    (ins DefaultValuedAttr<F64Attr, "1.0">:$beta, DefaultValuedAttr<F64Attr, "20.0">:$threshold)> {
  let summary = "log(1 + exp(beta * x)) / beta; x itself once beta * x exceeds `threshold`"; let autocast = "f32";
  let source = "torch.nn.functional.softplus";
  let gradient = ["where(x * beta > threshold, g, g * sigmoid(x * beta))"];
}
def Burin_HardswishOp : Burin_UnaryFloat<"hardswish",
    [{ return x * (max(min(x + 3.0, x.constant(6)), x.constant(0)) / 6.0); }],
    [{ return x * (maximum(minimum(x + 3, T(6)), T(0)) / 6); }]> {
  let summary = "x * (clamp(x + 3, 0, 6) / 6)"; let onnx = "HardSwish"; let source = "torch.nn.functional.hardswish";
  let gradient = ["where(x > 3, g, where(x < -3, 0.0, g * (x * 2.0 + 3.0) / 6.0))"];
}
def Burin_HardsigmoidOp : Burin_UnaryFloat<"hardsigmoid",
    [{ return max(min(x + 3.0, x.constant(6)), x.constant(0)) / 6.0; }],
    [{ return maximum(minimum(x + 3, T(6)), T(0)) / 6; }]> {
  let summary = "clamp(x + 3, 0, 6) / 6"; let source = "torch.nn.functional.hardsigmoid";
  let gradient = ["where(x > -3 & x < 3, g / 6.0, 0.0)"];
}

// ---- comparisons and logic
def Burin_EqOp : Burin_Compare<"eq", "=="> { let summary = "x equals y"; let onnx = "Equal"; }
def Burin_NeOp : Burin_Compare<"ne", "!="> { let summary = "x differs from y; true where either is NaN"; }
def Burin_LtOp : Burin_Compare<"lt", "<"> { let summary = "x is below y"; let onnx = "Less"; }
def Burin_LeOp : Burin_Compare<"le", "<="> { let summary = "x is at most y"; let onnx = "LessOrEqual"; }
def Burin_GtOp : Burin_Compare<"gt", ">"> { let summary = "x is above y"; let onnx = "Greater"; }
def Burin_GeOp : Burin_Compare<"ge", ">="> { let summary = "x is at least y"; let onnx = "GreaterOrEqual"; }
class Burin_Logical<string m, code l, code r> : Burin_Binary<m, l, r> {
  let resultElement = "bool"; let domain = "any"; let oneInstruction = 1; let source = "torch." # m;
}
def Burin_LogicalAndOp : Burin_Logical<"logical_and", [{ return x.nonZero() & y.nonZero(); }], [{ return x != 0 && y != 0; }]> {
  let summary = "Both are non-zero"; let onnx = "And";
}
def Burin_LogicalOrOp : Burin_Logical<"logical_or", [{ return x.nonZero() | y.nonZero(); }], [{ return x != 0 || y != 0; }]> {
  let summary = "Either is non-zero"; let onnx = "Or";
}
def Burin_LogicalXorOp : Burin_Logical<"logical_xor", [{ return x.nonZero() ^ y.nonZero(); }], [{ return (x != 0) != (y != 0); }]> {
  let summary = "Exactly one is non-zero"; let onnx = "Xor";
}
class Burin_Test<string m, code l, code r> : Burin_UnaryNumeric<m, l, r> {
  let resultElement = "bool"; let domain = "any"; let source = "torch." # m;
}
def Burin_LogicalNotOp : Burin_Test<"logical_not", [{ return !x.nonZero(); }], [{ return x == 0; }]> {
  let summary = "The element is zero"; let onnx = "Not";
}
def Burin_IsNanOp : Burin_Test<"is_nan", [{ return x != x; }], [{ return x != x; }]> { let summary = "The element is NaN"; let onnx = "IsNaN"; }
def Burin_IsInfOp : Burin_Test<"is_inf", [{ return isInf(x); }], [{ return std::isinf(double(x)); }]> {
  let summary = "The element is plus or minus infinity"; let onnx = "IsInf";
}
class Burin_Bitwise<string m, string op> : Burin_Binary<m, "return x " # op # " y;", "return T(x " # op # " y);"> {
  let domain = "integer"; let source = "torch." # m;
}
def Burin_BitwiseAndOp : Burin_Bitwise<"bitwise_and", "&"> { let summary = "Bitwise and"; let onnx = "BitwiseAnd"; }
def Burin_BitwiseOrOp : Burin_Bitwise<"bitwise_or", "|"> { let summary = "Bitwise or"; let onnx = "BitwiseOr"; }
def Burin_BitwiseXorOp : Burin_Bitwise<"bitwise_xor", "^"> { let summary = "Bitwise exclusive or"; let onnx = "BitwiseXor"; }
def Burin_BitwiseNotOp : Burin_UnaryNumeric<"bitwise_not", [{ return ~x; }], [{ return bitNot(x, type); }]> {
  let summary = "Bitwise complement; of a bool, its negation"; let onnx = "BitwiseNot"; let domain = "integer"; let source = "torch.bitwise_not";
}
def Burin_ShiftLeftOp : Burin_Binary<"shift_left", [{ return shiftLeft(x, y); }], [{ return shiftLeft(x, y, type); }]> {
  let summary = "x * 2^y, wrapping; 0 where y is negative or at least the width in bits";
  let domain = "integer"; let source = "torch.bitwise_left_shift";
}
def Burin_ShiftRightOp : Burin_Binary<"shift_right", [{ return shiftRight(x, y); }], [{ return shiftRight(x, y, type); }]> {
  let summary = "floor(x / 2^y); the sign fills where y is negative or at least the width in bits";
  let domain = "integer"; let source = "torch.bitwise_right_shift";
}

// ---- selection and conversion
def Burin_WhereOp : Burin_Elementwise<"where", (ins Burin_Tensor:$condition, Burin_Tensor:$x, Burin_Tensor:$y),
    [{ return select(condition, x, y); }], [{ return condition != 0 ? x : y; }]> {
  let summary = "x where `condition` (bool) holds, else y"; let float8 = "moved"; let domain = "any"; let source = "torch.where"; let hasFolder = 1;
  let oneInstruction = 1;
  let gradient = ["zero", "where(condition, g, 0.0)", "where(condition, 0.0, g)"];
}
def Burin_CheckOp : Burin_Elementwise<"check",
      (ins Burin_Tensor:$condition, Burin_Tensor:$x, DefaultValuedStrAttr<StrAttr, "a condition does not hold">:$message),
    [{ return x; }], [{ return x; }]> {
  let summary = "x, if `condition` (bool) holds everywhere; else the call fails";
  let description = [{ The error has the message, and the first row-major position where the condition is false. The op is
    dead, and checks nothing, if its result is unused. }];
  let float8 = "moved"; let domain = "any"; let source = "torch._assert_async";
  let example = "y = check(y >= 0, y, \"a length is negative\");";
  let gradient = ["zero", "g"];
}
def Burin_BarrierOp : Burin_Elementwise<"barrier", (ins Burin_Tensor:$x, I64Attr:$region), [{ return x; }], [{ return x; }]> {
  let summary = "x, as a value that common subexpression elimination does not identify with x"; let internal = 1;
  let description = [{ For values that are recomputed instead of being kept. Barriers of different regions are different
    values until kernels are formed. }];
  let float8 = "moved"; let domain = "any";
  let gradient = ["g"];
}
def Burin_FmaOp : Burin_Elementwise<"fma", (ins Burin_Tensor:$x, Burin_Tensor:$y, Burin_Tensor:$z),
    [{ return fma(x, y, z); }], [{ return std::fma(x, y, z); }]> {
  let summary = "`x * y + z`, rounded once"; let domain = "float"; let internal = 1;
}
def Burin_ClampOp : Burin_Elementwise<"clamp", (ins Burin_Tensor:$x, Burin_Tensor:$low, Burin_Tensor:$high),
    [{ return min(max(x, low), high); }], [{ return minimum(maximum(x, low), high); }]> {
  let summary = "x limited to [low, high]; `high` wins where low > high, NaN stays NaN"; let source = "torch.clamp";
  let gradient = ["where(x >= low & x <= high, g, 0.0)", "where(x < low & low <= high, g, 0.0)",
                  "where(x > high | low > high, g, 0.0)"];
}
def Burin_CastOp : Burin_Op<"cast", [Burin_ElementwiseTrait]> {
  let summary = "Converts the element type";
  let description = [{
    Floats become integers by truncation; values out of range and NaN saturate to the nearest representable value and 0.
    Integers wrap. Anything non-zero, NaN included, becomes true. A number above the range of a float type becomes an
    infinity, in f8e4m3fn, which has none, NaN; PyTorch's conversions do the same.
  }];
  let arguments = (ins Burin_Tensor:$x, Burin_DTypeAttr:$dtype);
  let results = (outs Burin_Tensor:$result);
  let float8 = "moved"; let infer = "inferCast"; let batching = "same";
  let source = "torch.Tensor.to"; let hasFolder = 1; let folding = "cheap";
  let fusion = "pointwise"; let parts = "allOperands"; let layout = "sameRule"; let flops = "ofResult"; let element = "none";
  let oneInstruction = 1; let gradient = ["g.to(x.dtype())"];
}
#endif
