// Buffer reuse: whether a kernel may store a result in the buffer of one of its inputs.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether result number `result` may use the buffer of input number `input`: the kernel reads each element of the
/// input only where it writes the same element of the result. Other readers of the input are the caller's concern.
bool mayReuseBuffer(ir::KernelOp kernel, unsigned result, unsigned input);

} // namespace burin::passes
