// Kernels as PTX, which the CUDA driver for tests runs on the emulator.
#pragma once
#include "codegen/Compiler.h"

namespace burin::test {

/// For codegen::CompileOptions::emulate, where the only GPU among the targets is this one: the PTX, which the driver
/// for tests knows from now on.
decltype(codegen::CompileOptions::emulate) ptxForFakeDriver(const std::string &target);

} // namespace burin::test
