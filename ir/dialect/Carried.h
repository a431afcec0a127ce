// States of loops that are updated in one buffer.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::ir {

/// Attribute of a scan: indices of states of which only the last value is read. The loop's result is that value alone,
/// and the iterations overwrite it.
inline constexpr llvm::StringLiteral kCarriedAttr = "burin.carried";

inline bool isCarried(ScanOp scan, int64_t state) {
  auto carried = scan->getAttrOfType<mlir::DenseI64ArrayAttr>(kCarriedAttr);
  return carried && llvm::is_contained(carried.asArrayRef(), state);
}

} // namespace burin::ir
