// Helpers of the reference kernels.
#pragma once
#include "ir/reference/ReferenceOp.h"

namespace burin::ir::ref {

using Sizes = std::vector<int64_t>;

/// "[2, 3]"
std::string str(std::span<const int64_t> sizes);

inline int64_t product(std::span<const int64_t> sizes) { return elementCount(sizes).value_or(0); }

/// Counts negative axes from the end.
inline size_t axisOf(int64_t axis, size_t rank) { return size_t(axis < 0 ? axis + int64_t(rank) : axis); }

/// A row-major tensor seen as [outer, size, inner] around one of its dimensions.
struct AxisSplit {
  AxisSplit(std::span<const int64_t> shape, size_t axis)
      : outer(product(shape.first(axis))), size(shape[axis]), inner(product(shape.subspan(axis + 1))) {}
  int64_t outer, size, inner;
};

/// Resolves a negative index of take, gather and scatter, which counts from the end.
inline int64_t fromEnd(int64_t index, int64_t size) { return index < 0 ? index + size : index; }

inline double wrappingSum(double x, double y) { return x + y; }
inline int64_t wrappingSum(int64_t x, int64_t y) { return int64_t(uint64_t(x) + uint64_t(y)); }
inline double wrappingProduct(double x, double y) { return x * y; }
inline int64_t wrappingProduct(int64_t x, int64_t y) { return int64_t(uint64_t(x) * uint64_t(y)); }

/// The elements of a tensor as raw 8-byte words.
inline const char *bytesOf(const RefTensor &t) {
  return std::visit([](auto &v) { return reinterpret_cast<const char *>(v.data()); }, t.data);
}
inline char *bytesOf(RefTensor &t) {
  return std::visit([](auto &v) { return reinterpret_cast<char *>(v.data()); }, t.data);
}

/// `value` as a tensor of rank 0.
RefTensor scalar(DType dtype, double value);

/// Copies a view of `from` to a view of `to`; both have doubles or both integers.
inline void move(RefTensor &to, const StridedView &toView, const RefTensor &from, const StridedView &fromView) {
  moveElements(bytesOf(to), toView, bytesOf(from), fromView, 8);
}
RefTensor transposed(const RefTensor &, const Sizes &perm);
/// The view that broadcasts `from` to `to` by NumPy's rules; nullopt if the shapes do not broadcast.
std::optional<StridedView> broadcastView(std::span<const int64_t> from, std::span<const int64_t> to);

/// Calls f with the elements of `to` and `from` as vectors of one type: double, or int64_t.
template <class F> void withElements(RefTensor &to, const RefTensor &from, F f) {
  if (isFloat(from.dtype))
    f(to.reals(), from.reals());
  else
    f(to.ints(), from.ints());
}

} // namespace burin::ir::ref
