// Model of the buffers that a function of kernels needs, step by step, as the launch plan will place them: which are
// live at each step, and how many bytes they take. Two passes use it: OrderKernels to find an order that needs less
// memory, LimitMemory to choose values that are recomputed.
#pragma once
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/MemoryLimit.h"

namespace burin::passes {

/// The steps of a function and the values that they read and write, by number. The model can be changed without the IR:
/// for a value that is to be recomputed, a step and a value are added whose `op` and `source` are the original ones.
struct MemoryModel {
  using ValueId = uint32_t;
  struct Value {
    mlir::Value source;     // the value of the function that this one is, or is a copy of
    int64_t bytes = 0;      // by SizesAs, if the size is symbolic
    bool isBuffer = false;  // in the arena; otherwise an argument, a constant, or a result of the function
    bool isShared = false;  // the states of a loop, whose initial value is stored in the same buffer
    bool isComputed = true; // result of a kernel
  };
  struct Step {
    mlir::Operation *op = nullptr;
    llvm::SmallVector<ValueId> inputs, results; // one per operand and result of the op
    int64_t innerBytes = 0;                     // peak of the functions that it runs
    llvm::SmallVector<ValueId> overwritten;     // arguments of the function (states) that its results overwrite
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
enum class SizesAs { UpperBounds, Typical };

/// With SizesAs::UpperBounds, emits an error at the op and fails if a size has no upper bound.
mlir::FailureOr<MemoryModel> memoryModelOf(mlir::func::FuncOp function, SizesAs sizes);

/// Live ranges of the values of a model and the memory that they take.
struct Liveness {
  std::vector<uint32_t> first, last; // first and last step, both included; equal for values that no step reads
  std::vector<MemoryModel::ValueId> bufferOwner; // value whose buffer holds it: itself, or an input that it overwrites
  std::vector<int64_t> live;                     // bytes of buffers during each step
  llvm::DenseMap<MemoryModel::ValueId, uint32_t> overwrittenAt; // step that overwrites an argument

  size_t peak() const; // the first step with the most bytes
  int64_t peakBytes() const { return live.empty() ? 0 : live[peak()]; }
};

/// Caches mayReuseBuffer, which infers an iteration space in each call.
class BufferReuseCache {
public:
  bool mayReuseBuffer(mlir::Operation *kernel, unsigned result, unsigned input);

private:
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, bool> known;
};

Liveness livenessOf(const MemoryModel &model, BufferReuseCache &cache);

/// The buffers of the arena. The memory of functions that a step runs counts as one buffer.
std::vector<BufferRange> buffersOf(const MemoryModel &model, const Liveness &liveness);

/// Upper bound of the bytes of a value; nullopt if there is none.
std::optional<int64_t> maxBytes(mlir::Value v);

} // namespace burin::passes
