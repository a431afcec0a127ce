// Functions of a graph that are being recorded: the body of a loop, a branch.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin {

/// A private function of the graph. Between enter() and leave() the trace records into it. If it is not completed,
/// because the user's function has thrown, it is removed from the graph, and parameters get their previous values in
/// the trace.
class Trace::FunctionScope {
public:
  enum class Kind {
    Step,      // of a scan; its checks of sizes are made before the loop
    Branch,    // runs at most once
    Iteration, // of a while loop
    Example,   // of vmap: its ops are replayed, and it is deleted; its checks are made before
  };
  FunctionScope(Trace &trace, Kind kind, const std::string &stem, mlir::Location location);
  ~FunctionScope();
  FunctionScope(const FunctionScope &) = delete;

  void enter();
  void leave();
  /// Records one call of the user's code.
  template <class F> auto record(F &&code) {
    enter();
    struct Leave {
      FunctionScope &scope;
      ~Leave() { scope.leave(); }
    } leave{*this};
    return code();
  }

  /// Adds an argument.
  Tensor argument(const TensorSpec &spec, mlir::Location location);
  /// Completes the function with these results.
  void finish(llvm::ArrayRef<mlir::Value> results, mlir::Location location);
  /// Passes values from outside to functions whose results are known: constants are copied into each; other values
  /// become arguments of all of them, in the order returned.
  static std::vector<mlir::Value> capture(llvm::ArrayRef<FunctionScope *> scopes);

  /// For a function that was recorded to be replayed: it is deleted with the scope, its effects on the trace remain.
  void dissolve();

  /// A parameter that the function reads or sets.
  struct Touched {
    CellUse *use;
    Tensor before;                           // value outside
    bool wasSet;                             // outside
    mlir::BlockArgument iteration = nullptr; // in a loop: value after the previous iteration
    Tensor after = {};                       // see restoreCells
    bool isChanged = false;
  };
  std::vector<Touched> touched;
  Touched *find(const CellUse *use);
  /// Called when a parameter is read or set in this scope.
  void touch(CellUse &use);
  /// Stores the current values of the parameters, and restores those outside.
  void restoreCells();

  bool holds(mlir::Value value) const {
    return value.getParentBlock() == &function.front() || value.getParentBlock() == iterations.get();
  }
  mlir::Block *block() { return &function.front(); }

  const Kind kind;
  mutable mlir::func::FuncOp function;

private:
  Trace &trace;
  std::shared_ptr<mlir::Block>
      iterations; // arguments for Touched::iteration, replaced later; tensors may still refer to them
  std::optional<mlir::OpBuilder::InsertPoint> outside;
  size_t checksBefore, assumedBefore;
  llvm::SmallVector<mlir::Attribute> checks; // of a branch or iteration: only made in runs that reach it
  void forgetChecks();
  bool isComplete = false;
  mlir::Operation *last = nullptr; // of a dissolved function: the last of the functions that it uses
};

/// Calls of the functions of branches and loops whose ops are dropped, see Trace::repeatsFunctions. Functions within
/// these are called as often as they call them.
class Trace::Rehearsal {
public:
  explicit Rehearsal(Trace &trace) : trace(trace), isDue(trace.repeatsFunctions && trace.scopes.empty()) {}
  /// Calls `code(scope)`, and leaves the trace as it was.
  template <class F> void call(FunctionScope::Kind kind, mlir::Location location, F &&code) const {
    if (!isDue)
      return;
    const Before before(trace);
    FunctionScope scope(trace, kind, "rehearsal", location);
    scope.record([&] { (void)code(scope); });
  }

private:
  /// What the calls add to the trace, apart from ops, is removed at the end.
  struct Before {
    Trace &trace;
    const size_t privateFunctions, hostFunctions, conditions;
    const int64_t barriers;
    llvm::DenseSet<mlir::Operation *> functions;
    explicit Before(Trace &trace);
    ~Before();
    Before(const Before &) = delete;
  };
  Trace &trace;
  const bool isDue;
};

} // namespace burin
