// Recording of the ops that a function calls.
#pragma once
#include "burin/control.h"
#include "burin/gradients.h"
#include "burin/observed.h"
#include "burin/vmap.h"
#include "frontend/tensor/Cell.h"
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/TensorState.h"
#include "frontend/trace/GraphData.h"
#include "ir/reference/ReferenceTensor.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>

namespace burin {

namespace detail {
/// Throws unless the states that a step returns can be given to the next one. `op` and `step` are how messages call
/// them.
void checkStates(const std::vector<Tensor> &before, const std::vector<Tensor> &after, const Location &where,
                 const char *op = "scan", const char *step = "step");
} // namespace detail

/// Something a trace has read that may change later.
struct Guard {
  std::shared_ptr<const detail::Observed> state;
  uint64_t version;
  std::shared_ptr<detail::Cell> cell = nullptr; // the same, if it is one
  bool holds() const { return state->version == version; }
};

/// A state of a traced function: inputs and outputs of the graph behind those of the caller.
struct StateUse {
  std::shared_ptr<detail::Cell> cell;
  size_t input = 0;
  std::optional<size_t> output; // nullopt: it is only read
};

/// One function being traced on one thread.
class Trace {
public:
  struct Input {
    TensorSpec spec;
    bool weak = false; // a number: `spec` is what it is alone, the graph takes the widest type of its class
  };
  /// Records the one function of a graph. `names` are the weights' names.
  Trace(std::span<const Input> inputs, std::vector<std::string> inputNames, const detail::TensorNames &names,
        const Location &where)
      : Trace(std::make_shared<Graph::Data>(), "main", inputs, std::move(inputNames), names, where) {}
  /// Adds a function to `graph`.
  Trace(std::shared_ptr<Graph::Data> graph, std::string name, std::span<const Input> inputs,
        std::vector<std::string> inputNames, const detail::TensorNames &names, const Location &where);

  /// The trace of this thread, or null.
  static Trace *active();
  /// Makes a trace the active one.
  class Recording {
    Trace *outer;

  public:
    explicit Recording(Trace &trace);
    ~Recording();
    Recording(const Recording &) = delete;
  };

  const std::vector<Tensor> &inputs() const { return arguments; }
  std::vector<Tensor> call(const ir::OpInfo &info, std::span<const Tensor *const> operands, std::vector<ir::Attr> attrs,
                           const Location &where);
  ScanResult scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs, bool reverse,
                  const Location &where);
  /// See host.h.
  void debugPrint(const Tensor &x, const std::string &label, const Location &where);
  std::vector<Tensor> hostCall(detail::Function function, std::span<const TensorSpec> results,
                               const std::vector<Tensor> &operands, const Location &where);
  /// See control.h.
  std::vector<Tensor> cond(const Tensor &condition, const detail::Branch &then, const detail::Branch &otherwise,
                           const Location &where);
  std::vector<Tensor> whileLoop(const detail::LoopCondition &condition, const detail::LoopBody &body,
                                const std::vector<Tensor> &initial, const Location &where);
  /// A run fails where `condition` does not hold for all elements: the results of the function, branch or loop that is
  /// being recorded depend on it.
  void check(const Tensor &condition, const std::string &message, const Location &where);
  /// A symbol for the size of a result of `op` that is not known before a run.
  Dim newSize(const std::string &op);
  /// What the function returns; nothing is recorded afterwards.
  void setResults(std::span<const Tensor> results, std::vector<std::string> outputNames, const Location &where);
  /// Decides which cells are states, and completes the function.
  void close(const Location &where);
  /// A graph whose functions are all closed.
  static Graph verified(std::shared_ptr<Graph::Data> graph, const Location &where);
  /// Both, for the only function; the graph.
  Graph finish(std::span<const Tensor> results, std::vector<std::string> outputNames, const Location &where) {
    setResults(results, std::move(outputNames), where);
    close(where);
    return verified(graph, where);
  }
  /// Takes the function out of the graph again.
  void discard();
  /// The cells that it sets and that remain when the function returns.
  std::vector<std::shared_ptr<detail::Cell>> cellsSet() const;

  // ---- cells (parameters and buffers), see docs/state.md
  /// What the cell holds at this point of the trace.
  const Tensor &read(const std::shared_ptr<detail::Cell> &cell);
  void set(const std::shared_ptr<detail::Cell> &cell, const Tensor &value, const Location &where);
  /// Adds the gradients of y to those of the cells that require one. See Tensor::backward.
  void backward(const Tensor &y, const Tensor &seed, const Location &where);
  /// The gradient of a cell's value, as backward() has left it in this trace.
  Tensor gradient(const Tensor &value, const Location &where);
  void setGradient(const Tensor &value, const Tensor &gradient, const Location &where);
  /// Cells that are read, but known to change: inputs rather than constants.
  std::vector<std::shared_ptr<detail::Cell>> unstable;
  /// Cells that the traced function itself has made. Those that are gone when it returns are no state: each call has
  /// its own. An optimiser's, made in its first step, stay.
  std::vector<std::weak_ptr<detail::Cell>> made;
  bool isMadeHere(const std::shared_ptr<detail::Cell> &cell) const {
    return llvm::any_of(made, [&](const auto &known) { return known.lock() == cell; });
  }
  /// For a graph that is saved: its states are its own, and what is only read is constant.
  bool isGraphOnly = false;
  /// After finish().
  std::vector<StateUse> states;

  /// Where the function runs, once an input, a parameter or a constant has said so.
  const std::optional<Device> &device() const { return place; }
  /// Says so; throws if it has been said otherwise.
  void runOn(Device device, const char *op, const Location &where);

  /// Has every run of the graph check that two sizes are equal; throws if they never can be.
  void require(const Dim &left, const Dim &right, const Location &where);
  using SizePairs = std::vector<std::pair<Dim, Dim>>;
  /// From now on a call that fails because two sizes are not known to be equal takes them to be equal: every run of the
  /// graph checks that they are. The pairs are added to `pairs`, which must outlive the trace.
  void assumeSizes(SizePairs &pairs) { assumed = &pairs; }
  /// `x` under a shape that its sizes are taken to be equal to; `x` itself if they cannot be, or nothing is assumed.
  Tensor assumeShape(const Tensor &x, const Shape &shape, const Location &where);
  /// The same elements under a shape that is known to fit only because of what is required.
  Tensor reshapeUnproved(const Tensor &x, const Shape &shape, const Location &where);

  void observe(const std::shared_ptr<const detail::Observed> &state);
  std::vector<Guard> guards;

  /// See burin::grad.
  std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &gradOutput,
                           const Location &where);
  /// Calls an op and returns the gradients of `needed`, some of its operands, undefined where they are zero. What they
  /// need of the op's results is taken from `results`.
  std::vector<Tensor> vjp(const ir::OpInfo &info, std::span<const Tensor> operands, std::vector<ir::Attr> attrs,
                          std::span<const Tensor> results, std::span<const Tensor> gradients,
                          std::span<const Tensor> needed);
  /// Records that the gradient of `results`, which have just been computed from `inputs`, is `vjp`. Returns the
  /// results.
  std::vector<Tensor> customVjp(const std::vector<Tensor> &inputs, const std::vector<Tensor> &results, VjpFunction vjp,
                                const Location &where);
  /// Calls `function`, whose ops are computed again for gradients. See burin::remat.
  std::vector<Tensor> remat(const detail::Function &function, const std::vector<Tensor> &inputs, const Location &where);
  /// See burin::vmap. `trace` is null outside of traces.
  static std::vector<Tensor> vmap(Trace *trace, const detail::Function &function, const std::vector<Tensor> &inputs,
                                  const BatchAxes &inAxes, const BatchAxes &outAxes, Randomness randomness,
                                  const Location &where);
  /// x as a value of its own: a gradient with respect to it is not one with respect to x.
  Tensor copy(const Tensor &x, const Location &where) { return reshapeUnproved(x, x.shape(where), where); }
  /// See burin::detach.
  Tensor detach(const Tensor &x, const Location &where);

  /// The elements of a traced tensor that depends on constants alone, as the reference interpreter computes them;
  /// nullopt if it depends on an input, or if a tensor on the way is too large to be part of a shape computation.
  std::optional<Tensor> constantValue(const Tensor &tensor, const Location &where);
  /// The names of the inputs that a traced tensor depends on.
  std::vector<std::string> inputsBehind(const Tensor &tensor) const;

private:
  std::vector<Tensor> record(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                             std::vector<ir::Attr> attrs, const Location &where);
  class Assumption;
  void assume(const Dim &left, const Dim &right, const Location &where);
  mlir::Value valueOf(const Tensor &tensor, DType dtype, const Location &where);
  /// Makes the results of the function that is being recorded depend on the conditions in it.
  void addConditions(llvm::MutableArrayRef<mlir::Value> results);
  struct CellUse;
  CellUse &useOf(const std::shared_ptr<detail::Cell> &cell);
  void refuseInScope(const char *op, const Location &where) const;
  void setInside(CellUse &use, mlir::Value value);
  static Tensor leafLike(const Tensor &traced, const Tensor &held);
  /// 0 for the traced function itself, then by nesting.
  size_t depthOf(mlir::Block *block) const;
  /// Whether a is computed before b; both are in functions that are being recorded.
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const;
  CellUse &leafOf(const Tensor &value, const char *op, const Location &where);
  void resolveCells(llvm::SmallVectorImpl<mlir::Value> &results, const Location &where);
  bool isState(const CellUse &use) const;
  bool isLocal(const CellUse &use) const;
  mlir::Value valueNow(const CellUse &use, const Location &where);
  void addState(const CellUse &use, std::string name, const Location &where);
  mlir::FlatSymbolRefAttr makeState(const CellUse &use, std::string name, const Location &where);
  std::string nameOf(const detail::Cell &cell) const;
  void makeConstant(CellUse &use, const Location &where);
  mlir::Value constantOf(const detail::TensorState &state, const Location &where);
  mlir::Value liftedValue(const Tensor &tensor);
  mlir::Value scalarOf(const detail::TensorState &state, DType dtype, const Location &where);
  Tensor wrap(mlir::Value value);
  mlir::Operation *onceForSize(mlir::Operation *made);
  class FunctionScope;
  class Backward;
  class Batching;
  void silence(mlir::Operation *op);
  std::vector<mlir::Value> inlineStep(mlir::func::FuncOp step, llvm::ArrayRef<mlir::Value> arguments);
  mlir::Value variableOf(const Tensor &x, const Location &where);

  void runWhere(const detail::TensorState &state, const Location &where);

  const uint64_t id; // unique in the process
  std::optional<Device> place;
  std::shared_ptr<Graph::Data> graph;
  size_t index; // of the function
  Graph::Data::Signature &signature() { return graph->functions[index]; }
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Value> returned;
  mlir::OpBuilder builder;
  std::vector<FunctionScope *> scopes;                          // that are being recorded, the innermost last
  std::vector<std::shared_ptr<mlir::Block>> turnBlocks;         // see FunctionScope
  std::vector<mlir::OwningOpRef<mlir::func::FuncOp>> abandoned; // see FunctionScope
  std::vector<Tensor> arguments;
  /// A cell that the function has touched. It is an argument of the graph until finish() decides otherwise.
  struct CellUse {
    std::shared_ptr<detail::Cell> cell;
    Tensor value; // at this point
    mlir::BlockArgument argument;
    uint64_t version;                       // of the cell, when it was first read
    bool isSet = false, isVariable = false; // a gradient was taken with respect to it
    Tensor gradient;                        // of the value
    bool ownsGradient = false;              // what the leaf of the cell holds has no part in it
  };
  std::deque<CellUse> cells;                           // in the order of first use; references stay valid
  llvm::DenseMap<const void *, mlir::Value> constants; // by storage
  /// Of a function that is recorded to be replayed eagerly: captured tensors are arguments, which stand for the tensors
  /// themselves with what is on the tape; by their states.
  bool isReplayed = false;
  llvm::DenseMap<const void *, mlir::Value> lifted;
  llvm::DenseMap<mlir::Value, Tensor> liftedFrom;
  mlir::Operation *lastConstant = nullptr; // they stand together at the start
  std::map<std::string, size_t> newSizes;  // how many each op has made
  std::vector<mlir::Operation *> sizing;   // the ops that define sizes
  llvm::DenseMap<const void *, std::string> weightNames;
  llvm::SmallVector<mlir::Attribute> checks; // see require
  struct Condition {
    mlir::Value holds; // bool[]
    std::string message;
    Location where;
  };
  std::vector<Condition> conditions;                                    // see check
  SizePairs *assumed = nullptr;                                         // see assumeSizes
  llvm::SmallVector<mlir::FlatSymbolRefAttr> stateInputs, stateOutputs; // of a saved graph, behind inputs and outputs
  std::vector<detail::StorageRef> captured;                             // keeps the keys of `constants` valid
  llvm::DenseMap<mlir::Value, ir::RefTensor> evaluated;                 // by constantValue
  llvm::DenseSet<mlir::Value> detached;
  /// A function with a gradient of its own; as far as gradients are concerned, one op.
  struct Custom {
    VjpFunction vjp;
    std::vector<Tensor> inputs;
    std::vector<mlir::Value> operands, results;
  };
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<Custom>> customs; // by the ops that hand out the results
  using Region = std::vector<mlir::Operation *>;
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<const Region>> regions; // see remat
  int64_t barriers = 0;                                                     // regions that were computed again
};

} // namespace burin
