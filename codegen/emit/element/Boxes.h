// Boxes of non-maximum suppression: their ends, areas and overlaps.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"
#include "codegen/scalar/base/Scalar.h"

namespace burin::codegen {

/// The element type in which overlaps are computed.
DType overlapType(ir::NonMaxSuppressionOp);
/// Low and high end of a box along each axis, then its area.
SmallVector<Scalar> boxAt(ElementEmitter &, ir::NonMaxSuppressionOp, Value batch, Value index);
/// Whether two such boxes overlap by more than the threshold.
Scalar overlap(ArrayRef<Scalar> box, ArrayRef<Scalar> other, ir::NonMaxSuppressionOp);

} // namespace burin::codegen
