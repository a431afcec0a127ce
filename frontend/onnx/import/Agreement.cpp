// Sizes that must be equal but are not known to be. An exporter knows that the skip connection of a U-Net has the size
// of what it joins; from the graph it follows only for heights that are multiples of 8. Such sizes are taken to be
// equal, and every run checks that they are.
#include "frontend/onnx/import/Node.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <algorithm>
#include <unordered_set>

namespace burin::onnx {

namespace {

using Shapes = std::vector<Shape>;

/// The size that stands for two that must be equal.
const Dim &simpler(const Dim &a, const Dim &b) {
  if (a.isStatic() || b.isStatic())
    return a.isStatic() ? a : b;
  std::string left = a.str(), right = b.str();
  return std::pair(left.size(), left) <= std::pair(right.size(), right) ? a : b;
}

/// Makes the sizes of one axis equal, where they may be. `axis` counts from the end; sizes of 1 may be left alone.
void agree(Shapes &shapes, size_t axis, bool broadcasts) {
  std::vector<Dim *> sizes;
  for (Shape &shape : shapes)
    if (axis < shape.size() && !(broadcasts && shape[shape.size() - 1 - axis] == Dim(1)))
      sizes.push_back(&shape[shape.size() - 1 - axis]);
  if (sizes.empty())
    return;
  Dim common = *sizes[0];
  for (const Dim *size : sizes)
    common = simpler(common, *size);
  for (Dim *size : sizes)
    if (mayEqual(*size, common))
      *size = common;
}

size_t largestRank(const Shapes &shapes) {
  size_t rank = 0;
  for (const Shape &shape : shapes)
    rank = std::max(rank, shape.size());
  return rank;
}

void agreeToBroadcast(Shapes &shapes, size_t from = 0) {
  for (size_t axis = from; axis < largestRank(shapes); ++axis)
    agree(shapes, axis, true);
}

void agreeToMultiply(Shapes &shapes) {
  if (shapes.size() != 2 || shapes[0].empty() || shapes[1].size() < 2)
    return;
  Shapes summed{{shapes[0].back()}, {shapes[1][shapes[1].size() - 2]}};
  agree(summed, 0, false);
  shapes[0].back() = summed[0][0];
  shapes[1][shapes[1].size() - 2] = summed[1][0];
  agreeToBroadcast(shapes, 2);
}

void agreeToJoin(Shapes &shapes, int64_t axis) {
  for (size_t i = 0; i < largestRank(shapes); ++i)
    if (int64_t(i) != int64_t(largestRank(shapes)) - 1 - axis)
      agree(shapes, i, false);
}

const std::unordered_set<std::string_view> broadcasting{
    "Add",  "And", "BitwiseAnd",  "BitwiseOr", "BitwiseXor", "Div", "Equal", "Expand", "Greater", "GreaterOrEqual",
    "Less", "Max", "LessOrEqual", "Mean",      "Min",        "Mod", "Mul",   "Or",     "PRelu",   "Pow",
    "Sub",  "Sum", "Where",       "Xor"};

/// `x`, whose sizes are taken to be those of `shape`.
Tensor withSizes(const Tensor &x, const Shape &shape) {
  Shape from = x.shape();
  for (size_t i = 0; i < shape.size(); ++i)
    requireEqual(from[i], shape[i]);
  return Trace::active()->reshapeUnproved(x, shape, detail::inScope({}));
}

} // namespace

void requireEqual(const Dim &left, const Dim &right) { Trace::active()->require(left, right, detail::inScope({})); }

Tensor reshapeChecked(const Tensor &x, Shape shape) {
  Dim total = elements(x.shape()), known = 1;
  auto open = std::find(shape.begin(), shape.end(), Dim(-1));
  for (auto size = shape.begin(); size != shape.end(); ++size)
    if (size != open)
      known = known * *size;
  if (open != shape.end() && lowerBound(known).value_or(0) >= 1) {
    *open = floordiv(total, known);
    known = known * *open;
  } else if (open != shape.end()) {
    return reshape(x, shape); // which says what is wrong, or divides exactly
  }
  if (known == total || !mayEqual(known, total))
    return reshape(x, shape);
  requireEqual(known, total);
  return Trace::active()->reshapeUnproved(x, shape, detail::inScope({}));
}

void agreeOnSizes(Node &node) {
  bool isJoin = node.op() == "Concat", isProduct = node.op() == "MatMul", isExpand = node.op() == "Expand";
  if (node.domain() != "" || !(isJoin || isProduct || broadcasting.contains(node.op())))
    return;
  Shapes shapes;
  for (size_t i = 0; i < node.inputCount() && !(isExpand && i == 1); ++i) {
    if (!node.has(i) || node.value(i).sequence)
      return;
    shapes.push_back(node.shape(i));
  }
  Shapes before = shapes;
  if (isExpand)
    shapes.push_back(node.sizes(1));
  if (isJoin)
    agreeToJoin(shapes, node.axis(node.attribute("axis", int64_t(1)), int64_t(largestRank(shapes))));
  else if (isProduct)
    agreeToMultiply(shapes);
  else
    agreeToBroadcast(shapes);
  for (size_t i = 0; i < before.size(); ++i)
    if (shapes[i] != before[i])
      node.replace(i, withSizes(node[i], shapes[i]));
}

} // namespace burin::onnx
