// What fusion asks of an op.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Free ops cost nothing and are repeated in every kernel that uses them; views are free as long as their operand is in
/// memory or computed in the same kernel; None is no work of a kernel at all.
enum class Kind { None, Free, View, Pointwise, Row, Movement, Window, Contract, Sequential };

Kind intrinsicKind(mlir::Operation *op);
/// A transpose that only attention and left sides of products read: their kernels step through memory as it lies.
bool isStridedView(mlir::Operation *op);

} // namespace burin::passes
