// Buffer reuse: whether a kernel may store a result in the buffer of one of its inputs.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::passes {

/// Whether result number `result` may use the buffer of input number `input`: the kernel reads each element of the
/// input only where it writes the same element of the result. Other readers of the input are the caller's concern.
bool mayReuseBuffer(ir::KernelOp kernel, unsigned result, unsigned input);

/// The operand that a kernel or branch overwrites with this result, or -1.
int64_t overwrittenInput(mlir::Operation *op, unsigned result);

/// Whether steps of the block write its result `result` over its argument `argument`, perhaps one after the other.
bool overwrites(mlir::Block &block, unsigned result, unsigned argument);

/// Whether a carried state of a loop needs two buffers: each iteration writes the one that it does not read.
bool alternates(ir::ScanOp scan, unsigned state);

/// Whether the iterations overwrite this carried value.
bool isUpdatedInPlace(ir::WhileOp loop, unsigned carried);

/// Whether this is an initial value that a loop overwrites, or stores the values of the iterations behind.
bool isInitialInPlace(mlir::OpOperand &operand);

/// If `v` is the initial value of a loop and nothing else, and in memory of the loop: the operand; null otherwise.
mlir::OpOperand *initialInPlace(mlir::Value v);

/// Whether the kernel yields its only input as it is, in its place: it has nothing to do.
bool isIdentity(ir::KernelOp kernel);

} // namespace burin::passes
