// Where gradients of a traced function's results would flow if its ops were recorded eagerly.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin {

/// What a result depends on, except through detach(), NoGrad, and gradients computed by the function.
struct Origins {
  std::vector<size_t> arguments;
  std::vector<const detail::Cell *> cells;               // parameters and buffers
  std::vector<std::weak_ptr<detail::TapeNode>> captured; // of tensors that are constants of the graph
};

/// Notes what a trace records during its lifetime, on this thread.
class OriginNotes {
public:
  explicit OriginNotes(const Trace &trace);
  ~OriginNotes();
  OriginNotes(const OriginNotes &) = delete;

  /// The notes about a trace; null if there are none.
  static OriginNotes *of(const Trace &trace);
  /// For its lifetime, on this thread, new values are constants for gradients that callers take. The function itself
  /// can differentiate them: they are gradients.
  class Constants {
  public:
    Constants();
    ~Constants();
    Constants(const Constants &) = delete;

  private:
    const bool before;
  };
  /// The trace has just made `value`.
  void made(mlir::Value value);
  bool isConstant(mlir::Value value) const { return constants.contains(value) || trace.isDetached(value); }
  /// `value` is that of a cell.
  void leaf(mlir::Value value, const detail::Cell *cell) { cells[value] = cell; }
  /// `value` is a captured tensor that requires a gradient.
  void leaf(mlir::Value value, const std::shared_ptr<detail::TapeNode> &node) { captured[value].push_back(node); }
  /// `value` has a custom gradient, which flows to `operands`.
  void custom(mlir::Value value, std::vector<mlir::Value> operands) { customs[value] = std::move(operands); }

  Origins originsOf(const Tensor &result, const Location &where) const;

private:
  const Trace &trace;
  OriginNotes *const outer;
  llvm::DenseSet<mlir::Value> constants;
  llvm::DenseMap<mlir::Value, const detail::Cell *> cells;
  llvm::DenseMap<mlir::Value, std::vector<std::weak_ptr<detail::TapeNode>>> captured;
  llvm::DenseMap<mlir::Value, std::vector<mlir::Value>> customs;

  void addTo(Origins &found, mlir::Value value, llvm::SmallVectorImpl<mlir::Value> &open) const;
};

} // namespace burin
