// Kernels that recompute a value or store it in fewer bytes, and the rewrite of a function to planned steps.
#pragma once
#include "passes/analysis/MemoryModel.h"
#include <unordered_map>

namespace burin::passes {

/// A kernel that recomputes a value from other values of the model.
struct Recipe {
  ir::KernelOp kernel;                            // null if there is none
  unsigned result = 0;                            // of the kernel
  llvm::SmallVector<MemoryModel::ValueId> inputs; // per operand of the kernel
  int64_t flops = 0;
  double seconds = 0; // estimate
};

/// Recipes of the values of a model, made on demand. The destructor erases kernels that are not part of the function.
class Recipes {
public:
  explicit Recipes(MemoryModel &model) : model(model) {}
  ~Recipes() { clear(); }
  Recipes(const Recipes &) = delete;
  Recipes &operator=(const Recipes &) = delete;

  /// The recipe of an original value. One result of a kernel with several is recomputed alone, from other results where
  /// it depends on them, without the rest of the kernel. Kernels that can fail are not repeated.
  const Recipe &of(MemoryModel::ValueId value);
  /// Casts to bf16 and back; the result of `down` is a new value of the model.
  struct Narrowing {
    Recipe down, up;
  };
  const Narrowing &narrowing(MemoryModel::ValueId value);
  void clear();
  /// Estimated time of a kernel.
  static double secondsFor(int64_t flops, int64_t bytes);

private:
  MemoryModel &model;
  std::unordered_map<MemoryModel::ValueId, Recipe> known; // std::unordered_map: references stay valid
  std::unordered_map<MemoryModel::ValueId, Narrowing> narrowings;
  std::vector<ir::KernelOp> made;

  Recipe make(mlir::Value value);
  ir::KernelOp castKernel(mlir::Value from, DType to);
  ir::KernelOp slice(ir::KernelOp kernel, unsigned result, bool stopsAtResults);
  Recipe finish(ir::KernelOp kernel, unsigned result);
};

/// Rewrites the function to the steps of the model, in their order. Erases kernels that are no steps, and the recipes.
void applySteps(mlir::func::FuncOp function, const MemoryModel &model, Recipes &recipes);

} // namespace burin::passes
