// Copies between strided views of row-major buffers, the basis of all ops that only move elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace burin::ir {

/// Element (i0, i1, …) of the view is at `offset + i0 * strides[0] + …`, in elements. Strides may be 0 or negative.
struct StridedView {
  int64_t offset = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape);
/// The view of a whole row-major tensor.
StridedView wholeOf(std::span<const int64_t> shape);

/// Copies the elements of `fromView` to the same indices of `toView`, which has the same shape. `width` is the size of
/// an element: 1, 2, 4 or 8 bytes. The buffers must not overlap, and the views must be within them.
void moveElements(char *to, const StridedView &toView, const char *from, const StridedView &fromView, size_t width);

} // namespace burin::ir
