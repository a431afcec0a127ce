// Ops that read and write sizes by index, and those that sum or split them along an axis.
#include "frontend/onnx/import/contents/Contents.h"
#include <algorithm>
#include <unordered_map>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// The row-major strides of a shape.
Ints stridesOf(const Ints &shape) {
  Ints strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

/// A negative index counts from the end; nullopt if it is out of range.
std::optional<int64_t> inRange(int64_t index, int64_t size) {
  index += index < 0 ? size : 0;
  return index >= 0 && index < size ? std::optional(index) : std::nullopt;
}

/// For each element of `index`, of which `x` has the rank: the position in `x` with the coordinate along `axis`
/// replaced by it.
std::optional<Ints> placesAlong(const Numbers &x, const Numbers &index, size_t axis) {
  std::optional<Ints> at = staticOf(index);
  if (!at || x.shape.size() != index.shape.size())
    return std::nullopt;
  Ints places, from = stridesOf(index.shape), strides = stridesOf(x.shape);
  for (size_t i = 0; i < at->size(); ++i) {
    int64_t place = 0;
    for (size_t d = 0; d < x.shape.size(); ++d) {
      std::optional<int64_t> coordinate =
          d == axis ? inRange((*at)[i], x.shape[d]) : inRange(int64_t(i) / from[d] % index.shape[d], x.shape[d]);
      if (!coordinate)
        return std::nullopt;
      place += *coordinate * strides[d];
    }
    places.push_back(place);
  }
  return places;
}

/// For each row of `index`, the position of the first element of the slice of `x` that it selects.
std::optional<Ints> placesOfRows(const Numbers &x, const Numbers &index) {
  std::optional<Ints> at = staticOf(index);
  if (!at || index.shape.empty() || index.shape.back() < 1 || index.shape.back() > int64_t(x.shape.size()))
    return std::nullopt;
  auto depth = size_t(index.shape.back());
  Ints places, strides = stridesOf(x.shape);
  for (size_t row = 0; row < at->size() / depth; ++row) {
    int64_t place = 0;
    for (size_t d = 0; d < depth; ++d) {
      std::optional<int64_t> coordinate = inRange((*at)[row * depth + d], x.shape[d]);
      if (!coordinate)
        return std::nullopt;
      place += *coordinate * strides[d];
    }
    places.push_back(place);
  }
  return places;
}

KnownValue gatherElements(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0), index = x ? numbersOf(n, 1, false) : std::nullopt;
  if (!index || x->shape.empty())
    return std::nullopt;
  std::optional<Ints> places =
      placesAlong(*x, *index, size_t(n.axis(n.attribute("axis", int64_t(0)), int64_t(x->shape.size()))));
  if (!places)
    return std::nullopt;
  Numbers result{x->dtype, index->shape, {}};
  for (int64_t place : *places)
    result.elements.push_back(x->elements[size_t(place)]);
  return valueOf(std::move(result));
}

KnownValue gatherNd(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0), index = x ? numbersOf(n, 1, false) : std::nullopt;
  std::optional<Ints> places =
      index && n.attribute("batch_dims", int64_t(0)) == 0 ? placesOfRows(*x, *index) : std::nullopt;
  if (!places)
    return std::nullopt;
  Numbers result{x->dtype, {index->shape.begin(), index->shape.end() - 1}, {}};
  result.shape.insert(result.shape.end(), x->shape.begin() + index->shape.back(), x->shape.end());
  const int64_t width = countOf({x->shape.begin() + index->shape.back(), x->shape.end()});
  for (int64_t place : *places)
    for (int64_t i = 0; i < width; ++i)
      result.elements.push_back(x->elements[size_t(place + i)]);
  return valueOf(std::move(result));
}

/// Writes `width` elements to each place.
KnownValue written(Node &n, std::optional<Numbers> x, const std::optional<Ints> &places, int64_t width) {
  std::optional<Numbers> updates = numbersOf(n, 2);
  if (!x || !places || !updates || int64_t(updates->elements.size()) != int64_t(places->size()) * width ||
      n.attribute("reduction", "none") != "none")
    return std::nullopt;
  for (size_t i = 0; i < updates->elements.size(); ++i)
    x->elements[size_t((*places)[i / size_t(width)] + int64_t(i) % width)] = updates->elements[i];
  return valueOf(*std::move(x));
}

KnownValue scatterElements(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0), index = x ? numbersOf(n, 1, false) : std::nullopt;
  if (!index || x->shape.empty())
    return std::nullopt;
  const int64_t axis = n.axis(n.attribute("axis", int64_t(0)), int64_t(x->shape.size()));
  return written(n, x, placesAlong(*x, *index, size_t(axis)), 1);
}

KnownValue scatterNd(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0), index = x ? numbersOf(n, 1, false) : std::nullopt;
  std::optional<Ints> places = index ? placesOfRows(*x, *index) : std::nullopt;
  return places ? written(n, x, places, countOf({x->shape.begin() + index->shape.back(), x->shape.end()}))
                : std::nullopt;
}

/// The running sums of a vector.
KnownValue cumsum(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x || x->shape.size() != 1 || !staticOf(n, 1) || !isCounted(x->dtype))
    return std::nullopt;
  const bool isExclusive = n.attribute("exclusive", int64_t(0)), isReverse = n.attribute("reverse", int64_t(0));
  std::vector<Number> &list = x->elements;
  if (isReverse)
    std::reverse(list.begin(), list.end());
  Number total{0};
  for (Number &element : list) {
    const Number before = total;
    total = sum(total, element);
    element = isExclusive ? before : total;
  }
  if (isReverse)
    std::reverse(list.begin(), list.end());
  return valueOf(*std::move(x));
}

} // namespace

std::optional<Values> splitContents(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x || x->shape.size() != 1 || (n.has(1) && !staticOf(n, 1)))
    return std::nullopt;
  const auto count = int64_t(n.outputCount()), whole = x->shape[0];
  Ints sizes = n.list(1, "split").value_or(Ints());
  const int64_t part = count ? (whole + count - 1) / count : 0;
  if (sizes.empty())
    for (int64_t from = 0; from < whole; from += part)
      sizes.push_back(std::min(part, whole - from));
  Values results;
  int64_t from = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > whole - from)
      return std::nullopt;
    KnownValue one = valueOf({x->dtype, {size}, {x->elements.begin() + from, x->elements.begin() + from + size}});
    if (!one)
      return std::nullopt;
    results.push_back(*std::move(one));
    from += size;
  }
  return from == whole ? std::optional(std::move(results)) : std::nullopt;
}

KnownRule indexedRule(std::string_view op) {
  static const std::unordered_map<std::string_view, KnownRule> rules{
      {"CumSum", cumsum},           {"GatherElements", gatherElements},   {"GatherND", gatherNd},
      {"Scatter", scatterElements}, {"ScatterElements", scatterElements}, {"ScatterND", scatterNd}};
  auto at = rules.find(op);
  return at == rules.end() ? nullptr : at->second;
}

} // namespace burin::onnx
