// Sorting, and selections whose number of elements depends on data. In a trace the size of such a result is a new
// symbol, such as `nonzero_0`; an eager call waits for it.
#pragma once
#include "burin/tensor.h"

namespace burin {

/// Elements, and their indices along the axis (i64).
struct SortResult {
  Tensor values, indices;
};
/// Sorts x along `axis`. Equal elements keep their order; NaN is greater than every number. As torch.sort with
/// stable=True.
BURIN_API SortResult sort(const Tensor &x, int64_t axis = -1, bool descending = false,
                          Location where = Location::current());
/// The k largest (or smallest) elements along `axis`, sorted. As torch.topk.
BURIN_API SortResult topk(const Tensor &x, const Dim &k, int64_t axis = -1, bool largest = true,
                          Location where = Location::current());

/// The elements of x where `mask` is true, in row-major order, as a vector. x and mask broadcast. As
/// torch.masked_select.
BURIN_API Tensor masked_select(const Tensor &x, const Tensor &mask, Location where = Location::current());

/// The indices of boxes [n, 4], two opposite corners each, after removal of those that overlap a box of higher score
/// (intersection over union above the threshold): i64, by decreasing score. As torchvision.ops.nms; for batches and
/// classes see non_max_suppression.
BURIN_API Tensor nms(const Tensor &boxes, const Tensor &scores, double iou_threshold,
                     Location where = Location::current());

} // namespace burin
