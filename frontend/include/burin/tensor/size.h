// Sizes of dimensions as returned by tensors.
#pragma once
#include "burin/dim.h"
#include "burin/error.h"
#include <concepts>
#include <iosfwd>

namespace burin {

/// As str() writes it: "512", "batch*4 + 1".
BURIN_API std::ostream &operator<<(std::ostream &, const Dim &);

/// The size of a tensor's dimension. In a trace it may be symbolic; then converting it to a number or branching on it
/// throws, because the result would differ between calls of the graph. Arithmetic is allowed, and so are comparisons
/// that the range of the symbol decides: x.size(0) <= 512 for Dim("n", 1, 512).
class BURIN_API Size : public Dim {
public:
  Size(Dim size, const Location &where) : Dim(std::move(size)), where(where) {}
  explicit operator int64_t() const;
  explicit operator int() const { return int(int64_t(*this)); }
  explicit operator size_t() const { return size_t(int64_t(*this)); }
  explicit operator double() const { return double(int64_t(*this)); }

private:
  // Templates, to be preferred to the operators of Dim, whose results compare by structure.
  template <class A, class B>
  static constexpr bool areSizes =
      (std::same_as<A, Size> || std::same_as<B, Size>) && std::convertible_to<A, Dim> && std::convertible_to<B, Dim>;
  static const Location &placeOf(const Size &size, const auto &) { return size.where; }
  static const Location &placeOf(const auto &, const Size &size) { return size.where; }
  static const Location &placeOf(const Size &size, const Size &) { return size.where; }
  /// Errors in the arithmetic name the location of the size() call.
  static Size compute(const Location &where, auto &&operation) try {
    return {operation(), where};
  } catch (const Error &problem) {
    throw Error(where, "", problem.what());
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend bool operator==(const A &a, const B &b) {
    return Size::isEqual(a, b, Size::placeOf(a, b));
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend bool operator<=(const A &a, const B &b) {
    return Size::isAtMost(a, b, Size::placeOf(a, b));
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend bool operator>=(const A &a, const B &b) {
    return Size::isAtMost(b, a, Size::placeOf(a, b));
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend bool operator<(const A &a, const B &b) {
    return !(a >= b);
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend bool operator>(const A &a, const B &b) {
    return !(a <= b);
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend Size operator+(const A &a, const B &b) {
    return Size::compute(Size::placeOf(a, b), [&] { return Dim(a) + Dim(b); });
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend Size operator-(const A &a, const B &b) {
    return Size::compute(Size::placeOf(a, b), [&] { return Dim(a) - Dim(b); });
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend Size operator*(const A &a, const B &b) {
    return Size::compute(Size::placeOf(a, b), [&] { return Dim(a) * Dim(b); });
  }
  /// Counting in plain integers: total += x.numel(). Throws for a symbolic size.
  template <std::integral T> friend T &operator+=(T &total, const Size &size) { return total += T(int64_t(size)); }
  template <std::integral T> friend T &operator-=(T &total, const Size &size) { return total -= T(int64_t(size)); }
  template <std::integral T> friend T &operator*=(T &total, const Size &size) { return total *= T(int64_t(size)); }
  /// Floor division.
  template <class A, class B>
    requires areSizes<A, B>
  friend Size operator/(const A &a, const B &b) {
    return Size::compute(Size::placeOf(a, b), [&] { return floordiv(Dim(a), Dim(b)); });
  }
  template <class A, class B>
    requires areSizes<A, B>
  friend Size operator%(const A &a, const B &b) {
    return Size::compute(Size::placeOf(a, b), [&] { return mod(Dim(a), Dim(b)); });
  }

  // They throw if the result depends on the value of a symbol.
  static bool isEqual(const Dim &, const Dim &, const Location &where);
  static bool isAtMost(const Dim &, const Dim &, const Location &where);

  Location where;
};

} // namespace burin
