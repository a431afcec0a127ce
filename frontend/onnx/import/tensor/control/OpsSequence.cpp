// Sequences, which are lists of values during import, and optional values.
#include "frontend/onnx/import/tensor/control/Control.h"
#include <algorithm>

namespace burin::onnx {

namespace {

constexpr int64_t kMaxSequence = 1024;

/// A sequence value.
Values sequenceOf(Node &n, std::vector<Value> values) {
  if (int64_t(values.size()) > kMaxSequence)
    n.unsupported("a sequence of more than " + std::to_string(kMaxSequence) + " tensors");
  for (const Value &value : values)
    if (value.sequence)
      n.fail("a sequence holds tensors, not sequences");
  return Value::sequenceOf(std::move(values));
}

/// A position in a list of `size`; negative ones count from the end. `mayEnd`: one past the last element is allowed.
int64_t positionOf(Node &n, size_t input, int64_t size, bool mayEnd = false) {
  int64_t at = n.integer(input);
  at += at < 0 ? size : 0;
  if (at < 0 || at >= size + mayEnd)
    n.fail("the position " + std::to_string(n.integer(input)) + " is out of range of " + std::to_string(size) +
           " elements");
  return at;
}

Values sequenceConstruct(Node &n) {
  std::vector<Value> values;
  for (size_t i = 0; i < n.inputCount(); ++i)
    values.push_back(n.value(i));
  return sequenceOf(n, std::move(values));
}
Values sequenceEmpty(Node &) { return Value::sequenceOf({}); }
Values sequenceAt(Node &n) {
  const std::vector<Value> &list = n.sequence(0);
  return list[size_t(positionOf(n, 1, int64_t(list.size())))];
}
Values sequenceLength(Node &n) { return whole(int64_t(n.sequence(0).size())); }
Values sequenceInsert(Node &n) {
  std::vector<Value> list = n.sequence(0);
  auto size = int64_t(list.size());
  list.insert(list.begin() + (n.has(2) ? positionOf(n, 2, size, true) : size), n.value(1));
  return sequenceOf(n, std::move(list));
}
Values sequenceErase(Node &n) {
  std::vector<Value> list = n.sequence(0);
  auto size = int64_t(list.size());
  if (list.empty())
    n.fail("the sequence is empty");
  list.erase(list.begin() + (n.has(1) ? positionOf(n, 1, size) : size - 1));
  return Value::sequenceOf(std::move(list));
}
Values concatFromSequence(Node &n) {
  std::vector<Tensor> tensors;
  for (const Value &value : n.sequence(0))
    tensors.push_back(tensorOf(value));
  int64_t axis = n.attribute("axis", int64_t(0));
  return n.attribute("new_axis", int64_t(0)) ? stack(tensors, axis) : concat(tensors, axis);
}
Values splitToSequence(Node &n) {
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  Dim whole = n.shape()[size_t(axis)];
  bool keeps = n.has(1) || n.attribute("keepdims", int64_t(1));
  if (!whole.isStatic())
    n.unsupported("a split", whole);
  std::vector<int64_t> sizes;
  if (n.has(1) && n.rank(1) == 1) {
    sizes = n.integers(1);
  } else {
    int64_t part = std::max<int64_t>(n.has(1) ? n.integer(1) : 1, 1);
    if (whole.value() / part > kMaxSequence)
      n.unsupported("a sequence of more than " + std::to_string(kMaxSequence) + " tensors");
    for (int64_t left = whole.value(); left > 0; left -= part)
      sizes.push_back(std::min(part, left));
  }
  std::vector<Value> parts;
  for (const Tensor &part : split(n[0], sizes, axis))
    parts.push_back(keeps ? part : squeeze(part, {axis}));
  return Value::sequenceOf(std::move(parts));
}

// ---- optional values: their presence is known during import

Values optionalOf(Node &n) { return n.inputCount() ? n.value(0) : Value(); }
Values optionalHasElement(Node &n) { return whole(n.has(0), DType::boolean); }
Values optionalGetElement(Node &n) { return n.value(0); }

constexpr OpEntry table[] = {
    {"ConcatFromSequence", concatFromSequence},
    {"Optional", optionalOf},
    {"OptionalGetElement", optionalGetElement},
    {"OptionalHasElement", optionalHasElement},
    {"SequenceAt", sequenceAt},
    {"SequenceConstruct", sequenceConstruct},
    {"SequenceEmpty", sequenceEmpty},
    {"SequenceErase", sequenceErase},
    {"SequenceInsert", sequenceInsert},
    {"SequenceLength", sequenceLength},
    {"SplitToSequence", splitToSequence},
};

} // namespace

std::span<const OpEntry> sequenceOps() { return table; }

} // namespace burin::onnx
