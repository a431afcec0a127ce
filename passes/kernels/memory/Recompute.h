// Kernels that recompute a value or store it in fewer bytes, and the rewrite of a function to planned steps.
#pragma once
#include "passes/analysis/cost/MemoryModel.h"
#include <unordered_map>

namespace burin::passes {

/// A value that is not kept.
struct MemoryChange {
  enum class Kind { Again, Later, Narrow } kind; // recomputed; computed later; stored in bf16 in between
  mlir::Value value;
  int64_t bytes = 0, flops = 0;    // bytes saved; FLOP added
  mlir::Operation *next = nullptr; // the step that uses it next
  double seconds = 0;              // estimate of the time added
};

/// A kernel or loop that recomputes a value from other values of the model.
struct Recipe {
  mlir::Operation *op = nullptr;                  // null if there is none
  unsigned result = 0;                            // of the op
  llvm::SmallVector<MemoryModel::ValueId> inputs; // per operand of the op
  int64_t innerBytes = 0;                         // peak of the functions that it runs
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
  /// it depends on them, without the rest of the kernel. What can fail or has effects is not repeated.
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

  Recipe make(MemoryModel::ValueId id);
  Recipe loop(ir::ScanOp scan, unsigned result);
  ir::KernelOp castKernel(mlir::Value from, DType to);
  ir::KernelOp slice(ir::KernelOp kernel, unsigned result, bool stopsAtResults);
  Recipe finish(mlir::Operation *op, unsigned result, int64_t flops);
};

/// Removes kernels whose results are not read.
void removeUnused(MemoryModel &model);

/// Rewrites the function to the steps of the model, in their order. Erases kernels that are no steps, and the recipes.
void applySteps(mlir::func::FuncOp function, const MemoryModel &model, Recipes &recipes);

} // namespace burin::passes
