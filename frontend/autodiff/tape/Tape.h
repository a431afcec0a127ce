// The tape of eager calls: the op and operands that made each tensor, for backward().
#pragma once
#include "burin/training/gradients.h"
#include "frontend/autodiff/tape/RowGradient.h"
#include "frontend/tensor/context/GradMode.h"
#include "frontend/tensor/core/TensorState.h"
#include <functional>
#include <mutex>

namespace burin::detail {

/// Result `result` of a node, or a leaf (then 0).
struct TapeEdge {
  std::shared_ptr<TapeNode> node; // null: no gradient flows there
  uint32_t result = 0;
};

using GradientHook = std::function<Tensor(const Tensor &gradient)>;

/// A node that gradients flow into: a recorded call, or a leaf. Nodes refer to their operands, never to their users.
class TapeNode : public std::enable_shared_from_this<TapeNode> {
public:
  TapeNode(const char *op, const Location &place);
  virtual ~TapeNode();
  TapeNode(const TapeNode &) = delete;
  TapeNode &operator=(const TapeNode &) = delete;

  /// The gradients of the operands, by edge; undefined for zero. `gradients` are those of the results. With `recorded`,
  /// the computation itself goes onto the tape.
  virtual std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) = 0;
  /// Adds a gradient to a leaf that stores rows, instead of propagate(). Returns false if that is not possible.
  virtual bool leaveRows(std::span<const Tensor>) { return false; }
  /// Drops the values that propagate() needs; it must not be called again.
  virtual void release() {}

  const uint64_t sequence; // nodes made later have larger numbers
  const char *const op;    // never freed
  const Location place;
  std::vector<TapeEdge> edges; // by operand
  std::vector<TensorSpec> results;
  bool released = false;
  std::vector<std::pair<uint32_t, GradientHook>> hooks; // by result, in order of registration
};

/// A leaf, whose gradient the user wants: a parameter, or a tensor after requires_grad_().
class TapeLeaf : public TapeNode {
public:
  TapeLeaf(const TensorSpec &spec, const Location &place) : TapeNode("leaf", place) { results.push_back(spec); }
  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) override;
  /// The full gradient; undefined if there is none.
  Tensor gradient() const;
  void setGradient(Tensor gradient);
  void addRows(RowGradient part);
  /// nullopt if there is no gradient, or it is not stored by rows.
  std::optional<RowGradient> rowGradient() const;
  bool keepsRows = false; // see detail::keepRows

private:
  mutable std::mutex mutex;
  Tensor sum;                     // without the rows
  std::vector<RowGradient> parts; // to be added
};

/// The gradient of a result of a node after its hooks, which read and replace it.
Tensor afterHooks(const TapeNode &node, uint32_t result, Tensor gradient, const Location &where);

/// For the trace of a function: gradients are recorded as if its callers do, but only they know. is_grad_enabled()
/// throws, unless the function sets the mode itself.
class CallerGradMode {
public:
  CallerGradMode();
  ~CallerGradMode();
  CallerGradMode(const CallerGradMode &) = delete;

private:
  EnableGrad on;
  std::optional<uint64_t> before;
};
/// The edge to the node that made a tensor; null if it needs no gradient.
TapeEdge edgeOf(const Tensor &tensor);
/// Whether a call with these operands is to be recorded. Null operands are absent.
bool isRecorded(std::span<const Tensor *const> operands);
/// The same value as a result of a node.
Tensor withEdge(const Tensor &tensor, TapeEdge edge);
/// Throws if a float tensor has a NaN or an infinity; `what` names the tensor in the error. Waits for the tensor.
void checkFinite(const Tensor &tensor, const char *op, const Location &place, const char *what);
/// The same value without an edge to the tape.
Tensor withoutEdge(const Tensor &tensor);

/// Traverses the tape from `roots`, whose gradients are `seeds`. Without targets, adds gradients to the leaves;
/// otherwise returns those of the targets, undefined if the roots do not depend on one, and does not change leaves.
/// Without `hooksOfTargets`, hooks of the targets are not called.
std::vector<Tensor> runBackward(std::span<const TapeEdge> roots, std::vector<Tensor> seeds,
                                std::optional<std::span<const TapeEdge>> targets, const BackwardOptions &options,
                                const Location &where, bool hooksOfTargets = true);

} // namespace burin::detail
