// Model of the memory that a function of kernels needs, step by step, as the launch plan will place it.
#pragma once
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/MemoryLimit.h"

namespace burin::passes {

/// The steps of a function and the values between them. Values are numbered; a step may be a copy of another step's op.
struct MemoryModel {
  using ValueId = uint32_t;
  struct Value {
    mlir::Value source;     // the value of the function that this one is, or is a copy of
    int64_t bytes = 0;      // upper bound or typical size, if the size is symbolic
    bool isBuffer = false;  // in the arena; otherwise an argument, a constant, or a result of the function
    bool isShared = false;  // shares its buffer with the initial state of a loop
    bool isComputed = true; // result of a kernel
  };
  struct Step {
    mlir::Operation *op = nullptr;
    llvm::SmallVector<ValueId> inputs, results; // one per operand and result of the op
    int64_t innerBytes = 0;                     // peak of the functions that it runs
    llvm::SmallVector<ValueId> overwritten;     // arguments that its results overwrite: states
  };
  std::vector<Value> values;
  std::vector<Step> steps;
  llvm::DenseMap<mlir::Value, ValueId> idOf; // of values in memory; views are looked through

  ValueId add(Value value) {
    values.push_back(value);
    return ValueId(values.size() - 1);
  }
};

/// Values assumed for symbolic sizes: upper bounds, or kTypicalSize.
enum class SizesAs { Most, Typical };

/// With SizesAs::Most, emits an error at the op and fails if a size has no upper bound.
mlir::FailureOr<MemoryModel> memoryModelOf(mlir::func::FuncOp function, SizesAs sizes);

/// Live ranges of the values of a model and the memory that they take.
struct Liveness {
  std::vector<uint32_t> first, last;      // first and last step, both included; equal for values that no step reads
  std::vector<MemoryModel::ValueId> home; // the value whose buffer it uses: itself, or an input that it overwrites
  std::vector<int64_t> live;              // bytes of buffers during each step
  llvm::DenseMap<MemoryModel::ValueId, uint32_t> overwrittenAt; // step that overwrites an argument

  size_t peak() const; // the first step with the most bytes
  int64_t peakBytes() const { return live.empty() ? 0 : live[peak()]; }
};

/// Caches mayTakeOver.
class TakeOverCache {
public:
  bool mayTakeOver(mlir::Operation *kernel, unsigned result, unsigned input);

private:
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, bool> known;
};

Liveness livenessOf(const MemoryModel &model, TakeOverCache &cache);

/// The buffers of the arena. The memory of functions that a step runs counts as one buffer.
std::vector<BufferRange> buffersOf(const MemoryModel &model, const Liveness &liveness);

/// Upper bound of the bytes of a value; nullopt if there is none.
std::optional<int64_t> mostBytes(mlir::Value v);

} // namespace burin::passes
