// Ops that compute with sizes.
#include "frontend/onnx/import/contents/Contents.h"
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace burin::onnx {

namespace {

using MaybeNumber = std::optional<Number>;

bool isNatural(const Dim &d) { return lowerBound(d).value_or(-1) >= 0; }
bool isPositive(const Dim &d) { return lowerBound(d).value_or(-1) >= 1; }

/// A quotient in lowest terms, as far as one side divides the other.
Number reduced(const Dim &dividend, const Dim &divisor) {
  if (divisor.isStatic() && divisor.value() == 0)
    throw Error("a size is divided by 0");
  if (divisor.isStatic() && divisor.value() < 0)
    return reduced(Dim(0) - dividend, Dim(0) - divisor);
  if (Dim quotient = floordiv(dividend, divisor); quotient * divisor == dividend)
    return {quotient, 1};
  if (dividend.isStatic() && divisor.isStatic()) {
    int64_t common = std::gcd(dividend.value(), divisor.value());
    return {dividend.value() / common, divisor.value() / common};
  }
  return {dividend, divisor};
}

} // namespace

Number sum(const Number &x, const Number &y) {
  if (x.divisor == y.divisor)
    return reduced(x.dividend + y.dividend, x.divisor);
  return reduced(x.dividend * y.divisor + y.dividend * x.divisor, x.divisor * y.divisor);
}
Number negative(const Number &x) { return {Dim(0) - x.dividend, x.divisor}; }

namespace {

Number product(const Number &x, const Number &y) { return reduced(x.dividend * y.dividend, x.divisor * y.divisor); }

/// Floor and ceiling. A divisor that is a size is assumed not to be 0.
Dim roundedDown(const Number &x) { return floordiv(x.dividend, x.divisor); }
Dim roundedUp(const Number &x) { return ceildiv(x.dividend, x.divisor); }

/// Rounds to 0, as integer division.
std::optional<Dim> truncated(const Number &x) {
  const Dim negated = Dim(0) - x.dividend;
  if (isNatural(x.divisor) && !x.isStatic() && isNatural(negated)) // as in -(-n / 2)
    return Dim(0) - floordiv(negated, x.divisor);
  if (x.isStatic())
    return Dim(x.dividend.value() / x.divisor.value());
  std::optional<int64_t> least = lowerBound(x.dividend);
  if (x.isWhole())
    return x.dividend;
  if (!isNatural(x.divisor))
    return std::nullopt;
  if (!least) // of either sign
    return floordiv(max(x.dividend, 0), x.divisor) - floordiv(max(negated, 0), x.divisor);
  if (*least < 0) // (height - 1) / 8 rounds up only for height 0: such sizes are rejected
    requireEqual(max(x.dividend, 0), x.dividend);
  return roundedDown(x);
}

MaybeNumber quotient(const Number &x, const Number &y, bool isFloat) {
  if (isFloat) {
    if (!y.dividend.isStatic() && !isNatural(y.dividend))
      return std::nullopt;
    return reduced(x.dividend * y.divisor, x.divisor * y.dividend);
  }
  if (y.dividend == Dim(0))
    return std::nullopt;
  if (x.isStatic() && y.isStatic())
    return y.dividend == Dim(-1) ? std::nullopt : MaybeNumber(Number{x.dividend.value() / y.dividend.value()});
  std::optional<Dim> whole = truncated({x.dividend, y.dividend});
  return whole ? MaybeNumber(Number{*whole}) : std::nullopt;
}

/// The largest number that divides every term of a size.
int64_t commonFactor(const Dim &d) {
  int64_t factor = 0;
  for (auto &[term, coefficient] : Dim::Expression::of(d))
    factor = coefficient == INT64_MIN ? 1 : std::gcd(factor, coefficient);
  return factor;
}

/// Not negative, as of a division that rounds down. A divisor that is 0 for some sizes, as of an image without windows,
/// is refused by the runs that have it.
MaybeNumber remainderOf(const Number &x, const Number &y) {
  if (!x.isWhole() || !y.isWhole() || !isNatural(y.dividend) || y.dividend == Dim(0))
    return std::nullopt;
  if (!isPositive(y.dividend))
    requireEqual(max(y.dividend, 1), y.dividend);
  Dim least = commonFactor(y.dividend); // which the divisor is a multiple of
  if (isNatural(x.dividend) && isPositive(least - x.dividend))
    return x;
  if (isPositive(Dim(0) - x.dividend) && isNatural(x.dividend + least))
    return Number{x.dividend + y.dividend};
  return Number{mod(x.dividend, y.dividend)};
}

/// The sign of x - y as -1, 0 or 1; nullopt if it depends on a symbol.
std::optional<int> compare(const Number &x, const Number &y) {
  Dim left = x.dividend * y.divisor, right = y.dividend * x.divisor;
  if (left == right)
    return 0;
  if (left.isStatic() && right.isStatic())
    return left.value() < right.value() ? -1 : 1;
  if (isPositive(left - right))
    return 1;
  return isPositive(right - left) ? std::optional(-1) : std::nullopt;
}

MaybeNumber extremum(const Number &x, const Number &y, bool isLargest) {
  if (x.isWhole() && y.isWhole())
    return Number{isLargest ? max(x.dividend, y.dividend) : min(x.dividend, y.dividend)};
  std::optional<int> order = compare(x, y);
  return order ? MaybeNumber((*order > 0) == isLargest ? x : y) : std::nullopt;
}

/// Applies `combine`, which returns nullopt if it cannot decide, to all pairs of elements.
template <class F> std::optional<Numbers> combined(const Numbers &x, const Numbers &y, DType dtype, F &&combine) {
  auto shape = commonShape(x.shape, y.shape);
  if (!shape)
    return std::nullopt;
  Numbers result{dtype, *shape, {}};
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i) {
    MaybeNumber element =
        combine(x.elements[sourceIndex(i, *shape, x.shape)], y.elements[sourceIndex(i, *shape, y.shape)]);
    if (!element)
      return std::nullopt;
    result.elements.push_back(*std::move(element));
  }
  return result;
}

/// Folds all inputs from left to right.
template <class F> KnownValue folded(Node &n, DType dtype, F &&combine) {
  std::optional<Numbers> result = numbersOf(n, 0);
  for (size_t i = 1; result && i < n.inputCount(); ++i) {
    std::optional<Numbers> next = numbersOf(n, i);
    result = next ? combined(*result, *next, dtype, combine) : std::nullopt;
  }
  return result ? valueOf(*std::move(result)) : std::nullopt;
}

template <class F> KnownValue mapped(Node &n, F &&map) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  for (Number &element : x->elements) {
    MaybeNumber result = map(element);
    if (!result)
      return std::nullopt;
    element = *std::move(result);
  }
  return valueOf(*std::move(x));
}

// ---- the ops

KnownValue arithmetic(Node &n) {
  DType dtype = n.dtype();
  std::string_view op = n.op();
  if ((!isCounted(dtype) && !isFloat(dtype)) || isBool(dtype) || n.opset() < 7)
    return std::nullopt;
  bool hasSignOfDividend = op == "Mod" && n.attribute("fmod", int64_t(0));
  return folded(n, dtype, [&](const Number &x, const Number &y) -> MaybeNumber {
    return op == "Add" || op == "Sum" ? sum(x, y)
           : op == "Sub"              ? sum(x, negative(y))
           : op == "Mul"              ? product(x, y)
           : op == "Div"              ? quotient(x, y, isFloat(dtype))
           : op == "Mod"              ? hasSignOfDividend && !isNatural(x.dividend) ? std::nullopt : remainderOf(x, y)
                                      : extremum(x, y, op == "Max");
  });
}

KnownValue power(Node &n) {
  DType dtype = n.dtype();
  return folded(n, dtype, [&](const Number &x, const Number &y) -> MaybeNumber {
    if (!y.isStatic() || !y.isWhole() || y.dividend.value() < 0 || y.dividend.value() > 4)
      return std::nullopt;
    Number result{1};
    for (int64_t i = 0; i < y.dividend.value(); ++i)
      result = product(result, x);
    return result;
  });
}

/// An expression that is 1 if x is greater than y, else 0.
Dim isGreater(const Number &x, const Number &y) {
  return min(max(x.dividend * y.divisor - y.dividend * x.divisor, 0), 1);
}

Number compared(std::string_view op, const Number &x, const Number &y) {
  if (op == "Equal")
    return {Dim(1) - isGreater(x, y) - isGreater(y, x)};
  bool isReverse = op == "Less" || op == "GreaterOrEqual";
  Dim greater = isReverse ? isGreater(y, x) : isGreater(x, y);
  return {op == "Less" || op == "Greater" ? greater : Dim(1) - greater};
}

KnownValue comparison(Node &n) {
  std::string_view op = n.op();
  std::optional<Numbers> result = numbersOf(n, 0), other = numbersOf(n, 1);
  if (!result || !other)
    return std::nullopt;
  constexpr size_t kMostConditions = 16; // shapes have few dimensions; more elements are a mask of data
  bool isShort = std::max(result->elements.size(), other->elements.size()) <= kMostConditions;
  return folded(n, DType::boolean, [&](const Number &x, const Number &y) -> MaybeNumber {
    std::optional<int> order = compare(x, y);
    if (!order)
      return isShort ? MaybeNumber(compared(op, x, y)) : std::nullopt;
    return Number{op == "Equal"         ? *order == 0
                  : op == "Less"        ? *order < 0
                  : op == "Greater"     ? *order > 0
                  : op == "LessOrEqual" ? *order <= 0
                                        : *order >= 0};
  });
}

KnownValue logic(Node &n) {
  std::string_view op = n.op();
  return folded(n, DType::boolean, [op](const Number &x, const Number &y) -> MaybeNumber {
    const Dim &a = x.dividend, &b = y.dividend; // 1 or 0
    return Number{op == "And" ? a * b : op == "Or" ? a + b - a * b : a + b - Dim(2) * a * b};
  });
}

KnownValue sign(Node &n) {
  std::string_view op = n.op();
  return mapped(n, [op](const Number &x) -> MaybeNumber {
    if (op == "Not")
      return Number{Dim(1) - x.dividend};
    if (op == "Neg")
      return negative(x);
    if (op == "Sign")
      return isNatural(x.divisor) ? MaybeNumber(Number{min(max(x.dividend, -1), 1)}) : std::nullopt;
    bool isBelow = lowerBound(Dim(0) - x.dividend).value_or(-1) >= 0;
    if (!isBelow && !isNatural(x.dividend))
      return isNatural(x.divisor) ? MaybeNumber(reduced(max(x.dividend, Dim(0) - x.dividend), x.divisor))
                                  : std::nullopt;
    return isBelow ? negative(x) : x; // Abs
  });
}

KnownValue rounding(Node &n) {
  std::string_view op = n.op();
  return mapped(n, [op](const Number &x) -> MaybeNumber {
    if (x.isWhole())
      return x;
    if (op != "Round")
      return Number{op == "Floor" ? roundedDown(x) : roundedUp(x)};
    if (!x.isStatic()) {
      if (!isPositive(x.divisor))
        return std::nullopt;
      const Dim twice = x.divisor * 2, half = x.dividend * 2 + x.divisor, up = floordiv(half, twice);
      const Dim isTie = Dim(1) - min(mod(half, twice), 1); // ties round to even
      return Number{up - isTie * mod(up, 2)};
    }
    return Number{int64_t(std::nearbyint(double(x.dividend.value()) / double(x.divisor.value())))};
  });
}

KnownValue root(Node &n) {
  return mapped(n, [](const Number &x) -> MaybeNumber {
    auto rootOf = [](const Dim &d) -> std::optional<Dim> {
      int64_t whole = d.isStatic() && d.value() >= 0 ? int64_t(std::llround(std::sqrt(double(d.value())))) : -1;
      return whole >= 0 && whole * whole == d.value() ? std::optional(Dim(whole)) : std::nullopt;
    };
    std::optional<Dim> above = rootOf(x.dividend), below = rootOf(x.divisor);
    return above && below ? MaybeNumber(Number{*above, *below}) : std::nullopt;
  });
}

KnownValue reciprocal(Node &n) {
  return mapped(n, [](const Number &x) { return quotient(Number{1}, x, true); });
}

KnownValue limited(Node &n) {
  std::optional<Numbers> low = numbersOf(n, 1), high = numbersOf(n, 2);
  if (n.opset() < 11 || (n.has(1) && (!low || low->elements.size() != 1)) ||
      (n.has(2) && (!high || high->elements.size() != 1)))
    return std::nullopt;
  return mapped(n, [&](const Number &x) -> MaybeNumber {
    MaybeNumber above = low ? extremum(x, low->elements[0], true) : x;
    return above && high ? extremum(*above, high->elements[0], false) : above;
  });
}

/// x if the condition, 0 or 1, is 1, else y.
Number selected(const Number &condition, const Number &x, const Number &y) {
  if (condition.isStatic() || x == y)
    return condition.dividend == Dim(0) ? y : x;
  return sum(y, product(condition, sum(x, negative(y))));
}

KnownValue where(Node &n) {
  std::optional<Numbers> condition = numbersOf(n, 0), x = numbersOf(n, 1), y = numbersOf(n, 2);
  if (!condition || !x || !y)
    return std::nullopt;
  auto both = commonShape(x->shape, y->shape);
  auto shape = both ? commonShape(*both, condition->shape) : std::nullopt;
  if (!shape)
    return std::nullopt;
  Numbers result{x->dtype, *shape, {}};
  for (size_t i = 0; i < size_t(countOf(*shape)); ++i) {
    auto at = [&](const Numbers &numbers) { return numbers.elements[sourceIndex(i, *shape, numbers.shape)]; };
    result.elements.push_back(selected(at(*condition), at(*x), at(*y)));
  }
  return valueOf(std::move(result));
}

KnownValue cast(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  if (!x)
    return std::nullopt;
  DType to = n.op() == "CastLike" ? n.dtype(1) : n.attributeType("to", DType::f32);
  bool isWide = to == DType::f32 || to == DType::f64;
  if ((!isWide && !isCounted(to)) || (isBool(x->dtype) && !isCounted(to)))
    return std::nullopt;
  for (Number &element : x->elements) {
    if (isBool(to) && !isBool(x->dtype)) {
      std::optional<int> order = compare(element, Number{0});
      if (!order)
        return std::nullopt;
      element = Number{*order != 0};
    } else if (!isWide) {
      std::optional<Dim> whole = truncated(element);
      if (!whole)
        return std::nullopt;
      element = Number{*whole};
    }
  }
  x->dtype = to;
  return valueOf(*std::move(x));
}

/// Along one axis, or over all elements of a vector.
KnownValue reduction(Node &n) {
  std::optional<Numbers> x = numbersOf(n, 0);
  std::string_view op = n.op();
  if (!x || x->shape.size() > 1 || x->elements.empty() || isBool(x->dtype) ||
      n.attribute("noop_with_empty_axes", int64_t(0)))
    return std::nullopt;
  Number total = x->elements[0];
  for (size_t i = 1; i < x->elements.size(); ++i) {
    const Number &next = x->elements[i];
    MaybeNumber both = op == "ReduceProd"                       ? product(total, next)
                       : op == "ReduceMax" || op == "ReduceMin" ? extremum(total, next, op == "ReduceMax")
                                                                : sum(total, next);
    if (!both)
      return std::nullopt;
    total = *both;
  }
  if (op == "ReduceMean") {
    MaybeNumber mean = quotient(total, Number{int64_t(x->elements.size())}, isFloat(x->dtype));
    if (!mean)
      return std::nullopt;
    total = *mean;
  }
  bool keeps = n.attribute("keepdims", int64_t(1)) != 0 && !x->shape.empty();
  return valueOf({x->dtype, keeps ? std::vector<int64_t>{1} : std::vector<int64_t>(), {total}});
}

} // namespace

std::optional<Dim> stepsOf(const Node &range) try {
  std::optional<Numbers> parts[3];
  for (size_t i = 0; i < 3; ++i)
    if (parts[i] = numbersOf(range, i); !parts[i] || parts[i]->elements.size() != 1)
      return std::nullopt;
  auto &[start, limit, step] = parts;
  std::optional<Number> steps =
      quotient(sum(limit->elements[0], negative(start->elements[0])), step->elements[0], true);
  return steps ? std::optional(max(roundedUp(*steps), 0)) : std::nullopt;
} catch (const std::exception &) { // too large expressions, or a step of 0
  return std::nullopt;
}

KnownRule arithmeticRule(std::string_view op) {
  static const std::unordered_map<std::string_view, KnownRule> rules{{"Abs", sign},
                                                                     {"Add", arithmetic},
                                                                     {"And", logic},
                                                                     {"Cast", cast},
                                                                     {"CastLike", cast},
                                                                     {"Ceil", rounding},
                                                                     {"Clip", limited},
                                                                     {"Div", arithmetic},
                                                                     {"Equal", comparison},
                                                                     {"Floor", rounding},
                                                                     {"Greater", comparison},
                                                                     {"GreaterOrEqual", comparison},
                                                                     {"Less", comparison},
                                                                     {"LessOrEqual", comparison},
                                                                     {"Max", arithmetic},
                                                                     {"Min", arithmetic},
                                                                     {"Mod", arithmetic},
                                                                     {"Mul", arithmetic},
                                                                     {"Neg", sign},
                                                                     {"Not", sign},
                                                                     {"Or", logic},
                                                                     {"Pow", power},
                                                                     {"Reciprocal", reciprocal},
                                                                     {"ReduceMax", reduction},
                                                                     {"ReduceMean", reduction},
                                                                     {"ReduceMin", reduction},
                                                                     {"ReduceProd", reduction},
                                                                     {"ReduceSum", reduction},
                                                                     {"Round", rounding},
                                                                     {"Sign", sign},
                                                                     {"Sqrt", root},
                                                                     {"Sub", arithmetic},
                                                                     {"Sum", arithmetic},
                                                                     {"Where", where},
                                                                     {"Xor", logic}};
  auto at = rules.find(op);
  return at == rules.end() ? nullptr : at->second;
}

} // namespace burin::onnx
