// Facts from op definitions (ir/ops) for passes and code generation.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// The role of an op in kernels.
enum class FusionKind {
  None,       // not computed by kernels: decomposed before fusion, or run by the runtime
  Free,       // costs nothing and is repeated in every kernel that uses it
  View,       // free if its operand is in memory or computed in the same kernel
  Pointwise,  // each element of the result depends on the elements at its position
  Row,        // reduces rows of one space, see RowAxes
  Movement,   // each element of the result is an element of an operand, or a constant, chosen by position
  Window,     // reads elements of its first operand many times, so that the operand must be in memory
  Contract,   // the same, computed by matrix kernels
  Sequential, // runs along an axis in order, or writes to computed positions: a kernel of its own
};
inline constexpr size_t kFusionKinds = size_t(FusionKind::Sequential) + 1;

/// The dimensions that an op reduces.
enum class RowAxes {
  None,
  Axes,      // those of its attribute `axes`
  Axis,      // that of its attribute `axis`
  AlongAxis, // the same, but the result has the shape of the operand
  FromAxis,  // those from its attribute `axis` on; the same
};

/// Whether an op with constant operands is folded.
enum class Folding {
  Never,
  Cheap, // recomputing costs almost nothing: folded only if the result is small
  Value,
};

struct OpFacts {
  FusionKind fusion = FusionKind::None;
  RowAxes rows = RowAxes::None;
  Folding folding = Folding::Value;
  bool selects = false;        // reads only the elements of its first operand that the second operand selects
  bool oneInstruction = false; // an element takes about one instruction
  bool rearranges = false;     // each element of the result is an element of the first operand
};

/// Facts of an op of the table. Sequential for other ops that are steps of their own; the default for all others and
/// null.
const OpFacts &factsOf(mlir::Operation *op);
/// Index in the op table; nullopt for ops outside of it.
std::optional<size_t> tableIndexOf(mlir::Operation *op);

/// Whether the op gives the same elements in row-major order another shape.
inline bool isView(mlir::Operation *op) { return factsOf(op).fusion == FusionKind::View; }
/// Whether the op costs nothing, so that kernels repeat it where it is needed.
inline bool isFree(mlir::Operation *op) { return isView(op) || factsOf(op).fusion == FusionKind::Free; }
/// Whether the result has all elements of the only operand and no others: views, and broadcasts unless they are empty.
inline bool repeatsOperand(mlir::Operation *op) { return isFree(op) && op->getNumOperands() == 1; }
/// Whether the op is the only one in its kernel, or a step of its own.
inline bool isSequential(mlir::Operation *op) { return factsOf(op).fusion == FusionKind::Sequential; }
/// Whether the op reads its operands from memory, many times.
inline bool readsMemory(mlir::Operation *op) {
  return factsOf(op).fusion == FusionKind::Window || factsOf(op).fusion == FusionKind::Contract;
}

} // namespace burin::passes
