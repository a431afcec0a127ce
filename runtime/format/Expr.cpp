#include "runtime/format/Expr.h"
#include <algorithm>
#include <vector>

namespace burin::rt {
namespace {

bool isLeaf(Expr::Op op) { return op == Expr::Op::Const || op == Expr::Op::Symbol; }

bool floorDiv(int64_t a, int64_t b, int64_t &out) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  out = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
  return true;
}

bool apply(Expr::Op op, int64_t a, int64_t b, int64_t &out) {
  switch (op) {
  case Expr::Op::Add:
    return !__builtin_add_overflow(a, b, &out);
  case Expr::Op::Sub:
    return !__builtin_sub_overflow(a, b, &out);
  case Expr::Op::Mul:
    return !__builtin_mul_overflow(a, b, &out);
  case Expr::Op::FloorDiv:
    return floorDiv(a, b, out);
  case Expr::Op::CeilDiv: {
    int64_t floor;
    if (!floorDiv(a, b, floor))
      return false;
    out = floor + (a % b != 0);
    return true;
  }
  case Expr::Op::Mod: {
    int64_t floor;
    if (!floorDiv(a, b, floor))
      return false;
    out = a - floor * b;
    return true;
  }
  case Expr::Op::Min:
    out = std::min(a, b);
    return true;
  case Expr::Op::Max:
    out = std::max(a, b);
    return true;
  default:
    return false;
  }
}

struct Printed {
  std::string text;
  int precedence; // 0: sum, 1: product, 2: atom
};

std::string wrapped(const Printed &x, int atLeast) { return x.precedence < atLeast ? "(" + x.text + ")" : x.text; }

Printed combine(Expr::Op op, const Printed &a, const Printed &b) {
  switch (op) {
  case Expr::Op::Add:
    return {a.text + " + " + b.text, 0};
  case Expr::Op::Sub:
    return {a.text + " - " + wrapped(b, 1), 0};
  case Expr::Op::Mul:
    return {wrapped(a, 1) + "*" + wrapped(b, 1), 1};
  case Expr::Op::FloorDiv:
    return {wrapped(a, 1) + "/" + wrapped(b, 2), 1};
  case Expr::Op::CeilDiv:
    return {"ceil(" + wrapped(a, 1) + "/" + wrapped(b, 2) + ")", 2};
  case Expr::Op::Mod:
    return {wrapped(a, 1) + "%" + wrapped(b, 2), 1};
  case Expr::Op::Min:
    return {"min(" + a.text + ", " + b.text + ")", 2};
  default:
    return {"max(" + a.text + ", " + b.text + ")", 2};
  }
}

} // namespace

bool wellFormed(const Expr &expr, size_t symbols) {
  int depth = 0;
  if (expr.program.size() > kMaxExprLength)
    return false;
  for (const Expr::Instr &i : expr.program) {
    if (i.op > Expr::Op::Max || (i.op == Expr::Op::Symbol && uint64_t(i.value) >= symbols))
      return false;
    depth += isLeaf(i.op) ? 1 : -1;
    if (depth < 1 || depth > kMaxExprDepth)
      return false;
  }
  return depth == 1;
}

std::optional<int64_t> evaluate(const Expr &expr, std::span<const int64_t> symbols) {
  int64_t stack[kMaxExprDepth];
  int top = -1;
  for (const Expr::Instr &i : expr.program) {
    if (i.op == Expr::Op::Const) {
      stack[++top] = i.value;
    } else if (i.op == Expr::Op::Symbol) {
      stack[++top] = symbols[size_t(i.value)];
    } else {
      --top;
      if (!apply(i.op, stack[top], stack[top + 1], stack[top]))
        return std::nullopt;
    }
  }
  return stack[0];
}

std::optional<Expr> limitOf(const Expr &size, const Expr &expr) {
  const std::vector<Expr::Instr> &part = size.program, &all = expr.program;
  if (all.size() < part.size() + 2 || (all.back().op != Expr::Op::Min && all.back().op != Expr::Op::Max))
    return std::nullopt;
  auto isSame = [](const Expr::Instr &a, const Expr::Instr &b) { return a.op == b.op && a.value == b.value; };
  const ptrdiff_t rest = ptrdiff_t(all.size() - part.size()) - 1;
  for (bool isFirst : {true, false}) {
    auto at = all.begin() + (isFirst ? 0 : rest), other = all.begin() + (isFirst ? ptrdiff_t(part.size()) : 0);
    Expr limit{{other, other + rest}};
    int values = 0; // it is an operand if it yields one value
    bool isOperand = std::equal(part.begin(), part.end(), at, isSame);
    for (const Expr::Instr &instr : limit.program)
      isOperand &= (values += isLeaf(instr.op) ? 1 : -1) > 0;
    if (isOperand && values == 1)
      return limit;
  }
  return std::nullopt;
}

std::string printed(const Expr &expr, std::span<const Symbol> symbols) {
  std::vector<Printed> stack;
  for (const Expr::Instr &i : expr.program) {
    if (i.op == Expr::Op::Const) {
      stack.push_back({std::to_string(i.value), i.value < 0 ? 0 : 2});
    } else if (i.op == Expr::Op::Symbol) {
      stack.push_back({symbols[size_t(i.value)].name, 2});
    } else {
      Printed right = std::move(stack.back());
      stack.pop_back();
      stack.back() = combine(i.op, stack.back(), right);
    }
  }
  return stack.back().text;
}

} // namespace burin::rt
