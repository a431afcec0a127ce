// Gradients of ops that call functions.
//
// The gradient of a loop is a loop in reverse order: each iteration gets the gradients of the states after it,
// recomputes the body from the states before it, which the loop returns, and computes their gradients.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/autodiff/gradients/Backward.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "mlir/IR/IRMapping.h"

namespace burin {

using mlir::Value;

namespace {

/// Rows [first, first + count).
Tensor rowsFrom(const Tensor &x, int64_t first, const Dim &count) {
  Shape starts(x.shape().size(), 0), stops = x.shape();
  starts[0] = first;
  stops[0] = count + first;
  return slice(x, starts, stops, std::vector<int64_t>(starts.size(), 1));
}

} // namespace

/// Records the body of a loop with these arguments, without prints. Returns its results. Ops that remat() recorded read
/// other values by barriers, so that no pass replaces them by values that the loop has kept.
std::vector<Value> Trace::inlineStep(mlir::func::FuncOp step, llvm::ArrayRef<Value> arguments) {
  mlir::IRMapping known;
  known.map(step.getArguments(), arguments);
  for (mlir::Operation &op : step.front().without_terminator()) {
    if (llvm::isa<ir::DebugPrintOp>(op))
      continue;
    mlir::Operation *copy = builder.clone(op, known);
    silence(copy);
    if (regions.contains(&op))
      for (auto [i, operand] : llvm::enumerate(op.getOperands()))
        if (mlir::Operation *source = operand.getDefiningOp(); !source || !regions.contains(source)) {
          mlir::OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPoint(copy);
          copy->setOperand(unsigned(i), ir::create(builder, op.getLoc(), "barrier", {copy->getOperand(unsigned(i))},
                                                   {{"region", barriers}}));
        }
    for (auto [old, made] : llvm::zip(op.getResults(), copy->getResults()))
      if (detached.contains(old))
        detached.insert(made);
  }
  ++barriers;
  std::vector<Value> results;
  for (Value result : step.front().getTerminator()->getOperands())
    results.push_back(known.lookup(result));
  return results;
}

void Trace::Backward::differentiateLoop(ir::ScanOp loop) {
  const size_t states = size_t(loop.getStates()), sliced = size_t(loop.getSliced()), inputs = loop.getInputs().size();
  const Dim parts = loop.partCount();
  const bool reverse = loop.getReverse();
  auto step = llvm::cast<mlir::func::FuncOp>(loop.body());
  auto isReal = [](Value value) { return isFloat(ir::dtypeOf(value)); };
  std::vector<size_t> realStates, realResults, neededParts, neededWholes; // positions
  for (size_t i = 0; i < loop.getNumResults(); ++i)
    if (isReal(loop.getResult(unsigned(i))))
      (i < states ? realStates : realResults).push_back(i);
  for (size_t i = states; i < inputs; ++i)
    if (varying.contains(loop.getInputs()[i]))
      (i < states + sliced ? neededParts : neededWholes).push_back(i);
  auto inputAt = [&](size_t i) { return trace.wrap(loop.getInputs()[i]); };

  // In the order of the parts: the states before each iteration, the parts, the gradients of the iteration's outputs.
  auto byPart = [&](const Tensor &byTurn) { return reverse ? flip(byTurn, {0}) : byTurn; };
  std::vector<Tensor> initial, elements;
  for (size_t i = 0; i < states; ++i)
    elements.push_back(byPart(rowsFrom(trace.wrap(loop.getResult(unsigned(i))), 0, parts)));
  for (size_t i = states; i < states + sliced; ++i)
    elements.push_back(inputAt(i));
  for (size_t i : realStates) {
    elements.push_back(byPart(rowsFrom(gradientOrZeros(loop.getResult(unsigned(i))), 1, parts)));
    Tensor state = inputAt(i);
    initial.push_back(zeros({state.shape().begin() + 1, state.shape().end()}, state.dtype()));
  }
  for (size_t i : realResults)
    elements.push_back(gradientOrZeros(loop.getResult(unsigned(i))));
  for (size_t i : neededWholes)
    initial.push_back(zeros_like(inputAt(i)));

  auto iteration = [&](const std::vector<Tensor> &later, const std::vector<Tensor> &element) {
    auto valueOf = [&](const Tensor &x) { return trace.valueOf(x, x.dtype(), {}); };
    std::vector<Value> arguments, given;
    for (size_t i = 0; i < inputs; ++i) // separate values, see Backward
      arguments.push_back(
          valueOf(i < states + sliced ? unsqueeze(element[i], {0}) : reshape(inputAt(i), inputAt(i).shape())));
    std::vector<Value> results = trace.inlineStep(step, arguments);
    std::vector<Tensor> seeds;
    for (size_t k = 0; k < realStates.size(); ++k) {
      given.push_back(results[realStates[k]]);
      seeds.push_back(unsqueeze(later[k] + element[states + sliced + k], {0}));
    }
    for (size_t k = 0; k < realResults.size(); ++k) {
      given.push_back(results[realResults[k]]);
      seeds.push_back(unsqueeze(element[states + sliced + realStates.size() + k], {0}));
    }
    Backward within(trace, given, arguments);
    within.run(given, seeds);
    ScanResult iteration;
    for (size_t i : realStates)
      iteration.states.push_back(squeeze(within.gradientOrZeros(arguments[i]), {0}));
    for (size_t k = 0; k < neededWholes.size(); ++k) {
      Tensor more = within.gradientOf(arguments[neededWholes[k]]);
      iteration.states.push_back(more.defined() ? later[realStates.size() + k] + more : later[realStates.size() + k]);
    }
    for (size_t i : neededParts)
      iteration.outputs.push_back(squeeze(within.gradientOrZeros(arguments[i]), {0}));
    return iteration;
  };
  ScanResult all = burin::scan(iteration, initial, elements, !reverse);
  for (size_t k = 0; k < realStates.size(); ++k)
    if (size_t i = realStates[k]; varying.contains(loop.getInputs()[i]))
      add(loop.getInputs()[i],
          unsqueeze(all.states[k], {0}) + rowsFrom(gradientOrZeros(loop.getResult(unsigned(i))), 0, 1));
  for (size_t k = 0; k < neededWholes.size(); ++k)
    add(loop.getInputs()[neededWholes[k]], all.states[realStates.size() + k]);
  for (size_t k = 0; k < neededParts.size(); ++k)
    add(loop.getInputs()[neededParts[k]], all.outputs[k]);
}

/// The gradient of the branch that was taken, which is recomputed.
void Trace::Backward::differentiateBranches(ir::IfOp op) {
  std::vector<size_t> real, needed; // positions of results and inputs
  std::vector<Tensor> seeds;
  for (size_t i = 0; i < op.getNumResults(); ++i)
    if (Value result = op.getResult(unsigned(i)); isFloat(ir::dtypeOf(result))) {
      real.push_back(i);
      seeds.push_back(gradientOrZeros(result));
    }
  for (size_t i = 0; i < op.getInputs().size(); ++i)
    if (varying.contains(op.getInputs()[i]))
      needed.push_back(i);
  auto gradientOfBranch = [&](bool condition) {
    auto function = llvm::cast<mlir::func::FuncOp>(op.branch(condition));
    std::vector<Value> arguments, given;
    for (Value input : op.getInputs()) { // separate values, see Backward
      Tensor x = trace.wrap(input);
      arguments.push_back(trace.valueOf(reshape(x, x.shape()), x.dtype(), {}));
    }
    std::vector<Value> results = trace.inlineStep(function, arguments);
    for (size_t i : real)
      given.push_back(results[i]);
    Backward within(trace, given, arguments);
    within.run(given, seeds);
    std::vector<Tensor> found;
    for (size_t i : needed)
      found.push_back(within.gradientOrZeros(arguments[i]));
    return found;
  };
  if (needed.empty())
    return;
  std::vector<Tensor> found = detail::cond(
      trace.wrap(op.getCondition()), [&] { return gradientOfBranch(true); }, [&] { return gradientOfBranch(false); },
      {});
  for (size_t i = 0; i < needed.size(); ++i)
    add(op.getInputs()[needed[i]], found[i]);
}

} // namespace burin
