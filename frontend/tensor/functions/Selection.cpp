#include "burin/tensor/selection.h"
#include "burin/ops.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include "ir/infer/Infer.h"
#include <limits>

namespace burin {

static int64_t axisOf(const Tensor &x, int64_t axis, const char *op, const Location &where) {
  int64_t rank = x.rank(where);
  if (axis < -rank || axis >= rank)
    throw Error(where, op, "axis " + std::to_string(axis) + " is out of range for " + str(x.spec(where)));
  return axis < 0 ? axis + rank : axis;
}

SortResult sort(const Tensor &x, int64_t axis, bool descending, Location where) {
  const Location place = detail::inScope(where);
  axis = axisOf(x, axis, "sort", place);
  Tensor indices = argsort(x, axis, descending, place);
  return {gather(x, indices, axis, place), indices};
}

SortResult topk(const Tensor &x, const Dim &k, int64_t axis, bool largest, Location where) {
  const Location place = detail::inScope(where);
  axis = axisOf(x, axis, "topk", place);
  const Shape shape = x.shape(place);
  if (lowerBound(shape[size_t(axis)] - k).value_or(0) < 0 || lowerBound(k).value_or(0) < 0)
    throw Error(place, "topk", "k = " + k.str() + " is out of range for " + str(x.spec(place)));
  Tensor indices = argsort(x, axis, largest, place);
  Shape stops = shape;
  stops[size_t(axis)] = k;
  indices = slice(indices, Shape(shape.size(), Dim(0)), stops, std::vector<int64_t>(shape.size(), 1), place);
  return {gather(x, indices, axis, place), indices};
}

Tensor masked_select(const Tensor &x, const Tensor &mask, Location where) {
  const Location place = detail::inScope(where);
  if (!isBool(mask.dtype(place)))
    throw Error(place, "masked_select",
                "the mask is " + str(mask.spec(place)) + ", but must be bool; compare it first");
  auto shape = ir::broadcastShapes(x.shape(place), mask.shape(place));
  if (!shape)
    throw Error(place, "masked_select", str(x.spec(place)) + " and the mask " + str(mask.spec(place)) + " do not fit");
  auto flat = [&](const Tensor &t) { return reshape(broadcast_to(t, *shape, place), {elements(*shape)}, place); };
  return take(flat(x), squeeze(nonzero(flat(mask), place), {1}, place), 0, place);
}

Tensor nms(const Tensor &boxes, const Tensor &scores, double iou_threshold, Location where) {
  const Location place = detail::inScope(where);
  if (boxes.rank(place) != 2 || scores.rank(place) != 1)
    throw Error(place, "nms",
                "it takes boxes [n, 4] and scores [n], not " + str(boxes.spec(place)) + " and " +
                    str(scores.spec(place)));
  Tensor kept =
      non_max_suppression(unsqueeze(boxes, {0}, place), unsqueeze(scores, {0, 1}, place), iou_threshold,
                          -std::numeric_limits<double>::infinity(), std::numeric_limits<int64_t>::max(), false, place);
  kept = squeeze(kept, {0, 1}, place);
  return prefix(kept, reduce_sum(ge(kept, 0, place), {}, false, place), place);
}

} // namespace burin
