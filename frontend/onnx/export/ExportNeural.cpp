// Products, windows, normalisation, attention.
#include "frontend/onnx/export/Emitter.h"
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

// ---- channels-last layouts come from the compiler; ONNX has channels first only

bool isChannelsLast(const OpEmitter &e) { return e.attr<std::string>("layout") == "nhwc"; }

Ints channelsFirst(size_t rank) {
  Ints perm{0, int64_t(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i)
    perm.push_back(int64_t(i));
  return perm;
}
Ints channelsLast(size_t rank) {
  Ints perm{0};
  for (size_t i = 2; i < rank; ++i)
    perm.push_back(int64_t(i));
  perm.push_back(1);
  return perm;
}

/// The operand of a window op with channels first.
Ref images(const OpEmitter &e) {
  return isChannelsLast(e) ? e.graph.node("Transpose", {e.in(0)}, {{"perm", channelsFirst(e.shape().size())}})
                           : e.in(0);
}
Ref imagesBack(const OpEmitter &e, const Ref &y) {
  return isChannelsLast(e) ? e.graph.node("Transpose", {y}, {{"perm", channelsLast(e.shape().size())}}) : y;
}

/// The entries of a list for dimensions [first, last).
Ints sizesOf(const Shape &shape, size_t first, size_t last) {
  Ints sizes;
  for (size_t i = first; i < last; ++i) {
    if (!shape[i].isStatic())
      throw NoOnnxForm{"its kernel has the symbolic size " + shape[i].str()};
    sizes.push_back(shape[i].value());
  }
  return sizes;
}

// ---- products

/// Products of integers up to 16 bits are exact in f64, and convert to results that wrap.
Ref exactly(const OpEmitter &e, const Ref &x) {
  if (isFloat(x.dtype) || x.name.empty())
    return x;
  if (byteWidth(x.dtype) > 2)
    throw NoOnnxForm{"ONNX's Conv takes floats; cast " + str(e.spec()) + " to one of them"};
  return e.graph.cast(x, DType::f64);
}
/// Converts to the element type of the result; values out of range wrap via i64.
Ref wrapped(const OpEmitter &e, const Ref &y) { return isFloat(e.result().dtype) ? y : e.graph.cast(y, DType::i64); }

Refs conv(const OpEmitter &e) {
  Ref x = images(e), weight = e.in(1);
  size_t rank = e.shape().size();
  bool isLast = isChannelsLast(e);
  if (isLast) { // [kernel…, C, O] to [O, C, kernel…]
    Ints perm{int64_t(rank) - 1, int64_t(rank) - 2};
    for (size_t i = 0; i + 2 < rank; ++i)
      perm.push_back(int64_t(i));
    weight = e.graph.node("Transpose", {weight}, {{"perm", perm}});
  }
  Ints kernel = isLast ? sizesOf(e.shape(1), 0, rank - 2) : sizesOf(e.shape(1), 2, rank);
  OutAttributes attributes{{"kernel_shape", kernel},
                           {"strides", e.attr<Ints>("strides")},
                           {"pads", e.attr<Ints>("padding")},
                           {"dilations", e.attr<Ints>("dilations")},
                           {"group", e.attr<int64_t>("groups")}};
  Ref y = e.graph.node("Conv", {exactly(e, x), exactly(e, weight), exactly(e, e.in(2))}, attributes);
  return {imagesBack(e, wrapped(e, y))};
}

Refs convTranspose(const OpEmitter &e) {
  OutAttributes attributes{{"kernel_shape", sizesOf(e.shape(1), 2, e.shape().size())},
                           {"strides", e.attr<Ints>("strides")},
                           {"pads", e.attr<Ints>("padding")},
                           {"dilations", e.attr<Ints>("dilations")},
                           {"group", e.attr<int64_t>("groups")},
                           {"output_padding", e.attr<Ints>("output_padding")}};
  Refs operands{exactly(e, e.in(0)), exactly(e, e.in(1)), exactly(e, e.in(2))};
  return {wrapped(e, e.graph.node("ConvTranspose", operands, attributes))};
}

/// Leading dimensions broadcast, so the operand's own broadcast is omitted.
Ref matrix(const OpEmitter &e, size_t operand) {
  mlir::Value source = e.operands[operand];
  while (auto broadcast = source.getDefiningOp<ir::BroadcastToOp>()) {
    Shape from = ir::shapeOf(broadcast.getX()), to = ir::shapeOf(source);
    if (from.size() < 2 || !std::equal(from.end() - 2, from.end(), to.end() - 2))
      break;
    source = broadcast.getX();
  }
  Ref x = e.graph.valueOf(source);
  return e.graph.cast(x, e.workType());
}

Refs matmul(const OpEmitter &e) {
  // If both operands are broadcast, one of them must keep its broadcast.
  auto isRepeated = [&](size_t i) { return e.operands[i].getDefiningOp<ir::BroadcastToOp>() != nullptr; };
  bool both = isRepeated(0) && isRepeated(1);
  return {e.graph.node("MatMul", {both ? e.in(0) : matrix(e, 0), matrix(e, 1)})};
}

/// An Einsum: batch dimensions, contracted ones, free ones.
Refs dotGeneral(const OpEmitter &e) {
  char next = 'a';
  std::string left(e.shape(0).size(), '?'), right(e.shape(1).size(), '?'), out;
  auto share = [&](const Ints &lhs, const Ints &rhs) {
    for (size_t i = 0; i < lhs.size(); ++i, ++next)
      left[size_t(lhs[i])] = right[size_t(rhs[i])] = next;
  };
  share(e.attr<Ints>("lhs_batch"), e.attr<Ints>("rhs_batch"));
  out.assign(1, 'a');
  out.clear();
  for (char c = 'a'; c < next; ++c)
    out += c;
  share(e.attr<Ints>("lhs_contract"), e.attr<Ints>("rhs_contract"));
  for (std::string *side : {&left, &right})
    for (char &c : *side)
      if (c == '?')
        out += c = next++;
  if (next > 'z' + 1)
    throw NoOnnxForm{"it has more than 26 dimensions"};
  return {e.graph.node("Einsum", {e.in(0), e.in(1)}, {{"equation", left + "," + right + "->" + out}})};
}

DType forEinsum(DType dtype) { return isFloat(dtype) ? inSingle(dtype) : DType::i64; }
DType forMatmul(DType dtype) { return isInteger(dtype) && byteWidth(dtype) < 4 ? DType::i32 : inSingle(dtype); }

// ---- windows

/// The padding after dimension i with which the last window ends at the end of the padding.
int64_t exactPadding(const OpEmitter &e, size_t i) {
  size_t axis = i + (isChannelsLast(e) ? 1 : 2);
  int64_t extent = (e.attr<Ints>("kernel")[i] - 1) * e.attr<Ints>("dilations")[i] + 1;
  int64_t windows = e.result().shape[axis].value(), size = e.shape()[axis].value();
  return (windows - 1) * e.attr<Ints>("strides")[i] + extent - size - e.attr<Ints>("padding")[i];
}

/// Some ONNX versions keep a last window that starts in the padding after x, unlike burin. The padding is reduced to
/// fit burin's windows.
OutAttributes windowAttributes(const OpEmitter &e) {
  Ints padding = e.attr<Ints>("padding"), exact;
  size_t count = padding.size() / 2;
  bool isCeiled = e.attr<bool>("ceil_mode"), isLeftOut = false, isStatic = true;
  for (size_t i = 0; i < count && isCeiled; ++i)
    isStatic &= e.shape()[i + (isChannelsLast(e) ? 1 : 2)].isStatic();
  for (size_t i = 0; i < count && isCeiled && isStatic; ++i) {
    exact.push_back(exactPadding(e, i));
    isLeftOut |= exact[i] < padding[count + i];
  }
  for (size_t i = 0; i < exact.size() && isLeftOut; ++i) {
    if (exact[i] > padding[count + i] && e.info.name == std::string_view("avg_pool"))
      throw NoOnnxForm{"ONNX counts a window that ceil_mode leaves out here"};
    padding[count + i] = std::max<int64_t>(exact[i], 0);
  }
  return {{"kernel_shape", e.attr<Ints>("kernel")},
          {"strides", e.attr<Ints>("strides")},
          {"pads", padding},
          {"dilations", e.attr<Ints>("dilations")},
          {"ceil_mode", int64_t(isCeiled && !isLeftOut)}};
}

Refs maxPool(const OpEmitter &e) {
  if (e.spec().dtype == DType::i64)
    throw NoOnnxForm{"ONNX's MaxPool does not take i64; cast " + str(e.spec()) + " to f64 or a smaller type"};
  return {imagesBack(e, e.graph.node("MaxPool", {images(e)}, windowAttributes(e)))};
}

Refs avgPool(const OpEmitter &e) {
  OutAttributes attributes = windowAttributes(e);
  attributes.emplace_back("count_include_pad", int64_t(e.attr<bool>("count_include_pad")));
  return {imagesBack(e, e.graph.node("AveragePool", {images(e)}, attributes))};
}

/// Averages one dimension: the mean of a slice for each element of the result.
Ref averaged(const OpEmitter &e, const Ref &x, const Dim &size, int64_t axis, int64_t count) {
  GraphEmitter &g = e.graph;
  if (size == Dim(count))
    return x;
  Refs parts;
  for (int64_t i = 0; i < count; ++i) {
    Ref from = g.size(floordiv(size * i, count)), to = g.size(ceildiv(size * (i + 1), count));
    Ref part = g.node("Slice", {x, from, to, g.list({axis})});
    parts.push_back(g.node("ReduceMean", {part, g.list({axis})}, {{"keepdims", int64_t(1)}}));
  }
  return parts.size() == 1 ? parts[0] : g.node("Concat", parts, {{"axis", axis}});
}

Refs adaptiveAvgPool(const OpEmitter &e) {
  const Ints &sizes = e.attr<Ints>("output_size");
  bool isGlobal = std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 1; });
  if (isGlobal)
    return {imagesBack(e, e.graph.node("GlobalAveragePool", {images(e)}))};
  size_t first = isChannelsLast(e) ? 1 : 2;
  Ref x = e.in(0);
  for (size_t i = 0; i < sizes.size(); ++i)
    x = averaged(e, x, e.shape()[first + i], int64_t(first + i), sizes[i]);
  return {x};
}

// ---- normalisation

/// The scale or shift of the op, or a constant if it has none.
Ref orConstant(const OpEmitter &e, size_t operand, double value, const Shape &shape) {
  if (e.has(operand))
    return e.in(operand);
  return e.graph.full(e.graph.number(value, e.workType()), shape);
}

Refs layerNorm(const OpEmitter &e) {
  int64_t axis = e.attr<int64_t>("axis");
  Shape shape = e.shape(), inner(shape.begin() + axis, shape.end());
  return {e.graph.node("LayerNormalization", {e.in(0), orConstant(e, 1, 1, inner), e.in(2)},
                       {{"axis", axis}, {"epsilon", e.attr<double>("epsilon")}})};
}

Refs rmsNorm(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  Ints axes;
  for (int64_t i = e.attr<int64_t>("axis"); i < int64_t(e.shape().size()); ++i)
    axes.push_back(i);
  Ref x = e.in(0), square = g.node("Mul", {x, x});
  Ref mean = g.node("ReduceMean", {square, g.list(axes)}, {{"keepdims", int64_t(1)}});
  Ref root = g.node("Sqrt", {g.node("Add", {mean, g.number(e.attr<double>("epsilon"), x.dtype)})});
  Ref y = g.node("Div", {x, root});
  return {e.has(1) ? g.node("Mul", {y, e.in(1)}) : y};
}

Refs batchNorm(const OpEmitter &e) {
  return {e.graph.node("BatchNormalization", {e.in(0), e.in(3), e.in(4), e.in(1), e.in(2)},
                       {{"epsilon", e.attr<double>("epsilon")}})};
}

Refs groupNorm(const OpEmitter &e) {
  Shape channels{e.shape()[1]};
  OutAttributes attributes{{"epsilon", e.attr<double>("epsilon")}};
  bool isInstance = e.info.name == std::string_view("instance_norm");
  if (!isInstance)
    attributes.insert(attributes.end(), {{"num_groups", e.attr<int64_t>("groups")},
                                         {"stash_type", int64_t(dataTypeOf(inSingleThroughout(e.workType())))}});
  return {e.graph.node(isInstance ? "InstanceNormalization" : "GroupNormalization",
                       {e.in(0), orConstant(e, 1, 1, channels), orConstant(e, 2, 0, channels)}, attributes)};
}

// ---- attention

/// True where row i may see column j: j <= i.
Ref causalMask(GraphEmitter &g, const Dim &rows, const Dim &columns) {
  Ref ones = g.full(g.number(1, DType::boolean), {rows, columns});
  return g.node("Trilu", {ones}, {{"upper", int64_t(0)}});
}

Refs attention(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  Ref query = e.in(0), key = e.in(1), value = e.in(2);
  Shape shape = e.shape(0), keys = e.shape(1);
  size_t rank = shape.size();
  Ints swap;
  for (size_t i = 0; i < rank; ++i)
    swap.push_back(int64_t(i));
  std::swap(swap[rank - 2], swap[rank - 1]);
  Ref scores = g.node("MatMul", {query, g.node("Transpose", {key}, {{"perm", swap}})});
  double scale = e.attr<double>("scale");
  Ref factor;
  if (scale != 0 || shape.back().isStatic()) {
    factor = g.number(scale != 0 ? scale : 1 / std::sqrt(double(shape.back().value())), scores.dtype);
  } else {
    Ref width = g.node("Squeeze", {g.size(shape.back()), g.list({0})});
    factor = g.node("Reciprocal", {g.node("Sqrt", {g.cast(width, scores.dtype)})});
  }
  scores = g.node("Mul", {scores, factor});
  Ref hidden = g.number(-INFINITY, scores.dtype);
  bool isBoolMask = e.has(3) && isBool(e.spec(3).dtype);
  if (e.has(3))
    scores = isBoolMask ? g.node("Where", {e.raw(3), scores, hidden}, {}, scores.dtype)
                        : g.node("Add", {scores, g.cast(e.raw(3), scores.dtype)});
  if (e.attr<bool>("is_causal"))
    scores = g.node("Where", {causalMask(g, shape[rank - 2], keys[rank - 2]), scores, hidden}, {}, scores.dtype);
  Ref weights = g.node("Softmax", {scores}, {{"axis", int64_t(-1)}});
  if (e.has(3)) { // a row that sees nothing gives zeros, not NaN
    Ref isHidden = g.node("Equal", {scores, hidden}, {}, DType::boolean);
    weights = g.node("Where", {isHidden, g.number(0, weights.dtype), weights}, {}, weights.dtype);
  }
  return {g.node("MatMul", {weights, value})};
}

} // namespace

std::span<const ExportRule> neuralExports() {
  auto forMaxPool = [](DType dtype) {
    return dtype == DType::i16 || dtype == DType::i32 ? DType::f64 : inSingle(dtype);
  };
  static const ExportRule rules[] = {
      {"matmul", matmul, forMatmul},
      {"dot_general", dotGeneral, forEinsum},
      {"conv", conv},
      {"conv_transpose", convTranspose},
      {"max_pool", maxPool, forMaxPool},
      {"avg_pool", avgPool},
      {"adaptive_avg_pool", adaptiveAvgPool, inSingleThroughout},
      {"layer_norm", layerNorm},
      {"rms_norm", rmsNorm, inSingleThroughout},
      {"batch_norm", batchNorm},
      {"group_norm", groupNorm},
      {"instance_norm", groupNorm},
      {"scaled_dot_product_attention", attention, inSingleThroughout},
  };
  return rules;
}

} // namespace burin::onnx
