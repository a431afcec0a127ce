// Symbolic sizes as polynomials over atoms: symbols, and the functions that are not polynomial (floordiv, min …).
// An atom is ordered and compared by its text, which is canonical because its arguments are.
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <climits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace burin {

namespace {
using Atom = Dim::Expression::Atom;
using AtomPtr = Dim::Expression::AtomPtr;
using Monomial = Dim::Expression::Monomial;
using Polynomial = Dim::Expression::Polynomial;
using Op = Dim::Postfix::Op;

constexpr size_t kMaxTerms = 256, kMaxDegree = 32, kMaxAtomText = 4096;

/// An error of arithmetic whose operands are not known yet; see located().
struct ArithmeticError : Error {
  explicit ArithmeticError(const std::string &message) : Error(message, Location()), message(message) {}
  std::string message;
};

[[noreturn]] void tooLarge() { throw ArithmeticError("a size does not fit 64 bits, or its expression is too large"); }

int64_t add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r))
    tooLarge();
  return r;
}
int64_t sub(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r))
    tooLarge();
  return r;
}
int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    tooLarge();
  return r;
}
int64_t floorDivide(int64_t a, int64_t b) {
  if (b == 0)
    throw ArithmeticError("a size is divided by 0");
  if (b == -1)
    return sub(0, a);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
int64_t ceilDivide(int64_t a, int64_t b) {
  int64_t q = floorDivide(a, b);
  return b == -1 || a % b == 0 ? q : q + 1;
}
int64_t modulo(int64_t a, int64_t b) {
  if (b == 0)
    throw ArithmeticError("a size is divided by 0");
  if (b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t apply(Op op, int64_t a, int64_t b) {
  switch (op) {
  case Op::Add:
    return add(a, b);
  case Op::Sub:
    return sub(a, b);
  case Op::Mul:
    return mul(a, b);
  case Op::FloorDiv:
    return floorDivide(a, b);
  case Op::CeilDiv:
    return ceilDivide(a, b);
  case Op::Mod:
    return modulo(a, b);
  case Op::Min:
    return std::min(a, b);
  case Op::Max:
    return std::max(a, b);
  case Op::Const:
  case Op::Symbol:
    break;
  }
  std::abort(); // not a function of two arguments
}
Dim apply(Op op, const Dim &a, const Dim &b) {
  switch (op) {
  case Op::Add:
    return a + b;
  case Op::Sub:
    return a - b;
  case Op::Mul:
    return a * b;
  case Op::FloorDiv:
    return floordiv(a, b);
  case Op::CeilDiv:
    return ceildiv(a, b);
  case Op::Mod:
    return mod(a, b);
  case Op::Min:
    return min(a, b);
  case Op::Max:
    return max(a, b);
  case Op::Const:
  case Op::Symbol:
    break;
  }
  std::abort(); // not a function of two arguments
}

const char *functionName(Op op) {
  switch (op) {
  case Op::FloorDiv:
    return "floordiv";
  case Op::CeilDiv:
    return "ceildiv";
  case Op::Mod:
    return "mod";
  case Op::Min:
    return "min";
  case Op::Max:
    return "max";
  default:
    std::abort(); // not written as a function
  }
}

AtomPtr functionAtom(Op op, const Dim &a, const Dim &b) {
  std::string text = std::string(functionName(op)) + "(" + a.str() + ", " + b.str() + ")";
  if (text.size() > kMaxAtomText)
    tooLarge();
  std::optional<Dim> doubled;
  if (op == Op::FloorDiv && b.isStatic() && b.value() > 0 && b.value() % 2 == 0)
    doubled = floordiv(a, b.value() / 2);
  return std::make_shared<Atom>(Atom{op, std::move(text), a, b, {}, std::move(doubled)});
}

bool isBefore(const AtomPtr &x, const AtomPtr &y) { return x->text < y->text; }
bool isConstant(const Monomial &m) { return m.empty(); }

void addTerm(Polynomial &p, const Monomial &m, int64_t coefficient) { Dim::Expression::add(p, m, coefficient); }
Monomial multiplied(const Monomial &m, const Monomial &n) { return Dim::Expression::multiplied(m, n); }

} // namespace

void Dim::Expression::add(Polynomial &p, const Monomial &m, int64_t coefficient) {
  if (coefficient == 0)
    return;
  auto [at, isNew] = p.try_emplace(m, coefficient);
  if (isNew) {
    if (p.size() > kMaxTerms)
      tooLarge();
    return;
  }
  at->second = burin::add(at->second, coefficient);
  if (at->second == 0)
    p.erase(at);
}

bool Dim::Expression::isTruthValue(const Atom &atom) {
  if (atom.op != Op::Min || !(atom.a == Dim(1) || atom.b == Dim(1)))
    return false;
  return lowerBound(atom.a).value_or(-1) >= 0 && lowerBound(atom.b).value_or(-1) >= 0;
}

Monomial Dim::Expression::multiplied(const Monomial &m, const Monomial &n) {
  Monomial both(m.size() + n.size());
  std::merge(m.begin(), m.end(), n.begin(), n.end(), both.begin(), isBefore);
  auto isRepeated = [](const AtomPtr &x, const AtomPtr &y) {
    return x->op == Op::Min && x->text == y->text && Dim::Expression::isTruthValue(*x);
  };
  both.erase(std::unique(both.begin(), both.end(), isRepeated), both.end());
  if (both.size() > kMaxDegree)
    tooLarge();
  return both;
}

// Higher degrees first, the constant last.
bool Dim::Expression::Order::operator()(const Monomial &a, const Monomial &b) const {
  if (a.size() != b.size())
    return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), isBefore);
}

Polynomial Dim::Expression::of(const Dim &d) {
  if (d.expression)
    return d.expression->terms;
  Polynomial p;
  addTerm(p, {}, d.number);
  return p;
}

Dim Dim::Expression::make(Polynomial p) {
  if (p.empty())
    return Dim(int64_t(0));
  if (p.size() == 1 && isConstant(p.begin()->first))
    return Dim(p.begin()->second);
  if (p.size() > 1)
    joinTerms(p);
  Dim d;
  d.expression = std::make_shared<Expression>(Expression{std::move(p)});
  return d;
}

Dim Dim::Expression::make(AtomPtr atom) { return make(Polynomial{{Monomial{std::move(atom)}, 1}}); }

/// "{1..512}"; "" for every size.
static std::string rangeText(int64_t min, int64_t max) {
  if (min == 0 && max == INT64_MAX)
    return "";
  return "{" + std::to_string(min) + ".." + (max == INT64_MAX ? "" : std::to_string(max)) + "}";
}

Dim::Dim(std::string_view name, Location where) : Dim(name, 0, INT64_MAX, where) {}

Dim::Dim(std::string_view name, int64_t min, int64_t max, Location where) {
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  bool ok = !name.empty() && name.size() <= 256 && isLetter(name[0]) &&
            std::all_of(name.begin(), name.end(), [&](char c) { return isLetter(c) || isDigit(c); });
  if (!ok)
    throw Error("the name of a size must be an identifier such as batch, not '" + std::string(name.substr(0, 64)) + "'",
                where);
  if (min < 0 || max < min)
    throw Error("the range of the size '" + std::string(name) + "' is " + std::to_string(min) + " to " +
                    std::to_string(max) + "; it must begin at 0 or above and hold at least one size",
                where);
  Symbol symbol{std::string(name), min, max, where};
  *this = Expression::make(
      std::make_shared<Atom>(Atom{Op::Symbol, symbol.name + rangeText(min, max), {}, {}, std::move(symbol)}));
}

int64_t Dim::value(Location where) const {
  if (expression)
    throw Error("the size '" + str() + "' is symbolic: it has no value until the program runs", where);
  return number;
}

/// `message` with the line that made a symbol in `a` or `b`, as operators do not know their callers' lines.
static Error errorAtSymbol(const Dim &a, const Dim &b, const std::string &message) {
  for (const Dim *size : {&a, &b})
    for (const Dim::Symbol &symbol : size->symbols())
      if (*symbol.where.file)
        return Error(symbol.where, "", message + ", in an expression of " + symbol.name);
  return Error(message, Location());
}

/// Errors of `compute` with the operation, as in "floordiv(4, 0)", and its place if it is known.
template <class F> static Dim located(const Dim &a, const Dim &b, const char *operation, F compute) try {
  return compute();
} catch (const ArithmeticError &problem) {
  const std::string left = a.str().substr(0, 64), right = b.str().substr(0, 64);
  throw errorAtSymbol(a, b, problem.message + ": " + operation + "(" + left + ", " + right + ")");
}

Dim operator+(const Dim &a, const Dim &b) {
  return located(a, b, "add", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(add(a.number, b.number));
    Polynomial sum = Dim::Expression::of(a);
    for (auto &[monomial, coefficient] : Dim::Expression::of(b))
      addTerm(sum, monomial, coefficient);
    return Dim::Expression::make(std::move(sum));
  });
}

Dim operator-(const Dim &a, const Dim &b) {
  return located(a, b, "sub", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(sub(a.number, b.number));
    Polynomial difference = Dim::Expression::of(a);
    for (auto &[monomial, coefficient] : Dim::Expression::of(b))
      addTerm(difference, monomial, sub(0, coefficient));
    return Dim::Expression::make(std::move(difference));
  });
}

Dim operator*(const Dim &a, const Dim &b) {
  return located(a, b, "mul", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(mul(a.number, b.number));
    Polynomial product, right = Dim::Expression::of(b);
    for (auto &[m, c] : Dim::Expression::of(a))
      for (auto &[n, d] : right)
        addTerm(product, multiplied(m, n), mul(c, d));
    return Dim::Expression::make(std::move(product));
  });
}

/// a == divisor * quotient + rest, each coefficient of rest in [0, divisor).
static std::pair<Dim, Dim> divide(const Dim &a, int64_t divisor) {
  Polynomial quotient, rest;
  for (auto &[monomial, coefficient] : Dim::Expression::of(a)) {
    addTerm(quotient, monomial, floorDivide(coefficient, divisor));
    addTerm(rest, monomial, modulo(coefficient, divisor));
  }
  return {Dim::Expression::make(std::move(quotient)), Dim::Expression::make(std::move(rest))};
}

/// The factors of `a` without those of `b`; nullopt unless `b` divides `a`.
static std::optional<Monomial> divideMonomial(const Monomial &a, const Monomial &b) {
  Monomial rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest), isBefore);
  return rest.size() + b.size() == a.size() ? std::optional(std::move(rest)) : std::nullopt;
}

/// a / b if b divides a without a remainder: long division, by the leading terms of the monomial order. nullopt else,
/// also where an intermediate result is too large.
static std::optional<Dim> divideExactly(const Dim &a, const Dim &b) try {
  Polynomial rest = Dim::Expression::of(a), divisor = Dim::Expression::of(b), quotient;
  auto &[factors, scale] = *divisor.begin();
  while (!rest.empty()) {
    auto &[leading, coefficient] = *rest.begin();
    std::optional<Monomial> monomial = divideMonomial(leading, factors);
    if (!monomial || modulo(coefficient, scale) != 0)
      return std::nullopt;
    int64_t times = floorDivide(coefficient, scale);
    for (auto &[m, c] : divisor)
      addTerm(rest, multiplied(*monomial, m), mul(sub(0, times), c));
    addTerm(quotient, *monomial, times);
  }
  return Dim::Expression::make(std::move(quotient));
} catch (const Error &) {
  return std::nullopt;
}

/// Divides two polynomials by the largest monomial that divides every term of both, the number included.
static void cancelCommonFactor(Dim &a, Dim &b) {
  Polynomial left = Dim::Expression::of(a), right = Dim::Expression::of(b);
  if (left.empty() || right.empty())
    return;
  Monomial common = left.begin()->first;
  int64_t scale = 0;
  for (const Polynomial *terms : {&left, &right})
    for (auto &[monomial, coefficient] : *terms) {
      Monomial shared;
      std::set_intersection(common.begin(), common.end(), monomial.begin(), monomial.end(), std::back_inserter(shared),
                            isBefore);
      common = std::move(shared);
      scale = coefficient == INT64_MIN ? 1 : std::gcd(scale, coefficient);
    }
  if (common.empty() && scale == 1)
    return;
  Dim factor = Dim::Expression::make(Polynomial{{common, scale}});
  a = *divideExactly(a, factor);
  b = *divideExactly(b, factor);
}

/// floordiv(floordiv(x, n) + c, divisor) as floordiv(x + c*n, n*divisor), for numbers n > 0 and c.
static std::optional<Dim> joinDivisions(const Dim &a, int64_t divisor) {
  Polynomial terms = Dim::Expression::of(a);
  int64_t shift = 0;
  if (auto constant = terms.find({}); constant != terms.end()) {
    shift = constant->second;
    terms.erase(constant);
  }
  if (terms.size() != 1 || terms.begin()->first.size() != 1 || terms.begin()->second != 1)
    return std::nullopt;
  const Atom &inner = *terms.begin()->first[0];
  if (inner.op != Op::FloorDiv || !inner.b.isStatic() || inner.b.value() <= 0)
    return std::nullopt;
  return floordiv(inner.a + inner.b * Dim(shift), inner.b * Dim(divisor));
}

/// Whether 0 <= a < divisor is known.
static bool isRemainder(const Dim &a, const Dim &divisor) {
  auto least = lowerBound(a), most = upperBound(a);
  return least && most && *least >= 0 && *most < divisor.value();
}

/// Whether the leading coefficient, in [0, divisor), stands for -1.
static bool isNegated(const Dim &a, int64_t divisor) {
  const Polynomial terms = Dim::Expression::of(a);
  return divisor > 2 && terms.begin()->second == divisor - 1;
}

Dim floordiv(const Dim &a, const Dim &b) {
  return located(a, b, "floordiv", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(floorDivide(a.number, b.number));
    if (!b.isStatic()) {
      if (auto exact = divideExactly(a, b))
        return *exact;
      Dim x = a, y = b;
      cancelCommonFactor(x, y);
      return y.isStatic() ? floordiv(x, y) : Dim::Expression::make(functionAtom(Op::FloorDiv, x, y));
    }
    if (b.number < 0)
      return floordiv(Dim(0) - a, Dim(sub(0, b.number)));
    auto [quotient, rest] = divide(a, b.number);
    if (rest.isStatic())
      return quotient;
    Dim divisor = b;
    cancelCommonFactor(rest, divisor);
    if (divisor != b)
      return quotient + floordiv(rest, divisor);
    if (isRemainder(rest, b))
      return quotient;
    if (auto joined = joinDivisions(rest, b.number))
      return quotient + *joined;
    if (isNegated(rest, b.number)) // rounded up with the other sign: floordiv(-h, 7) is -floordiv(h + 6, 7)
      return quotient - floordiv(Dim(b.number - 1) - rest, b);
    return quotient + Dim::Expression::make(functionAtom(Op::FloorDiv, rest, b));
  });
}

Dim ceildiv(const Dim &a, const Dim &b) {
  return located(a, b, "ceildiv", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(ceilDivide(a.number, b.number));
    if (b.isStatic() && b.number > 0)
      return floordiv(a + Dim(b.number - 1), b);
    if (b.isStatic() || divideExactly(a, b))
      return Dim(0) - floordiv(Dim(0) - a, b);
    return Dim::Expression::make(functionAtom(Op::CeilDiv, a, b));
  });
}

Dim mod(const Dim &a, const Dim &b) {
  return located(a, b, "mod", [&]() -> Dim {
    if (a.isStatic() && b.isStatic())
      return Dim(modulo(a.number, b.number));
    if (!b.isStatic())
      return divideExactly(a, b) ? Dim(0) : Dim::Expression::make(functionAtom(Op::Mod, a, b));
    return a - floordiv(a, b) * b; // so that h + mod(-h, 7) is known to be a multiple of 7
  });
}

static Dim extremum(Op op, const Dim &a, const Dim &b) {
  const Dim &larger = op == Op::Max ? a : b, &smaller = op == Op::Max ? b : a;
  // `larger` names the argument that is the result if it is proved to be the larger (for min: the smaller) one.
  if (a.isStatic() && b.isStatic())
    return Dim(apply(op, a.value(), b.value()));
  if (lowerBound(a - b).value_or(-1) >= 0)
    return larger;
  if (lowerBound(b - a).value_or(-1) >= 0)
    return smaller;
  bool ordered = a.str() <= b.str();
  return Dim::Expression::make(functionAtom(op, ordered ? a : b, ordered ? b : a));
}
Dim min(const Dim &a, const Dim &b) { return extremum(Op::Min, a, b); }
Dim max(const Dim &a, const Dim &b) { return extremum(Op::Max, a, b); }

bool isIdentical(const Dim &a, const Dim &b) {
  if (a.isStatic() || b.isStatic())
    return a.isStatic() && b.isStatic() && a.number == b.number;
  if (a.expression == b.expression)
    return true;
  auto sameAtom = [](const AtomPtr &x, const AtomPtr &y) { return x->text == y->text; };
  auto sameTerm = [&](const auto &x, const auto &y) {
    return x.second == y.second && x.first.size() == y.first.size() &&
           std::equal(x.first.begin(), x.first.end(), y.first.begin(), sameAtom);
  };
  auto &left = a.expression->terms, &right = b.expression->terms;
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), sameTerm);
}

std::optional<int64_t> Dim::evaluate(const std::function<std::optional<int64_t>(std::string_view)> &symbol) const try {
  std::vector<int64_t> stack;
  for (const Postfix &step : toPostfix()) {
    if (step.op == Postfix::Op::Const) {
      stack.push_back(step.value);
    } else if (step.op == Postfix::Op::Symbol) {
      auto value = symbol(step.symbol);
      if (!value)
        return std::nullopt;
      stack.push_back(*value);
    } else {
      int64_t right = stack.back();
      stack.pop_back();
      stack.back() = apply(step.op, stack.back(), right);
    }
  }
  return stack.back();
} catch (const Error &) {
  return std::nullopt;
}

Dim Dim::substitute(const std::function<Dim(std::string_view)> &replacement) const {
  if (!expression)
    return *this;
  Dim sum;
  for (auto &[monomial, coefficient] : expression->terms) {
    Dim product(coefficient);
    for (const AtomPtr &atom : monomial)
      product = product * (atom->op == Op::Symbol
                               ? replacement(atom->symbol.name)
                               : apply(atom->op, atom->a.substitute(replacement), atom->b.substitute(replacement)));
    sum = sum + product;
  }
  return sum;
}

} // namespace burin
