// Compiles graphs and runs them on arrays in memory.
#pragma once
#include "burin/dim.h"
#include "codegen/Compiler.h"
#include "runtime/npy/Npy.h"
#include <algorithm>
#include <map>

namespace burin::cli {

/// Values of symbolic sizes.
using Sizes = std::map<std::string, int64_t, std::less<>>;

/// Consumes the module. nullopt, with the problem in the context's diagnostics or
/// on stderr.
std::optional<std::vector<rt::NpyArray>> compileAndRun(mlir::ModuleOp module, const codegen::CompileOptions &options,
                                                       const std::vector<rt::NpyArray> &inputs, int threads);

/// The size that a symbol has where none is given: 1, or the nearest one in its range.
inline int64_t smallSize(const burin::Dim::Symbol &symbol) { return std::clamp<int64_t>(1, symbol.min, symbol.max); }

/// What @main is given: `given`, by name, where it fits, else random numbers. Sizes that are not in `sizes` are small,
/// and come to stand there.
std::vector<rt::NpyArray> randomInputs(mlir::ModuleOp module, uint64_t seed, Sizes &sizes,
                                       const std::map<std::string, rt::NpyArray> &given = {});

/// The sizes that these inputs of @main show.
Sizes sizesOf(mlir::ModuleOp module, const std::vector<std::vector<int64_t>> &shapes);

} // namespace burin::cli
