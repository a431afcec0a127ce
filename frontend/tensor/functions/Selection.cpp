#include "burin/tensor/selection.h"
#include "burin/ops.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include "ir/infer/Infer.h"
#include <limits>

namespace burin {

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
