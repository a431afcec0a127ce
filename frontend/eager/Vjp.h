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
  std::vector<Source> sources;                // by operand
  std::vector<size_t> inputs;                 // of the graph, by number
  std::vector<TensorSpec> outputs;            // of the graph; empty: there is no graph
  mutable std::shared_ptr<Graph::Data> graph; // until it has been compiled
};

/// Created once per call and operands that need a gradient; thread-safe.
class Vjp {
public:
  Vjp(std::shared_ptr<const EagerCall> call, std::vector<bool> isNeeded);
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
  std::optional<VjpPlan> plan; // nullopt: use runRecorded
  mutable std::mutex mutex;
  mutable std::map<int, ExecutableRef> executables; // by GPU; -1: CPU
  mutable std::vector<Shape> shapesOfStrictOp;      // of its results, once a gradient was recorded

  ExecutableRef executableFor(Device device, const Location &where) const;
  const std::vector<Shape> &strictShapes(const Location &where) const;
};

} // namespace burin::detail
