// Elementwise ops.
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/Tensors.h"
#include "frontend/onnx/import/neural/Quantized.h"
#include <cmath>

namespace burin::onnx {

namespace {

using Unary = Tensor (*)(const Tensor &, Location);
using Binary = Tensor (*)(const Tensor &, const Tensor &, Location);

/// Throws for operands of different types, which ONNX does not allow and burin would promote.
void checkOperands(Node &n, size_t most) {
  if (n.inputCount() > most)
    n.fail("it takes " + std::to_string(most) + " inputs, but has " + std::to_string(n.inputCount()));
  for (size_t i = 1; i < n.inputCount(); ++i)
    if (n.dtype(i) != n.dtype(0))
      n.fail("its inputs differ in their element type: " + std::string(name(n.dtype(0))) + " and " +
             std::string(name(n.dtype(i))));
}

template <Unary op> Values unary(Node &n) {
  checkOperands(n, 1);
  return op(n[0], {});
}

/// Before opset 7, an attribute aligned the second operand's dimensions.
Tensor aligned(Node &n) {
  Tensor y = n[1];
  if (n.opset() >= 7 || !n.attribute("broadcast", int64_t(0)) || !n.hasAttribute("axis"))
    return y;
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  std::vector<int64_t> trailing;
  for (int64_t i = n.rank(1); i < n.rank() - axis; ++i)
    trailing.push_back(i);
  return trailing.empty() ? y : unsqueeze(y, trailing);
}
template <Binary op> Values binary(Node &n) {
  checkOperands(n, 2);
  return op(n[0], aligned(n), {});
}
template <Binary op> Values logic(Node &n) {
  if (!isBool(n.dtype()))
    n.fail("its inputs must be bool, not " + std::string(name(n.dtype())));
  return binary<op>(n);
}

/// Folds any number of operands.
template <Binary op> Values fold(Node &n) {
  std::vector<Tensor> xs = n.tensors();
  checkOperands(n, SIZE_MAX);
  Tensor result = n[0];
  for (size_t i = 1; i < xs.size(); ++i)
    result = op(result, xs[i], {});
  return result;
}

Values meanOf(Node &n) { return fold<add>(n)[0].tensor / double(n.inputCount()); }

/// Integer division rounds towards 0.
Values divide(Node &n) {
  checkOperands(n, 2);
  Tensor x = n[0], y = aligned(n);
  if (isFloat(x.dtype()))
    return div(x, y);
  return floor_divide(x - fmod(x, y), y);
}

Values modulo(Node &n) {
  checkOperands(n, 2);
  bool isC = n.attribute("fmod", int64_t(0)) != 0;
  return isC ? fmod(n[0], n[1]) : remainder(n[0], n[1]);
}

/// The exponent may have another type; the result has that of the base.
Values power(Node &n) {
  Tensor x = n[0], y = aligned(n);
  return pow(x, y).to(x.dtype());
}

Values clip(Node &n) {
  Tensor x = n[0];
  if (n.opset() < 11) {
    constexpr double largest = 3.4028234663852886e38;
    return clamp(x, n.attribute("min", -largest), n.attribute("max", largest));
  }
  if (n.has(1))
    x = maximum(x, n[1]);
  return n.has(2) ? minimum(x, n[2]) : x;
}

Values prelu(Node &n) {
  Tensor x = n[0], slope = n[1];
  if (n.opset() < 7 && slope.rank() == 1 && x.rank() > 2) { // one number per channel
    std::vector<int64_t> spatial;
    for (int64_t i = 1; i < x.rank() - 1; ++i)
      spatial.push_back(i);
    slope = unsqueeze(slope, spatial);
  }
  return where(x < 0, x * slope, x);
}

Values leakyRelu(Node &n) { return leaky_relu(n[0], n.attribute("alpha", 0.01)); }
Values eluOf(Node &n) { return elu(n[0], n.attribute("alpha", 1.0)); }
Values celu(Node &n) {
  double alpha = n.attribute("alpha", 1.0);
  Tensor x = n[0];
  return maximum(x, 0.0) + minimum(expm1(x / alpha) * alpha, 0.0);
}
Values selu(Node &n) {
  double alpha = n.attribute("alpha", 1.67326319217681884765625),
         gamma = n.attribute("gamma", 1.05070102214813232421875);
  return elu(n[0], alpha) * gamma;
}
Values thresholdedRelu(Node &n) {
  Tensor x = n[0];
  return where(x > n.attribute("alpha", 1.0), x, 0.0);
}
Values hardSigmoid(Node &n) {
  double alpha = n.attribute("alpha", 0.2), beta = n.attribute("beta", 0.5);
  bool isUsual = float(alpha) == 1.f / 6 && beta == 0.5;
  return isUsual ? hardsigmoid(n[0]) : clamp(n[0] * alpha + beta, 0.0, 1.0);
}
Values hardSwish(Node &n) { return hardswish(n[0]); }
Values softsign(Node &n) {
  Tensor x = n[0];
  return x / (abs(x) + 1.0);
}
Values softplusOf(Node &n) { return softplus(n[0]); }
Values mish(Node &n) {
  Tensor x = n[0];
  return x * tanh(softplus(x));
}
Values swish(Node &n) {
  Tensor x = n[0];
  return x * sigmoid(x * n.attribute("alpha", 1.0));
}
Values geluOf(Node &n) { return gelu(n[0], n.attribute("approximate", "none")); }
Values shrink(Node &n) {
  Tensor x = n[0];
  double bias = n.attribute("bias", 0.0), lambda = n.attribute("lambd", 0.5);
  Tensor zero = x * 0;
  return where(x < -lambda, x + bias, where(x > lambda, x - bias, zero)).to(x.dtype());
}

Values isInf(Node &n) {
  Tensor x = n[0];
  bool positive = n.attribute("detect_positive", int64_t(1)), negative = n.attribute("detect_negative", int64_t(1));
  Tensor result = is_inf(x);
  if (!positive)
    result = logical_and(result, x < 0);
  return negative ? result : logical_and(result, x > 0);
}

Values bitShift(Node &n) {
  return n.attribute("direction", "") == "LEFT" ? shift_left(n[0], n[1]) : shift_right(n[0], n[1]);
}

Values select(Node &n) { return where(n[0], n[1], n[2]); }
Tensor castInto(Node &n, DType to) {
  return isFloat8(to) ? toFloat8(n[0], to, n.attribute("saturate", int64_t(1)) != 0) : cast(n[0], to);
}
Values castTo(Node &n) {
  if (!n.hasAttribute("to"))
    n.fail("it needs the attribute \"to\"");
  if (const NarrowType *narrow = n.narrow("to"))
    return wrapped(n[0].to(DType::i64), *narrow).to(narrow->dtype);
  return castInto(n, n.attributeType("to", DType::f32));
}
Values castLike(Node &n) {
  if (const NarrowType *narrow = n.narrow(1))
    return wrapped(n[0].to(DType::i64), *narrow).to(narrow->dtype);
  return castInto(n, n.dtype(1));
}
Values identity(Node &n) { return n.value(0); }

constexpr OpEntry table[] = {
    {"Abs", unary<abs>},
    {"Acos", unary<acos>},
    {"Acosh", unary<acosh>},
    {"Add", binary<add>},
    {"And", logic<logical_and>},
    {"Asin", unary<asin>},
    {"Asinh", unary<asinh>},
    {"Atan", unary<atan>},
    {"Atanh", unary<atanh>},
    {"BitShift", bitShift},
    {"BitwiseAnd", binary<bitwise_and>},
    {"BitwiseNot", unary<bitwise_not>},
    {"BitwiseOr", binary<bitwise_or>},
    {"BitwiseXor", binary<bitwise_xor>},
    {"Cast", castTo},
    {"CastLike", castLike},
    {"Ceil", unary<ceil>},
    {"Celu", celu},
    {"Clip", clip},
    {"Cos", unary<cos>},
    {"Cosh", unary<cosh>},
    {"Div", divide},
    {"Elu", eluOf},
    {"Equal", binary<eq>},
    {"Erf", unary<erf>},
    {"Exp", unary<exp>},
    {"Floor", unary<floor>},
    {"Gelu", geluOf},
    {"Greater", binary<gt>},
    {"GreaterOrEqual", binary<ge>},
    {"HardSigmoid", hardSigmoid},
    {"HardSwish", hardSwish},
    {"Identity", identity},
    {"IsInf", isInf},
    {"IsNaN", unary<is_nan>},
    {"LeakyRelu", leakyRelu},
    {"Less", binary<lt>},
    {"LessOrEqual", binary<le>},
    {"Log", unary<log>},
    {"Max", fold<maximum>},
    {"Mean", meanOf},
    {"Min", fold<minimum>},
    {"Mish", mish},
    {"Mod", modulo},
    {"Mul", binary<mul>},
    {"Neg", unary<neg>},
    {"Not", unary<logical_not>},
    {"Or", logic<logical_or>},
    {"PRelu", prelu},
    {"Pow", power},
    {"Reciprocal", unary<reciprocal>},
    {"Relu", unary<relu>},
    {"Round", unary<round>},
    {"Selu", selu},
    {"Shrink", shrink},
    {"Sigmoid", unary<sigmoid>},
    {"Sign", unary<sign>},
    {"Sin", unary<sin>},
    {"Sinh", unary<sinh>},
    {"Softplus", softplusOf},
    {"Softsign", softsign},
    {"Sqrt", unary<sqrt>},
    {"Sub", binary<sub>},
    {"Sum", fold<add>},
    {"Swish", swish},
    {"Tan", unary<tan>},
    {"Tanh", unary<tanh>},
    {"ThresholdedRelu", thresholdedRelu},
    {"Where", select},
    {"Xor", logic<logical_xor>},
};

} // namespace

std::span<const OpEntry> elementwiseOps() { return table; }

} // namespace burin::onnx
