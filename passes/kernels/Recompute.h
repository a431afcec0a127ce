// Kernels that compute a value again, or store it in fewer bytes; a function made of steps that have been planned.
#pragma once
#include "passes/analysis/MemoryModel.h"
#include <unordered_map>

namespace burin::passes {

/// A kernel that gives a value once more, from values that the model knows.
struct Recipe {
  ir::KernelOp kernel;                            // null: there is none
  unsigned result = 0;                            // of the kernel
  llvm::SmallVector<MemoryModel::ValueId> inputs; // per operand
  int64_t flops = 0;
  double seconds = 0; // about
};

/// The recipes of the values of a model, made when they are asked for. Kernels that are no part of the function are
/// erased with the object.
class Recipes {
public:
  explicit Recipes(MemoryModel &model) : model(model) {}
  ~Recipes() { clear(); }
  Recipes(const Recipes &) = delete;
  Recipes &operator=(const Recipes &) = delete;

  /// Of an original value. A result of a kernel with several is computed alone, and from the other results where it
  /// depends on them: the rest of the kernel is not repeated. Kernels that can fail are not repeated.
  const Recipe &of(MemoryModel::ValueId value);
  /// To bf16 and back; the first one's result is a new value of the model.
  struct Narrowing {
    Recipe down, up;
  };
  const Narrowing &narrowing(MemoryModel::ValueId value);
  void clear();
  /// About how long a kernel takes.
  static double secondsFor(int64_t flops, int64_t bytes);

private:
  MemoryModel &model;
  std::unordered_map<MemoryModel::ValueId, Recipe> known; // references stay valid
  std::unordered_map<MemoryModel::ValueId, Narrowing> narrowings;
  std::vector<ir::KernelOp> made;

  Recipe make(mlir::Value value);
  ir::KernelOp castKernel(mlir::Value from, DType to);
  ir::KernelOp slice(ir::KernelOp kernel, unsigned result, bool stopsAtResults);
  Recipe finish(ir::KernelOp kernel, unsigned result);
};

/// Makes the steps of the model those of the function, in their order; kernels that are no steps are erased, and so are
/// the recipes.
void applySteps(mlir::func::FuncOp function, const MemoryModel &model, Recipes &recipes);

} // namespace burin::passes
