// Static or symbolic sizes of dimensions, and types of tensors.
#pragma once
#include "burin/api.h"
#include "burin/dtype.h"
#include "burin/error.h"
#include <climits>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace burin {

/// The size of a dimension: a number, or an integer expression over named symbols such as `Dim("batch")`.
/// Expressions are kept in a normal form (a polynomial), so equal ones compare equal: `b + b == b * 2`. In a traced
/// function, a comparison whose result depends on the values of the symbols throws Error.
/// A symbol stands for any size >= 0, or in its range, and is never assumed to be 1: it does not broadcast.
/// Arithmetic that does not fit 64 bits, and a division by the number 0, throw Error.
class BURIN_API Dim {
public:
  Dim() = default;
  Dim(std::integral auto size) : number(static_cast<int64_t>(size)) {}
  /// A symbol; the name is an identifier ([A-Za-z_][A-Za-z0-9_]*). Throws Error otherwise.
  explicit Dim(std::string_view name, Location where = Location::current());
  explicit Dim(const char *name, Location where = Location::current()) : Dim(std::string_view(name), where) {}
  /// A symbol for sizes from `min` to `max`, both included; INT64_MAX: no limit. Runs with other sizes are rejected,
  /// with the line of this call. Bounds follow from the range: with Dim("n", 8, 64) the slice x[0:8] has 8 rows.
  /// Symbols of one name and different ranges are different, and cannot be in one graph. Throws Error unless 0 <= min
  /// <= max.
  Dim(std::string_view name, int64_t min, int64_t max, Location where = Location::current());

  bool isStatic() const { return !expression; }
  /// The number; throws Error for a symbolic size.
  int64_t value(Location where = Location::current()) const;
  /// As written in types and messages: "512", "batch", "batch*4 + 1", "floordiv(h + 1, 2) - 1", "seq{1..512}",
  /// "n{8..}". parse() reads it back.
  std::string str() const;
  static std::optional<Dim> parse(std::string_view text);

  friend BURIN_API Dim operator+(const Dim &, const Dim &);
  friend BURIN_API Dim operator-(const Dim &, const Dim &);
  friend BURIN_API Dim operator*(const Dim &, const Dim &);
  friend BURIN_API Dim
  floordiv(const Dim &,
           const Dim &); // simplified where exact: floordiv(b*4, 2) == b*2; and nested ones are joined
  friend BURIN_API Dim ceildiv(const Dim &, const Dim &);
  friend BURIN_API Dim mod(const Dim &, const Dim &);
  friend BURIN_API Dim min(const Dim &, const Dim &);
  friend BURIN_API Dim max(const Dim &, const Dim &);
  /// Whether both are the same expression, so that they are equal for all values of the symbols. Never throws.
  friend BURIN_API bool isIdentical(const Dim &, const Dim &);

  /// The value for given values of the symbols; nullopt if a symbol is missing or a divisor is 0.
  std::optional<int64_t> evaluate(const std::function<std::optional<int64_t>(std::string_view)> &symbol) const;
  /// A named size with its range.
  struct Symbol {
    std::string name;
    int64_t min = 0, max = INT64_MAX; // both allowed
    Location where = {};              // of its constructor; unknown if it was parsed
  };
  /// The symbols, sorted by name, each once.
  std::vector<Symbol> symbols() const;
  /// The symbol if the size is a plain symbol; nullopt otherwise.
  std::optional<Symbol> symbol() const;
  /// symbol * scale + offset with scale > 0: a size that determines the value of the symbol.
  struct Linear {
    Symbol symbol;
    int64_t scale = 1, offset = 0;
  };
  std::optional<Linear> linear() const;
  /// The expression with symbols replaced.
  Dim substitute(const std::function<Dim(std::string_view)> &replacement) const;

  /// One step of a postfix program, see toPostfix().
  struct Postfix {
    enum class Op : uint8_t { Const, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max } op;
    int64_t value = 0;
    std::string symbol;
  };
  std::vector<Postfix> toPostfix() const;

  struct Expression; // opaque
private:
  int64_t number = 0;
  std::shared_ptr<const Expression> expression; // null for a number
};

namespace detail {
/// What == of user code does, see Dim. Outside of traced functions as isIdentical.
BURIN_API bool areEqual(const Dim &, const Dim &);
} // namespace detail

#ifdef BURIN_IN_LIBRARY // the library itself compares expressions
inline namespace internal {
inline bool operator==(const Dim &a, const Dim &b) { return isIdentical(a, b); }
} // namespace internal
#else
inline bool operator==(const Dim &a, const Dim &b) { return detail::areEqual(a, b); }
#endif

using Shape = std::vector<Dim>;

/// Element type and shape of a tensor.
struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorSpec &, const TensorSpec &) = default;
};

/// The largest known lower bound of `d`, by the ranges of its symbols: 1 for batch*2 + 1. nullopt if none is known.
/// `positive` is another size known to be >= 0.
BURIN_API std::optional<int64_t> lowerBound(const Dim &d, const Dim &positive = 0);

/// The smallest known upper bound of `d`; nullopt if none is known.
BURIN_API std::optional<int64_t> upperBound(const Dim &d);

/// Whether every value of `d` is known to be a multiple of `factor` > 0.
BURIN_API bool isMultipleOf(const Dim &d, int64_t factor);

/// Whether a <= b is known to hold, with `positive` as above.
BURIN_API bool isAtMost(const Dim &a, const Dim &b, const Dim &positive = 0);

/// "f32[batch, 512]"
BURIN_API std::string str(const TensorSpec &);
/// "[batch, 512]"
BURIN_API std::string str(const Shape &);
/// Whether two sizes may be equal for some values of the symbols; false only if that is known to be impossible.
BURIN_API bool mayEqual(const Dim &, const Dim &);
/// Number of elements.
BURIN_API Dim elements(const Shape &);

} // namespace burin
