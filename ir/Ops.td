// All op families in the order of the reference pages; opgen.py reads this file.
#ifndef BURIN_OPS
#define BURIN_OPS
include "ir/ElementwiseOps.td"
include "ir/ReductionOps.td"
include "ir/ShapeOps.td"
include "ir/ContractionOps.td"
include "ir/NeuralOps.td"
include "ir/KernelOps.td"
#endif
