// Creation of tensors.
#pragma once
#include "burin/tensor.h"
#include "burin/tensor/random.h"
#include <functional>

namespace burin {

/// Numbers in nested braces: tensor({{1, 2}, {3, 4}}).
class BURIN_API NestedNumbers {
public:
  template <Arithmetic T>
  NestedNumbers(T number) : type(std::is_floating_point_v<T> ? DType::f32 : dtypeOf<T>()), number(double(number)) {
    if constexpr (std::is_integral_v<T>)
      whole = int64_t(number);
  }
  NestedNumbers(std::initializer_list<NestedNumbers> parts) : areParts(true), parts(parts) {}

  bool isList() const { return areParts; }
  const std::vector<NestedNumbers> &list() const { return parts; }
  DType dtype() const { return type; }
  double real() const { return number; }
  int64_t integer() const { return whole; }

private:
  bool areParts = false;
  DType type = DType::f32;
  double number = 0;
  int64_t whole = 0;
  std::vector<NestedNumbers> parts;
};

/// Default of `dtype`: f32 if there is a float among the numbers, else i64, or bool if all are bool.
BURIN_API Tensor tensor(const NestedNumbers &values, std::optional<DType> dtype = std::nullopt,
                        Location where = Location::current());

/// from_vector(values).
template <Arithmetic T> Tensor tensor(const std::vector<T> &values, Location where = Location::current());

/// Copies the elements of a tensor of this type.
BURIN_API Tensor from_bytes(const void *data, const TensorSpec &spec, Location where = Location::current());
/// Copies the values; without a shape they become a vector.
template <Arithmetic T>
Tensor from_vector(const std::vector<T> &values, std::optional<Shape> shape = std::nullopt,
                   Location where = Location::current()) {
  Shape dims = shape ? *shape : Shape{int64_t(values.size())};
  if (elements(dims) != Dim(int64_t(values.size())))
    throw Error(where, "from_vector",
                std::to_string(values.size()) + " values do not fill the shape " + burin::str(dims));
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(values.begin(), values.end());
    return from_bytes(bytes.data(), {DType::boolean, std::move(dims)}, where);
  } else {
    return from_bytes(values.data(), {dtypeOf<T>(), std::move(dims)}, where);
  }
}
/// Uses the memory in place, row-major; it must not change while the tensor, or a value computed from it, is pending.
/// `release` is called once, in the thread that drops the last reference.
BURIN_API Tensor from_blob(void *data, const TensorSpec &spec, std::function<void()> release = nullptr,
                           Location where = Location::current());

/// The same for elements of a C++ type: from_blob(numbers.data(), {2, 3}).
template <Arithmetic T>
Tensor from_blob(T *data, const Shape &shape, std::function<void()> release = nullptr,
                 Location where = Location::current()) {
  return from_blob(data, TensorSpec{dtypeOf<T>(), shape}, std::move(release), where);
}
template <Arithmetic T> Tensor tensor(const std::vector<T> &values, Location where) {
  return from_vector(values, std::nullopt, where);
}

BURIN_API Tensor zeros(const Shape &shape, DType dtype = f32, Location where = Location::current());
BURIN_API Tensor ones(const Shape &shape, DType dtype = f32, Location where = Location::current());
namespace detail {
BURIN_API Tensor fullOf(const Shape &shape, double value, DType dtype, const Location &where);
BURIN_API Tensor fullOf(const Shape &shape, int64_t value, const Location &where);
} // namespace detail
/// All elements are `value`: f32 for a float, i64 for an integer or a size, bool for a bool; full(shape, value, dtype)
/// is in burin/ops.h. As torch.full.
template <Arithmetic T> Tensor full(const Shape &shape, T value, Location where = Location::current()) {
  if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>)
    return detail::fullOf(shape, double(value), std::is_same_v<T, bool> ? DType::boolean : DType::f32, where);
  else
    return detail::fullOf(shape, int64_t(value), where);
}
/// The same for a scalar or a size, with its element type.
BURIN_API Tensor full(const Shape &shape, const Tensor &value, Location where = Location::current());
/// Undefined contents.
BURIN_API Tensor empty(const Shape &shape, DType dtype = f32, Location where = Location::current());
/// The same on a device.
BURIN_API Tensor zeros(const Shape &shape, DType dtype, Device device, Location where = Location::current());
BURIN_API Tensor ones(const Shape &shape, DType dtype, Device device, Location where = Location::current());
BURIN_API Tensor full(const Shape &shape, double value, DType dtype, Device device,
                      Location where = Location::current());
BURIN_API Tensor empty(const Shape &shape, DType dtype, Device device, Location where = Location::current());
/// On the device of x.
/// empty(), of the shape, the element type and on the device of x. As torch.empty_like.
inline Tensor empty_like(const Tensor &x, Location where = Location::current()) {
  return empty(x.shape(where), x.dtype(where), x.device(where), where);
}
BURIN_API Tensor zeros_like(const Tensor &x, Location where = Location::current());
BURIN_API Tensor ones_like(const Tensor &x, Location where = Location::current());
BURIN_API Tensor full_like(const Tensor &x, double value, Location where = Location::current());
/// With another element type.
BURIN_API Tensor zeros_like(const Tensor &x, DType dtype, Location where = Location::current());
BURIN_API Tensor ones_like(const Tensor &x, DType dtype, Location where = Location::current());
BURIN_API Tensor full_like(const Tensor &x, double value, DType dtype, Location where = Location::current());

namespace detail {
BURIN_API Tensor arangeIntegers(int64_t start, int64_t stop, int64_t step, DType dtype, const Location &where);
BURIN_API Tensor arangeReals(double start, double stop, double step, DType dtype, const Location &where);
} // namespace detail

/// start, start + step, … below stop; i64 if all are integers, else f32.
template <Arithmetic A, Arithmetic B, Arithmetic C = int>
Tensor arange(A start, B stop, C step = 1, std::optional<DType> dtype = std::nullopt,
              Location where = Location::current()) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<C>)
    return detail::arangeIntegers(int64_t(start), int64_t(stop), int64_t(step), dtype.value_or(DType::i64), where);
  else
    return detail::arangeReals(double(start), double(stop), double(step), dtype.value_or(DType::f32), where);
}
template <Arithmetic A> Tensor arange(A stop, Location where = Location::current()) {
  return arange(A(0), stop, 1, std::nullopt, where);
}
template <Arithmetic A> Tensor arange(A stop, DType dtype, Location where = Location::current()) {
  return arange(A(0), stop, 1, dtype, where);
}
/// The same with sizes, which may be symbolic: arange(x.size(1)). i64[max(0, ceil((stop - start) / step))].
BURIN_API Tensor arange(const Dim &start, const Dim &stop, int64_t step = 1, std::optional<DType> dtype = std::nullopt,
                        Location where = Location::current());
BURIN_API Tensor arange(const Dim &stop, std::optional<DType> dtype = std::nullopt,
                        Location where = Location::current());
/// `count` evenly spaced numbers from start to stop, both included.
BURIN_API Tensor linspace(double start, double stop, const Dim &count, DType dtype = f32,
                          Location where = Location::current());
/// The same between two scalars or sizes: linspace(0, x.size(0) - 1, 5).
BURIN_API Tensor linspace(const Tensor &start, const Tensor &stop, const Dim &count, DType dtype = f32,
                          Location where = Location::current());
/// A matrix with ones on its diagonal and zeros elsewhere; `columns` = -1: as many as rows.
BURIN_API Tensor eye(const Dim &rows, const Dim &columns = -1, DType dtype = f32, Location where = Location::current());
inline Tensor eye(const Dim &rows, DType dtype, Location where = Location::current()) {
  return eye(rows, -1, dtype, where);
}

// ---- the same functions for a shape of plain integers, and for one size
#define BURIN_OF_INTEGERS(function)                                                                                    \
  template <class T>                                                                                                   \
    requires std::integral<T> || std::derived_from<T, Dim>                                                             \
  Tensor function(T size, DType dtype = f32, Location where = Location::current()) {                                   \
    return function(Shape{Dim(size)}, dtype, where);                                                                   \
  }                                                                                                                    \
  template <std::integral T>                                                                                           \
  Tensor function(const std::vector<T> &shape, DType dtype = f32, Location where = Location::current()) {              \
    return function(Shape(shape.begin(), shape.end()), dtype, where);                                                  \
  }
BURIN_OF_INTEGERS(zeros)
BURIN_OF_INTEGERS(ones)
BURIN_OF_INTEGERS(empty)
#undef BURIN_OF_INTEGERS
template <std::integral T, std::convertible_to<Tensor> V>
Tensor full(const std::vector<T> &shape, const V &value, Location where = Location::current()) {
  return full(Shape(shape.begin(), shape.end()), value, where);
}

} // namespace burin
