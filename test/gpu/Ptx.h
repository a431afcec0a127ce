// The code that a GPU's driver gets.
#pragma once
#include "llvm/IR/Module.h"
#include <string>

namespace burin::test {

/// PTX of optimised kernels. Where $BURIN_PTXAS names the assembler of a CUDA toolkit, it must take the text. Throws
/// std::runtime_error.
std::string checkedPtx(const llvm::Module &kernels, const std::string &target);

} // namespace burin::test
