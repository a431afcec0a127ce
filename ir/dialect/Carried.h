// Values that loops carry and branches pass on, in the memory that they are in.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::ir {

/// Attribute of a scan: indices of states of which only the last value is read. The loop's result is that value alone,
/// and the iterations overwrite it.
inline constexpr llvm::StringLiteral kCarriedAttr = "burin.carried";

/// Attribute of an `if`: has for each result the operand that both functions write it over, or -1.
inline constexpr llvm::StringLiteral kInPlaceAttr = "burin.in_place";

inline bool isCarried(ScanOp scan, int64_t state) {
  auto carried = scan->getAttrOfType<mlir::DenseI64ArrayAttr>(kCarriedAttr);
  return carried && llvm::is_contained(carried.asArrayRef(), state);
}

} // namespace burin::ir
