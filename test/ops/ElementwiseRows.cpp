// Elementwise ops. test/math tests the scalar code value by value; these rows test its way through the compiler.
#include "test/ops/Row.h"

namespace burin::test {

namespace {

Example onShape(const Row &row, DType dtype, const Shape &shape, const Attrs &attrs) {
  Example example;
  for (const ir::OperandInfo &operand : ir::findOp(row.op)->operands) {
    bool isCondition = std::string_view(operand.name) == "condition";
    example.operands.push_back({TensorSpec{isCondition ? boolean : dtype, shape}, row.draw});
  }
  example.attrs = attrs;
  return example;
}

std::vector<Example> elementwise(const Row &row, DType dtype) {
  std::vector<Example> examples;
  for (const Attrs &attrs : row.attrs) {
    Example open = onShape(row, dtype, {Dim("n"), Dim("m")}, attrs);
    open.sizes = {{{"n", 7}, {"m", 17}},
                  {{"n", 50}, {"m", 129}},
                  {{"n", 0}, {"m", 5}},
                  {{"n", 1}, {"m", 1}},
                  {{"n", 3}, {"m", 64}}};
    examples.push_back(open);
    examples.push_back(onShape(row, dtype, {33}, attrs));
  }
  if (dtype == row.types.front())
    examples.push_back(onShape(row, dtype, {}, row.attrs.front()));
  return examples;
}

/// The condition of the check holds for all elements.
std::vector<Example> checked(const Row &row, DType dtype) {
  std::vector<Example> examples = elementwise(row, dtype);
  for (Example &example : examples)
    example.operands[0].draw = {1, 1, Specials::None};
  return examples;
}

std::vector<Attrs> allTypes() {
  std::vector<Attrs> attrs;
  for (DType dtype : kStored)
    attrs.push_back({{"dtype", dtype}});
  return attrs;
}

/// Ops with exact results. The sign of a zero counts, unless the op treats zeros of different sign as equal.
Row exact(const char *op, const std::vector<DType> &types, bool zeroSigns = true) {
  return {op, types, elementwise, {.zeroSigns = zeroSigns}};
}
Row function(const char *op, double ulps, Draw draw = {}, std::vector<Attrs> attrs = {{}}) {
  return {op, kFloats, elementwise, {.ulps = ulps}, draw, std::move(attrs)};
}

} // namespace

const std::vector<Row> &elementwiseRows() {
  static const std::vector<Row> rows{
      exact("add", kNumbers),
      exact("sub", kNumbers),
      exact("mul", kNumbers),
      exact("div", kFloats),
      // For large quotients, x minus the remainder is rounded, and then the quotient.
      {"floor_divide", kNumbers, elementwise, {.ulps = 2}},
      exact("remainder", kNumbers),
      exact("fmod", kNumbers),
      {"pow", kNumbers, elementwise, {.ulps = 1}},
      exact("maximum", kNumbers, false),
      exact("minimum", kNumbers, false),
      function("atan2", 1),
      exact("neg", kNumbers),
      exact("abs", kNumbers),
      exact("sign", kNumbers),
      exact("floor", kNumbers),
      exact("ceil", kNumbers),
      exact("round", kNumbers),
      exact("trunc", kNumbers),
      function("exp", 2, {-20, 20}),
      function("expm1", 2),
      function("log", 2, {0, 10}),
      function("log1p", 2, {-1, 10}),
      exact("sqrt", kFloats),
      function("rsqrt", 1, {0, 10}),
      exact("reciprocal", kFloats),
      function("sin", 2, {-20, 20}),
      function("cos", 2, {-20, 20}),
      function("tan", 2),
      function("asin", 2, {-1.1, 1.1}),
      function("acos", 2, {-1.1, 1.1}),
      function("atan", 2),
      function("sinh", 2),
      function("cosh", 2),
      function("asinh", 2),
      function("acosh", 2, {0.9, 10}),
      function("atanh", 2, {-1.1, 1.1}),
      function("tanh", 2),
      function("erf", 2),
      function("sigmoid", 3),
      exact("relu", kNumbers, false),
      function("leaky_relu", 1, {}, {{{"negative_slope", 0.01}}, {{"negative_slope", 0.5}}}),
      function("elu", 3, {}, {{{"alpha", 1.0}}, {{"alpha", 0.3}}}),
      // As accurate as 1 + erf, whose terms cancel below 0.
      {"gelu",
       kFloats,
       elementwise,
       {.ulps = 4, .epsilons = 4, .zeroSigns = false},
       {},
       {{{"approximate", std::string("none")}}, {{"approximate", std::string("tanh")}}}},
      function("silu", 3),
      function("softplus", 3, {-30, 30}, {{}, {{"beta", 0.5}, {"threshold", 3.0}}}),
      function("hardswish", 3),
      function("hardsigmoid", 1),
      exact("eq", kAll),
      exact("ne", kAll),
      exact("lt", kAll),
      exact("le", kAll),
      exact("gt", kAll),
      exact("ge", kAll),
      exact("logical_and", kAll),
      exact("logical_or", kAll),
      exact("logical_xor", kAll),
      exact("logical_not", kAll),
      exact("is_nan", kAll),
      exact("is_inf", kAll),
      exact("bitwise_and", kIntegersAndBool),
      exact("bitwise_or", kIntegersAndBool),
      exact("bitwise_xor", kIntegersAndBool),
      exact("bitwise_not", kIntegersAndBool),
      {"shift_left", kIntegersAndBool, elementwise, {}, {-2, 40}},
      {"shift_right", kIntegersAndBool, elementwise, {}, {-2, 40}},
      exact("where", kStored),
      {"check", kStored, checked},
      exact("clamp", kNumbers, false),
      {"cast", kStored, elementwise, {}, {-300, 300}, allTypes()},
  };
  return rows;
}

} // namespace burin::test
