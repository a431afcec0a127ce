// Replaying what has been recorded for one example, for many at once.
#pragma once
#include "frontend/batching/Rules.h"
#include "frontend/trace/FunctionScope.h"

namespace burin {

class Trace::Batching {
public:
  /// `trace` records the function, which is replayed into it, or, if it is only there for that, as eager calls (see
  /// Trace::isReplayed).
  Batching(Trace &trace, bool isEager, const Dim &examples, Randomness randomness)
      : trace(trace), isEager(isEager), examples(examples), randomness(randomness) {}

  /// A value of the function of one example. If it differs between examples, they are dimension 0 of the tensor.
  struct Batched {
    Tensor tensor;
    bool isBatched = false;
  };

  /// Records `function` for one example and replays it. `inputs` have the examples in dimension 0 where `isBatched`.
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
  Tensor active; // bool[examples]: for which of them what is replayed counts; undefined: for all

  /// What a scan's state has been, as it is asked for.
  struct History {
    Batched initial, last, after; // before the first turn, after the last one, after each in the order of turns
    Dim turns;
  };
  llvm::DenseMap<mlir::Value, History> histories;

  Batched valueOf(mlir::Value value);
  Tensor aligned(const Batched &x) { return x.isBatched || !x.tensor.defined() ? x.tensor : unsqueeze(x.tensor, {0}); }
  Tensor expanded(const Batched &x) { return batching::expand(aligned(x), examples); }

  void setCells(const FunctionScope &scope, const Location &where);
  /// The ops of a block that these values depend on.
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
  /// Of the operands, once what the turns carry has been taken into account.
  Flags variesLoop(ir::ScanOp loop, Flags operands) const;
  Flags variesWhile(ir::WhileOp loop, Flags operands) const;
};

} // namespace burin
