// Arithmetic on sizes during import. Exported models compute the shapes for Reshape, Slice or Expand by ops on small
// tensors, starting from Shape. Here these ops compute with numbers and symbols, and add nothing to the graph.
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

/// Elements of any type that are known during import, and their shape.
struct Numbers {
  DType dtype = DType::i64;
  std::vector<int64_t> shape;
  std::vector<Number> elements;
};

/// The elements of an input that is an expression of sizes or a constant integer; with `alsoFloats` also a small
/// constant of floats.
std::optional<Numbers> numbersOf(const Node &n, size_t input, bool alsoFloats = true);
/// Nullopt if the type cannot hold the elements.
KnownValue valueOf(Numbers numbers);
/// Whether this element type supports arithmetic of sizes.
bool isCounted(DType dtype);

/// All elements as numbers; nullopt if one is symbolic.
std::optional<std::vector<int64_t>> staticOf(const std::optional<Numbers> &numbers);
inline std::optional<std::vector<int64_t>> staticOf(const Node &n, size_t input) {
  return staticOf(numbersOf(n, input, false));
}

/// The number of elements of a shape; INT64_MAX on overflow.
int64_t countOf(const std::vector<int64_t> &shape);
/// The broadcast shape of two shapes; nullopt if they do not broadcast, or have too many elements.
std::optional<std::vector<int64_t>> commonShape(const std::vector<int64_t> &a, const std::vector<int64_t> &b);
/// The position in a tensor of shape `from` of element `index` of a tensor of shape `to`, to which it broadcasts.
size_t sourceIndex(size_t index, const std::vector<int64_t> &to, const std::vector<int64_t> &from);

/// The number of elements of a Range, if it follows from sizes.
std::optional<Dim> stepsOf(const Node &range);

/// The sum and the negative of numbers.
Number sum(const Number &x, const Number &y);
Number negative(const Number &x);

/// The rule for `op` on known elements: arithmetic (ContentsArithmetic.cpp), movement (ContentsMovement.cpp), and
/// access by index (ContentsIndexed.cpp).
KnownRule arithmeticRule(std::string_view op);
KnownRule movementRule(std::string_view op);
KnownRule indexedRule(std::string_view op);
/// The parts of a Split of known elements.
std::optional<Values> splitContents(Node &n);

} // namespace burin::onnx
