// Bugs for burin bisect to find. Each one spoils what one pass, or code generation, has just made, in the way that a
// mistake in it would; without the pass there is no bug.
#pragma once
#include "codegen/Compiler.h"

namespace burin::test {

/// The options of a compiler with the bug of this name; nullopt if there is none.
std::optional<codegen::CompileOptions> compilerWithBug(llvm::StringRef name);

} // namespace burin::test
