// Sums of related atoms are written with as few of them as possible. With x of any value:
//   floordiv(x, 2) + floordiv(x + 1, 2) == x
//   min(x, y) + max(x, y) == x + y
// So the expressions of halves that are rounded up, of the rest of a size after a slice, and of the size after a roll
// (which equals that before it) do not grow with each layer of a network.
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <climits>
#include <cstdlib>

namespace burin {

using AtomPtr = Dim::Expression::AtomPtr;
using Monomial = Dim::Expression::Monomial;
using Polynomial = Dim::Expression::Polynomial;
using Op = Dim::Postfix::Op;

namespace {
/// An atom as a factor of a term.
struct Use {
  Monomial term, others; // `others` without the atom
  int64_t coefficient;
  AtomPtr atom;
};
} // namespace

static bool areSame(const Monomial &a, const Monomial &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const AtomPtr &x, const AtomPtr &y) { return x->text == y->text; });
}

/// Returns the uses of atoms that one of the relations may apply to.
static std::vector<Use> usesOf(const Polynomial &terms) {
  std::vector<Use> uses;
  for (auto &[term, coefficient] : terms)
    for (size_t i = 0; i < term.size() && coefficient != INT64_MIN; ++i)
      if (term[i]->doubled || term[i]->op == Op::Min || term[i]->op == Op::Max) {
        Monomial others = term;
        others.erase(others.begin() + int64_t(i));
        uses.push_back({term, std::move(others), coefficient, term[i]});
      }
  return uses;
}

/// Adds `times` products of `sum` and `others`.
static void addProduct(Polynomial &terms, const Dim &sum, int64_t times, const Monomial &others) {
  for (auto &[term, coefficient] : Dim::Expression::of(sum * Dim(times)))
    Dim::Expression::add(terms, Dim::Expression::multiplied(others, term), coefficient);
}

/// For the sum of an atom and a number, returns the number; nullopt for other sums.
static std::optional<int64_t> offsetOf(const Polynomial &terms) {
  auto &[leading, scale] = *terms.begin();
  bool hasOffset = terms.size() == 2 && terms.rbegin()->first.empty();
  if (leading.size() != 1 || scale != 1 || (terms.size() > 1 && !hasOffset))
    return std::nullopt;
  return hasOffset ? terms.rbegin()->second : 0;
}

/// Writes a*x + b*floordiv(x, 2) as (a + b)*x - b*floordiv(x + 1, 2) if the factor of x, an atom, becomes smaller. Of
/// equally small forms, chooses the one in which the dividend is the atom plus an even number.
static bool roundOtherwise(Polynomial &terms, const Use &half) {
  if (!half.atom->doubled)
    return false;
  const Dim &x = *half.atom->doubled;
  Polynomial parts = Dim::Expression::of(x);
  std::optional<int64_t> offset = offsetOf(parts);
  if (!offset)
    return false;
  auto whole = terms.find(Dim::Expression::multiplied(half.others, parts.begin()->first));
  int64_t before = whole == terms.end() ? 0 : whole->second, after;
  if (__builtin_add_overflow(before, half.coefficient, &after) || before == INT64_MIN || after == INT64_MIN)
    return false;
  bool isSmaller = std::abs(after) < std::abs(before);
  if (!isSmaller && !(std::abs(after) == std::abs(before) && *offset % 2 != 0))
    return false;
  Polynomial result = terms;
  Dim::Expression::add(result, half.term, -half.coefficient);
  addProduct(result, x, half.coefficient, half.others);
  addProduct(result, floordiv(x + 1, 2), -half.coefficient, half.others);
  terms = std::move(result);
  return true;
}

/// The sum of two atoms, if a relation makes it simpler.
static std::optional<Dim> sumOf(const AtomPtr &a, const AtomPtr &b) {
  if (a->doubled && b->doubled) {
    Dim apart = *b->doubled - *a->doubled;
    if (apart.isStatic() && apart.value() % 2 != 0)
      return *a->doubled + floordiv(apart, 2);
  }
  bool areOpposite = (a->op == Op::Min && b->op == Op::Max) || (a->op == Op::Max && b->op == Op::Min);
  if (!areOpposite)
    return std::nullopt;
  Dim apart = b->a - a->a, crossed = b->b - a->a;
  bool fits = apart.isStatic() && b->b - a->b == apart, fitsCrossed = crossed.isStatic() && b->a - a->b == crossed;
  return fits || fitsCrossed ? std::optional(b->a + b->b - (fits ? apart : crossed)) : std::nullopt;
}

/// Writes a*one + b*other with one of the two: as (a - b)*one + b*(one + other).
static bool joinPair(Polynomial &terms, const Use &one, const Use &other) {
  if (!areSame(one.others, other.others))
    return false;
  bool hasOneSign = (one.coefficient < 0) == (other.coefficient < 0);
  std::optional<Dim> sum = hasOneSign || one.atom->doubled ? sumOf(one.atom, other.atom) : std::nullopt;
  if (!sum)
    return false;
  int64_t times = std::abs(one.coefficient) < std::abs(other.coefficient) ? one.coefficient : other.coefficient;
  Polynomial result = terms;
  Dim::Expression::add(result, one.term, -times);
  Dim::Expression::add(result, other.term, -times);
  addProduct(result, *sum, times, one.others);
  terms = std::move(result);
  return true;
}

static bool joinOnce(Polynomial &terms) {
  constexpr size_t kMostUses = 24; // of which all pairs are looked at
  std::vector<Use> uses = usesOf(terms);
  if (uses.size() > kMostUses)
    return false;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (roundOtherwise(terms, uses[i]))
      return true;
    for (size_t k = i + 1; k < uses.size(); ++k)
      if (joinPair(terms, uses[i], uses[k]))
        return true;
  }
  return false;
}

void Dim::Expression::joinTerms(Polynomial &terms) try {
  while (joinOnce(terms))
    ;
} catch (const Error &) { // too large: the terms stay as they are
}

} // namespace burin
