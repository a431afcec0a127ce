// Which results of a kernel may lie in the memory of one of its inputs.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether the kernel works if result number `result` lies where input number `input` does: it reads each element of
/// the input only where it writes the same element of the result. Who else reads the input is not asked.
bool mayTakeOver(ir::KernelOp kernel, unsigned result, unsigned input);

} // namespace burin::passes
