// Bugs for burin bisect to find. Each one damages the result of one pass, or of code generation, as a mistake in it
// would; if the pass is disabled, the bug is gone.
#pragma once
#include "codegen/Compiler.h"

namespace burin::test {

/// Returns the options of a compiler with the named bug, or nullopt for an unknown name.
std::optional<codegen::CompileOptions> compilerWithBug(llvm::StringRef name);

} // namespace burin::test
