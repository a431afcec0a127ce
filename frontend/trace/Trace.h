// Recording of ops in a graph.
#pragma once
#include "burin/graph/control.h"
#include "burin/graph/vmap.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/core/Cell.h"
#include "frontend/tensor/core/Observed.h"
#include "frontend/tensor/core/TensorState.h"
#include "frontend/trace/Escapes.h"
#include "frontend/trace/GraphData.h"
#include "ir/reference/ReferenceTensor.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>

namespace burin {

namespace detail {
/// Throws unless the states that a step returns are valid for the next one. Errors call them `op` and `step`.
void checkStates(const std::vector<Tensor> &before, const std::vector<Tensor> &after, const Location &where,
                 const char *op = "scan", const char *step = "step");
} // namespace detail

/// A value read by a trace that may change later.
struct Guard {
  std::shared_ptr<const detail::Observed> state;
  uint64_t version;
  std::shared_ptr<detail::Cell> cell = nullptr; // the same, if it is a cell
  bool holds() const { return state->version == version; }
};

/// A state of a traced function: an input and output of the graph after those of the caller.
struct StateUse {
  std::shared_ptr<detail::Cell> cell;
  size_t input = 0;
  std::optional<size_t> output; // nullopt: read-only
};

/// The trace of one function, on one thread.
class Trace {
public:
  struct Input {
    TensorSpec spec;
    bool weak = false; // a number: `spec` is its own type, the graph uses the widest type of its class
  };
  /// Records the only function of a graph. `names` are those of the weights.
  Trace(std::span<const Input> inputs, std::vector<std::string> inputNames, const detail::TensorNames &names,
        const Location &where)
      : Trace(std::make_shared<Graph::Data>(), "main", inputs, std::move(inputNames), names, where) {}
  /// Adds a function to `graph`.
  Trace(std::shared_ptr<Graph::Data> graph, std::string name, std::span<const Input> inputs,
        std::vector<std::string> inputNames, const detail::TensorNames &names, const Location &where);

  /// The trace of this thread, or null.
  static Trace *active();
  /// Makes a trace active during its lifetime.
  class Recording {
    Trace *outer;

  public:
    explicit Recording(Trace &trace);
    ~Recording();
    Recording(const Recording &) = delete;
  };

  const std::vector<Tensor> &inputs() const { return arguments; }
  const Location &placeOfStart() const { return began; }
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
  /// Makes runs fail in which `condition` is not true for all elements: the results of the function, branch or loop
  /// that is being recorded depend on it.
  void check(const Tensor &condition, const std::string &message, const Location &where);
  /// A symbol for the size of a result of `op`, called at `where`, that is not known before a run.
  Dim newSize(const std::string &op, const Location &where);
  /// The function has tried to read a value. It may catch the error and go on, but what it records then is right for
  /// some values only, so setResults() throws the error again.
  void noteRefused(const Error &error) {
    if (!refused)
      refused = error;
  }
  /// What the function returns; nothing is recorded afterwards.
  void setResults(std::span<const Tensor> results, std::vector<std::string> outputNames, const Location &where);
  /// Decides which cells are states, and completes the function.
  void close(const Location &where);
  /// A graph whose functions are all closed.
  static Graph verified(std::shared_ptr<Graph::Data> graph, const Location &where);
  /// Both, for the only function; returns the graph.
  Graph finish(std::span<const Tensor> results, std::vector<std::string> outputNames, const Location &where) {
    setResults(results, std::move(outputNames), where);
    close(where);
    return verified(graph, where);
  }
  /// Of the tensors that the trace has made, to be checked when it has ended.
  Escapes takeEscapes() { return std::move(escapes); }
  /// Removes the function from the graph.
  void discard();
  /// Whether `x` is the present value of a cell.
  bool isOfCell(const Tensor &x) const;
  /// The cells that it sets and that outlive the function.
  std::vector<std::shared_ptr<detail::Cell>> cellsSet() const;

  // ---- cells (parameters and buffers), see docs/state.md
  /// The value of the cell at this point of the trace.
  const Tensor &read(const std::shared_ptr<detail::Cell> &cell);
  void set(const std::shared_ptr<detail::Cell> &cell, const Tensor &value, const Location &where);
  /// Adds the gradients of y to those of the cells that require one. See Tensor::backward.
  void backward(const Tensor &y, const Tensor &seed, const Location &where);
  /// The gradient of a cell's value from backward() in this trace.
  Tensor gradient(const Tensor &value, const Location &where);
  void setGradient(const Tensor &value, const Tensor &gradient, const Location &where);
  /// Cells that are only read, but known to change: they are inputs, not constants.
  std::vector<std::shared_ptr<detail::Cell>> unstable;
  /// Cells that the traced function has created. Those that are freed when it returns are not states: each call has its
  /// own. Others, such as those of an optimiser created in its first step, remain.
  std::vector<std::weak_ptr<detail::Cell>> made;
  bool isMadeHere(const std::shared_ptr<detail::Cell> &cell) const {
    return llvm::any_of(made, [&](const auto &known) { return known.lock() == cell; });
  }
  /// For a trace that is compared with an earlier one: the functions of branches and loops are called several times,
  /// and the ops of these calls are dropped. If a function changes a variable that it, or code behind it, uses, the
  /// traces differ.
  bool repeatsFunctions = false;
  /// For a graph that is saved: it owns its states, and cells that are only read are constants.
  bool isGraphOnly = false;
  /// After finish().
  std::vector<StateUse> states;

  /// The device of the function, once an input, a parameter or a constant has determined it.
  const std::optional<Device> &device() const { return place; }
  /// Sets the device; throws if it is already another one.
  void runOn(Device device, const char *op, const Location &where);
  /// Says that it runs where the thread's DeviceScope says.
  void runInScope(const Location &where);

  /// Makes every run of the graph check that two sizes are equal; throws if they never can be.
  void require(const Dim &left, const Dim &right, const Location &where);
  using SizePairs = std::vector<std::pair<Dim, Dim>>;
  /// From now on, a call that would fail because two sizes are not known to be equal assumes that they are: every run
  /// of the graph checks it. The pairs are added to `pairs`, which must outlive the trace.
  /// `mayRepeat` says whether two symbols may differ because one of them is 1 in a run; then the operand that has it is
  /// repeated, and nothing is assumed.
  using MayRepeat = std::function<bool(const Dim &, const Dim &)>;
  void assumeSizes(SizePairs &pairs, MayRepeat mayRepeat = nullptr) {
    assumed = &pairs;
    repeats = std::move(mayRepeat);
  }
  /// The size to which two sizes broadcast by their values in a run, each of which may be 1; nullopt if `mayRepeat`
  /// does not say so. Every run checks that they broadcast.
  std::optional<Dim> jointSize(const Dim &left, const Dim &right, const Location &where);
  /// `x` with dimension `axis`, whose size is 1 or `size` in a run, repeated to `size`.
  Tensor repeatTo(const Tensor &x, int64_t axis, const Dim &size, const Location &where);
  /// A symbol for the integer `count`, of rank 0, which a run computes. Runs fail if it is negative. Throws in a branch
  /// or loop.
  Dim sizeFrom(const Tensor &count, const Location &where);
  /// `x` in a shape whose sizes are assumed to be equal to its own; `x` itself if they cannot be, or nothing is
  /// assumed.
  Tensor assumeShape(const Tensor &x, const Shape &shape, const Location &where);
  /// The same elements in a shape that is only valid because of required equalities.
  Tensor reshapeUnproved(const Tensor &x, const Shape &shape, const Location &where);

  void observe(const std::shared_ptr<const detail::Observed> &state);
  std::vector<Guard> guards;

  /// See burin::grad.
  std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &gradOutput,
                           const Location &where);
  /// Calls an op and returns the gradients of the operands in `needed`, undefined if zero. Results of the op that they
  /// read are taken from `results`.
  std::vector<Tensor> vjp(const ir::OpInfo &info, std::span<const Tensor> operands, std::vector<ir::Attr> attrs,
                          std::span<const Tensor> results, std::span<const Tensor> gradients,
                          std::span<const Tensor> needed);
  /// Records `vjp` as the gradient of `results`, which have just been computed from `inputs`. Returns the results.
  std::vector<Tensor> customVjp(const std::vector<Tensor> &inputs, const std::vector<Tensor> &results, VjpFunction vjp,
                                const Location &where);
  /// Calls `function`, whose ops are recomputed for gradients. See burin::remat.
  std::vector<Tensor> remat(const detail::Function &function, const std::vector<Tensor> &inputs, const Location &where);
  /// See burin::vmap. `trace` is null outside of traces.
  static std::vector<Tensor> vmap(Trace *trace, const detail::Function &function, const std::vector<Tensor> &inputs,
                                  const BatchAxes &inAxes, const BatchAxes &outAxes, Randomness randomness,
                                  const Location &where);
  /// A copy of x as a separate value: a gradient with respect to it is not one with respect to x.
  Tensor copy(const Tensor &x, const Location &where) { return reshapeUnproved(x, x.shape(where), where); }
  /// See burin::detach.
  Tensor detach(const Tensor &x, const Location &where);
  /// Whether no gradient flows back from `value`, as it was detached or computed under NoGrad.
  bool isDetached(mlir::Value value) const { return detached.contains(value); }

  /// The elements of a traced tensor that depends on constants only, computed by the reference interpreter; nullopt if
  /// it depends on an input, or if an intermediate tensor is too large for a shape computation.
  std::optional<Tensor> constantValue(const Tensor &tensor, const Location &where);
  /// The names of the inputs that a traced tensor depends on.
  std::vector<std::string> inputsBehind(const Tensor &tensor) const;

private:
  std::vector<Tensor> record(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                             std::vector<ir::Attr> attrs, const Location &where);
  class Assumption;
  void assume(const Dim &left, const Dim &right, const Location &where);
  mlir::Value valueOf(const Tensor &tensor, DType dtype, const Location &where);
  /// Makes the results of the function that is being recorded depend on its conditions.
  void addConditions(llvm::MutableArrayRef<mlir::Value> results);
  struct CellUse;
  CellUse &useOf(const std::shared_ptr<detail::Cell> &cell);
  void refuseInScope(const char *op, const Location &where) const;
  void setInside(CellUse &use, mlir::Value value);
  /// `values` are new: results of an op, which are detached if the thread records no gradients.
  void noteNew(mlir::ValueRange values);
  static Tensor leafLike(const Tensor &traced, const Tensor &held);
  /// 0 for the traced function, then the nesting depth.
  size_t depthOf(mlir::Block *block) const;
  /// Whether a is computed before b; both must be in functions that are being recorded.
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const;
  CellUse &leafOf(const Tensor &value, const char *op, const Location &where);
  void resolveCells(llvm::SmallVectorImpl<mlir::Value> &results, const Location &where);
  bool isState(const CellUse &use) const;
  bool isLocal(const CellUse &use) const;
  bool isTrained(const CellUse &use) const;
  mlir::Value valueNow(const CellUse &use, const Location &where);
  void addState(const CellUse &use, std::string name, const Location &where);
  mlir::FlatSymbolRefAttr makeState(const CellUse &use, std::string name, const Location &where);
  std::string nameOf(const detail::Cell &cell) const;
  bool isNamedByModule(const detail::Cell &cell) const;
  void refuseSameName(const CellUse &use, const std::string &name, const Location &where) const;
  void refuseConverted(const CellUse &use, const Location &where) const;
  void makeConstant(CellUse &use, const Location &where);
  mlir::Value constantOf(const detail::TensorState &state, const Location &where);
  mlir::Value liftedValue(const Tensor &tensor);
  mlir::Value scalarOf(const detail::TensorState &state, DType dtype, const Location &where);
  Tensor wrap(mlir::Value value);
  mlir::Operation *onceForSize(mlir::Operation *made);
  class FunctionScope;
  class Rehearsal;
  mlir::Value valueAlone(const Tensor &x, DType dtype, const Location &where);
  std::vector<CellUse *> carryCells(FunctionScope &body, std::vector<mlir::Value> &operands,
                                    std::vector<mlir::Value> &results, size_t states, const Location &where);
  class Backward;
  class Batching;
  void silence(mlir::Operation *op);
  std::vector<mlir::Value> inlineStep(mlir::func::FuncOp step, llvm::ArrayRef<mlir::Value> arguments);
  mlir::Value variableOf(const Tensor &x, const Location &where);

  void runWhere(const detail::TensorState &state, const char *op, const Location &where);

  const uint64_t id; // unique in the process
  const Location began;
  std::optional<Device> place;
  std::shared_ptr<Graph::Data> graph;
  size_t index; // of the function
  Graph::Data::Signature &signature() { return graph->functions[index]; }
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Value> returned;
  mlir::OpBuilder builder;
  std::vector<FunctionScope *> scopes;                          // currently recorded, innermost last
  std::vector<std::shared_ptr<mlir::Block>> iterationBlocks;    // see FunctionScope
  std::vector<mlir::OwningOpRef<mlir::func::FuncOp>> abandoned; // see FunctionScope
  Escapes escapes;
  std::vector<Tensor> arguments;
  /// A cell that the function has accessed. It is an argument of the graph until finish() decides.
  struct CellUse {
    std::shared_ptr<detail::Cell> cell;
    Tensor value; // current value
    mlir::BlockArgument argument;
    uint64_t version;                       // of the cell, at the first read
    bool isSet = false, isVariable = false; // isVariable: a gradient was taken with respect to it
    Tensor gradient;                        // of the value
    bool ownsGradient = false;              // does not include the gradient in the cell's leaf
  };
  std::deque<CellUse> cells;                           // in the order of first use; references stay valid
  llvm::DenseMap<const void *, mlir::Value> constants; // by storage
  /// For a function that is recorded to be replayed eagerly: captured tensors become arguments, which stand for the
  /// tensors with their tape edges; by state.
  bool isReplayed = false;
  llvm::DenseMap<const void *, mlir::Value> lifted;
  llvm::DenseMap<mlir::Value, Tensor> liftedFrom;
  mlir::Operation *lastConstant = nullptr; // constants are together at the start
  std::map<std::string, size_t> newSizes;  // number per op
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
  MayRepeat repeats;                                                    // see assumeSizes
  std::vector<Dim> joints;                                              // from jointSize
  llvm::SmallVector<mlir::FlatSymbolRefAttr> stateInputs, stateOutputs; // of a saved graph, after inputs and outputs
  std::vector<detail::StorageRef> captured;                             // keeps the keys of `constants` valid
  llvm::DenseMap<mlir::Value, ir::RefTensor> evaluated;                 // by constantValue
  llvm::DenseSet<mlir::Value> detached; // of detach() and NoGrad: no gradient flows back from them
  /// A function with a custom gradient, which is one op for differentiation.
  struct Custom {
    VjpFunction vjp;
    std::vector<Tensor> inputs;
    std::vector<mlir::Value> operands, results;
  };
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<Custom>> customs; // by the ops that copy the results
  using Region = std::vector<mlir::Operation *>;
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<const Region>> regions; // see remat
  int64_t barriers = 0;                                                     // number of recomputed regions
  std::optional<Error> refused;                                             // see noteRefused
  std::optional<Location> unreadBackward; // the last call of backward(), unless a gradient was read since
};

} // namespace burin
