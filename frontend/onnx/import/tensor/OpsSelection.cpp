// Ops that sort, and ops whose result sizes depend on data.
#include "burin/tensor/selection.h"
#include "frontend/onnx/import/Node.h"
#include <limits>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// Equal elements keep their order.
Values topK(Node &n) {
  Tensor x = n[0];
  int64_t axis = n.axis(n.attribute("axis", int64_t(-1)));
  Dim k = n.opset() < 10 ? Dim(n.attribute("k", int64_t(1))) : n.sizes(1).at(0), size = x.shape()[size_t(axis)];
  if (lowerBound(size - k).value_or(0) < 0 || lowerBound(k).value_or(0) < 0)
    n.fail("k = " + k.str() + " is out of range for " + size.str() + " elements");
  requireEqual(min(k, size), k);
  SortResult top = topk(x, k, axis, n.attribute("largest", int64_t(1)) != 0);
  return Values({top.values, top.indices});
}

/// One column of a matrix, as a vector.
Tensor column(const Tensor &x, int64_t i) { return squeeze(part(x, 1, i, i + 1), {1}); }

/// The positions of non-zero elements of a vector.
Tensor placesOf(const Tensor &flags) { return squeeze(nonzero(flags), {1}); }

Values nonZero(Node &n) {
  Tensor x = n[0];
  if (x.rank() == 0)
    n.unsupported("an input without dimensions");
  std::optional<Tensor> known = constantOf(n.value(0));
  if (!known)
    return transpose(nonzero(x));
  std::vector<double> elements = known->to_vector<double>();
  Ints positions, shape;
  for (const Dim &size : known->shape())
    shape.push_back(size.value());
  int64_t stride = int64_t(elements.size()), count = 0;
  for (int64_t size : shape) {
    stride /= std::max<int64_t>(size, 1);
    count = 0;
    for (size_t i = 0; i < elements.size(); ++i)
      if (elements[i] != 0)
        positions.push_back(int64_t(i) / stride % size), ++count;
  }
  return from_vector(positions, Shape{int64_t(shape.size()), count});
}

/// The elements for which the condition is true.
Values compress(Node &n) {
  Tensor x = n[0], places;
  if (std::optional<Tensor> known = constantOf(n.value(1))) {
    Ints condition = known->to_vector<int64_t>(), chosen;
    for (size_t i = 0; i < condition.size(); ++i)
      if (condition[i])
        chosen.push_back(int64_t(i));
    places = from_vector(chosen);
  } else {
    places = placesOf(n[1]);
  }
  if (!n.hasAttribute("axis"))
    return take(reshape(x, {elements(x.shape())}), places, 0);
  return take(x, places, n.attribute("axis", int64_t(0)));
}

/// Triples of batch, class and box.
Values nonMaxSuppression(Node &n) {
  int64_t most = n.has(2) ? n.integer(2) : 0;
  double overlap = n.has(3) ? n.real(3) : 0;
  double least = n.has(4) ? n.real(4) : -std::numeric_limits<double>::infinity();
  Tensor kept = non_max_suppression(n[0], n[1], overlap, least, std::max<int64_t>(most, 0),
                                    n.attribute("center_point_box", int64_t(0)) != 0);
  Shape shape = kept.shape();
  Tensor places = nonzero(kept >= 0);
  Tensor flat =
      (column(places, 0) * sizeTensor(shape[1]) + column(places, 1)) * sizeTensor(shape[2]) + column(places, 2);
  Tensor box = take(reshape(kept, {elements(shape)}), flat, 0);
  return concat({part(places, 1, 0, 2), unsqueeze(box, {1})}, 1);
}

/// The order of rows [n, m] by the first column, then the second, and so on: stable sorts from the last column to the
/// first.
Tensor rowOrder(Node &n, const Tensor &rows) {
  constexpr int64_t kMostColumns = 256;
  Dim columns = rows.shape()[1];
  if (!columns.isStatic() || columns.value() > kMostColumns)
    n.unsupported("slices of " + columns.str() + " elements");
  Tensor order;
  for (int64_t i = columns.value(); i-- > 0;) {
    Tensor keys = column(rows, i);
    order = order.defined() ? take(order, argsort(take(keys, order, 0), 0), 0) : argsort(keys, 0);
  }
  return order.defined() ? order : iota({rows.shape()[0]}, DType::i64);
}

Values unique(Node &n) {
  Tensor x = n[0];
  bool hasAxis = n.hasAttribute("axis");
  int64_t axis = hasAxis ? n.axis(n.attribute("axis", int64_t(0))) : 0;
  Ints order, back(size_t(x.rank()));
  for (int64_t i = 0; i < x.rank(); ++i)
    order.insert(i == axis ? order.begin() : order.end(), i);
  for (size_t i = 0; i < order.size(); ++i)
    back[size_t(order[i])] = int64_t(i);
  Tensor slices = hasAxis ? transpose(x, order) : reshape(x, {elements(x.shape())});
  Shape shape = slices.shape();
  Dim count = shape[0], width = elements(Shape(shape.begin() + 1, shape.end()));
  Tensor rows = reshape(slices, {count, width});

  // Equal rows are adjacent, in the order of the operand.
  Tensor sorted = rowOrder(n, rows), places = iota({count}, DType::i64);
  Tensor mine = take(rows, sorted, 0), before = take(mine, maximum(places - 1, 0), 0);
  Tensor isNew = logical_or(places == 0, reduce_any(mine != before, {1}));
  Tensor group = cumsum(isNew.to(DType::i64), 0) - 1;
  Tensor inverse = scatter(zeros({count}, DType::i64), sorted, group);
  Tensor firsts = take(sorted, placesOf(isNew), 0);
  Tensor counts = scatter(zeros(firsts.shape(), DType::i64), group, ones({count}, DType::i64), 0, "add");
  if (!n.attribute("sorted", int64_t(1))) { // in the order of the first occurrences
    Tensor appearance = argsort(firsts, 0);
    firsts = take(firsts, appearance, 0);
    counts = take(counts, appearance, 0);
    inverse = take(argsort(appearance, 0), inverse, 0);
  }
  Tensor values = take(slices, firsts, 0);
  return Values({hasAxis ? transpose(values, back) : values, firsts, inverse, counts});
}

constexpr OpEntry table[] = {
    {"Compress", compress}, {"NonMaxSuppression", nonMaxSuppression}, {"NonZero", nonZero}, {"TopK", topK},
    {"Unique", unique},
};

} // namespace

std::span<const OpEntry> selectionOps() { return table; }

} // namespace burin::onnx
