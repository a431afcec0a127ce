// Size expressions of an artifact: evaluation and printing.
#pragma once
#include "runtime/format/Artifact.h"
#include <optional>
#include <span>
#include <string>

namespace burin::rt {

inline constexpr int kMaxExprDepth = 64;
inline constexpr size_t kMaxExprLength = 4096;

/// Whether `expr` is a postfix program of at most kMaxExprLength instructions that yields one value, needs at most
/// kMaxExprDepth stack entries and reads only symbols below `symbols`.
bool wellFormed(const Expr &expr, size_t symbols);

/// The value of a well-formed expression; nullopt on overflow or division by zero. Division rounds as its name says,
/// the remainder has the sign of the divisor.
std::optional<int64_t> evaluate(const Expr &expr, std::span<const int64_t> symbols);

/// The other operand if `expr` is the minimum or maximum of `size` and another expression; else nullopt.
std::optional<Expr> limitOf(const Expr &size, const Expr &expr);

/// The expression in infix notation: "2*batch + 1".
std::string printed(const Expr &expr, std::span<const Symbol> symbols);

} // namespace burin::rt
