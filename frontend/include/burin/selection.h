// Sorting, and choosing elements whose number depends on the data. What these return has a size that is known when it
// has been computed: in a trace a symbol of its own, such as `nonzero_0`; outside of one the call waits for it.
#pragma once
#include "burin/tensor.h"

namespace burin {

/// Elements, and where they were along the axis (i64).
struct SortResult {
  Tensor values, indices;
};
/// x in ascending (or descending) order along `axis`. Equal elements keep their order; NaN counts as larger than every
/// number. As torch.sort with stable=True.
BURIN_API SortResult sort(const Tensor &x, int64_t axis = -1, bool descending = false,
                          Location where = Location::current());
/// The k largest (or smallest) elements along `axis`, in order. As torch.topk.
BURIN_API SortResult topk(const Tensor &x, const Dim &k, int64_t axis = -1, bool largest = true,
                          Location where = Location::current());

/// The elements of x where `mask` is true, in row-major order: one dimension. The two are broadcast to one shape. As
/// torch.masked_select.
BURIN_API Tensor masked_select(const Tensor &x, const Tensor &mask, Location where = Location::current());

/// The indices of boxes [n, 4], two opposite corners each, that remain when those that overlap a box of higher score
/// (intersection over union above the threshold) are dropped: i64, by decreasing score. As torchvision.ops.nms; for
/// batches and classes see non_max_suppression.
BURIN_API Tensor nms(const Tensor &boxes, const Tensor &scores, double iou_threshold,
                     Location where = Location::current());

} // namespace burin
