// Functions of a graph while they are recorded: the step of a loop, a branch.
#pragma once
#include "frontend/trace/Trace.h"

namespace burin {

/// A private function of the graph. Between enter() and leave() the trace records into it. Unless it is completed, it
/// is taken out of the graph again, and parameters are in the trace what they were before: the user's function has
/// thrown.
class Trace::FunctionScope {
public:
  enum class Kind {
    Step,    // of a scan; its checks of sizes are made before the loop
    Branch,  // runs at most once
    Turn,    // of a while loop
    Example, // of vmap: its ops are replayed for many, and it goes; its checks are made before that
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

  /// A new argument.
  Tensor argument(const TensorSpec &spec, mlir::Location location);
  /// Ends the function with these results.
  void finish(llvm::ArrayRef<mlir::Value> results, mlir::Location location);
  /// Gives functions whose results are known what they use from outside: constants are repeated in each; other values
  /// become arguments of all of them, in the order returned.
  static std::vector<mlir::Value> capture(llvm::ArrayRef<FunctionScope *> scopes);

  /// The function has been recorded to be replayed: it goes with the scope, what it has told the trace stays.
  void dissolve();

  /// A parameter that the function reads or sets.
  struct Touched {
    CellUse *use;
    Tensor before;                      // what it held outside
    bool wasSet;                        // outside
    mlir::BlockArgument turn = nullptr; // in a loop: what the turn before has left
    Tensor after = {};                  // see restoreCells
    bool isChanged = false;
  };
  std::vector<Touched> touched;
  Touched *find(const CellUse *use);
  /// Called for each parameter that is read or set while this scope is open.
  void touch(CellUse &use);
  /// Notes what the parameters are now; gives them back what they held outside.
  void restoreCells();

  bool holds(mlir::Value value) const {
    return value.getParentBlock() == &function.front() || value.getParentBlock() == turns.get();
  }
  mlir::Block *block() { return &function.front(); }

  const Kind kind;
  mutable mlir::func::FuncOp function;

private:
  Trace &trace;
  std::shared_ptr<mlir::Block> turns; // arguments for Touched::turn, later replaced; tensors may still refer to them
  std::optional<mlir::OpBuilder::InsertPoint> outside;
  size_t checksBefore, assumedBefore;
  llvm::SmallVector<mlir::Attribute> checks; // of a branch or turn: only runs that come here make them
  void forgetChecks();
  bool isComplete = false;
  mlir::Operation *last = nullptr; // of a dissolved one: the last of the functions that it uses
};

} // namespace burin
