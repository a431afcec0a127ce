// Kernels as PTX, which the CUDA driver for tests runs on the emulator.
#pragma once
#include "codegen/Compiler.h"

namespace burin::test {

inline constexpr const char *kGpuTarget = "cuda-sm_80+ptx";

/// For codegen::CompileOptions::emulate: the PTX, which the driver for tests knows from now on.
codegen::CompileOptions::GpuImage ptxForFakeDriver(llvm::Module &kernels, llvm::ArrayRef<std::string> symbols);

} // namespace burin::test
