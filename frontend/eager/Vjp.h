// The gradient of one op on operands of certain types, compiled: a vector-Jacobian product.
#pragma once
#include "frontend/execute/Executable.h"
#include "frontend/trace/GraphData.h"
#include "ir/infer/OpInfo.h"
#include <map>

namespace burin::detail {

/// A call as the user has written it: operand types before promotion and broadcasting.
struct CallForm {
  const ir::OpInfo &info;
  std::vector<std::optional<TensorSpec>> operands; // scalars with the element type that they are passed as
  std::vector<ir::Attr> attrs;
  std::vector<TensorSpec> results;
  std::vector<bool> isNeeded; // by operand: whether its gradient is
};

/// What computes a vector-Jacobian product. Tensors are numbered as operands, then results, then their gradients.
struct VjpPlan {
  /// Where the gradient of an operand comes from.
  struct Source {
    enum Kind { Zero, Input, Output } kind = Zero; // Input: a tensor by its number, in the operand's shape
    size_t index = 0;
  };
  std::vector<Source> sources;                // by operand
  std::vector<size_t> inputs;                 // of the graph, by number
  std::vector<TensorSpec> outputs;            // of the graph; empty: there is no graph
  mutable std::shared_ptr<Graph::Data> graph; // until it is compiled
};

/// Made once per form; thread-safe.
class Vjp {
public:
  explicit Vjp(CallForm form);
  ~Vjp();

  /// Whether the gradients depend on the elements of operand i, of result i. A tape keeps these.
  bool readsOperand(size_t i) const { return readsOperands[i]; }
  bool readsResult(size_t i) const { return readsResults[i]; }
  const CallForm &call() const { return form; }

  /// The gradients of the operands, undefined where they are zero or not needed, from those of the results. What is not
  /// read may be undefined. Runs compiled code.
  std::vector<Tensor> run(std::span<const Tensor> operands, std::span<const Tensor> results,
                          std::span<const Tensor> gradients, const Location &where) const;
  /// The same by calls of single ops, which can be recorded. What is not read must be there but may have any value.
  std::vector<Tensor> runRecorded(std::span<const Tensor> operands, std::span<const Tensor> results,
                                  std::span<const Tensor> gradients, const Location &where) const;

private:
  CallForm form;
  std::vector<bool> readsOperands, readsResults;
  std::optional<VjpPlan> plan; // nullopt: only runRecorded can do it
  mutable std::mutex mutex;
  mutable std::map<int, ExecutableRef> executables; // by the number of the GPU; -1: for the processor

  std::string key() const;
  ExecutableRef executableFor(Device device, const Location &where) const;
};

} // namespace burin::detail
