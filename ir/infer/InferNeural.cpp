// Softmax, normalisation, attention.
#include "ir/infer/Infer.h"

namespace burin::ir {

bool inferSameAsOperand(InferCall &call) { return succeed(call, call.operand(0).dtype, call.operand(0).shape); }

bool inferAlongAxis(InferCall &call) {
  return requireFloat(call, 0) && canonicalAxis(call, call.attr<int64_t>("axis"), call.operand(0).shape.size()) &&
         inferSameAsOperand(call);
}

/// Checks that scale and shift of a normalisation have `shape`.
static bool checkParameters(InferCall &call, const Shape &shape, const char *meaning) {
  for (size_t i = 1; i < call.operands.size(); ++i)
    if (call.has(i) && !call.same(call.operand(i).shape, shape))
      return call.fail(text(operandText(call, i), " must be ", shape, ", ", meaning, " of ", operandText(call, 0)));
  return true;
}

bool inferNorm(InferCall &call) {
  const Shape &x = call.operand(0).shape;
  int64_t &axis = call.attr<int64_t>("axis");
  return requireFloat(call, 0) && canonicalAxis(call, axis, x.size()) &&
         checkParameters(call, Shape(x.begin() + axis, x.end()), "the dimensions from `axis` on") &&
         inferSameAsOperand(call);
}

bool inferBatchNorm(InferCall &call) {
  return requireFloat(call, 0) && requireRank(call, 0, 2) &&
         checkParameters(call, {call.operand(0).shape[1]}, "one number per channel") && inferSameAsOperand(call);
}

bool inferGroupNorm(InferCall &call) {
  bool hasGroups = !call.info.attrs.empty() && std::string_view(call.info.attrs[0].name) == "groups";
  if (!requireFloat(call, 0) || !requireRank(call, 0, hasGroups ? 2 : 3))
    return false;
  const Dim &channels = call.operand(0).shape[1];
  if (hasGroups) {
    int64_t groups = call.attr<int64_t>("groups");
    if (groups < 1)
      return call.fail(text("groups ", groups, " must be positive"));
    if (mod(channels, groups) != Dim(0))
      return call.fail(text(groups, " groups do not divide the ", channels, " channels of ", operandText(call, 0)));
  }
  return checkParameters(call, {channels}, "one number per channel") && inferSameAsOperand(call);
}

// ---- attention

/// Checks that query, key and value have one element type and the same leading dimensions.
static bool agreeOnHeads(InferCall &call) {
  DType types[] = {call.operand(0).dtype, call.operand(1).dtype, call.operand(2).dtype}, common = promote(types, {});
  std::optional<Shape> leading = Shape();
  auto head = [](const Shape &s) { return Shape(s.begin(), s.end() - 2); };
  for (size_t i = 0; i < 3; ++i) {
    if (!requireFloat(call, i) || !requireRank(call, i, 2))
      return false;
    leading = broadcastShapes(*leading, head(call.operand(i).shape), &call);
    if (!leading)
      return call.fail(text("the leading dimensions of ", operandText(call, 0), ", ", operandText(call, 1), " and ",
                            operandText(call, 2), " do not broadcast"));
  }
  for (size_t i = 0; i < 3; ++i) {
    TensorSpec &spec = *call.operands[i];
    if (call.strict && (spec.dtype != common || head(spec.shape) != *leading))
      return call.fail(
          text(operandText(call, i), " must have the leading dimensions ", *leading, " and the type ", common));
    Shape shape = *leading;
    shape.insert(shape.end(), spec.shape.end() - 2, spec.shape.end());
    spec = {common, std::move(shape)};
  }
  return true;
}

/// Checks that the mask, operand `place`, broadcasts to the scores, which have `columns` columns.
static bool checkMask(InferCall &call, size_t place, const Dim &columns) {
  if (!call.has(place))
    return true;
  TensorSpec &mask = *call.operands[place];
  Shape scores = call.operand(0).shape;
  scores.back() = columns;
  if (!broadcastsTo(mask.shape, scores, &call))
    return call.fail(text(operandText(call, place), " does not broadcast to ", scores, ", the shape of the scores"));
  if (!isBool(mask.dtype) && mask.dtype != call.operand(0).dtype) {
    if (call.strict || !isFloat(mask.dtype))
      return call.fail(text(operandText(call, place), " must be bool or ", call.operand(0).dtype));
    mask.dtype = call.operand(0).dtype;
  }
  return true;
}

bool inferAttention(InferCall &call) {
  if (!agreeOnHeads(call))
    return false;
  const Shape &query = call.operand(0).shape, &key = call.operand(1).shape, &value = call.operand(2).shape;
  if (!call.same(query.back(), key.back()))
    return call.fail(text(operandText(call, 0), " and ", operandText(call, 1), " must agree in the last dimension"));
  const Dim &columns = key[key.size() - 2];
  if (!call.same(columns, value[value.size() - 2]))
    return call.fail(
        text(operandText(call, 1), " and ", operandText(call, 2), " must agree in the last dimension but one"));
  Shape result = query;
  result.back() = value.back();
  return checkMask(call, 3, columns) && succeed(call, call.operand(0).dtype, std::move(result));
}

/// The compiler alone makes this op, so that its operands agree.
bool inferAttentionGradient(InferCall &call) {
  const Shape &query = call.operand(0).shape, &key = call.operand(1).shape;
  if (query.size() < 2 || key.size() != query.size() || query.back() != key.back() || call.operand(2).shape != key ||
      call.operand(3).shape != query)
    return call.fail(text(
        "query, key, value and gradient must be [..., L, E], [..., S, E], [..., S, E] and [..., L, E], but are ",
        operandText(call, 0), ", ", operandText(call, 1), ", ", operandText(call, 2), " and ", operandText(call, 3)));
  const Dim &keys = key[key.size() - 2];
  Shape result = query;
  result[result.size() - 2] = query[query.size() - 2] + keys * 2;
  return checkMask(call, 4, keys) && succeed(call, call.operand(0).dtype, std::move(result));
}

} // namespace burin::ir
