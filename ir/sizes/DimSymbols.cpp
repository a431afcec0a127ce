// The symbols and the postfix program of a symbolic size.
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <climits>
#include <utility>

namespace burin {

using AtomPtr = Dim::Expression::AtomPtr;
using Monomial = Dim::Expression::Monomial;
using Op = Dim::Postfix::Op;

static void collect(const Dim &d, std::vector<Dim::Symbol> &out) {
  if (d.isStatic())
    return;
  for (auto &[monomial, coefficient] : Dim::Expression::of(d))
    for (const AtomPtr &atom : monomial) {
      if (atom->op == Op::Symbol) {
        out.push_back(atom->symbol);
        continue;
      }
      collect(atom->a, out);
      collect(atom->b, out);
    }
}

std::vector<Dim::Symbol> Dim::symbols() const {
  std::vector<Symbol> found;
  collect(*this, found);
  std::stable_sort(found.begin(), found.end(), [](const Symbol &x, const Symbol &y) { return x.name < y.name; });
  auto same = [](const Symbol &x, const Symbol &y) { return x.name == y.name; };
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  return found;
}

std::optional<Dim::Symbol> Dim::symbol() const {
  auto found = linear();
  return found && found->scale == 1 && found->offset == 0 ? std::optional(found->symbol) : std::nullopt;
}

std::optional<Dim::Linear> Dim::linear() const {
  if (!expression)
    return std::nullopt;
  std::optional<Linear> found;
  int64_t offset = 0;
  for (auto &[monomial, coefficient] : expression->terms) {
    if (monomial.empty())
      offset = coefficient;
    else if (found || monomial.size() != 1 || monomial[0]->op != Op::Symbol || coefficient < 1)
      return std::nullopt;
    else
      found = Linear{monomial[0]->symbol, coefficient, 0};
  }
  found->offset = offset;
  return found;
}

static void appendPostfix(const Dim &d, std::vector<Dim::Postfix> &out);

static void appendAtom(const AtomPtr &atom, std::vector<Dim::Postfix> &out) {
  if (atom->op == Op::Symbol) {
    out.push_back({Op::Symbol, 0, atom->symbol.name});
    return;
  }
  appendPostfix(atom->a, out);
  appendPostfix(atom->b, out);
  out.push_back({atom->op, 0, {}});
}

/// A monomial times the magnitude of its coefficient.
static void appendTerm(const Monomial &monomial, int64_t coefficient, std::vector<Dim::Postfix> &out) {
  bool first = true;
  for (const AtomPtr &atom : monomial) {
    appendAtom(atom, out);
    if (!std::exchange(first, false))
      out.push_back({Op::Mul, 0, {}});
  }
  if (first || coefficient != 1)
    out.push_back({Op::Const, coefficient, {}});
  if (!first && coefficient != 1)
    out.push_back({Op::Mul, 0, {}});
}

static void appendPostfix(const Dim &d, std::vector<Dim::Postfix> &out) {
  if (d.isStatic()) {
    out.push_back({Op::Const, d.value(), {}});
    return;
  }
  bool first = true;
  for (auto &[monomial, coefficient] : Dim::Expression::of(d)) {
    bool subtract = !first && coefficient < 0 && coefficient != INT64_MIN;
    appendTerm(monomial, subtract ? -coefficient : coefficient, out);
    if (!std::exchange(first, false))
      out.push_back({subtract ? Op::Sub : Op::Add, 0, {}});
  }
}

std::vector<Dim::Postfix> Dim::toPostfix() const {
  std::vector<Postfix> out;
  appendPostfix(*this, out);
  return out;
}

} // namespace burin
