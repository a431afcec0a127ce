// Ops that move, select and create elements.
#include "frontend/onnx/export/Emitter.h"
#include "ir/reference/Reference.h"
#include <algorithm>
#include <bit>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

Refs reshape(const OpEmitter &e) { return {e.graph.reshape(e.raw(0), e.shape(), e.result().shape)}; }

Refs squeeze(const OpEmitter &e) {
  const Ints &axes = e.attr<Ints>("axes");
  return {axes.empty() ? e.raw(0) : e.graph.node("Squeeze", {e.raw(0), e.graph.list(axes)})};
}
Refs unsqueeze(const OpEmitter &e) {
  return {e.graph.node("Unsqueeze", {e.raw(0), e.graph.list(e.attr<Ints>("axes"))})};
}

Refs concat(const OpEmitter &e) {
  Refs parts;
  for (size_t i = 0; i < e.operands.size(); ++i)
    parts.push_back(e.raw(i));
  return {e.graph.node("Concat", parts, {{"axis", e.attr<int64_t>("axis")}})};
}

Refs stack(const OpEmitter &e) {
  Refs parts;
  int64_t axis = e.attr<int64_t>("axis");
  for (size_t i = 0; i < e.operands.size(); ++i)
    parts.push_back(e.graph.node("Unsqueeze", {e.raw(i), e.graph.list({axis})}));
  return {e.graph.node("Concat", parts, {{"axis", axis}})};
}

Refs split(const OpEmitter &e) {
  const Ints &sizes = e.attr<Ints>("sizes");
  return e.graph.nodes("Split", {e.raw(0), e.graph.list(sizes)}, sizes.size(), {{"axis", e.attr<int64_t>("axis")}});
}

/// Slices only the dimensions that change.
Refs slice(const OpEmitter &e) {
  const Shape &starts = e.attr<Shape>("starts"), &stops = e.attr<Shape>("stops");
  const Ints &steps = e.attr<Ints>("steps");
  Shape from, to, shape = e.shape();
  Ints axes, strides;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool isToEnd = stops[i] == shape[i];
    if (starts[i] == Dim(0) && isToEnd && steps[i] == 1)
      continue;
    from.push_back(starts[i]);
    to.push_back(isToEnd ? Dim(INT64_MAX) : stops[i]);
    axes.push_back(int64_t(i));
    strides.push_back(steps[i]);
  }
  if (axes.empty())
    return {e.raw(0)};
  GraphEmitter &g = e.graph;
  return {g.node("Slice", {e.raw(0), g.sizes(from), g.sizes(to), g.list(axes), g.list(strides)})};
}

Refs flip(const OpEmitter &e) {
  const Ints &axes = e.attr<Ints>("axes");
  if (axes.empty())
    return {e.raw(0)};
  GraphEmitter &g = e.graph;
  Ints starts(axes.size(), -1), ends(axes.size(), INT64_MIN), steps(axes.size(), -1);
  return {g.node("Slice", {e.raw(0), g.list(starts), g.list(ends), g.list(axes), g.list(steps)})};
}

Refs tile(const OpEmitter &e) {
  const Ints &repeats = e.attr<Ints>("repeats");
  return {repeats.empty() ? e.raw(0) : e.graph.node("Tile", {e.raw(0), e.graph.list(repeats)})};
}

Ref padBy(GraphEmitter &g, const Ref &x, const Ints &low, Ints high, const std::string &mode, double value) {
  high.insert(high.begin(), low.begin(), low.end());
  return g.node("Pad", {x, g.list(high), mode == "constant" ? g.number(value, x.dtype) : Ref()}, {{"mode", mode}});
}

/// Inserts `gap` elements after each element of a dimension: pads a new dimension after it, and merges both.
Ref spread(GraphEmitter &g, const Ref &x, Shape &shape, size_t axis, int64_t gap, double value) {
  Ints low(shape.size() + 1), high = low;
  high[axis + 1] = gap;
  Ref columns = g.node("Unsqueeze", {x, g.list({int64_t(axis) + 1})});
  Shape wide = shape;
  wide.insert(wide.begin() + int64_t(axis) + 1, Dim(gap + 1));
  shape[axis] = shape[axis] * (gap + 1);
  return g.reshape(padBy(g, columns, low, high, "constant", value), wide, shape);
}

Refs pad(const OpEmitter &e) {
  Ints low = e.attr<Ints>("low"), high = e.attr<Ints>("high"), interior = e.attr<Ints>("interior");
  const std::string &mode = e.attr<std::string>("mode");
  double value = e.attr<double>("value");
  Ref x = e.raw(0);
  Shape shape = e.shape();
  for (size_t i = 0; i < interior.size(); ++i)
    if (interior[i] && shape[i] != Dim(0)) {
      x = spread(e.graph, x, shape, i, interior[i], value);
      high[i] -= interior[i];
    }
  auto isZero = [](int64_t n) { return n == 0; };
  if (std::all_of(low.begin(), low.end(), isZero) && std::all_of(high.begin(), high.end(), isZero))
    return {x};
  return {padBy(e.graph, x, low, high, mode, value)};
}

Ref indices(const OpEmitter &e) {
  Ref ref = e.raw(1);
  return ref.dtype == DType::i32 ? ref : e.graph.cast(ref, DType::i64);
}

Refs select(const OpEmitter &e) { return {e.same({e.raw(0), indices(e)})}; }

/// Indices from 0 to n, where n stands for all that are out of range of n elements.
Ref clippedIndices(GraphEmitter &g, const Ref &given, const Ref &n) {
  auto node = [&](const char *op, const Refs &inputs, DType dtype) { return g.node(op, inputs, {}, dtype); };
  Ref zero = g.number(0, DType::i64), at = g.cast(given, DType::i64);
  Ref isNegative = node("Less", {at, zero}, DType::boolean);
  at = node("Where", {isNegative, node("Add", {at, n}, DType::i64), at}, DType::i64);
  Ref isBefore = node("Less", {at, zero}, DType::boolean), isBehind = node("Less", {at, n}, DType::boolean);
  isBehind = node("Not", {isBehind}, DType::boolean);
  return node("Where", {node("Or", {isBefore, isBehind}, DType::boolean), n, at}, DType::i64);
}

/// ScatterElements cannot drop updates. Those whose index is out of range are written to an additional element, which
/// is then cut off.
Refs scatter(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  const std::string &reduction = e.attr<std::string>("reduction");
  const bool isSet = reduction == "set";
  const int64_t axis = e.attr<int64_t>("axis");
  OutAttributes attributes{{"axis", axis}};
  if (!isSet)
    attributes.emplace_back("reduction", reduction);
  Ref x = isSet ? e.raw(0) : e.in(0), updates = isSet ? e.raw(2) : e.in(2);
  if (!e.attr<bool>("drop"))
    return {g.node("ScatterElements", {x, indices(e), updates}, attributes)};
  const Shape shape = e.shape();
  const size_t at = size_t(axis < 0 ? axis + int64_t(shape.size()) : axis);
  Ref size = g.size(shape[at]);
  Ints none(shape.size(), 0), one = none;
  one[at] = 1;
  Ref larger = padBy(g, x, none, one, "constant", 0);
  larger = g.node("ScatterElements", {larger, clippedIndices(g, e.raw(1), size), updates}, attributes);
  return {g.node("Slice", {larger, g.list({0}), size, g.list({int64_t(at)})})};
}

Refs iota(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  Shape shape = e.result().shape;
  auto axis = size_t(e.attr<int64_t>("axis"));
  Ref length = g.node("Squeeze", {g.size(shape[axis]), g.list({0})});
  Ref row = g.node("Range", {g.number(0, DType::i64), length, g.number(1, DType::i64)});
  row = g.cast(row, e.result().dtype);
  if (shape.size() == 1)
    return {row};
  Shape flat(shape.size() - axis, Dim(1));
  flat[0] = shape[axis];
  return {g.full(g.reshape(row, {shape[axis]}, flat), shape)};
}

Refs triangle(const OpEmitter &e) {
  return {e.graph.node("Trilu", {e.raw(0), e.graph.number(double(e.attr<int64_t>("diagonal")), DType::i64)},
                       {{"upper", int64_t(e.info.name == std::string_view("triu"))}})};
}

Refs identity(const OpEmitter &e) { return {e.raw(0)}; }

} // namespace

std::span<const ExportRule> shapeExports() {
  static const ExportRule rules[] = {
      {"reshape", reshape, asIs},   {"squeeze", squeeze, asIs}, {"unsqueeze", unsqueeze, asIs},
      {"transpose", nullptr, asIs}, {"slice", slice, asIs},     {"flip", flip, asIs},
      {"concat", concat, asIs},     {"stack", stack, asIs},     {"split", split, asIs},
      {"tile", tile, asIs},         {"pad", pad, asIs},         {"take", select, asIs},
      {"gather", select, asIs},     {"scatter", scatter},       {"iota", iota, asIs},
      {"tril", triangle, asIs},     {"triu", triangle, asIs},   {"dropout", identity, asIs},
  };
  return rules;
}

} // namespace burin::onnx
