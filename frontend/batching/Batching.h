// Replays a function that was recorded for one example, for many at once.
#pragma once
#include "frontend/batching/Rules.h"
#include "frontend/trace/FunctionScope.h"

namespace burin {

class Trace::Batching {
public:
  /// `trace` records the function and receives the replayed ops, unless it serves only as a recorder for eager calls
  /// (see Trace::isReplayed).
  Batching(Trace &trace, bool isEager, const Dim &examples, Randomness randomness)
      : trace(trace), isEager(isEager), examples(examples), randomness(randomness) {}

  /// A value of the function of one example. If it differs between examples, dimension 0 of the tensor holds them.
  struct Batched {
    Tensor tensor;
    bool isBatched = false;
  };

  /// Records `function` for one example and replays it. `inputs` have the examples in dimension 0 if `isBatched`.
  std::vector<Batched> call(const detail::Function &function, const std::vector<Batched> &inputs,
                            const Location &where);

private:
  using Flags = std::vector<bool>;
  using Values = llvm::ArrayRef<mlir::Value>;

  Trace &trace;
  const bool isEager;
  const Dim examples;
  const Randomness randomness;
  llvm::DenseMap<mlir::Value, Batched> values;
  Tensor active; // bool[examples]: the examples for which the replayed ops have an effect; undefined: all

  /// The states of a scan, by the iterations of which they are requested.
  struct History {
    Batched initial, last, after; // before the first iteration, after the last one, after each of them
    Dim iterations;
  };
  llvm::DenseMap<mlir::Value, History> histories;

  Batched valueOf(mlir::Value value);
  Tensor aligned(const Batched &x) { return x.isBatched || !x.tensor.defined() ? x.tensor : unsqueeze(x.tensor, {0}); }
  Tensor expanded(const Batched &x) { return batching::expand(aligned(x), examples); }

  void setCells(const FunctionScope &scope, const Location &where);
  /// Replays the ops of a block that `wanted` depends on.
  void replay(mlir::Block &block, Values wanted);
  std::vector<Batched> replay(mlir::func::FuncOp function, const std::vector<Batched> &arguments);
  void replay(mlir::Operation *op);
  void replayOp(mlir::Operation *op, const ir::OpInfo &info);
  void restrictToActive(const ir::OpInfo &info, std::vector<Batched> &operands);
  void replayCustom(const Custom &custom);
  void replayHostCall(ir::HostCallOp call);
  bool replayPartOfHistory(mlir::Operation *op);
  void replayLoop(ir::ScanOp loop);
  void replayWhile(ir::WhileOp loop);
  void replayBranches(ir::IfOp branches);
  std::vector<Batched> operandsOf(mlir::Operation *op);

  // ---- which values differ between examples
  bool isDraw(const ir::OpInfo &info) const;
  Flags varies(mlir::func::FuncOp function, const Flags &arguments) const;
  Flags variesOp(mlir::Operation *op, const Flags &operands) const;
  /// Flags of the operands, given that carried values may differ after the first iteration.
  Flags variesLoop(ir::ScanOp loop, Flags operands) const;
  Flags variesWhile(ir::WhileOp loop, Flags operands) const;
};

} // namespace burin
