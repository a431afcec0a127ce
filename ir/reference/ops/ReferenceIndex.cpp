// Ops that select elements by index, and ops that create or convert elements.
#include "ir/reference/ReferenceUtil.h"

namespace burin::ir::ref {

namespace {

/// Requires indices in range; negative ones count from the end.
bool requireInRange(RefCall &call, const RefTensor &indices, int64_t size) {
  for (int64_t i = 0; i < indices.size(); ++i)
    if (int64_t index = indices.ints()[size_t(i)]; index < -size || index >= size)
      return call.fail("index " + std::to_string(index) + " (element " + std::to_string(i) +
                       ") is out of range for a size of " + std::to_string(size));
  return true;
}

bool take(RefCall &call) {
  const RefTensor &x = call.in(), &indices = call.in(1);
  size_t axis = axisOf(call.attr<int64_t>("axis"), x.shape.size());
  AxisSplit split(x.shape, axis);
  int64_t count = indices.size();
  if (call.out().size() == 0)
    return true;
  if (split.size == 0)
    return call.fail("there is nothing to take from dimension " + std::to_string(axis) + " of " + str(x.shape));
  if (!requireInRange(call, indices, split.size))
    return false;
  withElements(call.out(), x, [&](auto &to, const auto &from) {
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < count; ++i) {
        int64_t index = fromEnd(indices.ints()[size_t(i)], split.size);
        std::copy_n(from.begin() + (o * split.size + index) * split.inner, split.inner,
                    to.begin() + (o * count + i) * split.inner);
      }
  });
  return true;
}

/// Calls f(i, base) for each element i of a tensor of shape `shape`; base is the position of the same index in a tensor
/// of shape `other`, with 0 along `axis`.
template <class F> void forEachAlong(std::span<const int64_t> shape, std::span<const int64_t> other, size_t axis, F f) {
  Sizes strides = rowMajorStrides(other), index(shape.size());
  strides[axis] = 0;
  int64_t count = product(shape), base = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(size_t(i), base);
    for (size_t d = shape.size(); d-- > 0;) {
      base += strides[d];
      if (++index[d] < shape[d])
        break;
      base -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

/// Checks that the indices of gather and scatter are within x in the other dimensions.
bool checkIndices(RefCall &call, const Sizes &x, const Sizes &indices, size_t axis) {
  bool fits = x.size() == indices.size() && axis < x.size();
  for (size_t d = 0; fits && d < x.size(); ++d)
    fits = d == axis || indices[d] <= x[d];
  return call.require(fits, "indices " + str(indices) + " do not fit x " + str(x));
}

bool gather(RefCall &call) {
  const RefTensor &x = call.in(), &indices = call.in(1);
  size_t axis = axisOf(call.attr<int64_t>("axis"), x.shape.size());
  if (indices.size() == 0)
    return true;
  if (!checkIndices(call, x.shape, indices.shape, axis))
    return false;
  int64_t size = x.shape[axis], stride = rowMajorStrides(x.shape)[axis];
  if (size == 0)
    return call.fail("there is nothing to gather from dimension " + std::to_string(axis) + " of " + str(x.shape));
  if (!requireInRange(call, indices, size))
    return false;
  withElements(call.out(), x, [&](auto &to, const auto &from) {
    forEachAlong(indices.shape, x.shape, axis, [&](size_t i, int64_t base) {
      to[i] = from[size_t(base + fromEnd(indices.ints()[i], size) * stride)];
    });
  });
  return true;
}

/// The value of an element after an update. NaN stays NaN.
template <class T> T reduced(const std::string &reduction, T old, T update) {
  if (reduction == "add")
    return wrappingSum(old, update);
  if (reduction == "mul")
    return wrappingProduct(old, update);
  if (reduction == "set" || update != update)
    return update;
  return old != old ? old : reduction == "min" ? std::min(old, update) : std::max(old, update);
}

bool scatter(RefCall &call) {
  const RefTensor &x = call.in(), &indices = call.in(1), &updates = call.in(2);
  size_t axis = axisOf(call.attr<int64_t>("axis"), x.shape.size());
  const auto &reduction = call.attr<std::string>("reduction");
  call.out().data = x.data;
  if (indices.size() == 0)
    return true;
  if (!checkIndices(call, x.shape, indices.shape, axis) ||
      !call.require(updates.shape == indices.shape, "updates and indices differ in shape"))
    return false;
  int64_t size = x.shape[axis], stride = rowMajorStrides(x.shape)[axis];
  if (!call.attr<bool>("drop") && !requireInRange(call, indices, size))
    return false;
  withElements(call.out(), updates, [&](auto &to, const auto &from) {
    forEachAlong(indices.shape, x.shape, axis, [&](size_t i, int64_t base) {
      int64_t index = fromEnd(indices.ints()[i], size);
      if (index < 0 || index >= size)
        return;
      auto &element = to[size_t(base + index * stride)];
      element = reduced(reduction, element, from[i]);
    });
  });
  return true;
}

/// Keeps the elements where keep(row, column) holds; the others stay zero.
template <class Keep> bool triangle(RefCall &call, Keep keep) {
  const Sizes &shape = call.in().shape;
  int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  withElements(call.out(), call.in(), [&](auto &to, const auto &from) {
    for (int64_t i = 0; i < int64_t(from.size()); ++i)
      if (keep(i / columns % rows, i % columns))
        to[size_t(i)] = from[size_t(i)];
  });
  return true;
}
bool tril(RefCall &call) {
  int64_t d = call.attr<int64_t>("diagonal");
  return triangle(call, [d](int64_t row, int64_t column) { return column - row <= d; });
}
bool triu(RefCall &call) {
  int64_t d = call.attr<int64_t>("diagonal");
  return triangle(call, [d](int64_t row, int64_t column) { return column - row >= d; });
}

bool iota(RefCall &call) {
  RefTensor &to = call.out();
  if (to.shape.empty())
    return true;
  AxisSplit split(to.shape, axisOf(call.attr<int64_t>("axis"), to.shape.size()));
  auto fill = [&](auto &elements) {
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<std::remove_cvref_t<decltype(elements[0])>>(int64_t(i) / split.inner % split.size);
  };
  std::visit(fill, to.data);
  return true;
}

bool full(RefCall &call) {
  RefTensor value = scalar(call.out().dtype, call.attr<double>("value"));
  withElements(call.out(), value, [](auto &to, const auto &from) { std::fill(to.begin(), to.end(), from[0]); });
  return true;
}

bool cast(RefCall &call) {
  const RefTensor &x = call.in();
  RefTensor &to = call.out();
  if (isFloat(x.dtype) == isFloat(to.dtype)) {
    to.data = x.data;
  } else if (isFloat(to.dtype)) {
    for (size_t i = 0; i < x.ints().size(); ++i) // directly to f32, which avoids double rounding
      to.reals()[i] = to.dtype == DType::f32 ? double(float(x.ints()[i])) : double(x.ints()[i]);
  } else {
    for (size_t i = 0; i < x.reals().size(); ++i)
      to.ints()[i] = saturateTo(to.dtype, x.reals()[i]);
  }
  if (to.dtype == DType::f32 && x.dtype == DType::f64)
    for (double &element : to.reals())
      element = roundTo(DType::f32, element);
  return true;
}

constexpr RefKernelEntry kIndexKernels[] = {
    {"take", take}, {"gather", gather}, {"scatter", scatter}, {"tril", tril},
    {"triu", triu}, {"iota", iota},     {"full", full},       {"cast", cast},
};

} // namespace

std::span<const RefKernelEntry> indexKernels() { return kIndexKernels; }

} // namespace burin::ir::ref
