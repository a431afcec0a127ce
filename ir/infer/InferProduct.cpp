// Matrix products and the contraction of kernels.
#include "ir/infer/Infer.h"
#include <algorithm>

namespace burin::ir {

/// Loose calls may have vectors, and leading dimensions that broadcast; `operands` get the shapes of the strict op.
bool inferMatmul(InferCall &call) {
  if (!requireRank(call, 0, call.strict ? 2 : 1) || !requireRank(call, 1, call.strict ? 2 : 1))
    return false;
  Shape &lhs = call.operands[0]->shape, &rhs = call.operands[1]->shape;
  const std::string given = text(operandText(call, 0), " and ", operandText(call, 1));
  bool isRow = lhs.size() == 1, isColumn = rhs.size() == 1;
  if (isRow)
    lhs.insert(lhs.begin(), Dim(1));
  if (isColumn)
    rhs.push_back(1);
  Dim m = lhs[lhs.size() - 2], k = lhs.back(), n = rhs.back(), rows = rhs[rhs.size() - 2];
  if (!call.same(k, rows))
    return call.fail(text(given, " do not multiply: lhs has ", k, " columns but rhs has ", rows, " rows",
                          k == n      ? "; transpose rhs"
                          : m == rows ? "; transpose lhs"
                                      : "; make the two sizes equal"));
  auto leading = broadcastShapes(Shape(lhs.begin(), lhs.end() - 2), Shape(rhs.begin(), rhs.end() - 2), &call);
  if (!leading)
    return call.fail(text(given, " do not multiply: their leading dimensions do not broadcast"));
  Shape newLhs = *leading, newRhs = *leading, result = *leading;
  newLhs.insert(newLhs.end(), {m, k});
  newRhs.insert(newRhs.end(), {k, n});
  if (call.strict && (lhs != newLhs || rhs != newRhs))
    return call.fail(text(given, " must have equal leading dimensions; use broadcast_to"));
  if (!isRow)
    result.push_back(m);
  if (!isColumn)
    result.push_back(n);
  lhs = std::move(newLhs);
  rhs = std::move(newRhs);
  const DType type = call.operand(0).dtype;
  return succeed(call, isFloat8(type) ? DType::f32 : type, std::move(result));
}

/// Checks that the dimensions of a list are in range and listed once in both lists.
static bool claim(InferCall &call, const char *name, std::vector<bool> &claimed) {
  Ints &axes = call.attr<Ints>(name);
  for (int64_t &axis : axes) {
    if (!canonicalAxis(call, axis, claimed.size(), name))
      return false;
    if (claimed[axis])
      return call.fail(text(name, " ", axes, " names dimension ", axis, ", which is named before"));
    claimed[axis] = true;
  }
  return true;
}

static bool samePairs(InferCall &call, const char *lhsName, const char *rhsName) {
  const Ints &left = call.attr<Ints>(lhsName), &right = call.attr<Ints>(rhsName);
  if (left.size() != right.size())
    return call.fail(text(lhsName, " ", left, " and ", rhsName, " ", right, " must pair up"));
  for (size_t i = 0; i < left.size(); ++i)
    if (!call.same(call.operand(0).shape[left[i]], call.operand(1).shape[right[i]]))
      return call.fail(text(operandText(call, 0), " and ", operandText(call, 1), " differ in the paired dimensions ",
                            left[i], " and ", right[i]));
  return true;
}

bool inferDotGeneral(InferCall &call) {
  const Shape &lhs = call.operand(0).shape, &rhs = call.operand(1).shape;
  std::vector<bool> inLhs(lhs.size()), inRhs(rhs.size());
  if (!claim(call, "lhs_batch", inLhs) || !claim(call, "lhs_contract", inLhs) || !claim(call, "rhs_batch", inRhs) ||
      !claim(call, "rhs_contract", inRhs) || !samePairs(call, "lhs_batch", "rhs_batch") ||
      !samePairs(call, "lhs_contract", "rhs_contract"))
    return false;
  Shape result;
  for (int64_t axis : call.attr<Ints>("lhs_batch"))
    result.push_back(lhs[axis]);
  for (size_t i = 0; i < lhs.size(); ++i)
    if (!inLhs[i])
      result.push_back(lhs[i]);
  for (size_t i = 0; i < rhs.size(); ++i)
    if (!inRhs[i])
      result.push_back(rhs[i]);
  return succeed(call, call.operand(0).dtype, std::move(result));
}

bool inferPack(InferCall &call) {
  Shape shape = call.operand(0).shape;
  int64_t width = call.attr<int64_t>("width");
  if (!requireRank(call, 0, 2))
    return false;
  if (width < 1)
    return call.fail(text("width ", width, " must be positive"));
  Dim n = shape.back();
  shape.back() = width;
  shape.insert(shape.end() - 2, ceildiv(n, width));
  return succeed(call, call.operand(0).dtype, std::move(shape));
}

bool inferBf16Pairs(InferCall &call) {
  Shape shape = call.operand(0).shape;
  const int64_t axis = call.attr<int64_t>("axis");
  if (!requireRank(call, 0, 2))
    return false;
  if (call.operand(0).dtype != DType::bf16 || (axis != 1 && axis != 2))
    return call.fail(text(operandText(call, 0), " must be bf16, and axis ", axis, " 1 or 2"));
  Dim &paired = shape[shape.size() - size_t(axis)];
  paired = ceildiv(paired, 2);
  return succeed(call, DType::i32, std::move(shape));
}

bool inferBf16Terms(InferCall &call) {
  const Shape &x = call.operand(0).shape;
  if (call.operand(0).dtype != DType::f32 || x.size() != 2)
    return call.fail(text(operandText(call, 0), " must be an f32 matrix"));
  return succeed(call, DType::bf16, {ceildiv(x[0], 32) * 2, ceildiv(x[1], 32), 3, 16, 32});
}

/// Whether a product of these types may be `wide`: sums of 16-bit and 8-bit floats in f32, of bytes in i32.
static bool hasWideSums(DType lhs, DType rhs) {
  auto isByte = [](DType type) { return type == DType::i8 || type == DType::u8; };
  return (isByte(lhs) && isByte(rhs)) || (isFloat8(lhs) && isFloat8(rhs)) ||
         (lhs == rhs && isFloat(lhs) && byteWidth(lhs) == 2);
}

/// A product of f32 matrices by their bf16 terms (bf16x3).
static bool inferContractOfTerms(InferCall &call) {
  const TensorSpec &lhs = call.operand(0), &rhs = call.operand(1), &terms = call.operand(3);
  if (lhs.dtype != DType::f32 || lhs.shape.empty() || rhs.dtype != DType::bf16 || terms.dtype != DType::bf16)
    return call.fail(text(operandText(call, 0), ", ", operandText(call, 1), " and ", operandText(call, 3),
                          " must be a matrix of f32 and terms of bf16"));
  Shape result = lhs.shape;
  Dim rows = elements(Shape(result.begin(), result.end() - 1)), blocks = ceildiv(result.back(), 32);
  const Dim &columns = call.attr<Shape>("columns")[0];
  Shape ofLhs{ceildiv(rows, 32) * 2, blocks, 3, 16, 32}, ofRhs{ceildiv(columns, 32), blocks, 3, 2, 16, 32};
  if (terms.shape != ofLhs || rhs.shape != ofRhs)
    return call.fail(text("terms ", terms.shape, " and rhs ", rhs.shape, " must be ", ofLhs, " and ", ofRhs));
  result.back() = columns;
  return succeed(call, DType::f32, std::move(result));
}

bool inferContract(InferCall &call) {
  const Shape &lhs = call.operand(0).shape, &rhs = call.operand(1).shape;
  const Ints &kernel = call.attr<Ints>("kernel");
  size_t spatial = kernel.size();
  int64_t batch = call.attr<int64_t>("batch");
  const Shape &columns = call.attr<Shape>("columns");
  if (columns.size() != 1)
    return call.fail(text("columns ", columns, " must be one size"));
  const Dim &n = columns[0];
  if (call.has(3))
    return inferContractOfTerms(call);
  const bool isOfPairs = call.operand(0).dtype == DType::bf16 && call.operand(1).dtype == DType::i32 && !call.has(2);
  const bool isWide =
      call.attr<bool>("wide") && (isOfPairs || hasWideSums(call.operand(0).dtype, call.operand(1).dtype));
  const bool isWidened = call.operand(0).dtype == DType::f32 && isFloat8(call.operand(1).dtype); // as it is read
  const bool isOneType = call.operand(0).dtype == call.operand(1).dtype && !isFloat8(call.operand(0).dtype);
  if (!isOfPairs && !isWide && !isWidened && !isOneType)
    return call.fail(text(operandText(call, 0), " and ", operandText(call, 1), " must have one element type"));
  if (batch < 0 || lhs.size() != batch + spatial + 1 || rhs.size() != static_cast<size_t>(batch) + 3)
    return call.fail(text("lhs ", lhs, " must be [batch…, spatial…, C] and rhs ", rhs,
                          " [batch…, panels, K, width], with ", batch, " batch and ", spatial, " spatial dimensions"));
  if (!canonicalList(call, "kernel", spatial, 1, 1) || !canonicalList(call, "strides", spatial, 1, 1) ||
      !canonicalList(call, "dilations", spatial, 1, 1))
    return false;
  Ints padding = call.attr<Ints>("padding");
  if (!padding.empty() && (padding.size() != 2 * spatial || std::any_of(padding.begin(), padding.begin() + spatial,
                                                                        [](int64_t low) { return low < 0; })))
    return call.fail(
        text("padding ", padding, " must be empty or ", 2 * spatial, " numbers, the first half not negative"));
  padding.resize(2 * spatial);
  if (!std::equal(lhs.begin(), lhs.begin() + batch, rhs.begin()))
    return call.fail(text("lhs ", lhs, " and rhs ", rhs, " must agree in the first ", batch, " dimensions"));
  Shape result(lhs.begin(), lhs.begin() + batch);
  Dim k = isOfPairs ? ceildiv(lhs.back(), 2) : lhs.back();
  for (size_t i = 0; i < spatial; ++i) {
    Dim span = Dim(kernel[i] - 1) * call.attr<Ints>("dilations")[i] + 1;
    Dim size = lhs[batch + i] + Dim(padding[i]) + Dim(padding[spatial + i]);
    if (size.isStatic() && size.value() < span.value() - 1) // span - 1 elements give an empty result
      return call.fail(text("a window of ", span, " does not fit spatial dimension ", i, " of lhs ", lhs));
    result.push_back(floordiv(size - span, call.attr<Ints>("strides")[i]) + 1);
    k = k * kernel[i];
  }
  Dim inPanels = n;
  if (call.has(2)) {
    const Shape &tail = call.operand(2).shape;
    Shape expected(lhs.begin(), lhs.begin() + batch);
    expected.insert(expected.end(), {1, tail.size() > 1 ? tail[tail.size() - 2] : Dim(0), k});
    if (call.operand(2).dtype != call.operand(0).dtype || tail != expected)
      return call.fail(text("tail ", tail, " must be [batch…, 1, columns, ", k, "], of the type of lhs"));
    inPanels = n - tail[tail.size() - 2];
  }
  const Dim &panels = rhs[batch], &width = rhs[batch + 2];
  const bool isPlain = panels == Dim(1) && width == inPanels && !call.has(2);
  const bool isPacked = width.isStatic() && width.value() >= 1 && panels == ceildiv(inPanels, width);
  if ((!isPlain && !isPacked) || rhs[batch + 1] != k)
    return call.fail(text("rhs ", rhs, " must be packed from [", k, ", ", inPanels, "], so end in [",
                          ceildiv(inPanels, max(width, 1)), ", ", k, ", width]"));
  result.push_back(n);
  DType type = call.operand(0).dtype;
  return succeed(call, !isWide ? type : isFloat(type) ? DType::f32 : DType::i32, std::move(result));
}

} // namespace burin::ir
