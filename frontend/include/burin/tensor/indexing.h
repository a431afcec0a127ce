// Indexing of tensors: x[3], x[{Slice(1, None, 2), Ellipsis, NewAxis, -1}], x[rows].
#pragma once
#include "burin/tensor.h"
#include <variant>

namespace burin {

struct NoneType {};
struct EllipsisType {};
/// An omitted bound of a Slice.
inline constexpr NoneType None;
/// All dimensions that other indices do not use.
inline constexpr EllipsisType Ellipsis;
/// A new dimension of size 1.
inline constexpr NoneType NewAxis;

/// start:stop:step as in Python: negative bounds count from the end, bounds are clamped to the size, and a negative
/// step runs backwards.
struct Slice {
  /// An integer, a symbolic size, or None for the end of the dimension.
  struct Bound : std::optional<Dim> {
    Bound(NoneType = {}) {}
    Bound(std::integral auto value) : optional(Dim(int64_t(value))) {}
    Bound(Dim value) : optional(std::move(value)) {}
  };
  Bound start, stop;
  int64_t step = 1;

  Slice() = default;
  /// The first `stop` elements.
  explicit Slice(Bound stop) : stop(std::move(stop)) {}
  Slice(Bound start, Bound stop, int64_t step = 1) : start(std::move(start)), stop(std::move(stop)), step(step) {}
};

/// An index of one dimension: an integer, a Slice, Ellipsis, NewAxis, or a tensor of integers, whose shape replaces the
/// dimension. Several such tensors are broadcast and read together, as in PyTorch: x[{rows, columns}] has one element
/// per pair, where the indexed dimensions were if they are adjacent, otherwise in front. A tensor of bool covers as
/// many dimensions as it has and chooses the elements where it is true; their number is a size that depends on data.
struct Index : std::variant<int64_t, Slice, EllipsisType, NoneType, Tensor> {
  Index(std::integral auto value) : variant(int64_t(value)) {}
  Index(Slice value) : variant(std::move(value)) {}
  Index(EllipsisType value) : variant(value) {}
  Index(NoneType value) : variant(value) {}
  Index(Tensor value) : variant(std::move(value)) {}
  /// A size: x[{x.size(0) - 1}].
  template <std::derived_from<Dim> T>
  Index(const T &value, Location where = Location::current()) : variant(ofSize(value, where)) {}

private:
  static variant ofSize(const Dim &size, const Location &where) {
    return size.isStatic() ? variant(size.value()) : variant(Tensor(size, where));
  }
};

namespace detail {
/// An index whose ops have the place `where`.
template <std::convertible_to<Index> T> Index indexAt(T &&value, const Location &where) {
  if constexpr (std::derived_from<std::remove_cvref_t<T>, Dim>)
    return Index(value, where);
  else
    return std::forward<T>(value);
}
} // namespace detail

/// The arguments of `x(…)`: one index or slice per dimension.
class Indices {
public:
  Indices(std::initializer_list<Index> list, Location where = Location::current()) : list(list), where(where) {}
  template <std::convertible_to<Index> T>
  Indices(T &&one, Location where = Location::current())
      : list{detail::indexAt(std::forward<T>(one), where)}, where(where) {}

  std::vector<Index> list;
  Location where;
};

namespace detail {
/// The first of several indices, with the caller's line.
struct FirstIndex {
  template <std::convertible_to<Index> T>
  FirstIndex(T &&value, Location where = Location::current())
      : value(indexAt(std::forward<T>(value), where)), where(where) {}
  Index value;
  Location where;
};
} // namespace detail

template <class... Rest> Tensor Tensor::operator()(const detail::FirstIndex &first, const Rest &...rest) const {
  static_assert((std::is_convertible_v<const Rest &, Index> && ...),
                "an index is an integer, a size, a Slice, Ellipsis, NewAxis or a tensor of integers");
  return (*this)[Indices({first.value, detail::indexAt(rest, first.where)...}, first.where)];
}

} // namespace burin
