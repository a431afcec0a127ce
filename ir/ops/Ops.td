// All op families in the order of the reference pages; opgen.py reads this file.
#ifndef BURIN_OPS
#define BURIN_OPS
include "ir/ops/ElementwiseOps.td"
include "ir/ops/ReductionOps.td"
include "ir/ops/ShapeOps.td"
include "ir/ops/ContractionOps.td"
include "ir/ops/NeuralOps.td"
include "ir/ops/KernelOps.td"
include "ir/ops/ControlOps.td"
#endif
