// Targets for GPUs by the precision of their f32 products.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace burin::codegen {

/// The name of the target for GPUs of a compute capability. Precision, in PyTorch's words: "highest" (f32; also ""),
/// "high" (bf16x3) or "medium" (tf32). The name of another precision is part of a name that findTarget() does not know.
std::string gpuTarget(int major, int minor, llvm::StringRef precision);
/// The environment variable BURIN_MATMUL_PRECISION, or "": the precision of eager calls, jitted functions and graphs on
/// GPUs that are compiled for no target by name.
llvm::StringRef matmulPrecision();

} // namespace burin::codegen
