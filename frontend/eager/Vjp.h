// The compiled gradient of one op for certain operand types: a vector-Jacobian product.
#pragma once
#include "frontend/execute/EagerCall.h"
#include "frontend/execute/Executable.h"
#include "frontend/trace/GraphData.h"
#include <map>

namespace burin::detail {

/// Computation of a vector-Jacobian product. Tensors are numbered: operands, results, gradients of results.
struct VjpPlan {
  /// The gradient of an operand.
  struct Source {
    enum Kind { Zero, Input, Output } kind = Zero; // Input: the tensor of this number, in the operand's shape
    size_t index = 0;
  };
  std::vector<Source> sources; // by operand
  struct Input {
    size_t number;
    bool isForSizes; // only its shape is read: it gives the values of symbols
  };
  std::vector<Input> inputs;          // of the graph
  size_t outputs = 0;                 // of the graph; 0: there is no graph
  std::shared_ptr<Graph::Data> graph; // until it has been compiled
};

/// The code of a vector-Jacobian product, for the sizes of one call or for those of all calls of its form; thread-safe.
class VjpCode {
public:
  /// Throws NoGradient if the op has none, or an Error if there is no code for symbols.
  VjpCode(std::shared_ptr<const EagerCall> call, std::vector<bool> isNeeded);

  const std::vector<VjpPlan::Source> &sources() const { return plan.sources; }
  const std::vector<VjpPlan::Input> &inputs() const { return plan.inputs; }
  size_t outputs() const { return plan.outputs; }
  bool reads(size_t number) const;
  ExecutableRef executableFor(Device device, const Location &where);

private:
  std::shared_ptr<const EagerCall> call;
  std::vector<bool> isNeeded;
  std::mutex mutex;
  VjpPlan plan;
  std::map<int, ExecutableRef> executables; // by GPU; -1: CPU
};

/// Created once per call and operands that need a gradient; thread-safe.
class Vjp {
public:
  /// `isOnHost`: the call runs in host memory, where gradients are compiled for all sizes if possible, and for the
  /// sizes of the call once they repeat; gradients of what only moves elements are moved.
  Vjp(std::shared_ptr<const EagerCall> call, std::vector<bool> isNeeded, bool isOnHost);
  ~Vjp();

  /// Whether the gradients depend on operand i, or on result i. The tape saves these.
  bool readsOperand(size_t i) const { return readsOperands[i]; }
  bool readsResult(size_t i) const { return readsResults[i]; }
  const EagerCall &call() const { return *called; }
  bool needs(size_t i) const { return isNeeded[i]; }

  /// The gradients of the operands from those of the results; undefined if they are zero or not needed. Tensors that
  /// are not read may be undefined. Runs compiled code.
  std::vector<Tensor> run(std::span<const Tensor> operands, std::span<const Tensor> results,
                          std::span<const Tensor> gradients, const Location &where) const;
  /// The same by calls of single ops, which can be recorded. Tensors that are not read must be defined, with any
  /// values.
  std::vector<Tensor> runRecorded(std::span<const Tensor> operands, std::span<const Tensor> results,
                                  std::span<const Tensor> gradients, const Location &where) const;

private:
  std::shared_ptr<const EagerCall> called;
  std::vector<bool> isNeeded; // by operand: whether its gradient is needed
  std::vector<bool> readsOperands, readsResults;
  std::shared_ptr<VjpCode> code;            // null: use runRecorded
  bool isMoved = false, mayImprove = false; // see the constructor
  mutable std::atomic<uint32_t> runs{0};
  mutable std::mutex mutex;                    // guards the members below
  mutable std::shared_ptr<VjpCode> improved;   // for the call's own sizes
  mutable std::vector<Shape> shapesOfStrictOp; // of its results, once a gradient was recorded

  const TensorSpec &specOf(size_t number) const;
  std::vector<Tensor> runCode(VjpCode &code, llvm::ArrayRef<const Tensor *> given, const Location &where) const;
  std::shared_ptr<VjpCode> codeForRun() const;
  const std::vector<Shape> &strictShapes(const Location &where) const;
};

} // namespace burin::detail
