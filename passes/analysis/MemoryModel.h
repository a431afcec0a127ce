// The memory that a function of kernels needs while it runs, step by step, as the launch plan will have it.
#pragma once
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/MemoryLimit.h"

namespace burin::passes {

/// Steps of a function and the values between them. Values are numbered; a step may be a copy of another one's op.
struct MemoryModel {
  using ValueId = uint32_t;
  struct Value {
    mlir::Value source;     // what it is, or is a copy of
    int64_t bytes = 0;      // as many as it may have, if its size is symbolic
    bool isBuffer = false;  // lies in the arena; else it is an argument, a constant, or a result of the function
    bool isShared = false;  // with the initial state of a loop
    bool isComputed = true; // by a kernel
  };
  struct Step {
    mlir::Operation *op = nullptr;
    llvm::SmallVector<ValueId> inputs, results; // one per operand and result of the op
    int64_t innerBytes = 0;                     // of the functions that it runs
    llvm::SmallVector<ValueId> overwritten;     // arguments whose memory its results take over: states
  };
  std::vector<Value> values;
  std::vector<Step> steps;
  llvm::DenseMap<mlir::Value, ValueId> idOf; // of what is in memory: views are looked through

  ValueId add(Value value) {
    values.push_back(value);
    return ValueId(values.size() - 1);
  }
};

/// What symbolic sizes are taken for: their upper bounds, or something usual.
enum class SizesAs { Most, Typical };

/// With SizesAs::Most fails, with an error at the op, where a size has no upper bound.
mlir::FailureOr<MemoryModel> memoryModelOf(mlir::func::FuncOp function, SizesAs sizes);

/// When the values of a model live, and how much memory they take.
struct Liveness {
  std::vector<uint32_t> first, last;      // steps, both ends included; of values that nobody reads they are equal
  std::vector<MemoryModel::ValueId> home; // the value in whose buffer it lies: its own number, or another's
  std::vector<int64_t> live;              // bytes of buffers during each step
  llvm::DenseMap<MemoryModel::ValueId, uint32_t> overwrittenAt; // arguments that a step writes over

  size_t peak() const; // the first step with the most bytes
  int64_t peakBytes() const { return live.empty() ? 0 : live[peak()]; }
};

/// Whether a result of a kernel may lie where an input does, asked often and answered once.
class TakeOverCache {
public:
  bool mayTakeOver(mlir::Operation *kernel, unsigned result, unsigned input);

private:
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, bool> known;
};

Liveness livenessOf(const MemoryModel &model, TakeOverCache &cache);

/// The buffers of the arena; what functions that are run need counts as one.
std::vector<BufferRange> buffersOf(const MemoryModel &model, const Liveness &liveness);

/// Bytes of a value; of a symbolic size the most that it may have. nullopt if there is no bound.
std::optional<int64_t> mostBytes(mlir::Value v);

} // namespace burin::passes
