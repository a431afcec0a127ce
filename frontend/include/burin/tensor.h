// Tensor, the value type of the API.
#pragma once
#include "burin/error.h"
#include "burin/tensor/device.h"
#include "burin/tensor/size.h"
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

namespace burin {

class Tensor;
class Indices;
struct NoneType;
struct SortResult;
namespace detail {
struct TensorState;
struct Access; // access to the state for the library
class Operand;
struct FirstIndex;
} // namespace detail

template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

/// The element type that holds a C++ type.
template <Arithmetic T> constexpr DType dtypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::f32 : DType::f64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DType::i8 : DType::u8;
  else {
    static_assert(std::is_signed_v<T>, "there are no unsigned tensors wider than u8");
    return sizeof(T) == 2 ? DType::i16 : sizeof(T) == 4 ? DType::i32 : DType::i64;
  }
}

/// Integers; one integer stands for a list of one.
struct IntList : std::vector<int64_t> {
  IntList() = default;
  IntList(std::integral auto one) : vector{int64_t(one)} {}
  IntList(std::initializer_list<int64_t> list) : vector(list) {}
  IntList(std::vector<int64_t> list) : vector(std::move(list)) {}
};
/// Dimensions of an op; negative ones count from the end.
using Axes = IntList;

/// Whether a shape has exactly these static sizes.
BURIN_API bool operator==(const Shape &shape, const std::vector<int64_t> &sizes);
/// As str() writes it: "[batch, 512]".
BURIN_API std::ostream &operator<<(std::ostream &, const Shape &);

/// Options of Tensor::backward and grad.
struct BackwardOptions {
  /// Keep the values saved on the tape, for another pass over the same calls. As in PyTorch; `create_graph` implies it.
  bool retain_graph = false;
  /// Record the computation of the gradients, so that they can be differentiated again.
  bool create_graph = false;
};

/// A cheap handle to an immutable value: an array, computed or pending, or a value of a graph being traced. Copies
/// share the value. A default-constructed Tensor is undefined, for optional arguments.
///
/// Ops return at once. Errors of types and shapes throw Error in the call; errors while the op runs are thrown where
/// the value is read (item, to_vector, data, printing, wait), with the line of the op.
class BURIN_API Tensor {
public:
  Tensor() = default;
  Tensor(const Tensor &) = default;
  Tensor(Tensor &&) = default;
  Tensor &operator=(const Tensor &) & = default;
  Tensor &operator=(Tensor &&) & = default;
  void operator=(const Tensor &) && = delete; // assigns to a temporary: instead of x[i] = y write x.set(i, y)
  /// A scalar from a C++ number. It takes the element type of the other operands, unless its class (bool < integers <
  /// floats) is higher; alone it is bool, i64 or f32.
  template <Arithmetic T> Tensor(T value) : Tensor(fromScalar(value)) {}
  /// The size of a dimension as a number: `x.sum() / x.size(0)`. Behaves like a C++ integer. A symbolic size throws
  /// outside of a trace.
  template <std::derived_from<Dim> T>
  Tensor(const T &size, Location where = Location::current()) : Tensor(fromSize(size, where)) {}

  bool defined() const { return state != nullptr; }
  DType dtype(Location where = Location::current()) const;
  const Shape &shape(Location where = Location::current()) const;
  TensorSpec spec(Location where = Location::current()) const;
  int64_t rank(Location where = Location::current()) const;
  Size size(int64_t axis, Location where = Location::current()) const;
  /// Number of elements.
  Size numel(Location where = Location::current()) const;
  /// The device of the elements. In a traced function: the device that it runs on, as far as that is known.
  Device device(Location where = Location::current()) const;
  /// True in a trace, where values cannot be read.
  bool isTraced() const;

  // ---- reading: waits for the value
  /// The only element, converted.
  template <Arithmetic T = double> T item(Location where = Location::current()) const {
    T value;
    read(&value, dtypeOf<T>(), 1, where);
    return value;
  }
  /// All elements in row-major order, converted.
  template <Arithmetic T> std::vector<T> to_vector(Location where = Location::current()) const {
    std::vector<T> values(elementsToRead(where));
    if constexpr (std::is_same_v<T, bool>) {
      auto bytes = to_vector<uint8_t>(where);
      values.assign(bytes.begin(), bytes.end());
    } else {
      read(values.data(), dtypeOf<T>(), values.size(), where);
    }
    return values;
  }
  /// The elements in place, row-major; T must match dtype(). Valid while the tensor lives.
  template <Arithmetic T> std::span<const T> data(Location where = Location::current()) const {
    return {static_cast<const T *>(elementsOf(dtypeOf<T>(), where)), elementsToRead(where)};
  }
  /// The same as bytes, for any element type.
  std::span<const std::byte> bytes(Location where = Location::current()) const;
  /// Waits for the value; throws if computing it has failed. Does nothing in a trace.
  const Tensor &wait(Location where = Location::current()) const;
  /// Text in the style of NumPy.
  std::string str(Location where = Location::current()) const;
  friend BURIN_API std::ostream &operator<<(std::ostream &, const Tensor &);

  // ---- indexing: x[3], x[{Slice(1, None, 2), Ellipsis, -1}]
  Tensor operator[](const Indices &indices) const;
  /// The same with one argument per dimension: x(Slice(0, 1), -1) is x[{Slice(0, 1), -1}].
  template <class... Rest> Tensor operator()(const detail::FirstIndex &first, const Rest &...rest) const;
  /// Replaces the elements at [indices] by `value` and stores the result in this handle; copies of the handle keep the
  /// old elements. `value` broadcasts to the shape of x[indices] and is converted to the element type of x, which must
  /// not be of a lower class (bool < integers < floats). If a tensor of indices selects an element more than once, the
  /// last value in row-major order wins. Returns the handle. As torch.Tensor.index_put_ or x[i] = y.
  Tensor &set(const Indices &indices, const detail::Operand &value) &;
  Tensor &set(const Indices &,
              const detail::Operand &) && = delete; // of a temporary: x.set({i, j}, y), not x[i].set(j, y)

  /// x[indices], as torch::Tensor::index in C++.
  Tensor index(const Indices &indices) const;
  /// This tensor with the elements at [indices] replaced by `value`, or with `accumulate`, increased by it, also where
  /// an index occurs more than once. As torch.index_put; the handle keeps its value, see set().
  Tensor index_put(const Indices &indices, const detail::Operand &value, bool accumulate = false) const;

#include "burin/tensor_methods.h"

#include "burin/tensor/methods/composed.h"

  // ---- properties under PyTorch's names
  int64_t ndimension(Location where = Location::current()) const { return rank(where); }
  bool is_floating_point(Location where = Location::current()) const { return isFloat(dtype(where)); }
  /// Bytes of an element, and of all elements.
  int64_t element_size(Location where = Location::current()) const { return int64_t(byteWidth(dtype(where))); }
  Size nbytes(Location where = Location::current()) const { return numel(where) * element_size(where); }
  /// Always: tensors are dense and row-major.
  bool is_contiguous() const { return true; }
  /// t() as matrices, and with all dimensions reversed. As torch.Tensor.mT, T.
  Tensor mT(Location where = Location::current()) const { return t(where); }
  Tensor T(Location where = Location::current()) const;
  /// The first of data(); the elements must not be changed.
  template <Arithmetic U> const U *data_ptr(Location where = Location::current()) const {
    return data<U>(where).data();
  }

  // ---- methods that differ from the op of the same name
  Tensor to(DType dtype, Location where = Location::current()) const;
  /// The same elements on a device: copied, without waiting, unless they are there. Gradients flow back. In a traced
  /// function: the same tensor if the function runs on the device; otherwise throws. As torch.Tensor.to.
  Tensor to(Device device, Location where = Location::current()) const;
  /// Merges the dimensions start to end, both included.
  Tensor flatten(int64_t start = 0, int64_t end = -1, Location where = Location::current()) const;
  /// Swaps the last two dimensions; vectors and numbers stay as they are, as in torch.Tensor.t.
  Tensor t(Location where = Location::current()) const;
  Tensor sum(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor prod(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor mean(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor max(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor min(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor var(Axes axes = {}, bool keepdims = false, int64_t correction = 1, Location where = Location::current()) const;
  Tensor any(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;
  Tensor all(Axes axes = {}, bool keepdims = false, Location where = Location::current()) const;

  // ---- gradients (see burin/training/gradients.h)
  /// Whether gradients flow into this tensor: it is a leaf, or was computed from one by an eager call.
  bool requires_grad() const;
  /// Makes this handle a leaf, a float whose gradient backward() accumulates, or a constant; earlier copies do not
  /// change. As torch.Tensor.requires_grad_.
  Tensor &requires_grad_(bool on = true, Location where = Location::current());
  /// Whether the tensor is not the result of a recorded call.
  bool is_leaf() const;
  /// The gradient of a leaf from backward(); undefined before, and of tensors that require no gradient. As
  /// torch.Tensor.grad.
  Tensor grad(Location where = Location::current()) const;
  /// Replaces the gradient; an undefined tensor removes it.
  void set_grad(const Tensor &gradient, Location where = Location::current()) const;
  /// Adds the gradients of this tensor, of one element unless `gradient` is given, to those of all leaves that it
  /// depends on. Frees the values saved on the tape. As torch.Tensor.backward.
  ///
  /// In a traced function the leaves are the parameters that it has read. Their gradients belong to the trace: they are
  /// undefined at its start, and removed when the function returns.
  void backward(const std::optional<Tensor> &gradient = std::nullopt, const BackwardOptions &options = {},
                Location where = Location::current()) const;
  /// The same value as a constant. As torch.Tensor.detach.
  Tensor detach(Location where = Location::current()) const;
  /// Calls `hook` with the gradient of this tensor when backward() has computed it; the hook's result, unless
  /// undefined, replaces the gradient. As torch.Tensor.register_hook.
  void register_hook(std::function<Tensor(const Tensor &gradient)> hook, Location where = Location::current()) const;

#include "burin/tensor/methods/in_place.h"

  // ---- in-place operators: as the in-place methods
  Tensor &operator+=(const detail::Operand &) &;
  Tensor &operator-=(const detail::Operand &) &;
  Tensor &operator*=(const detail::Operand &) &;
  Tensor &operator/=(const detail::Operand &) &;
  Tensor &operator%=(const detail::Operand &) &;
  Tensor &operator&=(const detail::Operand &) &;
  Tensor &operator|=(const detail::Operand &) &;
  Tensor &operator^=(const detail::Operand &) &;
  Tensor &operator<<=(const detail::Operand &) &;
  Tensor &operator>>=(const detail::Operand &) &;
  // Deleted for temporaries, whose new value would be lost: instead of x[i] += y write x.set(i, x[i] + y).
  void operator+=(const detail::Operand &) && = delete;  // write x.set(i, x[i] + y)
  void operator-=(const detail::Operand &) && = delete;  // write x.set(i, x[i] - y)
  void operator*=(const detail::Operand &) && = delete;  // write x.set(i, x[i] * y)
  void operator/=(const detail::Operand &) && = delete;  // write x.set(i, x[i] / y)
  void operator%=(const detail::Operand &) && = delete;  // write x.set(i, x[i] % y)
  void operator&=(const detail::Operand &) && = delete;  // write x.set(i, x[i] & y)
  void operator|=(const detail::Operand &) && = delete;  // write x.set(i, x[i] | y)
  void operator^=(const detail::Operand &) && = delete;  // write x.set(i, x[i] ^ y)
  void operator<<=(const detail::Operand &) && = delete; // write x.set(i, x[i] << y)
  void operator>>=(const detail::Operand &) && = delete; // write x.set(i, x[i] >> y)

private:
  friend struct detail::Access;
  explicit Tensor(std::shared_ptr<detail::TensorState> state) : state(std::move(state)) {}
  template <Arithmetic T> static Tensor fromScalar(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return scalarBool(value);
    else if constexpr (std::is_integral_v<T>)
      return scalarInt(int64_t(value));
    else
      return scalarFloat(double(value));
  }
  static Tensor scalarBool(bool), scalarInt(int64_t), scalarFloat(double);
  /// Assigns the result of an in-place operator or method, `op`, converted to the element type; throws if it does not
  /// fit.
  Tensor &assign(const char *op, const Tensor &result, const Location &where);
  static Tensor fromSize(const Dim &size, const Location &where);
  Tensor swapped(int64_t axis1, int64_t axis2, const Location &where) const;
  Tensor sliced(int64_t axis, const Dim &from, const std::optional<Dim> &to, int64_t step, const Location &where) const;
  Tensor scattered(int64_t axis, const Tensor &indices, const Tensor &value, const Location &where) const;
  std::vector<Tensor> splitEvery(int64_t size, int64_t axis, const Location &where) const;
  size_t elementsToRead(const Location &where) const;
  void read(void *to, DType as, size_t count, const Location &where) const;
  const void *elementsOf(DType dtype, const Location &where) const;

  std::shared_ptr<detail::TensorState> state;
};

namespace detail {
/// An operand of an operator, whose constructor records the caller's line.
class Operand {
public:
  Operand(const Tensor &tensor, Location where = Location::current()) : tensor(tensor), where(where) {}
  template <Arithmetic T> Operand(T value, Location where = Location::current()) : tensor(value), where(where) {}
  template <std::derived_from<Dim> T>
  Operand(const T &size, Location where = Location::current()) : tensor(size, where), where(where) {}
  /// From a Parameter, or another type that converts to a tensor.
  template <class T>
    requires(!std::same_as<T, Tensor> && !Arithmetic<T> && !std::derived_from<T, Dim> &&
             std::convertible_to<const T &, const Tensor &>)
  Operand(const T &value, Location where = Location::current())
      : tensor(static_cast<const Tensor &>(value)), where(where) {}
  Tensor tensor;
  Location where;
};
} // namespace detail

BURIN_API Tensor operator+(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator-(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator*(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator/(const detail::Operand &, const detail::Operand &);
/// Python's %: has the sign of the divisor.
BURIN_API Tensor operator%(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator==(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator!=(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator<(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator<=(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator>(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator>=(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator&(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator|(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator^(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator<<(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator>>(const detail::Operand &, const detail::Operand &);
BURIN_API Tensor operator-(const detail::Operand &);
BURIN_API Tensor operator!(const detail::Operand &);
BURIN_API Tensor operator~(const detail::Operand &);

/// "f32"
BURIN_API std::ostream &operator<<(std::ostream &, DType);
/// The element type of results with operands of both types. As torch.promote_types.
BURIN_API DType promote_types(DType a, DType b);
/// The same for these operands, of which C++ numbers count by their class only. As torch.result_type.
BURIN_API DType result_type(const Tensor &x, const Tensor &y, Location where = Location::current());

/// Waits for all enqueued work; throws the first error not yet thrown, with the line that enqueued the op.
BURIN_API void synchronize(Location where = Location::current());

} // namespace burin
