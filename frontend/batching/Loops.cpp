// Branches and loops in functions of one example.
#include "burin/graph/control.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "frontend/batching/Batching.h"
#include "frontend/tensor/context/LocationScope.h"

namespace burin {

using mlir::Value;

// ---- which values differ between examples

Trace::Batching::Flags Trace::Batching::varies(mlir::func::FuncOp function, const Flags &arguments) const {
  llvm::DenseSet<Value> varying;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i])
      varying.insert(function.getArgument(unsigned(i)));
  auto flagsOf = [&](mlir::ValueRange list) {
    Flags flags;
    for (Value value : list)
      flags.push_back(varying.contains(value));
    return flags;
  };
  for (mlir::Operation &op : function.front().without_terminator())
    for (auto [result, isBatched] : llvm::zip(op.getResults(), variesOp(&op, flagsOf(op.getOperands()))))
      if (isBatched)
        varying.insert(result);
  return flagsOf(function.front().getTerminator()->getOperands());
}

Trace::Batching::Flags Trace::Batching::variesOp(mlir::Operation *op, const Flags &operands) const {
  if (auto loop = llvm::dyn_cast<ir::ScanOp>(op)) {
    const Flags before = variesLoop(loop, operands);
    Flags after = varies(llvm::cast<mlir::func::FuncOp>(loop.body()), before);
    std::copy_n(before.begin(), loop.getStates(), after.begin());
    return after;
  }
  if (auto loop = llvm::dyn_cast<ir::WhileOp>(op)) {
    const Flags before = variesWhile(loop, operands);
    return {before.begin(), before.begin() + ptrdiff_t(loop.getCarried())};
  }
  if (auto branches = llvm::dyn_cast<ir::IfOp>(op)) {
    const Flags inputs(operands.begin() + 1, operands.end());
    Flags left = varies(llvm::cast<mlir::func::FuncOp>(branches.branch(true)), inputs);
    const Flags right = varies(llvm::cast<mlir::func::FuncOp>(branches.branch(false)), inputs);
    for (size_t i = 0; i < left.size(); ++i)
      left[i] = left[i] || right[i] || operands[0];
    return left;
  }
  const ir::OpInfo *info = ir::opInfo(op);
  const bool isOwnDraw =
      info && randomness == Randomness::Different && isDraw(*info) && ir::operandsOf(op).back() != nullptr;
  return Flags(op->getNumResults(), isOwnDraw || llvm::is_contained(operands, true));
}

Trace::Batching::Flags Trace::Batching::variesLoop(ir::ScanOp loop, Flags operands) const {
  for (bool changes = true; changes;) {
    changes = false;
    const Flags after = varies(llvm::cast<mlir::func::FuncOp>(loop.body()), operands);
    for (size_t i = 0; i < size_t(loop.getStates()); ++i)
      if (after[i] && !operands[i])
        operands[i] = changes = true;
  }
  return operands;
}

Trace::Batching::Flags Trace::Batching::variesWhile(ir::WhileOp loop, Flags operands) const {
  for (bool changes = true; changes;) {
    changes = false;
    const Flags after = varies(llvm::cast<mlir::func::FuncOp>(loop.bodyFunction()), operands);
    const bool isOwn = varies(llvm::cast<mlir::func::FuncOp>(loop.conditionFunction()), operands)[0];
    for (size_t i = 0; i < size_t(loop.getCarried()); ++i)
      if ((after[i] || isOwn) && !operands[i])
        operands[i] = changes = true;
  }
  return operands;
}

// ---- loops over parts

void Trace::Batching::replayLoop(ir::ScanOp loop) {
  const size_t states = size_t(loop.getStates()), sliced = size_t(loop.getSliced());
  const Dim parts = loop.partCount();
  auto body = llvm::cast<mlir::func::FuncOp>(loop.body());
  std::vector<Batched> operands = operandsOf(loop);
  Flags flags;
  for (const Batched &x : operands)
    flags.push_back(x.isBatched);
  flags = variesLoop(loop, flags);
  const Flags after = varies(body, flags);

  // The op's states are [1, …], or [examples, 1, …]; scan() takes states and parts without the 1.
  auto withoutOne = [&](const Batched &x) { return squeeze(x.tensor, {x.isBatched ? 1 : 0}); };
  auto withOne = [&](const Tensor &x, bool isBatched) { return Batched{unsqueeze(x, {isBatched ? 1 : 0}), isBatched}; };
  auto made = [&](const Batched &x, bool isBatched) { return isBatched ? Batched{expanded(x), true} : x; };
  std::vector<Tensor> initial, elements;
  for (size_t i = 0; i < states; ++i)
    initial.push_back(withoutOne(operands[i] = made(operands[i], flags[i])));
  for (size_t i = states; i < states + sliced; ++i)
    elements.push_back(flags[i] ? movedim(operands[i].tensor, 0, 1) : operands[i].tensor);
  auto isLastState = [&](mlir::Operation *user) {
    return llvm::isa<ir::SliceOp>(user) && std::get<Shape>(ir::attrsOf(user)[0])[0] == parts;
  };
  Flags isKept; // whether the states after all iterations are used
  for (size_t i = 0; i < states; ++i)
    isKept.push_back(!llvm::all_of(loop.getResult(unsigned(i)).getUsers(), isLastState));

  auto step = [&](const std::vector<Tensor> &before, const std::vector<Tensor> &parts) {
    std::vector<Batched> arguments = operands;
    for (size_t i = 0; i < states + sliced; ++i)
      arguments[i] = withOne(i < states ? before[i] : parts[i - states], flags[i]);
    std::vector<Batched> given = replay(body, arguments);
    ScanResult iteration;
    for (size_t i = 0; i < states; ++i)
      iteration.states.push_back(withoutOne(made(given[i], flags[i])));
    for (size_t i = 0; i < states; ++i)
      if (isKept[i])
        iteration.outputs.push_back(iteration.states[i]);
    for (size_t i = states; i < given.size(); ++i)
      iteration.outputs.push_back(withoutOne(made(given[i], after[i])));
    return iteration;
  };
  ScanResult all = burin::scan(step, initial, elements, loop.getReverse());
  size_t next = 0;
  auto output = [&](bool isBatched) { // of all iterations
    const Tensor &x = all.outputs[next++];
    return Batched{isBatched ? movedim(x, 1, 0) : x, isBatched};
  };
  for (size_t i = 0; i < states; ++i) {
    History past{Batched{initial[i], flags[i]}, Batched{all.states[i], flags[i]}, {}, parts};
    if (isKept[i]) {
      past.after = output(flags[i]);
      if (loop.getReverse())
        past.after.tensor = flip(past.after.tensor, {flags[i] ? 1 : 0});
    }
    histories[loop.getResult(unsigned(i))] = past;
  }
  for (size_t i = states; i < after.size(); ++i)
    values[loop.getResult(unsigned(i))] = output(after[i]);
}

/// Replays a slice of a loop's states: the last state, or those after each iteration. Returns false for others.
bool Trace::Batching::replayPartOfHistory(mlir::Operation *op) {
  auto history = llvm::isa<ir::SliceOp>(op) ? histories.find(op->getOperand(0)) : histories.end();
  if (history == histories.end())
    return false;
  const History past = history->second;
  const std::vector<ir::Attr> attrs = ir::attrsOf(op);
  const Shape starts = std::get<Shape>(attrs[0]), stops = std::get<Shape>(attrs[1]);
  const bool isBatched = past.last.isBatched;
  if (starts[0] == past.iterations && stops[0] == past.iterations + 1)
    values[op->getResult(0)] = {unsqueeze(past.last.tensor, {isBatched ? 1 : 0}), isBatched};
  else if (starts[0] == Dim(1) && stops[0] == past.iterations + 1)
    values[op->getResult(0)] = past.after;
  else
    return false;
  return true;
}

// ---- what depends on a condition

void Trace::Batching::replayWhile(ir::WhileOp loop) {
  const size_t carried = size_t(loop.getCarried());
  auto body = llvm::cast<mlir::func::FuncOp>(loop.bodyFunction());
  auto test = llvm::cast<mlir::func::FuncOp>(loop.conditionFunction());
  const std::vector<Batched> operands = operandsOf(loop);
  Flags flags;
  for (const Batched &x : operands)
    flags.push_back(x.isBatched);
  flags = variesWhile(loop, flags);
  std::vector<Tensor> initial;
  for (size_t i = 0; i < carried; ++i)
    initial.push_back(flags[i] ? expanded(operands[i]) : operands[i].tensor);
  auto arguments = [&](const std::vector<Tensor> &values) {
    std::vector<Batched> list = operands;
    for (size_t i = 0; i < carried; ++i)
      list[i] = {values[i], flags[i]};
    return list;
  };
  auto condition = [&](const std::vector<Tensor> &values) {
    Batched goesOn = replay(test, arguments(values))[0];
    if (!goesOn.isBatched)
      return goesOn.tensor;
    return any(active.defined() ? goesOn.tensor & active : goesOn.tensor);
  };
  auto iteration = [&](const std::vector<Tensor> &values) {
    const Batched goesOn = replay(test, arguments(values))[0];
    const Tensor outside = active;
    if (goesOn.isBatched)
      active = outside.defined() ? outside & goesOn.tensor : goesOn.tensor;
    std::vector<Batched> given = replay(body, arguments(values));
    std::vector<Tensor> next;
    for (size_t i = 0; i < carried; ++i) {
      Tensor x = flags[i] ? expanded(given[i]) : given[i].tensor;
      next.push_back(goesOn.isBatched ? where(batching::aligned(active, x.shape().size()), x, values[i]) : x);
    }
    active = outside;
    return next;
  };
  std::vector<Tensor> last = detail::whileLoop(condition, iteration, initial, std::nullopt, detail::inScope({}));
  for (size_t i = 0; i < carried; ++i)
    values[loop.getResult(unsigned(i))] = {last[i], flags[i]};
}

void Trace::Batching::replayBranches(ir::IfOp branches) {
  const std::vector<Batched> operands = operandsOf(branches);
  const std::vector<Batched> inputs(operands.begin() + 1, operands.end());
  const Batched &condition = operands[0];
  Flags flags;
  for (const Batched &x : operands)
    flags.push_back(x.isBatched);
  flags = variesOp(branches, flags);
  auto branch = [&](bool which) {
    std::vector<Batched> given = replay(llvm::cast<mlir::func::FuncOp>(branches.branch(which)), inputs);
    std::vector<Tensor> list;
    for (size_t i = 0; i < given.size(); ++i)
      list.push_back(flags[i] ? expanded(given[i]) : given[i].tensor);
    return list;
  };
  std::vector<Tensor> results;
  if (!condition.isBatched) {
    results = detail::cond(
        condition.tensor, [&] { return branch(true); }, [&] { return branch(false); }, detail::inScope({}));
  } else {
    const Tensor outside = active;
    auto restricted = [&](bool which) {
      const Tensor taken = which ? condition.tensor : !condition.tensor;
      active = outside.defined() ? outside & taken : taken;
      return branch(which);
    };
    const std::vector<Tensor> left = restricted(true), right = restricted(false);
    active = outside;
    for (size_t i = 0; i < left.size(); ++i)
      results.push_back(where(batching::aligned(condition.tensor, left[i].shape().size()), left[i], right[i]));
  }
  for (size_t i = 0; i < results.size(); ++i)
    values[branches.getResult(unsigned(i))] = {results[i], flags[i]};
}

} // namespace burin
