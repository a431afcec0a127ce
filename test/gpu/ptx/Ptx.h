// The code that a GPU's driver gets.
#pragma once
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace burin::test {

/// The assembler of a CUDA toolkit: $BURIN_PTXAS, or that in $PATH or /usr/local/cuda/bin, or "".
std::string findPtxas();

/// What it says of a kernel.
struct AssembledKernel {
  std::string entry;
  int registers = 0, spilledBytes = 0, sharedBytes = 0;
};
/// Throws std::runtime_error with all that it prints if it refuses the text or warns.
std::vector<AssembledKernel> assembled(const std::string &ptx, const std::string &target, const std::string &ptxas);

/// PTX of optimised kernels. Where $BURIN_PTXAS names an assembler, it must take the text. Throws std::runtime_error.
std::string checkedPtx(const llvm::Module &kernels, const std::string &target);

} // namespace burin::test
