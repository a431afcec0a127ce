// What is known of a symbolic size: its lower bound, and whether two may be equal.
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <stdexcept>

namespace burin {

using AtomPtr = Dim::Expression::AtomPtr;
using Polynomial = Dim::Expression::Polynomial;
using Op = Dim::Postfix::Op;

static bool isNonNegative(const AtomPtr &atom) {
  auto low = [](const Dim &d) { return lowerBound(d).value_or(-1); };
  switch (atom->op) {
  case Op::Symbol:
    return true;
  case Op::FloorDiv:
  case Op::CeilDiv:
    return low(atom->a) >= 0 && low(atom->b) >= 1;
  case Op::Mod:
    return low(atom->b) >= 1;
  case Op::Min:
    return low(atom->a) >= 0 && low(atom->b) >= 0;
  case Op::Max:
    return low(atom->a) >= 0 || low(atom->b) >= 0;
  default:
    return false;
  }
}

/// The bound from the signs of the terms alone.
static std::optional<int64_t> signBound(const Polynomial &terms) {
  int64_t bound = 0;
  for (auto &[monomial, coefficient] : terms) {
    if (monomial.empty())
      bound = coefficient;
    else if (coefficient < 0 || !std::all_of(monomial.begin(), monomial.end(), isNonNegative))
      return std::nullopt;
  }
  return bound;
}

/// The bound if `positive` is one of the things that are >= 0: d == positive + (d - positive).
static std::optional<int64_t> signBound(const Dim &d, const Dim &positive) {
  auto plain = signBound(Dim::Expression::of(d));
  return positive.isStatic() ? plain : std::max(plain, signBound(Dim::Expression::of(d - positive)));
}

/// Replaces the first min or max by each of its arguments: c * min(x, y) is the smaller of c*x and c*y for c > 0.
static std::optional<int64_t> lowerBound(const Dim &d, const Dim &positive, int casesLeft) {
  if (d.isStatic())
    return d.value();
  Polynomial terms = Dim::Expression::of(d);
  auto isCase = [](const auto &term) {
    return term.first.size() == 1 && (term.first[0]->op == Op::Min || term.first[0]->op == Op::Max);
  };
  auto at = std::find_if(terms.begin(), terms.end(), isCase);
  if (at == terms.end() || casesLeft == 0)
    return signBound(d, positive);
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
    return lowerBound(d, positive, kMaxCases);
  } catch (const Error &) {
    return std::nullopt;
  }
}

bool mayEqual(const Dim &a, const Dim &b) {
  auto isLess = [](const Dim &x, const Dim &y) { return lowerBound(y - x).value_or(0) >= 1; };
  return !isLess(a, b) && !isLess(b, a);
}

} // namespace burin
