#include "frontend/batching/Batching.h"
#include "burin/graph/host.h"
#include "burin/graph/loops.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/HostFunctions.h"
#include "frontend/trace/Origins.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace burin {

using mlir::Value;

static Value heldBy(const Tensor &traced) {
  return Value::getFromOpaquePointer(std::get<detail::TracedValue>(detail::Access::state(traced)->value).value);
}

std::vector<Trace::Batching::Batched> Trace::Batching::call(const detail::Function &function,
                                                            const std::vector<Batched> &inputs, const Location &where) {
  mlir::Location location = detail::mlirLocation(&trace.graph->context, where);
  FunctionScope scope(trace, FunctionScope::Kind::Example, "example", location);
  std::vector<Value> results;
  {
    Recording recording(trace);
    scope.record([&] {
      std::vector<Tensor> arguments;
      for (const Batched &input : inputs) {
        TensorSpec spec = input.tensor.spec(where);
        if (input.isBatched)
          spec.shape.erase(spec.shape.begin());
        arguments.push_back(input.isBatched ? scope.argument(spec, location) : input.tensor);
      }
      for (const Tensor &result : function(arguments, where))
        results.push_back(trace.valueOf(result, detail::stateOf(result, where).spec.dtype, where));
      trace.addConditions(results);
    });
  }
  scope.restoreCells();
  scope.dissolve();
  size_t next = 0;
  for (const Batched &input : inputs)
    if (input.isBatched)
      values[scope.block()->getArgument(unsigned(next++))] = input;

  detail::AutocastTypeScope noAutocast(std::nullopt);
  std::vector<Value> wanted = results;
  for (const FunctionScope::Touched &cell : scope.touched)
    if (cell.isChanged)
      wanted.push_back(heldBy(cell.after));
  replay(*scope.block(), wanted);
  std::vector<Batched> given;
  for (Value result : results)
    given.push_back(valueOf(result));
  setCells(scope, where);
  return given;
}

/// Stores values that the function has set in cells, such as a generator's number of draws. They must be the same for
/// all examples.
void Trace::Batching::setCells(const FunctionScope &scope, const Location &where) {
  for (const FunctionScope::Touched &touched : scope.touched) {
    if (!touched.isChanged)
      continue;
    const std::shared_ptr<detail::Cell> &cell = touched.use->cell;
    const std::string name = trace.nameOf(*cell);
    Batched after = valueOf(heldBy(touched.after));
    if (after.isBatched)
      throw Error(where, "vmap",
                  "the function sets a parameter or buffer" + (name.empty() ? "" : " (" + name + ")") + ", " +
                      str(cell->value().spec(where)) +
                      ", to a value that differs between examples, of which it could " +
                      "keep only one; return the value instead, or use modules in eval() mode");
    if (!isEager) {
      trace.set(cell, after.tensor, where);
      continue;
    }
    std::lock_guard lock(cell->mutex);
    if (detail::cellChanges)
      detail::cellChanges->emplace_back(cell, cell->value());
    cell->commit(after.tensor);
  }
}

Trace::Batching::Batched Trace::Batching::valueOf(Value value) {
  if (auto known = values.find(value); known != values.end())
    return known->second;
  if (auto history = histories.find(value); history != histories.end()) {
    const History past = history->second;
    const bool isBatched = past.last.isBatched;
    auto row = [&](const Batched &state) { // as row 0 of the history
      Tensor x = isBatched ? expanded(state) : state.tensor;
      return unsqueeze(x, {isBatched ? 1 : 0});
    };
    return values[value] = {concat({row(past.initial), past.after.tensor}, isBatched ? 1 : 0), isBatched};
  }
  if (auto constant = value.getDefiningOp<ir::ConstantOp>()) {
    std::vector<char> storage;
    llvm::ArrayRef<char> bytes = ir::constantBytes(constant.getValue(), storage);
    return values[value] = {detail::following(from_bytes(bytes.data(), ir::specOf(value))), false};
  }
  if (!isEager) // a value of the enclosing function
    return {trace.wrap(value), false};
  if (auto captured = trace.liftedFrom.find(value); captured != trace.liftedFrom.end())
    return {captured->second, false};
  for (const CellUse &use : trace.cells)
    if (use.argument == value)
      return {use.cell->value(), false};
  throw Error({}, "vmap", "internal error: a value is not known");
}

std::vector<Trace::Batching::Batched> Trace::Batching::operandsOf(mlir::Operation *op) {
  std::vector<Batched> operands;
  for (Value operand : op->getOperands())
    operands.push_back(valueOf(operand));
  return operands;
}

// ---- ops

void Trace::Batching::replay(mlir::Block &block, Values wanted) {
  llvm::DenseSet<mlir::Operation *> needed;
  auto need = [&](Value value) {
    if (mlir::Operation *op = value ? value.getDefiningOp() : nullptr; op && op->getBlock() == &block)
      needed.insert(op);
  };
  llvm::for_each(wanted, need);
  for (mlir::Operation &op : llvm::reverse(block)) {
    const bool isEnd = op.hasTrait<mlir::OpTrait::IsTerminator>();
    if (isEnd || (!needed.contains(&op) && mlir::isMemoryEffectFree(&op)))
      continue;
    needed.insert(&op);
    llvm::for_each(op.getOperands(), need);
    if (auto custom = trace.customs.find(&op); custom != trace.customs.end()) {
      llvm::for_each(custom->second->operands, need);
      for (Value result : custom->second->results) { // ops after this one have been passed already
        need(result);
        need(result.getDefiningOp()->getOperand(0));
      }
    }
  }
  for (mlir::Operation &op : block)
    if (needed.contains(&op)) {
      LocationScope scope(detail::placeOf(&op));
      replay(&op);
    }
}

std::vector<Trace::Batching::Batched> Trace::Batching::replay(mlir::func::FuncOp function,
                                                              const std::vector<Batched> &arguments) {
  for (auto [argument, given] : llvm::zip(function.getArguments(), arguments))
    values[argument] = given;
  mlir::Operation *end = function.front().getTerminator();
  for (mlir::Operation &op : function.front()) // from an earlier call
    for (Value result : op.getResults()) {
      values.erase(result);
      histories.erase(result);
    }
  llvm::SmallVector<Value> results(end->getOperands());
  replay(function.front(), results);
  std::vector<Batched> given;
  for (Value result : results)
    given.push_back(valueOf(result));
  return given;
}

void Trace::Batching::replay(mlir::Operation *op) {
  std::optional<NoGrad> off;
  std::optional<OriginNotes::Constants> constants;
  const Value first = op->getNumResults() ? op->getResult(0) : Value();
  const OriginNotes *notes = OriginNotes::of(trace);
  const bool isForCallers = first && notes && notes->isConstant(first);
  if (first && (trace.isDetached(first) || (isForCallers && !Trace::active())))
    off.emplace();
  else if (isForCallers)
    constants.emplace();
  if (auto custom = trace.customs.find(op); custom != trace.customs.end()) {
    if (!values.count(op->getResult(0)))
      replayCustom(*custom->second);
  } else if (auto loop = llvm::dyn_cast<ir::ScanOp>(op)) {
    replayLoop(loop);
  } else if (auto loop = llvm::dyn_cast<ir::WhileOp>(op)) {
    replayWhile(loop);
  } else if (auto branches = llvm::dyn_cast<ir::IfOp>(op)) {
    replayBranches(branches);
  } else if (const ir::OpInfo *info = ir::opInfo(op)) {
    if (!replayPartOfHistory(op))
      replayOp(op, *info);
  } else if (auto print = llvm::dyn_cast<ir::DebugPrintOp>(op)) {
    debug_print(valueOf(print.getX()).tensor, print.getLabel().str(), detail::inScope({})); // all examples at once
  } else if (auto call = llvm::dyn_cast<ir::HostCallOp>(op)) {
    replayHostCall(call);
  } // else a constant
}

bool Trace::Batching::isDraw(const ir::OpInfo &info) const {
  return llvm::any_of(info.operands, [](const ir::OperandInfo &x) {
    return x.arity == ir::Arity::Optional && std::string_view(x.name) == "key";
  });
}

void Trace::Batching::replayOp(mlir::Operation *op, const ir::OpInfo &info) {
  std::vector<Batched> operands;
  for (Value operand : ir::operandsOf(op))
    operands.push_back(operand ? valueOf(operand) : Batched());
  const bool takesGenerator = std::string_view(info.name) == "random_key";
  if (takesGenerator && !operands[0].isBatched && randomness == Randomness::Error)
    throw Error(detail::inScope({}), "vmap",
                "a random number is drawn in a function of one example; say whether examples share it: "
                "vmap(f, in_axes, out_axes, Randomness::Same) or Randomness::Different");
  if (active.defined())
    restrictToActive(info, operands);
  bool isBatched = llvm::any_of(operands, [](const Batched &x) { return x.isBatched; });
  if (randomness == Randomness::Different && isDraw(info) && operands.back().tensor.defined())
    isBatched = true; // the last operand is a generator's key
  std::vector<ir::Attr> attrs = ir::attrsOf(op);
  std::vector<Tensor> given, results;
  for (const Batched &x : operands)
    given.push_back(isBatched ? aligned(x) : x.tensor);
  if (!isBatched) {
    results = batching::callOp(info, given, std::move(attrs));
  } else {
    batching::BatchingRule rule = batching::ruleOf(info);
    if (!rule)
      throw Error(detail::inScope({}), info.name, "internal error: the op has no batching rule");
    batching::BatchingCall call{info, given, std::move(attrs), {}, examples, randomness};
    for (Value result : op->getResults())
      call.results.push_back(ir::specOf(result));
    results = rule(call);
  }
  for (size_t i = 0; i < results.size(); ++i)
    values[op->getResult(unsigned(i))] = {isBatched ? batching::expand(results[i], examples) : results[i], isBatched};
}

/// Makes operands harmless for examples that do not take the current branch, which must not raise errors.
void Trace::Batching::restrictToActive(const ir::OpInfo &info, std::vector<Batched> &operands) {
  const std::string_view name = info.name;
  auto isActive = [&](const Batched &x) { // with the dimensions of x
    if (!x.isBatched)
      return any(active);
    return batching::aligned(active, x.tensor.shape().size());
  };
  if (name == "check")
    operands[0].tensor = operands[0].tensor | !isActive(operands[0]);
  else if (name == "take" || name == "gather" || name == "scatter")
    operands[1].tensor = where(isActive(operands[1]), operands[1].tensor, zeros_like(operands[1].tensor));
}

/// A function with a custom gradient keeps it: the gradient is vmap of the custom one, summed over the examples for
/// shared inputs.
void Trace::Batching::replayCustom(const Custom &custom) {
  std::vector<Batched> inputs, results;
  for (Value operand : custom.operands)
    inputs.push_back(valueOf(operand));
  for (Value result : custom.results)
    results.push_back(valueOf(result.getDefiningOp()->getOperand(0)));
  std::vector<Tensor> given, made;
  Flags areBatched;
  for (const auto *list : {&inputs, &results})
    for (const Batched &x : *list) {
      (list == &inputs ? given : made).push_back(x.tensor);
      areBatched.push_back(x.isBatched);
    }
  for (const Batched &x : results)
    areBatched.push_back(x.isBatched); // the results' gradients
  auto vjp = [own = custom.vjp, areBatched](const std::vector<Tensor> &inputs, const std::vector<Tensor> &results,
                                            const std::vector<Tensor> &gradients) {
    std::vector<Tensor> all;
    for (const auto *list : {&inputs, &results, &gradients})
      all.insert(all.end(), list->begin(), list->end());
    const size_t n = inputs.size(), m = results.size();
    std::vector<bool> isDefined(n);
    auto ofOne = [&](const std::vector<Tensor> &xs) {
      auto part = [&](size_t from, size_t to) {
        return std::vector<Tensor>(xs.begin() + ptrdiff_t(from), xs.begin() + ptrdiff_t(to));
      };
      std::vector<Tensor> passed = own(part(0, n), part(n, n + m), part(n + m, xs.size())), list;
      passed.resize(n);
      for (size_t i = 0; i < n; ++i) {
        isDefined[i] = passed[i].defined();
        if (isDefined[i])
          list.push_back(passed[i]);
      }
      return list;
    };
    std::vector<BatchAxes::Axis> axes;
    for (bool isBatched : areBatched)
      axes.push_back(isBatched ? BatchAxes::Axis(0) : BatchAxes::Axis(None));
    std::vector<Tensor> found = burin::vmap(ofOne, BatchAxes(axes), 0, Randomness::Same)(all), passed(n);
    for (size_t i = 0, next = 0; i < n; ++i)
      if (isDefined[i])
        passed[i] = areBatched[i] ? found[next++] : reduce_sum(found[next++], {0});
    return passed;
  };
  if (llvm::is_contained(areBatched, true))
    made = custom_vjp([&](const std::vector<Tensor> &) { return made; }, vjp)(given);
  else
    made = custom_vjp([&](const std::vector<Tensor> &) { return made; }, custom.vjp)(given);
  for (size_t i = 0; i < made.size(); ++i)
    values[custom.results[i]] = {made[i], results[i].isBatched};
}

/// Calls a C++ function once per example.
void Trace::Batching::replayHostCall(ir::HostCallOp op) {
  const detail::Function function = trace.graph->hostFunctions[size_t(op.getFunction())]->function;
  const std::vector<Batched> operands = operandsOf(op);
  std::vector<TensorSpec> specs;
  for (Value result : op.getResults())
    specs.push_back(ir::specOf(result));
  std::vector<Tensor> varying;
  for (const Batched &x : operands)
    if (x.isBatched)
      varying.push_back(x.tensor);
  auto call = [&](const std::vector<Tensor> &elements) {
    std::vector<Tensor> given;
    size_t next = 0;
    for (const Batched &x : operands)
      given.push_back(x.isBatched ? elements[next++] : x.tensor);
    return detail::hostCall(function, {specs, detail::inScope({})}, given);
  };
  auto step = [&](const std::vector<Tensor> &, const std::vector<Tensor> &elements) {
    return ScanResult{{}, call(elements)};
  };
  const std::vector<Tensor> results = varying.empty() ? call({}) : burin::scan(step, {}, varying).outputs;
  for (size_t i = 0; i < results.size(); ++i)
    values[op.getResult(unsigned(i))] = {results[i], !varying.empty()};
}

} // namespace burin
