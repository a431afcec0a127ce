// Ops that select by index, and ops that create tensors.
#include "ir/infer/Infer.h"
#include <cmath>

namespace burin::ir {

static bool requireIndices(InferCall &call) {
  return isInteger(call.operand(1).dtype) ||
         call.fail(text(operandText(call, 1), " must be integers; cast them to i64"));
}

bool inferTake(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  const Shape &indices = call.operand(1).shape;
  int64_t &axis = call.attr<int64_t>("axis");
  if (!requireIndices(call) || !canonicalAxis(call, axis, x.shape.size()))
    return false;
  if (x.shape[axis] == Dim(0) && elements(indices) != Dim(0))
    return call.fail(text(operandText(call, 0), " has no elements along axis ", axis, " to take"));
  Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  return succeed(call, x.dtype, std::move(shape));
}

/// Checks the shape of `indices`: any size along `axis`, at most that of x in other dimensions.
static bool checkIndexShape(InferCall &call) {
  const Shape &x = call.operand(0).shape, &indices = call.operand(1).shape;
  int64_t &axis = call.attr<int64_t>("axis");
  if (!requireIndices(call) || !canonicalAxis(call, axis, x.size()))
    return false;
  if (indices.size() != x.size())
    return call.fail(text(operandText(call, 1), " must have as many dimensions as ", operandText(call, 0)));
  for (size_t i = 0; i < x.size(); ++i)
    if (static_cast<int64_t>(i) != axis && !isAtMost(indices[i], x[i]) && !call.same(x[i], indices[i]))
      return call.fail(
          text(operandText(call, 1), " must not be larger than ", operandText(call, 0), " in dimension ", i));
  return true;
}

bool inferGather(InferCall &call) {
  if (!checkIndexShape(call))
    return false;
  const Shape &x = call.operand(0).shape, &indices = call.operand(1).shape;
  int64_t axis = call.attr<int64_t>("axis");
  if (x[axis] == Dim(0) && elements(indices) != Dim(0))
    return call.fail(text(operandText(call, 0), " has no elements along axis ", axis, " to gather"));
  return succeed(call, call.operand(0).dtype, indices);
}

bool inferScatter(InferCall &call) {
  if (!checkIndexShape(call))
    return false;
  TensorSpec &x = *call.operands[0], &updates = *call.operands[2];
  if (!call.same(call.operand(1).shape, updates.shape))
    return call.fail(text(operandText(call, 1), " and ", operandText(call, 2), " must have one shape"));
  DType types[] = {x.dtype, updates.dtype};
  const bool isFixed = call.strict || isFloat8(x.dtype) || isFloat8(updates.dtype);
  if (isFixed ? x.dtype != updates.dtype : promote(types, {}) != x.dtype)
    return call.fail(text(operandText(call, 2), " does not fit into ", operandText(call, 0), "; cast one of them"));
  updates.dtype = x.dtype;
  const std::string &reduction = call.attr<std::string>("reduction");
  if (reduction != "set" && reduction != "add" && reduction != "mul" && reduction != "min" && reduction != "max")
    return call.fail(text("reduction \"", reduction, "\" must be \"set\", \"add\", \"mul\", \"min\" or \"max\""));
  if (reduction != "set" && isFloat8(x.dtype))
    return call.fail(text(operandText(call, 0), " stores 8-bit floats, which are not computed with; convert it, for ",
                          "example with .to(f32)"));
  if (reduction != "set" && isBool(x.dtype))
    return call.fail("bool cannot be reduced; cast x to an integer type");
  return succeed(call, x.dtype, x.shape);
}

// ---- sizes that depend on data

/// Checks the symbol of the size that the op defines.
static bool checkNewSize(InferCall &call) {
  const Shape &size = call.attr<Shape>("size");
  return (size.size() == 1 && size[0].symbol()) || call.fail(text("size ", size, " must be one symbol"));
}

bool inferPrefix(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  TensorSpec &count = *call.operands[1];
  if (!checkNewSize(call) || !requireRank(call, 0, 1))
    return false;
  if (!isInteger(count.dtype) || !count.shape.empty())
    return call.fail(text(operandText(call, 1), " must be a single integer, i64[]"));
  if (call.strict && count.dtype != DType::i64)
    return call.fail(text(operandText(call, 1), " must be i64"));
  count.dtype = DType::i64;
  Shape shape = x.shape;
  shape[0] = call.attr<Shape>("size")[0];
  return succeed(call, x.dtype, std::move(shape));
}

bool inferNonzero(InferCall &call) {
  return checkNewSize(call) && requireRank(call, 0, 1) &&
         succeed(call, DType::i64, {call.attr<Shape>("size")[0], Dim(call.operand(0).shape.size())});
}

// ---- order

bool inferArgsort(InferCall &call) {
  const Shape &x = call.operand(0).shape;
  return canonicalAxis(call, call.attr<int64_t>("axis"), x.size()) && succeed(call, DType::i64, x);
}

bool inferNonMaxSuppression(InferCall &call) {
  const TensorSpec &boxes = call.operand(0), &scores = call.operand(1);
  int64_t most = call.attr<int64_t>("max_output");
  if (!requireFloat(call, 0) || !requireFloat(call, 1))
    return false;
  if (boxes.shape.size() != 3 || boxes.shape[2] != Dim(4))
    return call.fail(text(operandText(call, 0), " must be [batch, boxes, 4]"));
  if (scores.shape.size() != 3 || !call.same(scores.shape[0], boxes.shape[0]) ||
      !call.same(scores.shape[2], boxes.shape[1]))
    return call.fail(text(operandText(call, 1), " must be [batch, classes, boxes] for ", operandText(call, 0)));
  if (boxes.dtype != scores.dtype)
    return call.fail(text(operandText(call, 0), " and ", operandText(call, 1), " must have one element type"));
  if (most < 0)
    return call.fail(text("max_output must not be negative, got ", most));
  Dim boxCount = scores.shape[2], count = most == INT64_MAX ? boxCount : min(Dim(most), boxCount);
  return succeed(call, DType::i64, {scores.shape[0], scores.shape[1], count});
}

// ---- creation

static bool checkNewShape(InferCall &call) {
  const Shape &shape = call.attr<Shape>("shape");
  for (const Dim &d : shape)
    if (d.isStatic() && d.value() < 0)
      return call.fail(text("shape ", shape, " has a negative size"));
  return true;
}

bool inferIota(InferCall &call) {
  const Shape &shape = call.attr<Shape>("shape");
  DType dtype = call.attr<DType>("dtype");
  if (!checkNewShape(call) || !canonicalAxis(call, call.attr<int64_t>("axis"), shape.size()))
    return false;
  if (isBool(dtype))
    return call.fail("bool cannot count; choose an integer or floating point type");
  return succeed(call, dtype, shape);
}

bool inferFull(InferCall &call) {
  return checkNewShape(call) && succeed(call, call.attr<DType>("dtype"), call.attr<Shape>("shape"));
}

/// Checks that the key, if present, is a single i64.
static bool checkKey(InferCall &call, size_t index) {
  if (index >= call.operands.size() || !call.operands[index] || *call.operands[index] == TensorSpec{DType::i64, {}})
    return true;
  return call.fail(text(operandText(call, index), " must be a single key, i64[]; a Generator gives one"));
}

bool inferRandom(InferCall &call) {
  DType dtype = call.attr<DType>("dtype");
  if (!checkNewShape(call) || !checkKey(call, 0))
    return false;
  if (!isFloat(dtype) || isFloat8(dtype))
    return call.fail(text("random numbers are floats", isFloat8(dtype) ? " of 16 bits or more" : "", ", not ", dtype,
                          "; cast the result"));
  for (size_t i = 0; i < call.attrs.size(); ++i)
    if (auto *value = std::get_if<double>(&call.attrs[i]); value && !std::isfinite(*value))
      return call.fail(text(call.info.attrs[i].name, " must be finite"));
  return succeed(call, dtype, call.attr<Shape>("shape"));
}

bool inferRandomIntegers(InferCall &call) {
  DType dtype = call.attr<DType>("dtype");
  if (!checkNewShape(call) || !checkKey(call, 0))
    return false;
  if (!isInteger(dtype))
    return call.fail(text("random integers are integers, not ", dtype, "; cast the result"));
  if (int64_t low = call.attr<int64_t>("low"), high = call.attr<int64_t>("high"); low >= high)
    return call.fail(text("there is no integer in [", low, ", ", high, ")"));
  return succeed(call, dtype, call.attr<Shape>("shape"));
}

bool inferRandomKey(InferCall &call) {
  if (call.operand(0) != TensorSpec{DType::i64, {2}})
    return call.fail(text(operandText(call, 0), " must be the state of a generator, i64[2]"));
  return succeed(call, DType::i64, {});
}

bool inferBernoulli(InferCall &call) { return requireFloat(call, 0) && checkKey(call, 1) && inferSameAsOperand(call); }

} // namespace burin::ir
