#include "frontend/onnx/import/contents/Contents.h"
#include "frontend/trace/Trace.h"
#include <algorithm>
#include <cmath>

namespace burin::onnx {

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      return INT64_MAX;
  return count;
}

std::optional<std::vector<int64_t>> commonShape(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= shape.size(); ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[shape.size() - i] = x == 1 ? y : x;
  }
  return countOf(shape) <= kMaxKnownElements ? std::optional(shape) : std::nullopt;
}

size_t sourceIndex(size_t index, const std::vector<int64_t> &to, const std::vector<int64_t> &from) {
  size_t source = 0, stride = 1;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t coordinate = index % size_t(to[to.size() - i]), size = size_t(from[from.size() - i]);
    index /= size_t(to[to.size() - i]);
    source += size == 1 ? 0 : coordinate * stride;
    stride *= size;
  }
  return source;
}

bool isCounted(DType dtype) { return dtype == DType::i64 || dtype == DType::i32 || isBool(dtype); }

/// A float as a quotient of small numbers: sizes computed with 0.7f usually mean 7/10.
static std::optional<Number> quotientOf(double value, DType dtype) {
  constexpr int64_t kMostDivisor = 64;
  if (!std::isfinite(value) || std::fabs(value) > 0x1p40)
    return std::nullopt;
  double precision = dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-24 : 0x1p-11;
  for (int64_t divisor = 1; divisor <= kMostDivisor; ++divisor) {
    double whole = std::round(value * double(divisor));
    if (std::fabs(value * double(divisor) - whole) <= precision * std::fabs(whole))
      return Number{int64_t(whole), divisor};
  }
  for (int64_t divisor = 128; divisor <= int64_t(1) << 20; divisor *= 2)
    if (double whole = value * double(divisor); whole == std::round(whole))
      return Number{int64_t(whole), divisor};
  return std::nullopt;
}

/// The elements of a constant of floats.
static std::optional<Numbers> floatsOf(const Value &value) {
  constexpr int64_t kMostFloats = 64;
  std::optional<Tensor> constant = constantOf(value);
  if (!constant || !isFloat(constant->dtype()) || elements(constant->shape()).value() > kMostFloats)
    return std::nullopt;
  Numbers numbers{constant->dtype(), {}, {}};
  for (const Dim &size : constant->shape())
    numbers.shape.push_back(size.value());
  for (double number : constant->to_vector<double>()) {
    std::optional<Number> quotient = quotientOf(number, constant->dtype());
    if (!quotient)
      return std::nullopt;
    numbers.elements.push_back(*std::move(quotient));
  }
  return numbers;
}

std::optional<Numbers> numbersOf(const Node &n, size_t input, bool alsoFloats) {
  if (!n.has(input) || n.value(input).sequence)
    return std::nullopt;
  const Value &value = n.value(input);
  if (!value.contents && alsoFloats && isFloat(value.tensor.dtype()))
    return floatsOf(value);
  std::optional<Contents> contents = value.contents ? std::optional(*value.contents) : contentsOf(value);
  if (!contents)
    return std::nullopt;
  Numbers numbers{contents->dtype, std::move(contents->shape), {}};
  for (size_t i = 0; i < contents->elements.size(); ++i)
    numbers.elements.push_back({contents->elements[i], contents->divisors.empty() ? Dim(1) : contents->divisors[i]});
  return numbers;
}

std::optional<std::vector<int64_t>> staticOf(const std::optional<Numbers> &numbers) {
  if (!numbers)
    return std::nullopt;
  std::vector<int64_t> result;
  for (const Number &number : numbers->elements) {
    if (!number.isStatic() || !number.isWhole())
      return std::nullopt;
    result.push_back(number.dividend.value());
  }
  return result;
}

KnownValue valueOf(Numbers numbers) {
  Contents contents{numbers.dtype, std::move(numbers.shape), {}, {}};
  for (Number &number : numbers.elements) {
    if (!isFloat(numbers.dtype) && !number.isWhole())
      return std::nullopt;
    if (numbers.dtype == DType::i32 && number.dividend.isStatic() &&
        number.dividend.value() != int32_t(number.dividend.value()))
      return std::nullopt; // would wrap
    contents.elements.push_back(std::move(number.dividend));
    if (isFloat(numbers.dtype))
      contents.divisors.push_back(std::move(number.divisor));
  }
  return Value(std::move(contents));
}

/// Floats are only followed from sizes; constants alone do not need it.
static bool startsFromSizes(const Node &n) {
  if (n.op() == "Shape" || n.op() == "Size")
    return true;
  bool hasFloats = false, hasSizes = false;
  for (size_t i = 0; i < n.inputCount(); ++i)
    if (n.has(i) && !n.value(i).sequence) {
      hasFloats |= !n.value(i).contents && isFloat(n.value(i).tensor.dtype());
      hasSizes |= n.value(i).contents != nullptr;
    }
  return hasSizes || !hasFloats;
}

std::optional<Values> propagateContents(Node &node) try {
  if (!node.domain().empty() || !startsFromSizes(node))
    return std::nullopt;
  if (node.op() == "Split")
    return splitContents(node);
  for (auto ruleOf : {arithmeticRule, movementRule, indexedRule})
    if (KnownRule rule = ruleOf(node.op())) {
      KnownValue value = rule(node);
      return value ? std::optional(Values{*std::move(value)}) : std::nullopt;
    }
  return std::nullopt;
} catch (const Error &) { // from arithmetic of sizes
  return std::nullopt;
}

} // namespace burin::onnx
