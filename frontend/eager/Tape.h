// The tape of eager calls: which op has made a tensor of what, for backward() to walk.
#pragma once
#include "burin/gradients.h"
#include "frontend/eager/RowGradient.h"
#include "frontend/tensor/TensorState.h"
#include <functional>
#include <mutex>

namespace burin::detail {

/// Result `result` of a call on the tape, or a leaf (then 0).
struct TapeEdge {
  std::shared_ptr<TapeNode> node; // null: no gradient flows there
  uint32_t result = 0;
};

using GradientHook = std::function<Tensor(const Tensor &gradient)>;

/// Something that gradients flow into: a recorded call, or a leaf. A node refers to those that it was made from, never
/// to those made from it.
class TapeNode : public std::enable_shared_from_this<TapeNode> {
public:
  TapeNode(const char *op, const Location &place);
  virtual ~TapeNode();
  TapeNode(const TapeNode &) = delete;
  TapeNode &operator=(const TapeNode &) = delete;

  /// The gradients of the operands, by edge; an undefined one is zero. `gradients` are those of the results. With
  /// `recorded`, what is computed goes onto the tape itself.
  virtual std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) = 0;
  /// Adds the gradient to a leaf that keeps rows, instead of propagate(); false: it cannot.
  virtual bool leaveRows(std::span<const Tensor>) { return false; }
  /// Drops what was saved for propagate(), which may not be called again.
  virtual void release() {}

  const uint64_t sequence; // nodes made later have larger numbers
  const char *const op;    // never freed
  const Location place;
  std::vector<TapeEdge> edges; // by operand
  std::vector<TensorSpec> results;
  bool released = false;
  std::vector<std::pair<uint32_t, GradientHook>> hooks; // by result, in order of registration
};

/// A tensor that the user wants the gradient of: a parameter, or one after requires_grad_().
class TapeLeaf : public TapeNode {
public:
  TapeLeaf(const TensorSpec &spec, const Location &place) : TapeNode("leaf", place) { results.push_back(spec); }
  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) override;
  /// The whole gradient; undefined if there is none.
  Tensor gradient() const;
  void setGradient(Tensor gradient);
  void addRows(RowGradient part);
  /// nullopt: there is none, or it is not kept by rows.
  std::optional<RowGradient> rowGradient() const;
  bool keepsRows = false; // see detail::keepRows

private:
  mutable std::mutex mutex;
  Tensor sum;                     // without the rows
  std::vector<RowGradient> parts; // to be added
};

/// Whether this thread records calls (see NoGrad).
bool isGradEnabled();
/// The edge to what has made a tensor; null for one that needs no gradient.
TapeEdge edgeOf(const Tensor &tensor);
/// Whether a call on these operands is to be recorded. Null operands are absent ones.
bool isRecorded(std::span<const Tensor *const> operands);
/// The same value as a result of a node.
Tensor withEdge(const Tensor &tensor, TapeEdge edge);
/// Throws if a float tensor holds a NaN or an infinity; `what` tells which tensor of the op it is. Waits for it.
void checkFinite(const Tensor &tensor, const char *op, const Location &place, const char *what);
/// The same value, cut off from the tape.
Tensor withoutEdge(const Tensor &tensor);

/// Walks the tape from `roots`, whose gradients are `seeds`. Without targets, gradients are added to the leaves; else
/// those of the targets are returned, undefined where the roots do not depend on one, and leaves are left alone.
/// Without `hooksOfTargets`, hooks of the targets are not called.
std::vector<Tensor> runBackward(std::span<const TapeEdge> roots, std::vector<Tensor> seeds,
                                std::optional<std::span<const TapeEdge>> targets, const BackwardOptions &options,
                                const Location &where, bool hooksOfTargets = true);

} // namespace burin::detail
