// Arithmetic on sizes while importing. Exported models compute the shapes for Reshape, Slice or Expand with ops on
// small tensors, from what Shape gives: here those ops work on numbers and symbols, and leave nothing in the graph.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

using KnownValue = std::optional<Value>;
using KnownRule = KnownValue (*)(Node &);
constexpr int64_t kMaxKnownElements = 4096;

/// A number, an expression of sizes, or a quotient of these.
struct Number {
  Dim dividend, divisor = 1; // the divisor is not negative

  bool isWhole() const { return divisor == Dim(1); }
  bool isStatic() const { return dividend.isStatic() && divisor.isStatic(); }
  friend bool operator==(const Number &, const Number &) = default;
};

/// Elements of any type that are known while importing, and their shape.
struct Numbers {
  DType dtype = DType::i64;
  std::vector<int64_t> shape;
  std::vector<Number> elements;
};

/// Of an input that is an expression of sizes or a constant integer; with `alsoFloats` also a small constant of floats.
std::optional<Numbers> numbersOf(const Node &n, size_t input, bool alsoFloats = true);
/// Nullopt where the type cannot hold the elements.
KnownValue valueOf(Numbers numbers);
/// Whether numbers of this type can be computed with as sizes are.
bool isCounted(DType dtype);

/// How many elements a shape has; INT64_MAX if that is too many to count.
int64_t countOf(const std::vector<int64_t> &shape);
/// The shape of two operands aligned at the right; nullopt if they do not broadcast, or have too many elements.
std::optional<std::vector<int64_t>> commonShape(const std::vector<int64_t> &a, const std::vector<int64_t> &b);
/// The position in a tensor of `from` of element `index` of a tensor of `to`, which it broadcasts to.
size_t sourceIndex(size_t index, const std::vector<int64_t> &to, const std::vector<int64_t> &from);

/// How many elements a Range has, if that follows from sizes.
std::optional<Dim> stepsOf(const Node &range);

/// The result of `op` on known elements: arithmetic (ContentsArithmetic.cpp) and movement (ContentsMovement.cpp).
KnownRule arithmeticRule(std::string_view op);
KnownRule movementRule(std::string_view op);

} // namespace burin::onnx
