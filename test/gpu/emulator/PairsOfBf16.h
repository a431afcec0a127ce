// Pairs of bf16 in kernels that run on this processor.
#pragma once
#include "llvm/IR/Function.h"

namespace burin::test {

/// Passes pairs of bf16 from block to block, and from integers to integers, as their bits: code for this processor
/// would convert each by a library.
void carryPairsAsBits(llvm::Function &kernel);

} // namespace burin::test
