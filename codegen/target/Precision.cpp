#include "codegen/target/Precision.h"
#include <cstdlib>

namespace burin::codegen {

std::string gpuTarget(int major, int minor, llvm::StringRef precision) {
  std::string name = major == 9 && minor == 0 ? "cuda-sm_90a+ptx" : "cuda-sm_80+ptx";
  if (precision.empty() || precision == "highest")
    return name;
  return name + "+" + (precision == "high" ? "bf16x3" : precision == "medium" ? "tf32" : precision.str());
}

// Read once: code that is compiled for eager calls is kept by op and sizes.
llvm::StringRef matmulPrecision() {
  static const char *given = std::getenv("BURIN_MATMUL_PRECISION");
  return given ? given : "";
}

} // namespace burin::codegen
