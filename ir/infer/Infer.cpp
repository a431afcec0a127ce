// Type inference, the part shared by all ops: checks the form of a call, promotes and broadcasts operands, then calls
// the op's inference function.
#include "ir/infer/Infer.h"
#include <algorithm>
#include <stdexcept>

namespace burin::ir {

namespace {
constexpr size_t kMaxRank = 32;

bool isVariadic(const OpInfo &info) { return info.operands.size() == 1 && info.operands[0].arity == Arity::Variadic; }

bool isNegative(const Dim &d) { return d.isStatic() && d.value() < 0; }

bool checkForm(InferCall &call) {
  const OpInfo &info = call.info;
  if (isVariadic(info)) {
    if (call.operands.empty())
      return call.fail(text("needs at least one tensor in ", info.operands[0].name));
  } else if (call.operands.size() > info.operands.size()) {
    return call.fail(text("takes ", info.operands.size(), " operands, not ", call.operands.size()));
  }
  call.operands.resize(std::max(call.operands.size(), info.operands.size()));
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (!call.has(i) && (isVariadic(info) || info.operands[i].arity != Arity::Optional))
      return call.fail(text("needs the operand ", operandName(call, i)));
    if (!call.has(i))
      continue;
    const Shape &shape = call.operand(i).shape;
    if (shape.size() > kMaxRank)
      return call.fail(text(operandName(call, i), " has ", shape.size(), " dimensions, more than ", kMaxRank));
    if (std::any_of(shape.begin(), shape.end(), isNegative))
      return call.fail(text(operandText(call, i), " has a negative size"));
  }
  if (call.attrs.size() != info.attrs.size())
    return call.fail(text("takes ", info.attrs.size(), " attributes, not ", call.attrs.size()));
  for (size_t i = 0; i < call.attrs.size(); ++i)
    if (call.attrs[i].index() != static_cast<size_t>(info.attrs[i].kind))
      return call.fail(text("attribute ", info.attrs[i].name, " is of the wrong kind"));
  return true;
}

/// Floats of 8 bits are moved and converted only, and not mixed with other types.
bool checkStorageTypes(InferCall &call) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.has(i) && isFloat8(call.operand(i).dtype) && call.info.float8 == Float8::Refused)
      return call.fail(text(operandText(call, i), " stores 8-bit floats, which are not computed with; convert it, for ",
                            "example with .to(f32), and the result back"));
  return true;
}

/// A condition selects between other operands: it takes no part in promotion.
bool isCondition(const InferCall &call, size_t i) {
  return !isVariadic(call.info) && std::string_view(call.info.operands[i].name) == "condition";
}

std::vector<size_t> promotedOperands(const InferCall &call) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.has(i) && !isCondition(call, i))
      indices.push_back(i);
  return indices;
}

bool agreeOnType(InferCall &call, bool isFloatOp) {
  std::vector<size_t> indices = promotedOperands(call);
  std::vector<DType> types;
  for (size_t i : indices)
    types.push_back(call.operand(i).dtype);
  if (call.info.float8 == Float8::Multiplied && std::ranges::all_of(types, isFloat8))
    return true;
  DType common = promote(types, {});
  for (size_t i : indices) // indices[0] and i differ in type, and one of the two is an 8-bit float
    if (DType type = call.operand(i).dtype; type != types[0] && (isFloat8(type) || isFloat8(types[0])))
      return call.fail(text(operandText(call, indices[0]), " and ", operandText(call, i),
                            " differ in type, and 8-bit floats are not promoted; convert one of them"));
  if (isFloatOp && !isFloat(common))
    common = DType::f32;
  for (size_t i : indices) {
    if (call.strict && call.operand(i).dtype != common) {
      if (indices.size() == 1)
        return call.fail(text(operandText(call, i), " must have a floating point type; cast it to f32"));
      return call.fail(text(operandText(call, indices[0]), " and ", operandText(call, i == indices[0] ? indices[1] : i),
                            " must both be ", common, "; cast them"));
    }
    call.operands[i]->dtype = common;
  }
  return true;
}

bool agreeOnShape(InferCall &call) {
  if (call.operands.size() < 2)
    return true;
  Shape common = call.operand(0).shape;
  for (size_t i = 1; i < call.operands.size(); ++i) {
    auto both = broadcastShapes(common, call.operand(i).shape, &call);
    if (!both)
      return call.fail(
          text(operandText(call, 0), " and ", operandText(call, i),
               " do not broadcast: aligned at the right, each pair of sizes must be equal or contain a 1\n  "
               "unsqueeze or reshape makes the size 1 that is to be repeated"));
    common = *both;
  }
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (call.strict && call.operand(i).shape != common)
      return call.fail(text(operandText(call, i), " must have the shape ", common, " of the result; use broadcast_to"));
    call.operands[i]->shape = common;
  }
  return true;
}

bool agree(InferCall &call) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.has(i) && isCondition(call, i) && !isBool(call.operand(i).dtype))
      return call.fail(text(operandText(call, i), " must be bool; compare it, for example with `!= 0`"));
  switch (call.info.normalize) {
  case Normalize::None:
    return true;
  case Normalize::Promote:
    return agreeOnType(call, false);
  case Normalize::Broadcast:
    return agreeOnType(call, false) && agreeOnShape(call);
  case Normalize::Float:
    return agreeOnType(call, true);
  case Normalize::BroadcastFloat:
    return agreeOnType(call, true) && agreeOnShape(call);
  }
  return true;
}

/// Checks that sizes are not negative, and that the bytes of a result fit 64 bits.
bool checkResults(InferCall &call) {
  for (const TensorSpec &result : call.results) {
    Dim bytes = int64_t(byteWidth(result.dtype));
    for (const Dim &d : result.shape) {
      if (isNegative(d))
        return call.fail(text("the result would have the shape ", result.shape, ", with a negative size"));
      if (d.isStatic() && d.value() != 0)
        bytes = bytes * d;
    }
    if (result.shape.size() > kMaxRank)
      return call.fail(text("the result would have ", result.shape.size(), " dimensions, more than ", kMaxRank));
  }
  return true;
}
} // namespace

static thread_local uint64_t inferences = 0;
uint64_t inferenceCount() { return inferences; }

bool infer(InferCall &call) try {
  ++inferences;
  call.results.clear();
  call.error.clear();
  call.unequal.reset();
  return checkForm(call) && checkStorageTypes(call) && agree(call) && call.info.infer(call) && checkResults(call);
} catch (const Error &problem) { // from arithmetic of sizes
  return call.fail(problem.what());
}

static int rankWithinClass(DType t) {
  switch (t) {
  case DType::f8e4m3fn:
  case DType::f8e5m2:
    return 0;
  case DType::f16:
  case DType::bf16:
    return 1;
  case DType::f32:
    return 2;
  case DType::f64:
    return 3;
  default:
    return static_cast<int>(byteWidth(t));
  }
}

static DType promotePair(DType a, DType b) {
  auto category = [](DType t) { return isFloat(t) ? 2 : isInteger(t) ? 1 : 0; };
  if (a == b)
    return a;
  if (category(a) != category(b))
    return category(a) > category(b) ? a : b;
  if (isFloat(a) && rankWithinClass(a) == rankWithinClass(b))
    return DType::f32; // f16 and bf16, or two 8-bit floats
  if ((a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8))
    return DType::i16;
  return rankWithinClass(a) > rankWithinClass(b) ? a : b;
}

DType promote(std::span<const DType> types, std::span<const bool> weak) {
  auto isWeak = [&](size_t i) { return i < weak.size() && weak[i]; };
  auto byDefault = [](DType t) { return isFloat(t) ? DType::f32 : isInteger(t) ? DType::i64 : DType::boolean; };
  std::optional<DType> strong, scalar;
  for (size_t i = 0; i < types.size(); ++i) {
    std::optional<DType> &into = isWeak(i) ? scalar : strong;
    DType t = isWeak(i) ? byDefault(types[i]) : types[i];
    into = into ? promotePair(*into, t) : t;
  }
  if (!strong || !scalar)
    return strong ? *strong : scalar.value_or(DType::f32);
  bool raises = isBool(*strong) ? !isBool(*scalar) : isInteger(*strong) && isFloat(*scalar);
  return raises ? *scalar : *strong;
}

} // namespace burin::ir
