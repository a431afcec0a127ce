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

/// Compiles and runs the module, which is consumed. Returns nullopt on failure, with the reason in the context's
/// diagnostics or on stderr.
std::optional<std::vector<rt::NpyArray>> compileAndRun(mlir::ModuleOp module, const codegen::CompileOptions &options,
                                                       const std::vector<rt::NpyArray> &inputs, int threads);

/// The default value of a symbol: the value in its range that is nearest to 1.
inline int64_t smallSize(const burin::Dim::Symbol &symbol) { return std::clamp<int64_t>(1, symbol.min, symbol.max); }

/// Returns inputs for @main: those of `given` with the same name, type and shape, and random numbers for the others.
/// Symbols that `sizes` does not name get their default, which is added to `sizes`.
std::vector<rt::NpyArray> randomInputs(mlir::ModuleOp module, uint64_t seed, Sizes &sizes,
                                       const std::map<std::string, rt::NpyArray> &given = {});

/// Returns the values of the symbols for inputs of @main of these shapes.
Sizes sizesOf(mlir::ModuleOp module, const std::vector<std::vector<int64_t>> &shapes);

} // namespace burin::cli
