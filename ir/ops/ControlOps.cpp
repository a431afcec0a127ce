#include "ir/dialect/Burin.h"

using namespace burin::ir;

#define GET_OP_CLASSES
#include "ir/ControlOps.cpp.inc"
