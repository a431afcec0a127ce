// What the definition of an op (ir/ops) says of it, for passes and code generation.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// An op's part in kernels.
enum class FusionKind {
  None,       // no work of a kernel: decomposed before fusion, or the runtime's
  Free,       // costs nothing and is repeated in every kernel that uses it
  View,       // free as long as its operand is in memory or computed in the same kernel
  Pointwise,  // an element of the result follows from the elements at its place
  Row,        // reduces rows of one space, see RowAxes
  Movement,   // an element of the result is an element of an operand, or none, by its position
  Window,     // reads elements of its first operand many times, so that they must be in memory
  Contract,   // the same, and is summed up by matrix kernels
  Sequential, // goes along an axis in order, or writes anywhere: a kernel of its own
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

/// Whether an op on constants is computed at compile time.
enum class Folding {
  Never,
  Cheap, // costs next to nothing where it is used: only if the result is small
  Value,
};

struct OpFacts {
  FusionKind fusion = FusionKind::None;
  RowAxes rows = RowAxes::None;
  Folding folding = Folding::Value;
  bool selects = false; // reads of its first operand only what its second one points at
};

/// Of an op of the table, or one that is a step of its own (Sequential); the default for all others, and for null.
const OpFacts &factsOf(mlir::Operation *op);
/// The position in the op table; nullopt for other ops.
std::optional<size_t> tableIndexOf(mlir::Operation *op);

/// The same elements in row-major order under another shape.
inline bool isView(mlir::Operation *op) { return factsOf(op).fusion == FusionKind::View; }
/// Costs nothing by itself: kernels repeat it wherever it is needed.
inline bool isFree(mlir::Operation *op) { return isView(op) || factsOf(op).fusion == FusionKind::Free; }
/// Goes along an axis in order, writes anywhere, or is a step of its own: no other op shares its kernel's loops.
inline bool isSequential(mlir::Operation *op) { return factsOf(op).fusion == FusionKind::Sequential; }
/// Reads its operands many times, from memory.
inline bool readsMemory(mlir::Operation *op) {
  return factsOf(op).fusion == FusionKind::Window || factsOf(op).fusion == FusionKind::Contract;
}

} // namespace burin::passes
