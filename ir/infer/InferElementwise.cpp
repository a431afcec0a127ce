// Elementwise ops and reductions.
#include "ir/infer/Infer.h"

namespace burin::ir {

static bool inDomain(Domain domain, DType t) {
  switch (domain) {
  case Domain::Any:
    return true;
  case Domain::Numeric:
    return !isBool(t);
  case Domain::Float:
    return isFloat(t);
  case Domain::Integer:
    return !isFloat(t);
  case Domain::Bool:
    return isBool(t);
  }
  return false;
}
static const char *domainText(Domain domain) {
  switch (domain) {
  case Domain::Any:
    return "any type";
  case Domain::Numeric:
    return "integers or floats; cast bool to one of them";
  case Domain::Float:
    return "floats; cast to f32";
  case Domain::Integer:
    return "integers or bool; cast to an integer type";
  case Domain::Bool:
    return "bool; compare, for example with `!= 0`";
  }
  return "";
}

/// Operands have been promoted and broadcast, see agree() in Infer.cpp. The last operand is never a condition.
bool inferElementwise(InferCall &call) {
  size_t last = call.operands.size() - 1;
  TensorSpec result = call.operand(last);
  if (!inDomain(call.info.domain, result.dtype))
    return call.fail(
        text(operandText(call, last), " has the wrong element type: this takes ", domainText(call.info.domain)));
  if (call.info.boolResult)
    result.dtype = DType::boolean;
  call.results = {std::move(result)};
  return true;
}

bool inferCast(InferCall &call) { return succeed(call, call.attr<DType>("dtype"), call.operand(0).shape); }

// ---- reductions

static bool reduce(InferCall &call, DType dtype) {
  const Shape &shape = call.operand(0).shape;
  Ints &axes = call.attr<Ints>("axes");
  if (axes.empty() && !shape.empty()) {
    Ints all(shape.size());
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<int64_t>(i);
    if (!requireCanonical(call, false, "axes", str(all)))
      return false;
    axes = std::move(all);
  }
  if (!canonicalAxes(call, axes, shape.size()))
    return false;
  Shape result;
  size_t next = 0; // in axes, which are sorted
  for (size_t i = 0; i < shape.size(); ++i) {
    bool isReduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    next += isReduced;
    if (!isReduced)
      result.push_back(shape[i]);
    else if (call.attr<bool>("keepdims"))
      result.push_back(1);
  }
  return succeed(call, dtype, std::move(result));
}

bool inferReduction(InferCall &call) { return reduce(call, call.operand(0).dtype); }
bool inferReductionBool(InferCall &call) { return reduce(call, DType::boolean); }
static DType sumType(DType t) { return isFloat(t) ? t : DType::i64; }
bool inferReductionI64(InferCall &call) { return reduce(call, sumType(call.operand(0).dtype)); }

bool inferArgReduction(InferCall &call) {
  Shape shape = call.operand(0).shape;
  int64_t &axis = call.attr<int64_t>("axis");
  if (!canonicalAxis(call, axis, shape.size()))
    return false;
  if (shape[axis] == Dim(0))
    return call.fail(text(operandText(call, 0), " has no elements along axis ", axis, ": there is no index to return"));
  if (call.attr<bool>("keepdims"))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + axis);
  return succeed(call, DType::i64, std::move(shape));
}

bool inferCumsum(InferCall &call) {
  const TensorSpec &x = call.operand(0);
  return canonicalAxis(call, call.attr<int64_t>("axis"), x.shape.size()) && succeed(call, sumType(x.dtype), x.shape);
}

} // namespace burin::ir
