// Buffer reuse: whether a kernel may store a result in the buffer of one of its inputs.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether result number `result` may use the buffer of input number `input`: the kernel reads each element of the
/// input only where it writes the same element of the result. Other readers of the input are the caller's concern.
bool mayReuseBuffer(ir::KernelOp kernel, unsigned result, unsigned input);

/// The index of the input that a kernel overwrites with this result, or -1.
int64_t overwrittenInput(ir::KernelOp kernel, unsigned result);

/// Whether kernels of the block write its result `result` over its argument `argument`, perhaps in several steps.
bool overwrites(mlir::Block &block, unsigned result, unsigned argument);

/// Whether a carried state of a loop needs two buffers: each iteration writes the one that it does not read.
bool alternates(ir::ScanOp scan, unsigned state);

} // namespace burin::passes
