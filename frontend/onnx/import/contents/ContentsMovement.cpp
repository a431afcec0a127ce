// Ops that create and move sizes.
#include "frontend/onnx/import/contents/Contents.h"
#include <algorithm>
#include <unordered_map>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// Elements of x in another shape, at the positions that `sourceOf` returns for each coordinate of the result.
template <class F> KnownValue moved(const Numbers &x, Ints shape, F &&sourceOf) {
  if (countOf(shape) > kMaxKnownElements)
    return std::nullopt;
  Numbers result{x.dtype, shape, {}};
  Ints at(shape.size(), 0);
  for (int64_t i = 0; i < countOf(shape); ++i) {
    for (int64_t axis = int64_t(shape.size()) - 1, rest = i; axis >= 0; --axis) {
      at[size_t(axis)] = rest % shape[size_t(axis)];
      rest /= shape[size_t(axis)];
    }
    result.elements.push_back(x.elements[size_t(sourceOf(at))]);
  }
  return valueOf(std::move(result));
}

/// The position of coordinates in a tensor of `shape`.
int64_t positionOf(const Ints &at, const Ints &shape) {
  int64_t position = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    position = position * shape[axis] + at[axis];
  return position;
}

/// The same elements in another shape.
KnownValue reshaped(std::optional<Numbers> x, Ints shape) {
  if (!x || countOf(shape) != int64_t(x->elements.size()))
    return std::nullopt;
  x->shape = std::move(shape);
  return valueOf(*std::move(x));
}

// ---- from shapes

KnownValue shapeOf(Node &n) {
  Shape shape = n.shape();
  int64_t rank = int64_t(shape.size());
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = bound(n.attribute("start", int64_t(0))), end = bound(n.attribute("end", rank));
  Numbers result{DType::i64, {std::max(start, end) - start}, {}};
  for (int64_t i = start; i < end; ++i)
    result.elements.push_back({shape[size_t(i)]});
  return valueOf(std::move(result));
}

KnownValue sizeOf(Node &n) { return valueOf({DType::i64, {}, {{elements(n.shape())}}}); }

KnownValue constantOfShape(Node &n) {
  std::optional<Ints> shape = staticOf(n, 0);
  std::optional<Contents> element =
      n.hasAttribute("value") ? contentsOf(Value(n.attributeTensor("value"))) : std::nullopt;
  bool isNegative = shape && std::any_of(shape->begin(), shape->end(), [](int64_t size) { return size < 0; });
  if (!shape || isNegative || !element || element->elements.size() != 1 || countOf(*shape) > kMaxKnownElements)
    return std::nullopt;
  std::vector<Number> elements(size_t(countOf(*shape)), Number{element->elements[0]});
  return valueOf({element->dtype, *std::move(shape), std::move(elements)});
}

KnownValue range(Node &n) {
  std::optional<Ints> start = staticOf(n, 0), limit = staticOf(n, 1), delta = staticOf(n, 2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
    return std::nullopt;
  int64_t step = delta->front(), end = limit->front();
  Numbers result{n.dtype(), {}, {}};
  for (int64_t i = start->front(); step > 0 ? i < end : step < 0 && i > end;) {
    result.elements.push_back({i});
    if (int64_t(result.elements.size()) > kMaxKnownElements || __builtin_add_overflow(i, step, &i))
      return std::nullopt;
  }
  result.shape = {int64_t(result.elements.size())};
  return step == 0 ? std::nullopt : valueOf(std::move(result));
}

// ---- reshapes

KnownValue identity(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  return x ? valueOf(*std::move(x)) : std::nullopt;
}

KnownValue unsqueeze(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  auto axes = x ? n.list(1, "axes") : std::nullopt;
  if (!axes)
    return std::nullopt;
  Ints shape = x->shape;
  int64_t rank = int64_t(shape.size() + axes->size());
  for (int64_t &axis : *axes)
    axis = n.axis(axis, rank);
  std::sort(axes->begin(), axes->end());
  for (int64_t axis : *axes)
    shape.insert(shape.begin() + std::min<int64_t>(axis, int64_t(shape.size())), 1);
  return reshaped(std::move(x), std::move(shape));
}

KnownValue squeeze(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  Ints shape = x->shape, kept;
  auto axes = n.list(1, "axes");
  for (int64_t i = 0; i < int64_t(shape.size()); ++i) {
    bool isNamed = !axes && shape[size_t(i)] == 1;
    for (int64_t axis : axes.value_or(Ints()))
      isNamed |= n.axis(axis, int64_t(shape.size())) == i;
    if (!isNamed)
      kept.push_back(shape[size_t(i)]);
  }
  return reshaped(std::move(x), std::move(kept));
}

KnownValue reshape(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  std::optional<Ints> to = x && n.opset() >= 5 ? staticOf(n, 1) : std::nullopt;
  if (!to || n.attribute("allowzero", int64_t(0)))
    return std::nullopt;
  Ints shape;
  for (int64_t size : *to) {
    if (size == 0 && shape.size() >= x->shape.size())
      return std::nullopt;
    shape.push_back(size == 0 ? x->shape[shape.size()] : size);
  }
  if (auto open = std::find(shape.begin(), shape.end(), -1); open != shape.end()) {
    int64_t rest = -countOf(shape);
    if (rest < 1)
      return std::nullopt;
    *open = int64_t(x->elements.size()) / rest;
  }
  return reshaped(std::move(x), std::move(shape));
}

KnownValue flatten(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  int64_t rank = int64_t(x->shape.size()), axis = n.attribute("axis", int64_t(1));
  axis = axis == rank ? rank : n.axis(axis, rank);
  Ints outer(x->shape.begin(), x->shape.begin() + axis), inner(x->shape.begin() + axis, x->shape.end());
  return reshaped(std::move(x), {countOf(outer), countOf(inner)});
}

// ---- others

KnownValue transpose(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  Ints order = n.attribute("perm", Ints()), shape, at(x->shape.size());
  for (size_t i = x->shape.size(); order.size() < x->shape.size() && i-- > 0;)
    order.push_back(int64_t(i));
  for (int64_t axis : order)
    shape.push_back(x->shape[size_t(n.axis(axis, int64_t(x->shape.size())))]);
  return moved(*x, shape, [&](const Ints &to) {
    for (size_t i = 0; i < order.size(); ++i)
      at[size_t(order[i])] = to[i];
    return positionOf(at, x->shape);
  });
}

KnownValue gather(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  std::optional<Numbers> indices = x ? numbersOf(n, 1, false) : std::nullopt;
  std::optional<Ints> index = staticOf(indices);
  if (!index || x->shape.empty())
    return std::nullopt;
  size_t axis = size_t(n.axis(n.attribute("axis", int64_t(0)), int64_t(x->shape.size())));
  for (int64_t &i : *index) {
    i += i < 0 ? x->shape[axis] : 0;
    if (i < 0 || i >= x->shape[axis])
      return std::nullopt;
  }
  size_t count = indices->shape.size();
  Ints shape(x->shape.begin(), x->shape.begin() + int64_t(axis));
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), x->shape.begin() + int64_t(axis) + 1, x->shape.end());
  return moved(*x, shape, [&](const Ints &to) {
    Ints at(to.begin(), to.begin() + int64_t(axis));
    Ints place(to.begin() + int64_t(axis), to.begin() + int64_t(axis + count));
    at.push_back((*index)[size_t(positionOf(place, indices->shape))]);
    at.insert(at.end(), to.begin() + int64_t(axis + count), to.end());
    return positionOf(at, x->shape);
  });
}

/// An operand of concat with no elements may have any type.
KnownValue concat(Node &n) {
  std::vector<Numbers> parts;
  for (size_t i = 0; i < n.inputCount(); ++i) {
    std::optional<Numbers> x = numbersOf(n, i);
    if (!x || x->shape.empty() || (i > 0 && x->shape.size() != parts[0].shape.size()))
      return std::nullopt;
    parts.push_back(*std::move(x));
  }
  size_t axis = size_t(n.axis(n.attribute("axis", int64_t(n.opset() < 4)), int64_t(parts[0].shape.size())));
  Numbers all{parts[0].dtype, parts[0].shape, {}};
  all.shape[axis] = 0;
  for (const Numbers &part : parts)
    all.shape[axis] += part.shape[axis];
  int64_t inner = countOf({all.shape.begin() + int64_t(axis) + 1, all.shape.end()}),
          outer = countOf({all.shape.begin(), all.shape.begin() + int64_t(axis)});
  for (int64_t i = 0; i < outer; ++i)
    for (const Numbers &part : parts) {
      int64_t length = part.shape[axis] * inner;
      if (int64_t(part.elements.size()) != outer * length)
        return std::nullopt;
      all.elements.insert(all.elements.end(), part.elements.begin() + i * length,
                          part.elements.begin() + (i + 1) * length);
    }
  return all.elements.empty() ? std::nullopt : valueOf(std::move(all));
}

KnownValue slice(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  auto given = [&](size_t input, const char *name) {
    return n.opset() < 10 ? std::optional(n.attribute(name, Ints())) : staticOf(n, input);
  };
  std::optional<Ints> starts = given(1, "starts"), ends = given(2, "ends"), axes, steps;
  if (!starts || !ends)
    return std::nullopt;
  if (n.has(3) || n.hasAttribute("axes"))
    axes = given(3, "axes");
  steps = n.has(4) ? staticOf(n, 4) : Ints(starts->size(), 1);
  for (size_t i = 0; !axes && !n.has(3) && i < starts->size(); ++i)
    axes = axes.value_or(Ints()), axes->push_back(int64_t(i));
  if (!axes || !steps || axes->size() != starts->size() || ends->size() != starts->size() ||
      steps->size() != starts->size() || starts->size() > x->shape.size())
    return std::nullopt;
  Ints shape = x->shape, first(shape.size(), 0), by(shape.size(), 1);
  for (size_t i = 0; i < starts->size(); ++i) {
    size_t axis = size_t(n.axis((*axes)[i], int64_t(shape.size())));
    int64_t size = x->shape[axis], step = (*steps)[i];
    if (step == 0)
      return std::nullopt;
    auto bound = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
    };
    int64_t start = bound((*starts)[i], 0, step > 0 ? size : size - 1);
    int64_t end = step > 0 ? bound((*ends)[i], 0, size) : bound((*ends)[i], -1, size - 1);
    int64_t length = step > 0 ? end - start : start - end, stride = step > 0 ? step : -std::max(step, -INT64_MAX);
    shape[axis] = length > 0 ? (length - 1) / stride + 1 : 0;
    first[axis] = start;
    by[axis] = step;
  }
  return moved(*x, shape, [&](const Ints &to) {
    Ints at = to;
    for (size_t axis = 0; axis < at.size(); ++axis)
      at[axis] = first[axis] + at[axis] * by[axis];
    return positionOf(at, x->shape);
  });
}

KnownValue expand(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  std::optional<Ints> to = x ? staticOf(n, 1) : std::nullopt;
  auto shape = to ? commonShape(x->shape, *to) : std::nullopt;
  if (!shape)
    return std::nullopt;
  Numbers result{x->dtype, *shape, {}};
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i)
    result.elements.push_back(x->elements[sourceIndex(i, *shape, x->shape)]);
  return valueOf(std::move(result));
}

KnownValue tile(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  std::optional<Ints> repeats = x && n.opset() >= 6 ? staticOf(n, 1) : std::nullopt;
  if (!repeats || repeats->size() != x->shape.size())
    return std::nullopt;
  Ints shape = x->shape;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if ((*repeats)[axis] < 0 || __builtin_mul_overflow(shape[axis], (*repeats)[axis], &shape[axis]))
      return std::nullopt;
  return moved(*x, shape, [&](const Ints &to) {
    Ints at = to;
    for (size_t axis = 0; axis < at.size(); ++axis)
      at[axis] %= x->shape[axis];
    return positionOf(at, x->shape);
  });
}

} // namespace

KnownRule movementRule(std::string_view op) {
  static const std::unordered_map<std::string_view, KnownRule> rules{
      {"Concat", concat},      {"ConstantOfShape", constantOfShape},
      {"Expand", expand},      {"Flatten", flatten},
      {"Gather", gather},      {"Identity", identity},
      {"Range", range},        {"Reshape", reshape},
      {"Shape", shapeOf},      {"Size", sizeOf},
      {"Slice", slice},        {"Squeeze", squeeze},
      {"Tile", tile},          {"Transpose", transpose},
      {"Unsqueeze", unsqueeze}};
  auto at = rules.find(op);
  return at == rules.end() ? nullptr : at->second;
}

} // namespace burin::onnx
