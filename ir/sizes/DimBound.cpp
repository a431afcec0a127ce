// Bounds of symbolic sizes: the lower bound of a size, and whether two sizes may be equal.
#include "ir/sizes/DimExpression.h"
#include <algorithm>

namespace burin {

using AtomPtr = Dim::Expression::AtomPtr;
using Polynomial = Dim::Expression::Polynomial;
using Op = Dim::Postfix::Op;

namespace {
struct Interval {
  std::optional<int64_t> least, most; // nullopt: not known
};
} // namespace

static Interval intervalOf(const Dim &);

static std::optional<int64_t> larger(std::optional<int64_t> a, std::optional<int64_t> b) { return std::max(a, b); }
static std::optional<int64_t> smaller(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
}

static Interval intervalOf(const AtomPtr &atom) {
  if (atom->op == Op::Symbol) {
    const Dim::Symbol &symbol = atom->symbol;
    return {symbol.min, symbol.max == INT64_MAX ? std::nullopt : std::optional(symbol.max)};
  }
  Interval a = intervalOf(atom->a), b = intervalOf(atom->b);
  a.least = larger(a.least, lowerBound(atom->a));
  b.least = larger(b.least, lowerBound(atom->b));
  bool isNatural = a.least.value_or(-1) >= 0 && b.least.value_or(-1) >= 1;
  auto divided = [&](std::optional<int64_t> value, const std::optional<int64_t> &by) {
    bool isDivided = value && by && *by >= 1;
    return !isDivided                ? value
           : atom->op == Op::CeilDiv ? ceildiv(Dim(*value), *by).value()
                                     : floordiv(Dim(*value), *by).value();
  };
  switch (atom->op) {
  case Op::FloorDiv:
  case Op::CeilDiv:
    if (!isNatural)
      return {};
    return {b.most ? divided(a.least, b.most) : 0, divided(a.most, b.least)};
  case Op::Mod:
    if (b.least.value_or(-1) < 1)
      return {};
    return {0, b.most ? std::optional(*b.most - 1) : a.least.value_or(-1) >= 0 ? a.most : std::nullopt};
  case Op::Min:
    return {smaller(a.least, b.least), a.most && b.most ? smaller(a.most, b.most) : larger(a.most, b.most)};
  case Op::Max:
    return {larger(a.least, b.least), a.most && b.most ? larger(a.most, b.most) : std::nullopt};
  default:
    return {};
  }
}

/// The product of the factors: of any single one, or of several that are not negative.
static Interval intervalOf(const Dim::Expression::Monomial &factors) {
  Interval product{1, 1};
  for (const AtomPtr &atom : factors) {
    Interval factor = intervalOf(atom);
    if (factors.size() == 1)
      return factor;
    if (factor.least.value_or(-1) < 0 || __builtin_mul_overflow(*product.least, *factor.least, &*product.least))
      return {};
    if (!product.most || !factor.most || __builtin_mul_overflow(*product.most, *factor.most, &*product.most))
      product.most = std::nullopt;
  }
  return product;
}

static Interval intervalOf(const Polynomial &terms) {
  Interval sum{0, 0};
  auto add = [](std::optional<int64_t> &bound, int64_t coefficient, const std::optional<int64_t> &value) {
    int64_t term;
    if (!bound || !value || __builtin_mul_overflow(coefficient, *value, &term) ||
        __builtin_add_overflow(*bound, term, &*bound))
      bound = std::nullopt;
  };
  for (auto &[monomial, coefficient] : terms) {
    Interval factor = intervalOf(monomial);
    add(sum.least, coefficient, coefficient > 0 ? factor.least : factor.most);
    add(sum.most, coefficient, coefficient > 0 ? factor.most : factor.least);
    if (!sum.least && !sum.most)
      break;
  }
  return sum;
}

static Interval intervalOf(const Dim &d) {
  return d.isStatic() ? Interval{d.value(), d.value()} : intervalOf(Dim::Expression::of(d));
}

static std::optional<int64_t> signBound(const Polynomial &terms) { return intervalOf(terms).least; }

/// The bound if `positive` is one of the things that are >= 0: d == positive + (d - positive).
static std::optional<int64_t> signBound(const Dim &d, const Dim &positive) {
  auto plain = signBound(Dim::Expression::of(d));
  return positive.isStatic() ? plain : std::max(plain, signBound(Dim::Expression::of(d - positive)));
}

static std::optional<int64_t> lowerBound(const Dim &d, const Dim &positive, int casesLeft);

/// The quotient by a number that is a factor of the term, if no other factor is negative; its other factors to `rest`.
static AtomPtr quotientOf(const Dim::Expression::Monomial &factors, Dim::Expression::Monomial &rest) {
  auto isQuotient = [](const AtomPtr &atom) {
    return (atom->op == Op::FloorDiv || atom->op == Op::CeilDiv) && atom->b.isStatic() && atom->b.value() >= 1;
  };
  auto at = std::find_if(factors.begin(), factors.end(), isQuotient);
  if (at == factors.end())
    return nullptr;
  rest.assign(factors.begin(), at);
  rest.insert(rest.end(), at + 1, factors.end());
  auto isNatural = [](const AtomPtr &atom) { return intervalOf(atom).least.value_or(-1) >= 0; };
  return std::all_of(rest.begin(), rest.end(), isNatural) ? *at : nullptr;
}

/// Replaces the first quotient by what it is at least or, where it is subtracted, at most, for a number n:
/// a - n + 1 <= floordiv(a, n) * n <= a and a <= ceildiv(a, n) * n <= a + n - 1.
static std::optional<int64_t> quotientBound(const Dim &d, const Dim &positive, int casesLeft) {
  Polynomial terms = Dim::Expression::of(d);
  AtomPtr atom;
  Dim::Expression::Monomial others;
  auto at = std::find_if(terms.begin(), terms.end(), [&](const auto &term) {
    atom = quotientOf(term.first, others);
    return atom != nullptr;
  });
  if (at == terms.end())
    return std::nullopt;
  Dim scale = Dim::Expression::make(Polynomial{{others, at->second}}), divisor = atom->b;
  const bool isSubtracted = at->second < 0, isFloor = atom->op == Op::FloorDiv;
  terms.erase(at);
  Dim bounded = atom->a;
  if (isSubtracted != isFloor)
    bounded = isSubtracted ? bounded + divisor - 1 : bounded - divisor + 1;
  auto bound = lowerBound(Dim::Expression::make(terms) * divisor + scale * bounded, positive, casesLeft - 1);
  return bound ? std::optional(ceildiv(Dim(*bound), divisor).value()) : std::nullopt;
}

/// A truth value that is a factor of something else, as in condition * (x - y); null if there is none.
static AtomPtr factorOfTruth(const Polynomial &terms) {
  for (auto &[monomial, coefficient] : terms)
    for (const AtomPtr &atom : monomial)
      if (monomial.size() > 1 && Dim::Expression::isTruthValue(*atom))
        return atom;
  return nullptr;
}

/// With a number, 0 or 1, in place of an atom.
static Dim decided(const Polynomial &terms, const AtomPtr &atom, bool isTrue) {
  Dim sum;
  for (auto &[monomial, coefficient] : terms) {
    Dim::Expression::Monomial rest;
    for (const AtomPtr &factor : monomial)
      if (factor->text != atom->text)
        rest.push_back(factor);
    if (isTrue || rest.size() == monomial.size())
      sum = sum + Dim::Expression::make(Polynomial{{rest, coefficient}});
  }
  return sum;
}

/// Replaces the first min or max by each of its arguments: c * min(x, y) is the smaller of c*x and c*y for c > 0.
static std::optional<int64_t> lowerBound(const Dim &d, const Dim &positive, int casesLeft) {
  if (d.isStatic())
    return d.value();
  Polynomial terms = Dim::Expression::of(d);
  if (AtomPtr condition = casesLeft > 0 ? factorOfTruth(terms) : nullptr) {
    auto no = lowerBound(decided(terms, condition, false), positive, casesLeft - 1);
    auto yes = no ? lowerBound(decided(terms, condition, true), positive, casesLeft - 1) : std::nullopt;
    return yes ? std::optional(std::min(*no, *yes)) : std::nullopt;
  }
  auto isCase = [](const auto &term) {
    return term.first.size() == 1 && (term.first[0]->op == Op::Min || term.first[0]->op == Op::Max);
  };
  auto at = std::find_if(terms.begin(), terms.end(), isCase);
  if (at == terms.end() || casesLeft == 0) {
    auto bound = signBound(d, positive);
    return bound.value_or(-1) >= 0 || casesLeft == 0 ? bound : std::max(bound, quotientBound(d, positive, casesLeft));
  }
  AtomPtr atom = at->first[0];
  int64_t scale = at->second;
  terms.erase(at);
  Dim rest = Dim::Expression::make(terms);
  auto with = [&](const Dim &argument) -> std::optional<int64_t> {
    try {
      return lowerBound(rest + argument * Dim(scale), positive, casesLeft - 1);
    } catch (const Error &) {
      return std::nullopt; // not known; the other case may tell
    }
  };
  auto left = with(atom->a), right = with(atom->b);
  bool isSmaller = (atom->op == Op::Min) == (scale > 0);
  if (isSmaller)
    return left && right ? std::optional(std::min(*left, *right)) : std::nullopt;
  return std::max(left, right); // nullopt is below every number
}

std::optional<int64_t> lowerBound(const Dim &d, const Dim &positive) {
  constexpr int kMaxCases = 5;
  try {
    auto bound = lowerBound(d, positive, kMaxCases);
    return positive.isStatic() ? bound : std::max(bound, lowerBound(d - positive, 0, kMaxCases));
  } catch (const Error &) {
    return std::nullopt;
  }
}

std::optional<int64_t> upperBound(const Dim &d) {
  try {
    auto bound = lowerBound(Dim(0) - d);
    return bound && *bound != INT64_MIN ? std::optional(-*bound) : std::nullopt;
  } catch (const Error &) {
    return std::nullopt;
  }
}

bool isMultipleOf(const Dim &d, int64_t factor) {
  try {
    return mod(d, factor) == Dim(0);
  } catch (const Error &) {
    return false;
  }
}

/// The min or max that the size is, if it is nothing else.
static AtomPtr extremum(const Dim &d, Op op) {
  if (d.isStatic())
    return nullptr;
  Polynomial terms = Dim::Expression::of(d);
  auto &[monomial, coefficient] = *terms.begin();
  bool isAtom = terms.size() == 1 && monomial.size() == 1 && coefficient == 1;
  return isAtom && monomial[0]->op == op ? monomial[0] : nullptr;
}

/// Takes the outermost min and max of either side apart, `levels` deep, before it asks for the bound of the difference.
static bool isAtMost(const Dim &a, const Dim &b, const Dim &positive, int levels) {
  if (a == b || lowerBound(b - a, positive).value_or(-1) >= 0)
    return true;
  auto known = [&](const Dim &x, const Dim &y) { return isAtMost(x, y, positive, levels - 1); };
  if (levels == 0)
    return false;
  if (AtomPtr most = extremum(b, Op::Min))
    return known(a, most->a) && known(a, most->b);
  if (AtomPtr least = extremum(a, Op::Max))
    return known(least->a, b) && known(least->b, b);
  if (AtomPtr some = extremum(b, Op::Max); some && (known(a, some->a) || known(a, some->b)))
    return true;
  AtomPtr some = extremum(a, Op::Min);
  return some && (known(some->a, b) || known(some->b, b));
}

bool isAtMost(const Dim &a, const Dim &b, const Dim &positive) {
  constexpr int kMostLevels = 6;
  try {
    return isAtMost(a, b, positive, kMostLevels);
  } catch (const Error &) {
    return false;
  }
}

bool mayEqual(const Dim &a, const Dim &b) {
  auto isLess = [](const Dim &x, const Dim &y) { return lowerBound(y - x).value_or(0) >= 1; };
  return !isLess(a, b) && !isLess(b, a);
}

} // namespace burin
