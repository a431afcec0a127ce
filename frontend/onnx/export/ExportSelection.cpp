// Ops that sort and select.
#include "frontend/onnx/export/Emitter.h"

namespace burin::onnx {

namespace {

Ref range(GraphEmitter &g, const Dim &size) {
  Ref count = g.node("Squeeze", {g.size(size), g.list({0})});
  return g.node("Range", {g.number(0, DType::i64), count, g.number(1, DType::i64)});
}

Refs argsort(const OpEmitter &e) {
  int64_t axis = e.attr<int64_t>("axis"), largest = e.attr<bool>("descending");
  Refs sorted = e.graph.nodes("TopK", {e.in(0), e.graph.size(e.shape()[size_t(axis)])}, 2,
                              {{"axis", axis}, {"largest", largest}, {"sorted", int64_t(1)}});
  return {{sorted[1].name, DType::i64}};
}
DType sortable(DType dtype) { return isFloat(dtype) ? inSingle(dtype) : DType::i64; }

Refs nonzero(const OpEmitter &e) {
  Ref positions = e.graph.node("NonZero", {e.graph.cast(e.raw(0), DType::boolean)}, {}, DType::i64);
  return {e.graph.node("Transpose", {positions}, {{"perm", std::vector<int64_t>{1, 0}}})};
}

Refs prefix(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  Ref inside = g.node("Less", {range(g, e.shape()[0]), g.cast(e.raw(1), DType::i64)}, {}, DType::boolean);
  return {g.node("Compress", {e.in(0), inside}, {{"axis", int64_t(0)}})};
}

/// Element i is the product over all j before it: the axis becomes a matrix of (i, j).
Refs cumprod(const OpEmitter &e) {
  GraphEmitter &g = e.graph;
  auto axis = size_t(e.attr<int64_t>("axis"));
  bool exclusive = e.attr<bool>("exclusive"), reverse = e.attr<bool>("reverse");
  std::vector<int64_t> ofRow{0}, ofColumn;
  for (size_t d = axis + 1; d < e.shape().size(); ++d) {
    ofRow.push_back(int64_t(d - axis) + 1);
    ofColumn.push_back(int64_t(d - axis));
  }
  ofRow[0] = 1;
  Ref place = range(g, e.shape()[axis]);
  Ref i = g.node("Unsqueeze", {place, g.list(ofRow)});
  Ref j = ofColumn.empty() ? place : g.node("Unsqueeze", {place, g.list(ofColumn)});
  std::string compare = std::string(reverse ? "Greater" : "Less") + (exclusive ? "" : "OrEqual");
  Ref before = g.node(compare, {j, i}, {}, DType::boolean);
  Ref x = e.in(0), columns = g.node("Unsqueeze", {x, g.list({int64_t(axis)})});
  Ref factors = g.node("Where", {before, columns, g.number(1, x.dtype)}, {}, x.dtype);
  return {g.node("ReduceProd", {factors, g.list({int64_t(axis) + 1})}, {{"keepdims", int64_t(0)}})};
}
/// Integers are computed in 64 bits, which wrap to the same result.
DType product(DType dtype) { return isFloat(dtype) ? inSingle(dtype) : DType::i64; }

Refs suppression(const OpEmitter &) {
  throw NoOnnxForm{
      "ONNX lists the boxes of all classes in one table; leave the choice of boxes to what reads the model"};
}

} // namespace

std::span<const ExportRule> selectionExports() {
  static const ExportRule rules[] = {
      {"argsort", argsort, sortable},
      {"nonzero", nonzero, asIs},
      {"prefix", prefix},
      {"cumprod", cumprod, product},
      {"non_max_suppression", suppression, asIs},
  };
  return rules;
}

} // namespace burin::onnx
