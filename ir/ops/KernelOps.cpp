#include "ir/dialect/Contract.h"

using namespace burin::ir;

#define GET_OP_CLASSES
#include "ir/KernelOps.cpp.inc"
