// Where the sizes of a function's inputs were constrained.
#pragma once
#include "llvm/ADT/StringRef.h"

namespace burin::ir {

/// Attribute of a function: a dictionary from the names of symbols that have a range, or occur in a larger expression
/// of an input's shape, to the places of their Dim: {n = "model.cpp:12"}.
inline constexpr llvm::StringLiteral kSizePlacesAttr = "burin.size_places";

} // namespace burin::ir
