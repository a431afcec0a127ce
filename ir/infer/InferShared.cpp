// Helpers of the inference functions: canonical attributes, broadcasting, common requirements.
#include "ir/infer/Infer.h"
#include <algorithm>

namespace burin::ir {

std::string str(const Ints &values) {
  std::string s = "[";
  for (int64_t v : values)
    s += (s.size() > 1 ? ", " : "") + std::to_string(v);
  return s + "]";
}

std::string operandName(const InferCall &call, size_t i) {
  auto &operands = call.info.operands;
  if (operands.size() == 1 && operands[0].arity == Arity::Variadic)
    return text(operands[0].name, "[", i, "]");
  return operands[i].name;
}

std::string operandText(const InferCall &call, size_t i) { return text(operandName(call, i), " ", call.operand(i)); }

bool requireCanonical(InferCall &call, bool holds, std::string_view name, const std::string &canonical) {
  return holds || !call.strict ||
         call.fail(text(name, " must be written in its canonical form here: ", name, " = ", canonical));
}

bool canonicalAxis(InferCall &call, int64_t &axis, size_t rank, std::string_view name) {
  int64_t n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    return call.fail(
        rank == 0 ? text(name, " ", axis, " does not exist: there are no dimensions to choose from")
                  : text(name, " ", axis, " is out of range; there are ", rank, " dimensions: ", -n, " … ", n - 1));
  int64_t canonical = axis < 0 ? axis + n : axis;
  if (!requireCanonical(call, axis == canonical, name, std::to_string(canonical)))
    return false;
  axis = canonical;
  return true;
}

bool canonicalAxes(InferCall &call, Ints &axes, size_t rank, std::string_view name) {
  if (axes.size() > rank)
    return call.fail(text(name, " lists ", axes.size(), " dimensions, but there are only ", rank));
  for (int64_t &axis : axes)
    if (!canonicalAxis(call, axis, rank, name))
      return false;
  Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return call.fail(text(name, " ", axes, " names a dimension twice"));
  if (!requireCanonical(call, sorted == axes, name, str(sorted)))
    return false;
  axes = std::move(sorted);
  return true;
}

bool canonicalList(InferCall &call, std::string_view name, size_t size, int64_t fallback, int64_t least) {
  Ints &list = call.attr<Ints>(name), full = list;
  if (full.empty())
    full.assign(size, fallback);
  else if (full.size() == 1)
    full.assign(size, list[0]);
  if (full.size() != size)
    return call.fail(text(name, " ", list, " must have one number for each of ", size, " dimensions"));
  if (!requireCanonical(call, list == full, name, str(full)))
    return false;
  list = std::move(full);
  for (int64_t v : list)
    if (v < least)
      return call.fail(text(name, " ", list, " must not go below ", least));
  return true;
}

bool InferCall::same(const Shape &left, const Shape &right) {
  if (left.size() != right.size())
    return false;
  for (size_t i = 0; i < left.size(); ++i)
    if (!same(left[i], right[i]))
      return false;
  return true;
}

std::optional<Shape> broadcastShapes(const Shape &a, const Shape &b, InferCall *call) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim &size = result[offset + i];
    if (size == Dim(1)) {
      size = shorter[i];
    } else if (shorter[i] != Dim(1) && shorter[i] != size) {
      if (call)
        call->same(size, shorter[i], true);
      return std::nullopt;
    }
  }
  return result;
}

bool broadcastsTo(const Shape &x, const Shape &shape, InferCall *call) {
  if (x.size() > shape.size())
    return false;
  size_t offset = shape.size() - x.size();
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != Dim(1) && x[i] != shape[offset + i]) {
      if (call)
        call->same(x[i], shape[offset + i], true);
      return false;
    }
  return true;
}

bool requireFloat(InferCall &call, size_t operand) {
  return isFloat(call.operand(operand).dtype) ||
         call.fail(text(operandText(call, operand), " must have a floating point type; cast it to f32"));
}

bool requireRank(InferCall &call, size_t operand, size_t least) {
  return call.operand(operand).shape.size() >= least ||
         call.fail(text(operandText(call, operand), " must have at least ", least, " dimensions"));
}

} // namespace burin::ir
