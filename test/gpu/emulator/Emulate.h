// Makes the optimised LLVM IR of GPU kernels run on this processor, in this process: special registers, barriers and
// shuffles become calls of the emulator in Simt.h, and every access of global or shared memory is reported to it.
#pragma once
#include "codegen/Compiler.h"

namespace burin::test {

/// For codegen::CompileOptions::emulate. Throws std::runtime_error where the kernels use what the emulator lacks.
codegen::CompileOptions::GpuImage emulated(llvm::Module &kernels, llvm::ArrayRef<std::string> symbols);
/// The same for the driver for tests, which launches groups of blocks one by one. Otherwise one task is all of them.
codegen::CompileOptions::GpuImage emulatedByGroups(llvm::Module &kernels, llvm::ArrayRef<std::string> symbols);

} // namespace burin::test
