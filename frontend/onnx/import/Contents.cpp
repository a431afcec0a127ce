// Arithmetic on sizes. Exported models compute the shapes for Reshape, Slice or Expand with ops on small integer
// tensors, from what Shape gives: here those ops work on numbers and symbols while importing, and leave nothing in the
// graph.
#include "frontend/onnx/import/Node.h"
#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace burin::onnx {

namespace {

using Result = std::optional<Value>;
constexpr int64_t kMaxElements = 4096;

int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      return INT64_MAX;
  return count;
}

/// Whether numbers of this type can be computed with as sizes are.
bool isCounted(DType dtype) { return dtype == DType::i64 || dtype == DType::i32 || isBool(dtype); }

Result resultOf(DType dtype, std::vector<int64_t> shape, std::vector<Dim> elements) {
  for (const Dim &element : elements)
    if (dtype == DType::i32 && element.isStatic() && element.value() != int32_t(element.value()))
      return std::nullopt; // would wrap
  return Value(Contents{dtype, std::move(shape), std::move(elements)});
}

/// The elements' shape of two operands, aligned at the right; nullopt if they do not broadcast.
std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t> &a, const std::vector<int64_t> &b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t i = 1; i <= shape.size(); ++i) {
    int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[shape.size() - i] = x == 1 ? y : x;
  }
  return countOf(shape) <= kMaxElements ? std::optional(shape) : std::nullopt;
}

/// The position in a tensor of `from` of element `index` of a tensor of `to`, which it broadcasts to.
size_t sourceIndex(size_t index, const std::vector<int64_t> &to, const std::vector<int64_t> &from) {
  size_t source = 0, stride = 1;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t coordinate = index % size_t(to[to.size() - i]), size = size_t(from[from.size() - i]);
    index /= size_t(to[to.size() - i]);
    source += size == 1 ? 0 : coordinate * stride;
    stride *= size;
  }
  return source;
}

/// Applies `combine`, which returns nullopt where it cannot decide, to all pairs of elements.
template <class F> Result binary(Node &n, DType dtype, F &&combine) {
  std::optional<Contents> x = n.contents(0), y = n.contents(1);
  if (!x || !y || n.inputCount() != 2)
    return std::nullopt;
  auto shape = broadcast(x->shape, y->shape);
  if (!shape)
    return std::nullopt;
  std::vector<Dim> elements;
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i) {
    std::optional<Dim> element =
        combine(x->elements[sourceIndex(i, *shape, x->shape)], y->elements[sourceIndex(i, *shape, y->shape)]);
    if (!element)
      return std::nullopt;
    elements.push_back(*std::move(element));
  }
  return resultOf(dtype, *shape, std::move(elements));
}

bool isNatural(const Dim &d) { return lowerBound(d).value_or(-1) >= 0; }
bool isPositive(const Dim &d) { return lowerBound(d).value_or(-1) >= 1; }

std::optional<Dim> quotient(const Dim &x, const Dim &y) {
  if (x.isStatic() && y.isStatic() && y.value() != 0 && y.value() != -1)
    return Dim(x.value() / y.value());
  std::optional<int64_t> least = lowerBound(x);
  if (!least || !isPositive(y))
    return std::nullopt;
  if (*least < 0) // (height - 1) / 8, which rounds up for height 0 alone: such sizes are refused
    requireEqual(max(x, 0), x);
  return floordiv(x, y);
}
std::optional<Dim> remainder(const Dim &x, const Dim &y) {
  return isNatural(x) && isPositive(y) ? std::optional(mod(x, y)) : std::nullopt;
}
/// The sign of x - y as -1, 0 or 1; nullopt if it depends on a symbol.
std::optional<int> compare(const Dim &x, const Dim &y) {
  if (x == y)
    return 0;
  if (x.isStatic() && y.isStatic())
    return x.value() < y.value() ? -1 : 1;
  if (isPositive(x - y))
    return 1;
  return isPositive(y - x) ? std::optional(-1) : std::nullopt;
}

// ---- the ops

Result arithmetic(Node &n) {
  DType dtype = n.dtype();
  std::string_view op = n.op();
  if (!isCounted(dtype) || isBool(dtype))
    return std::nullopt;
  if (op == "Mod" && n.attribute("fmod", int64_t(0)))
    return std::nullopt;
  return binary(n, dtype, [op](const Dim &x, const Dim &y) -> std::optional<Dim> {
    return op == "Add"   ? x + y
           : op == "Sub" ? x - y
           : op == "Mul" ? x * y
           : op == "Div" ? quotient(x, y)
           : op == "Mod" ? remainder(x, y)
           : op == "Min" ? min(x, y)
                         : std::optional(max(x, y));
  });
}

Result comparison(Node &n) {
  std::string_view op = n.op();
  return binary(n, DType::boolean, [op](const Dim &x, const Dim &y) -> std::optional<Dim> {
    std::optional<int> order = compare(x, y);
    if (!order)
      return std::nullopt;
    return Dim(op == "Equal"         ? *order == 0
               : op == "Less"        ? *order < 0
               : op == "Greater"     ? *order > 0
               : op == "LessOrEqual" ? *order <= 0
                                     : *order >= 0);
  });
}

Result logic(Node &n) {
  std::string_view op = n.op();
  return binary(n, DType::boolean, [op](const Dim &x, const Dim &y) -> std::optional<Dim> {
    bool a = x.value() != 0, b = y.value() != 0;
    return Dim(op == "And" ? a && b : op == "Or" ? a || b : a != b);
  });
}

Result negation(Node &n) {
  std::optional<Contents> x = n.contents(0);
  if (!x)
    return std::nullopt;
  for (Dim &element : x->elements)
    element = n.op() == "Not" ? Dim(element == Dim(0)) : Dim(0) - element;
  return resultOf(x->dtype, x->shape, std::move(x->elements));
}

Result where(Node &n) {
  std::optional<Contents> condition = n.contents(0), x = n.contents(1), y = n.contents(2);
  if (!condition || !x || !y)
    return std::nullopt;
  auto both = broadcast(x->shape, y->shape);
  auto shape = both ? broadcast(*both, condition->shape) : std::nullopt;
  if (!shape)
    return std::nullopt;
  std::vector<Dim> elements;
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i) {
    const Contents &chosen = condition->elements[sourceIndex(i, *shape, condition->shape)] == Dim(0) ? *y : *x;
    elements.push_back(chosen.elements[sourceIndex(i, *shape, chosen.shape)]);
  }
  return resultOf(x->dtype, *shape, std::move(elements));
}

Result shapeOf(Node &n) {
  Shape shape = n.shape();
  int64_t rank = int64_t(shape.size());
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = bound(n.attribute("start", int64_t(0))), end = bound(n.attribute("end", rank));
  end = std::max(start, end);
  return resultOf(DType::i64, {end - start}, {shape.begin() + start, shape.begin() + end});
}

Result sizeOf(Node &n) { return resultOf(DType::i64, {}, {elements(n.shape())}); }

Result identity(Node &n) {
  std::optional<Contents> x = n.contents(0);
  return x ? resultOf(x->dtype, x->shape, x->elements) : std::nullopt;
}

Result cast(Node &n) {
  std::optional<Contents> x = n.contents(0);
  DType to = n.op() == "CastLike" ? n.dtype(1) : n.attributeType("to", DType::f32);
  if (!x || !isCounted(to) || isBool(to) != isBool(x->dtype))
    return std::nullopt;
  return resultOf(to, x->shape, x->elements);
}

/// A new shape for the same elements.
Result reshaped(Node &n, std::vector<int64_t> shape) {
  std::optional<Contents> x = n.contents(0);
  if (!x || countOf(shape) != int64_t(x->elements.size()))
    return std::nullopt;
  return resultOf(x->dtype, std::move(shape), x->elements);
}

Result unsqueeze(Node &n) {
  auto axes = n.contents(0) ? n.list(1, "axes") : std::nullopt;
  if (!axes)
    return std::nullopt;
  std::vector<int64_t> shape = n.contents(0)->shape;
  int64_t rank = int64_t(shape.size() + axes->size());
  for (int64_t &axis : *axes)
    axis = n.axis(axis, rank);
  std::sort(axes->begin(), axes->end());
  for (int64_t axis : *axes)
    shape.insert(shape.begin() + std::min<int64_t>(axis, int64_t(shape.size())), 1);
  return reshaped(n, std::move(shape));
}

Result squeeze(Node &n) {
  if (!n.contents(0))
    return std::nullopt;
  std::vector<int64_t> shape = n.contents(0)->shape, kept;
  auto axes = n.list(1, "axes");
  for (int64_t i = 0; i < int64_t(shape.size()); ++i) {
    bool isNamed = !axes && shape[i] == 1;
    for (int64_t axis : axes.value_or(std::vector<int64_t>()))
      isNamed |= n.axis(axis, int64_t(shape.size())) == i;
    if (!isNamed)
      kept.push_back(shape[i]);
  }
  return reshaped(n, std::move(kept));
}

Result reshape(Node &n) {
  std::optional<Contents> x = n.contents(0), to = n.contents(1);
  if (!x || !to || n.attribute("allowzero", int64_t(0)))
    return std::nullopt;
  std::vector<int64_t> shape;
  for (const Dim &size : to->elements) {
    if (!size.isStatic() || (size == Dim(0) && shape.size() >= x->shape.size()))
      return std::nullopt;
    shape.push_back(size == Dim(0) ? x->shape[shape.size()] : size.value());
  }
  if (auto open = std::find(shape.begin(), shape.end(), -1); open != shape.end()) {
    int64_t rest = -countOf(shape);
    if (rest < 1)
      return std::nullopt;
    *open = int64_t(x->elements.size()) / rest;
  }
  return reshaped(n, std::move(shape));
}

Result gather(Node &n) {
  std::optional<Contents> x = n.contents(0), indices = n.contents(1);
  if (!x || !indices || x->shape.size() != 1)
    return std::nullopt;
  std::vector<Dim> elements;
  for (const Dim &index : indices->elements) {
    int64_t at = index.isStatic() ? index.value() : INT64_MAX, size = x->shape[0];
    at += at < 0 ? size : 0;
    if (at < 0 || at >= size)
      return std::nullopt;
    elements.push_back(x->elements[size_t(at)]);
  }
  return resultOf(x->dtype, indices->shape, std::move(elements));
}

Result concat(Node &n) {
  std::vector<Dim> elements;
  for (size_t i = 0; i < n.inputCount(); ++i) {
    std::optional<Contents> x = n.contents(i);
    if (!x || x->shape.size() != 1)
      return std::nullopt;
    elements.insert(elements.end(), x->elements.begin(), x->elements.end());
  }
  int64_t count = int64_t(elements.size());
  return count ? resultOf(n.dtype(), {count}, std::move(elements)) : std::nullopt;
}

Result slice(Node &n) {
  std::optional<Contents> x = n.contents(0);
  if (!x || x->shape.size() != 1)
    return std::nullopt;
  auto starts = n.list(1, "starts"), ends = n.list(2, "ends"), steps = n.list(4, "steps");
  int64_t size = x->shape[0], step = steps && !steps->empty() ? steps->front() : 1;
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1 || step == 0)
    return std::nullopt;
  auto bound = [&](int64_t at, int64_t low, int64_t high) { return std::clamp(at < 0 ? at + size : at, low, high); };
  int64_t start = step > 0 ? bound(starts->front(), 0, size) : bound(starts->front(), 0, size - 1);
  int64_t end = step > 0 ? bound(ends->front(), 0, size) : bound(ends->front(), -1, size - 1);
  std::vector<Dim> elements;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
    elements.push_back(x->elements[size_t(i)]);
  int64_t count = int64_t(elements.size());
  return resultOf(x->dtype, {count}, std::move(elements));
}

/// Of all elements: what exporters use to count them.
Result reduction(Node &n) {
  std::optional<Contents> x = n.contents(0);
  if (!x || x->shape.size() != 1 || x->elements.empty() || !isCounted(x->dtype) || isBool(x->dtype))
    return std::nullopt;
  Dim total = x->elements[0];
  for (size_t i = 1; i < x->elements.size(); ++i)
    total = n.op() == "ReduceProd" ? total * x->elements[i] : total + x->elements[i];
  if (n.attribute("noop_with_empty_axes", int64_t(0)))
    return std::nullopt;
  bool keeps = n.attribute("keepdims", int64_t(1)) != 0;
  return resultOf(x->dtype, keeps ? std::vector<int64_t>{1} : std::vector<int64_t>(), {total});
}

Result constantOfShape(Node &n) {
  std::optional<Contents> sizes = n.contents(0);
  if (!sizes)
    return std::nullopt;
  std::optional<Contents> element =
      n.hasAttribute("value") ? contentsOf(Value(n.attributeTensor("value"))) : std::nullopt;
  if (!element || element->elements.size() != 1)
    return std::nullopt;
  std::vector<int64_t> shape;
  for (const Dim &size : sizes->elements) {
    if (!size.isStatic() || size.value() < 0)
      return std::nullopt;
    shape.push_back(size.value());
  }
  if (countOf(shape) > kMaxElements)
    return std::nullopt;
  std::vector<Dim> elements(size_t(countOf(shape)), element->elements[0]);
  return resultOf(element->dtype, std::move(shape), std::move(elements));
}

Result expand(Node &n) {
  std::optional<Contents> x = n.contents(0), to = n.contents(1);
  if (!x || !to)
    return std::nullopt;
  std::vector<int64_t> sizes;
  for (const Dim &size : to->elements) {
    if (!size.isStatic())
      return std::nullopt;
    sizes.push_back(size.value());
  }
  auto shape = broadcast(x->shape, sizes);
  if (!shape)
    return std::nullopt;
  std::vector<Dim> elements;
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i)
    elements.push_back(x->elements[sourceIndex(i, *shape, x->shape)]);
  return resultOf(x->dtype, *shape, std::move(elements));
}

Result range(Node &n) {
  std::optional<Contents> start = n.contents(0), limit = n.contents(1), delta = n.contents(2);
  if (!start || !limit || !delta || !isCounted(start->dtype))
    return std::nullopt;
  for (auto &part : {start, limit, delta})
    if (part->elements.size() != 1 || !part->elements[0].isStatic())
      return std::nullopt;
  int64_t step = delta->elements[0].value(), end = limit->elements[0].value();
  if (step == 0)
    return std::nullopt;
  std::vector<Dim> elements;
  for (int64_t i = start->elements[0].value(); step > 0 ? i < end : step < 0 && i > end;) {
    elements.push_back(i);
    if (int64_t(elements.size()) > kMaxElements || __builtin_add_overflow(i, step, &i))
      return std::nullopt;
  }
  int64_t count = int64_t(elements.size());
  return resultOf(start->dtype, {count}, std::move(elements));
}

const std::unordered_map<std::string_view, Result (*)(Node &)> rules{{"Add", arithmetic},
                                                                     {"Sub", arithmetic},
                                                                     {"Mul", arithmetic},
                                                                     {"Div", arithmetic},
                                                                     {"Mod", arithmetic},
                                                                     {"Min", arithmetic},
                                                                     {"Max", arithmetic},
                                                                     {"Equal", comparison},
                                                                     {"Less", comparison},
                                                                     {"Greater", comparison},
                                                                     {"LessOrEqual", comparison},
                                                                     {"GreaterOrEqual", comparison},
                                                                     {"And", logic},
                                                                     {"Or", logic},
                                                                     {"Xor", logic},
                                                                     {"Not", negation},
                                                                     {"Neg", negation},
                                                                     {"Where", where},
                                                                     {"Shape", shapeOf},
                                                                     {"Size", sizeOf},
                                                                     {"Identity", identity},
                                                                     {"Cast", cast},
                                                                     {"CastLike", cast},
                                                                     {"Unsqueeze", unsqueeze},
                                                                     {"Squeeze", squeeze},
                                                                     {"Reshape", reshape},
                                                                     {"Gather", gather},
                                                                     {"Concat", concat},
                                                                     {"Slice", slice},
                                                                     {"ReduceProd", reduction},
                                                                     {"ReduceSum", reduction},
                                                                     {"ConstantOfShape", constantOfShape},
                                                                     {"Expand", expand},
                                                                     {"Range", range}};

} // namespace

std::optional<Value> propagateContents(Node &node) try {
  auto rule = rules.find(node.op());
  if (rule == rules.end() || node.domain() != "")
    return std::nullopt;
  return rule->second(node);
} catch (const Error &) { // of the arithmetic of sizes
  return std::nullopt;
}

} // namespace burin::onnx
