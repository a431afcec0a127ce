// Sizes computed at run time: evaluating and printing the expressions of an artifact.
#pragma once
#include "runtime/format/Artifact.h"
#include <optional>
#include <span>
#include <string>

namespace burin::rt {

inline constexpr int kMaxExprDepth = 64;
inline constexpr size_t kMaxExprLength = 4096;

/// Whether `expr` is a postfix program of at most kMaxExprLength instructions that leaves one value, needs at most
/// kMaxExprDepth entries of stack and reads only symbols below `symbols`.
bool wellFormed(const Expr &expr, size_t symbols);

/// The value of a well-formed expression; nothing on overflow or division by zero. Division rounds as its name
/// says, the remainder has the sign of the divisor.
std::optional<int64_t> evaluate(const Expr &expr, std::span<const int64_t> symbols);

/// As a user writes it: "2*batch + 1".
std::string printed(const Expr &expr, std::span<const Symbol> symbols);

} // namespace burin::rt
