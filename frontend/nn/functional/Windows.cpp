// Windows of images as columns, and adaptive pools.
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"

namespace burin {

using namespace detail;

namespace {

/// One dimension of the windows.
struct WindowAxis {
  int64_t kernel, dilation, padding, stride;
  Dim padded, count; // size with padding on both sides, number of windows
  /// The position of each element of each window: i64[kernel * count].
  Tensor positions() const {
    Tensor at = unsqueeze(arange(kernel) * dilation, 1) + arange(count) * stride;
    return reshape(at, {count * kernel});
  }
};

std::pair<WindowAxis, WindowAxis> windowsOf(const Shape &sizes, const IntList *const lists[4], const char *op,
                                            const Location &where) {
  static const char *const names[] = {"kernel", "dilation", "padding", "stride"};
  int64_t numbers[4][2];
  for (int i = 0; i < 4; ++i) {
    const IntList &list = *lists[i];
    if (list.size() != 1 && list.size() != 2)
      throw Error(where, op,
                  "the " + std::string(names[i]) + " has " + std::to_string(list.size()) +
                      " numbers, but must have one, or one for each of height and width");
    for (size_t axis : {0, 1}) {
      numbers[i][axis] = list[list.size() == 1 ? 0 : axis];
      if (numbers[i][axis] < (i == 2 ? 0 : 1))
        throw Error(where, op,
                    "the " + std::string(names[i]) + " " + std::to_string(numbers[i][axis]) + " is too small");
    }
  }
  auto axisOf = [&](size_t axis) {
    WindowAxis a{numbers[0][axis], numbers[1][axis], numbers[2][axis], numbers[3][axis], sizes[axis], 0};
    a.padded = sizes[axis] + 2 * a.padding;
    const int64_t extent = (a.kernel - 1) * a.dilation + 1;
    if (a.padded.isStatic() && a.padded.value() < extent)
      throw Error(where, op,
                  "a window of " + std::to_string(extent) + " does not fit the size " + sizes[axis].str() +
                      " with a padding of " + std::to_string(a.padding));
    a.count = floordiv(a.padded - extent, a.stride) + 1;
    return a;
  };
  return {axisOf(0), axisOf(1)};
}

} // namespace

Tensor unfold(const Tensor &x, const IntList &kernel, const IntList &dilation, const IntList &padding,
              const IntList &stride, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() != 4)
    throw Error(inScope(where), "unfold",
                "x is " + str(x.spec()) +
                    ", but must be images [N, C, H, W]\n  for windows along one axis call the "
                    "method x.unfold(axis, size, step)");
  const Shape sizes = x.shape();
  const IntList *const lists[] = {&kernel, &dilation, &padding, &stride};
  const auto [rows, columns] = windowsOf({sizes[2], sizes[3]}, lists, "unfold", inScope(where));
  Tensor padded = rows.padding || columns.padding ? pad(x, IntList{0, 0, rows.padding, columns.padding},
                                                        IntList{0, 0, rows.padding, columns.padding})
                                                  : x;
  Tensor taken = take(take(padded, rows.positions(), 2), columns.positions(), 3);
  taken = reshape(taken, {sizes[0], sizes[1], rows.kernel, rows.count, columns.kernel, columns.count});
  return reshape(transpose(taken, {0, 1, 2, 4, 3, 5}),
                 {sizes[0], sizes[1] * (rows.kernel * columns.kernel), rows.count * columns.count});
}

Tensor fold(const Tensor &x, const Shape &output_size, const IntList &kernel, const IntList &dilation,
            const IntList &padding, const IntList &stride, Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() != 3 || output_size.size() != 2)
    throw Error(inScope(where), "fold",
                "x is " + str(x.spec()) + " and the output size " + str(output_size) +
                    ", but must be [N, C * kernel elements, windows] and [H, W]");
  const IntList *const lists[] = {&kernel, &dilation, &padding, &stride};
  const auto [rows, columns] = windowsOf(output_size, lists, "fold", inScope(where));
  const int64_t area = rows.kernel * columns.kernel;
  const Shape sizes = x.shape();
  const Dim channels = floordiv(sizes[1], area), windows = rows.count * columns.count;
  if ((sizes[1].isStatic() && sizes[1].value() % area) ||
      (sizes[2].isStatic() && windows.isStatic() && sizes[2] != windows))
    throw Error(inScope(where), "fold",
                "x is " + str(x.spec()) + ", but its dimension 1 must be a multiple of the " + std::to_string(area) +
                    " elements of the kernel, and its last one the number of windows, " + windows.str());
  Tensor apart = reshape(x, {sizes[0], channels, rows.kernel, columns.kernel, rows.count, columns.count});
  apart = reshape(transpose(apart, {0, 1, 2, 4, 3, 5}),
                  {sizes[0], channels, rows.count * rows.kernel, columns.count * columns.kernel});
  const Dim width = columns.count * columns.kernel;
  Tensor whole = index_add(zeros({sizes[0], channels, rows.padded, width}, x.dtype()), 2, rows.positions(), apart);
  whole = index_add(zeros({sizes[0], channels, rows.padded, columns.padded}, x.dtype()), 3, columns.positions(), whole);
  whole = narrow(whole, 2, rows.padding, output_size[0]);
  return narrow(whole, 3, columns.padding, output_size[1]);
}

// ---- adaptive pools

/// The largest elements of `count` windows along `axis`: window i is from floor(i n / count) to ceil((i + 1) n /
/// count).
static Tensor adaptiveMax(const Tensor &x, int64_t axis, int64_t count) {
  const Dim size = x.shape()[size_t(axis)];
  Shape apart = x.shape();
  apart[size_t(axis)] = count;
  if (size.isStatic() && size.value() % count == 0) {
    apart.insert(apart.begin() + axis + 1, Dim(size.value() / count));
    return max(reshape(x, apart), {axis + 1});
  }
  const Dim longest = ceildiv(size, count) + 1;
  Tensor i = arange(count), n = sizeTensor(size), first = floor_divide(i * n, count),
         end = floor_divide((i + 1) * n + (count - 1), count);
  // Shorter windows have their last element more than once.
  Tensor at = minimum(unsqueeze(first, 1) + arange(longest), unsqueeze(end, 1) - 1);
  return max(take(x, at, axis), {axis + 1});
}

Tensor detail::adaptiveMaxPool(const char *name, size_t dimensions, const Tensor &x, const IntList &size,
                               const Location &where) {
  LocationScope scope(inScope(where));
  const size_t rank = size_t(x.rank());
  if (rank != dimensions + 2 && rank != dimensions + 1)
    throw Error(inScope(where), name,
                "x is " + str(x.spec()) + ", but must be [N, C] or [C], and " + std::to_string(dimensions) +
                    (dimensions == 1 ? " spatial dimension" : " spatial dimensions"));
  if (size.size() != 1 && size.size() != dimensions)
    throw Error(inScope(where), name,
                std::to_string(size.size()) + " sizes were given for " + std::to_string(dimensions) + " dimensions");
  Tensor result = x;
  for (size_t i = 0; i < dimensions; ++i) {
    const int64_t count = size[size.size() == 1 ? 0 : i], axis = int64_t(rank - dimensions + i);
    if (count < 1 || x.shape()[size_t(axis)] == Dim(0))
      throw Error(inScope(where), name,
                  "dimension " + std::to_string(axis) + " of " + str(x.spec()) + " cannot become one of size " +
                      std::to_string(count) + "; both must be positive");
    result = adaptiveMax(result, axis, count);
  }
  return result;
}

} // namespace burin
