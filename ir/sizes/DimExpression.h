// The inside of a symbolic Dim.
#pragma once
#include "burin/dim.h"

namespace burin {

/// A polynomial: a sum of coefficient * atom * atom …
struct Dim::Expression {
  struct Atom {
    Postfix::Op op;   // Symbol, or a function of two arguments
    std::string text; // canonical: the symbol's name and range, or "floordiv(h, 2)"
    Dim a, b;         // the arguments
    Symbol symbol = {};
    std::optional<Dim> doubled = {}; // of floordiv(x, n) with an even n: floordiv(x, n/2), of which it is the half
  };
  using AtomPtr = std::shared_ptr<const Atom>;
  using Monomial = std::vector<AtomPtr>; // sorted by text; empty for the constant term
  struct Order {
    bool operator()(const Monomial &, const Monomial &) const;
  };
  using Polynomial = std::map<Monomial, int64_t, Order>; // no coefficient is 0

  Polynomial terms;

  static Polynomial of(const Dim &);
  /// Adds a term; throws Error if there are too many.
  static void add(Polynomial &, const Monomial &, int64_t coefficient);
  /// The product. A truth value is its own square.
  static Monomial multiplied(const Monomial &, const Monomial &);
  static Dim make(Polynomial);
  static Dim make(AtomPtr);
  /// Whether an atom is min(…, 1) of something that is never negative, as comparisons are written: it is 0 or 1.
  static bool isTruthValue(const Atom &);

private:
  /// Replaces terms of related atoms by fewer ones, see DimRelations.cpp.
  static void joinTerms(Polynomial &);
};

} // namespace burin
