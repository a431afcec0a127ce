// Ops that create, move and select elements.
#include "burin/tensor/indexing.h"
#include "frontend/onnx/import/contents/Contents.h"
#include "frontend/onnx/import/tensor/shape/SymbolicMoves.h"
#include <algorithm>
#include <cmath>

namespace burin::onnx {

namespace {

Values constant(Node &n) {
  if (n.hasAttribute("value"))
    return n.attributeTensor("value");
  if (n.hasAttribute("value_float"))
    return full({}, n.attribute("value_float", 0.0), DType::f32);
  if (n.hasAttribute("value_int"))
    return from_vector<int64_t>({n.attribute("value_int", int64_t(0))}, Shape{});
  if (n.hasAttribute("value_ints"))
    return from_vector(n.attribute("value_ints", std::vector<int64_t>()));
  if (n.hasAttribute("value_floats")) {
    std::vector<double> values = n.attributeReals("value_floats");
    return from_vector(std::vector<float>(values.begin(), values.end()));
  }
  for (const char *kind : {"sparse_value", "value_string", "value_strings"})
    if (n.hasAttribute(kind))
      n.unsupported("a constant that is a string or sparse");
  n.fail("it has no value");
}

Values constantOfShape(Node &n) {
  Tensor value = n.hasAttribute("value") ? n.attributeTensor("value") : full({1}, 0, DType::f32);
  return broadcast_to(reshape(value, {}), n.sizes(0));
}

/// The sizes of a reshape, some of which the run computes: 0 there keeps the operand's size, and -1 is inferred.
Shape computedShape(const Shape &shape, const std::vector<Node::Element> &given, bool keepsZeros) {
  const Tensor zero = zeros({}, DType::i64), one = ones({}, DType::i64);
  bool hasOpen = false;
  Tensor product = one; // without the open size
  std::vector<Tensor> wanted;
  for (size_t i = 0; i < given.size(); ++i) {
    Tensor size = given[i].tensor();
    if (keepsZeros && i < shape.size())
      size = where(size == 0, sizeTensor(shape[i]), size);
    hasOpen |= given[i].size == Dim(-1);
    product = product * where(size == -1, one, size);
    wanted.push_back(size);
  }
  const Tensor rest = floor_divide(sizeTensor(elements(shape)), maximum(product, one));
  Shape sizes;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].size)
      sizes.push_back(*given[i].size);
    else
      sizes.push_back(sizeFrom(hasOpen ? wanted[i] : where(wanted[i] == -1, rest, wanted[i])));
  }
  return sizes;
}

/// A size of 0 keeps the operand's size, -1 is inferred.
Values reshapeTo(Node &n) {
  Shape sizes, shape = n.shape();
  const bool keepsZeros = !n.attribute("allowzero", int64_t(0));
  if (n.opset() < 5)
    for (int64_t size : n.attribute("shape", std::vector<int64_t>()))
      sizes.push_back(size);
  else
    sizes = computedShape(shape, n.elements(1), keepsZeros);
  if (keepsZeros)
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == Dim(0)) {
        if (i >= shape.size())
          n.fail("size " + std::to_string(i) + " of the new shape is 0, but the input is " + str(shape));
        sizes[i] = shape[i];
      }
  // Beside a size of 0, -1 cannot be inferred: it is replaced by the operand's size.
  bool isEmpty = std::find(sizes.begin(), sizes.end(), Dim(0)) != sizes.end();
  for (Dim &size : sizes)
    if (isEmpty && size == Dim(-1))
      size = 0;
  return reshape(n[0], sizes);
}

Values flattenFrom(Node &n) {
  Shape shape = n.shape();
  int64_t rank = int64_t(shape.size()), axis = n.attribute("axis", int64_t(1));
  axis = axis == rank ? rank : n.axis(axis, rank);
  return reshape(
      n[0], {elements(Shape(shape.begin(), shape.begin() + axis)), elements(Shape(shape.begin() + axis, shape.end()))});
}

Values transposed(Node &n) { return transpose(n[0], n.attribute("perm", std::vector<int64_t>())); }

Values squeezed(Node &n) {
  std::optional<std::vector<int64_t>> axes = n.list(1, "axes");
  if (!axes) // all dimensions of size 1
    for (const Dim &size : n.shape())
      if (!size.isStatic() && lowerBound(size).value_or(0) <= 1)
        n.warn("it removes the sizes that are 1, but keeps " + size.str() +
               ", which may be: fix it if its result is to have another rank then");
  return squeeze(n[0], axes.value_or(std::vector<int64_t>()));
}
Values unsqueezed(Node &n) {
  auto axes = n.list(1, "axes");
  if (!axes)
    n.fail("it has no axes");
  return unsqueeze(n[0], *axes);
}

Values concatenated(Node &n) {
  std::vector<Tensor> xs = n.tensors();
  return concat(xs, n.attribute("axis", int64_t(1)));
}

/// The last piece is smaller if the size is not a multiple of `count`.
Values splitEvenly(const Tensor &x, int64_t axis, int64_t count) {
  Dim whole = x.shape()[size_t(axis)], size = ceildiv(whole, count);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(part(x, axis, size * i, i + 1 == count ? whole : size * (i + 1)));
  return parts;
}

Values splitBy(Node &n, int64_t axis, const Shape &sizes) {
  std::vector<Tensor> parts;
  Dim from = 0;
  for (const Dim &size : sizes) {
    parts.push_back(part(n[0], axis, from, from + size));
    from = from + size;
  }
  requireEqual(from, n.shape()[size_t(axis)]);
  return parts;
}

Values splitUp(Node &n) {
  int64_t axis = n.axis(n.attribute("axis", int64_t(0)));
  Dim whole = n.shape()[size_t(axis)];
  if (Shape given = n.has(1) ? n.sizes(1) : Shape();
      std::any_of(given.begin(), given.end(), [](const Dim &size) { return !size.isStatic(); }))
    return splitBy(n, axis, given);
  std::vector<int64_t> sizes = n.list(1, "split").value_or(std::vector<int64_t>());
  auto count = int64_t(n.outputCount());
  if (sizes.empty()) {
    if (!whole.isStatic())
      return splitEvenly(n[0], axis, count);
    int64_t part = (whole.value() + count - 1) / count, left = whole.value();
    for (int64_t i = 0; i < count; ++i, left -= sizes.back())
      sizes.push_back(std::min(part, left));
  }
  return split(n[0], sizes, axis);
}

/// A bound of a slice of `size` elements as a position, from 0, or from -1 for the end of a backward slice. A negative
/// bound counts from the end; whether a symbolic one is negative may be known only when the graph runs.
Dim positionOf(const Node::Element &bound, const Dim &size, bool isBackward, bool isEnd) {
  constexpr int64_t kFar = int64_t(1) << 40;
  const int64_t least = isBackward && isEnd ? -1 : 0;
  const Dim last = isBackward ? size - 1 : size;
  if (!bound.size) {
    const Tensor from = where(bound.value < 0, bound.value + sizeTensor(size), bound.value);
    return sizeFrom(maximum(minimum(from, sizeTensor(size) - int64_t(isBackward)), least) - least) + least;
  }
  const Dim &d = *bound.size;
  if (d.isStatic() && (d.value() > kFar || d.value() < -kFar))
    return d.value() > 0 ? last : Dim(least);
  const bool isNatural = lowerBound(d).value_or(-1) >= 0, isNegative = lowerBound(Dim(-1) - d).value_or(-1) >= 0;
  if (isNatural)
    return isBackward ? min(d, last) : d;       // the op "slice" limits it
  const Dim below = min(max(Dim(0) - d, 0), 1); // 1 if it is negative
  const Dim from = isNegative ? size + d : isBackward ? min(d + size * below, last) : d + size * below;
  return lowerBound(from).value_or(least - 1) >= least ? from : max(from, least);
}

/// Bounds of a Slice: attributes in older op sets.
std::vector<Node::Element> boundsOf(Node &n, size_t input, const char *attribute) {
  if (n.opset() >= 10)
    return n.elements(input);
  std::vector<Node::Element> list;
  for (int64_t bound : n.attribute(attribute, std::vector<int64_t>()))
    list.push_back({Dim(bound), {}});
  return list;
}

/// As in Python, negative bounds count from the end, and bounds are clamped to the size.
Values sliced(Node &n) {
  const Shape shape = n.shape();
  const std::vector<Node::Element> starts = boundsOf(n, 1, "starts"), ends = boundsOf(n, 2, "ends");
  auto axes = n.list(3, "axes");
  std::vector<int64_t> steps = n.has(4) ? n.integers(4) : std::vector<int64_t>(starts.size(), 1);
  size_t count = starts.size();
  if (ends.size() != count || steps.size() != count || (axes && axes->size() != count) || count > shape.size())
    n.fail("its starts, ends, axes and steps do not agree");
  Tensor x = n[0];
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = axes ? n.axis((*axes)[i]) : int64_t(i), step = steps[i];
    if (step == 0)
      n.fail("a step is 0");
    const Dim &size = shape[size_t(axis)];
    const bool isBackward = step < 0;
    Dim start = positionOf(starts[i], size, isBackward, false), end = positionOf(ends[i], size, isBackward, true);
    if (isBackward) { // bounds of the reversed dimension
      x = flip(x, {axis});
      start = size - 1 - start;
      end = size - 1 - end;
      step = -std::max(step, -INT64_MAX);
    }
    std::vector<Dim> from(shape.size(), Dim(0)), to = x.shape();
    std::vector<int64_t> by(shape.size(), 1);
    from[size_t(axis)] = start;
    to[size_t(axis)] = end;
    by[size_t(axis)] = step;
    x = slice(x, from, to, by);
  }
  return x;
}

Values gathered(Node &n) { return take(n[0], n[1], n.attribute("axis", int64_t(0))); }
Values gatheredElements(Node &n) { return gather(n[0], n[1], n.attribute("axis", int64_t(0))); }

Values scattered(Node &n) {
  std::string reduction = n.attribute("reduction", "none");
  return scatter(n[0], n[1], n[2], n.attribute("axis", int64_t(0)), reduction == "none" ? "set" : reduction);
}

Values expanded(Node &n) {
  Shape shape = n.shape(), to = n.sizes(1);
  if (to.size() < shape.size())
    to.insert(to.begin(), shape.size() - to.size(), Dim(1));
  Tensor x = n[0];
  for (size_t i = 1; i <= shape.size(); ++i) {
    const Dim &from = shape[shape.size() - i];
    Dim &size = to[to.size() - i];
    const bool isEither = (from.isStatic() && n.isComputed(size)) || (n.isComputed(from) && size.isStatic());
    if (size == Dim(1)) { // keeps the operand's size
      size = from;
    } else if (isEither && from != Dim(1)) { // the computed size is 1 or the other one
      const Dim computed = from.isStatic() ? size : from, wide = from.isStatic() ? from : size;
      const Dim differs = min(max(computed - 1, Dim(1) - computed), 1);
      requireEqual(computed * differs + wide * (Dim(1) - differs), wide);
      x = from.isStatic() ? x : repeatTo(x, int64_t(shape.size() - i), wide);
      size = wide;
    } else if (std::optional<Dim> joint = from != Dim(1) && from != size ? jointSize(from, size) : std::nullopt) {
      x = repeatTo(x, int64_t(shape.size() - i), size = *joint);
    }
  }
  return broadcast_to(x, to);
}

Values tiled(Node &n) {
  if (n.opset() < 6) {
    std::vector<int64_t> repeats(size_t(n.rank()), 1);
    repeats[size_t(n.axis(n.integer(2)))] = n.integer(1);
    return tile(n[0], repeats);
  }
  Shape repeats = n.sizes(1);
  if (std::any_of(repeats.begin(), repeats.end(), [](const Dim &count) { return !count.isStatic(); })) {
    if (int64_t(repeats.size()) != n.rank())
      n.fail("repeats " + str(repeats) + " must have one number for each dimension of " + str(n.shape()));
    return tileSymbolic(n[0], repeats);
  }
  return tile(n[0], n.integers(1));
}

Values padded(Node &n) {
  Shape pads = n.has(1) ? n.sizes(1) : Shape();
  if (!n.has(1))
    for (int64_t pad : n.attribute(n.hasAttribute("paddings") ? "paddings" : "pads", std::vector<int64_t>()))
      pads.push_back(pad);
  std::string mode = n.attribute("mode", "constant");
  auto rank = size_t(n.rank());
  std::vector<int64_t> axes;
  if (n.has(3))
    axes = n.integers(3);
  else
    for (size_t i = 0; i < rank; ++i)
      axes.push_back(int64_t(i));
  if (pads.size() != 2 * axes.size())
    n.fail("it needs two pads for each axis");
  double value = n.has(2) ? n.real(2) : n.attribute("value", 0.0);
  Tensor x = n[0];
  std::vector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = size_t(n.axis(axes[i]));
    const Dim &before = pads[i], &behind = pads[axes.size() + i];
    if (before.isStatic() && behind.isStatic()) {
      low[axis] = before.value();
      high[axis] = behind.value();
    } else {
      x = padSymbolic(n, x, int64_t(axis), before, behind, mode, value);
    }
  }
  if (mode == "wrap") {
    for (size_t i = 0; i < rank; ++i) {
      Dim size = x.shape()[i];
      auto axis = int64_t(i);
      if (low[i] || high[i])
        x = concat({part(x, axis, size - low[i], size), x, part(x, axis, 0, high[i])}, axis);
    }
    return x;
  }
  return pad(x, low, high, mode, value);
}

Values rangeOf(Node &n) {
  DType dtype = n.dtype();
  if (std::optional<Dim> count = stepsOf(n)) // possibly symbolic
    return (iota({*count}, dtype) * reshape(n[2], {}) + reshape(n[0], {})).to(dtype);
  if (!constantOf(n.value(0)) || !constantOf(n.value(1)) || !constantOf(n.value(2))) { // the run computes its length
    const Tensor from = reshape(n[0], {}), to = reshape(n[1], {}), step = reshape(n[2], {});
    const Tensor steps = ceil((to - from).to(DType::f64) / step.to(DType::f64));
    return (iota({sizeFrom(maximum(steps, 0.0).to(DType::i64))}, dtype) * step + from).to(dtype);
  }
  double from = n.real(0), to = n.real(1), step = n.real(2);
  if (step == 0)
    n.fail("the step is 0");
  constexpr double kMost = 1e15;
  double steps = std::ceil((to - from) / step);
  if (!(steps < kMost))
    n.fail("a range of " + std::to_string(steps) + " elements");
  auto count = int64_t(std::max(0.0, steps));
  return (iota({count}, dtype) * n[2] + n[0]).to(dtype);
}

Values triangle(Node &n) {
  int64_t diagonal = n.has(1) ? n.integer(1) : 0;
  return n.attribute("upper", int64_t(1)) ? triu(n[0], diagonal) : tril(n[0], diagonal);
}

/// Shape and Size are always known, see Contents.cpp.
Values known(Node &n) { n.fail("internal error: its result should be known"); }

constexpr OpEntry table[] = {
    {"Concat", concatenated},
    {"Constant", constant},
    {"ConstantOfShape", constantOfShape},
    {"Expand", expanded},
    {"Flatten", flattenFrom},
    {"Gather", gathered},
    {"GatherElements", gatheredElements},
    {"Pad", padded},
    {"Range", rangeOf},
    {"Reshape", reshapeTo},
    {"Scatter", scattered},
    {"ScatterElements", scattered},
    {"Shape", known},
    {"Size", known},
    {"Slice", sliced},
    {"Split", splitUp},
    {"Squeeze", squeezed},
    {"Tile", tiled},
    {"Transpose", transposed},
    {"Trilu", triangle},
    {"Unsqueeze", unsqueezed},
};

} // namespace

std::span<const OpEntry> shapeOps() { return table; }

} // namespace burin::onnx
