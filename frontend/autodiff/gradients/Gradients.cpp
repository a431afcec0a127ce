#include "burin/tensor/creation.h"
#include "frontend/autodiff/gradients/Backward.h"
#include "frontend/autodiff/gradients/Rules.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Origins.h"
#include "llvm/ADT/SetVector.h"

namespace burin {

using mlir::Value;

Trace::Backward::Backward(Trace &trace, llvm::ArrayRef<Value> ys, llvm::ArrayRef<Value> xs) : trace(trace) {
  for (Value x : xs)
    if (x && isFloat(ir::dtypeOf(x)))
      varying.insert(x);
  llvm::SetVector<mlir::Operation *> ops; // everything that ys depend on
  for (Value y : ys)
    if (mlir::Operation *op = y.getDefiningOp())
      ops.insert(op);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (auto custom = trace.customs.find(ops[i]); custom != trace.customs.end())
      ops.insert(custom->second->results.front().getDefiningOp()); // the op that computes all results
    for (Value operand : dependencies(ops[i]))
      if (mlir::Operation *op = operand.getDefiningOp())
        ops.insert(op);
  }
  auto sorted = ops.takeVector();
  llvm::sort(sorted, [&](mlir::Operation *a, mlir::Operation *b) { return trace.isBefore(a, b); });
  for (mlir::Operation *op : sorted) {
    if (llvm::none_of(dependencies(op), [&](Value operand) { return varying.contains(operand); }))
      continue;
    bool isOnPath = false;
    for (Value result : op->getResults())
      if (isFloat(ir::dtypeOf(result)) && !trace.detached.contains(result)) {
        varying.insert(result);
        isOnPath = true;
      }
    if (isOnPath)
      path.push_back(op);
  }
}

llvm::SmallVector<Value> Trace::Backward::dependencies(mlir::Operation *op) const {
  if (auto custom = trace.customs.find(op); custom != trace.customs.end())
    return {custom->second->operands.begin(), custom->second->operands.end()};
  return {op->getOperands().begin(), op->getOperands().end()};
}

void Trace::Backward::run(llvm::ArrayRef<Value> ys, llvm::ArrayRef<Tensor> seeds) {
  detail::AutocastTypeScope noAutocast(std::nullopt);
  for (auto [y, seed] : llvm::zip(ys, seeds))
    add(y, seed);
  for (mlir::Operation *op : llvm::reverse(path))
    differentiate(op);
}

void Trace::Backward::add(Value value, const Tensor &gradient) {
  TensorSpec wanted = ir::specOf(value), got = gradient.spec();
  if (wanted != got)
    throw gradients::NoGradient("the gradient of " + str(wanted) + " came out as " + str(got) +
                                "; trace it with known sizes");
  Tensor &sum = gradients[value];
  sum = sum.defined() ? sum + gradient : gradient;
}

Tensor Trace::Backward::gradientOrZeros(Value value) const {
  Tensor known = gradients.lookup(value);
  return known.defined() ? known : zeros_like(trace.wrap(value));
}

Tensor Trace::Backward::gradientOfShared(ir::BroadcastToOp copies) const {
  const Tensor &g = gradients.find(copies.getResult())->second;
  auto traced = std::get_if<detail::TracedValue>(&detail::Access::state(g)->value);
  auto products = traced ? Value::getFromOpaquePointer(traced->value).getDefiningOp<ir::MatmulOp>() : ir::MatmulOp();
  const Shape matrix = ir::shapeOf(copies.getX()), all = ir::shapeOf(copies.getResult());
  if (!products || matrix.size() != 2 || all.size() < 3 || Shape(all.end() - 2, all.end()) != matrix)
    return {};
  auto rowsOf = [](const Tensor &x) { // the batch merged into the rows
    const Shape &shape = x.shape();
    return reshape(x, {elements(Shape(shape.begin(), shape.end() - 1)), shape.back()});
  };
  return matmul(rowsOf(trace.wrap(products.getLhs()).t()).t(), rowsOf(trace.wrap(products.getRhs())));
}

void Trace::Backward::differentiate(mlir::Operation *op) {
  if (llvm::none_of(op->getResults(), [&](Value result) { return gradients.contains(result); }))
    return;
  const Location place = detail::placeOf(op);
  LocationScope scope(place);
  if (auto custom = trace.customs.find(op); custom != trace.customs.end())
    return differentiateCustom(op, *custom->second);
  if (auto loop = llvm::dyn_cast<ir::ScanOp>(op))
    return differentiateLoop(loop);
  if (auto branches = llvm::dyn_cast<ir::IfOp>(op))
    return differentiateBranches(branches);
  if (llvm::isa<ir::WhileOp>(op))
    throw gradients::NoGradient(
        "a while_loop has no gradient, because the number of its iterations is not known, nor has a "
        "fori_loop between tensors; give it a limit, or use scan, or a fori_loop over sizes");
  if (auto copies = llvm::dyn_cast<ir::BroadcastToOp>(op); copies && varying.contains(copies.getX()))
    if (Tensor gradient = gradientOfShared(copies); gradient.defined())
      return add(copies.getX(), gradient);
  const ir::OpInfo *info = ir::opInfo(op);
  gradients::GradientRule rule = info ? gradients::ruleOf(*info) : nullptr;
  if (!rule)
    throw gradients::NoGradient(op->getName().stripDialect().str() + " has no gradient");
  gradients::GradientCall call{*info, {}, ir::attrsOf(op), {}, {}, {}};
  llvm::SmallVector<Value> operands = ir::operandsOf(op);
  for (Value operand : operands) {
    call.operands.push_back(operand ? trace.wrap(computedAgain(op, operand)) : Tensor());
    call.isNeeded.push_back(operand && varying.contains(operand));
  }
  for (Value result : op->getResults()) {
    call.results.push_back(trace.wrap(computedAgain(op, result)));
    call.gradients.push_back(gradientOrZeros(result));
  }
  std::vector<Tensor> given = rule(call);
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.isNeeded[i] && given[i].defined())
      add(operands[i], given[i]);
}

/// Results of a custom function are separate adjacent ops; when the first of them is reached, all gradients are known.
void Trace::Backward::differentiateCustom(mlir::Operation *op, const Custom &custom) {
  if (op != custom.results.front().getDefiningOp()) {
    if (Value first = custom.results.front(); !gradients.contains(first))
      gradients[first] = zeros_like(trace.wrap(first)); // so that it is reached
    return;
  }
  std::vector<Tensor> results, given;
  for (Value result : custom.results) {
    results.push_back(trace.wrap(result));
    given.push_back(gradientOrZeros(result));
  }
  std::vector<Tensor> passed = custom.vjp(custom.inputs, results, given);
  for (size_t i = 0; i < custom.operands.size(); ++i)
    if (i < passed.size() && passed[i].defined() && custom.operands[i] && varying.contains(custom.operands[i]))
      add(custom.operands[i], passed[i]);
}

/// The value of x in the graph, before any conversion; null if the graph does not use it.
Value Trace::variableOf(const Tensor &x, const Location &where) {
  const detail::TensorState &state = detail::stateOf(x, where);
  if (!isFloat(state.spec.dtype))
    throw Error(where, "grad", "gradients are of floats, but this is " + str(state.spec) + "; convert it to f32 first");
  if (auto *storage = std::get_if<detail::StorageRef>(&state.value)) {
    if (Value constant = constants.lookup(storage->get()))
      return constant;
    if (Value argument = lifted.lookup(&state))
      return argument;
    for (const CellUse &use : cells) { // the value of a parameter from before the trace
      const Tensor before = use.cell->value();
      if (auto *held = std::get_if<detail::StorageRef>(&detail::Access::state(before)->value);
          held && *held == *storage)
        return use.argument;
    }
    return {};
  }
  if (!std::holds_alternative<detail::TracedValue>(state.value))
    return {};
  valueOf(x, state.spec.dtype, where); // checks that x belongs to this trace
  for (CellUse &use : cells)
    use.isVariable |= use.argument.getAsOpaquePointer() == std::get<detail::TracedValue>(state.value).value;
  return Value::getFromOpaquePointer(std::get<detail::TracedValue>(state.value).value);
}

/// The gradient of x after the hooks of its leaf, which is that of a parameter. Each call of a compiled function does
/// what they did while they were traced.
static Tensor withHooks(const Tensor &gradient, const Tensor &x, const Location &where) {
  const std::shared_ptr<detail::TapeNode> &leaf = detail::Access::state(x)->node;
  return leaf && !leaf->hooks.empty() ? detail::afterHooks(*leaf, 0, gradient, where) : gradient;
}

std::vector<Tensor> Trace::grad(const Tensor &y, const std::vector<Tensor> &xs, const std::optional<Tensor> &gradOutput,
                                const Location &where) {
  TensorSpec spec = y.spec(where);
  if (!gradOutput && elements(spec.shape) != Dim(1))
    throw Error(where, "grad",
                "y is " + str(spec) + ", of which there are many gradients; sum it first, or give grad_output, " +
                    "weights for its elements");
  Tensor seed = gradOutput ? gradOutput->to(spec.dtype, where) : ones_like(y, where);
  if (seed.shape(where) != spec.shape)
    throw Error(where, "grad",
                "grad_output is " + str(seed.spec(where)) + ", but y is " + str(spec) + "; they must have one shape");
  Value root = variableOf(y, where);
  std::vector<Value> variables;
  for (const Tensor &x : xs)
    variables.push_back(variableOf(x, where));
  std::vector<Tensor> results(xs.size());
  if (root) {
    Backward backward(*this, {root}, variables);
    backward.run({root}, {seed.to(ir::dtypeOf(root), where)});
    for (size_t i = 0; i < xs.size(); ++i)
      if (variables[i])
        results[i] = backward.gradientOf(variables[i]);
  }
  for (size_t i = 0; i < xs.size(); ++i)
    results[i] = results[i].defined()
                     ? gradients::reshapeTo(results[i].to(xs[i].dtype(where), where), xs[i].shape(where))
                     : zeros_like(xs[i], where);
  for (size_t i = 0; i < xs.size(); ++i)
    results[i] = withHooks(results[i], xs[i], where);
  return results;
}

void Trace::backward(const Tensor &y, const Tensor &seed, const Location &where) {
  refuseInScope("backward", where);
  Value root = variableOf(y, where);
  std::vector<Value> leaves;
  for (CellUse &use : cells) {
    bool isLeaf = detail::Access::state(use.value)->node != nullptr;
    leaves.push_back(isLeaf ? valueOf(use.value, use.value.dtype(where), where) : Value());
  }
  Backward backward(*this, {root}, leaves);
  backward.run({root}, {seed.to(ir::dtypeOf(root), where)});
  bool isReached = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    Tensor found = leaves[i] ? backward.gradientOf(leaves[i]) : Tensor();
    if (!found.defined())
      continue;
    found = withHooks(found, cells[i].value, where);
    CellUse &use = cells[i];
    if (!use.ownsGradient && use.cell->value().grad(where).defined())
      throw Error(where, "backward",
                  "a parameter, " + str(use.value.spec(where)) +
                      ", holds a gradient from outside of the traced function, to which this one cannot be added;\n"
                      "  remove it with zero_grad(), here or before the call");
    use.gradient = use.gradient.defined() ? use.gradient + found : found;
    use.isVariable = use.ownsGradient = isReached = true;
  }
  unreadBackward = where;
  if (!isReached)
    throw Error(where, "backward", "no gradient flows from this tensor: it depends on no parameter that requires one");
}

std::vector<Tensor> Trace::vjp(const ir::OpInfo &info, std::span<const Tensor> operands, std::vector<ir::Attr> attrs,
                               std::span<const Tensor> results, std::span<const Tensor> gradients,
                               std::span<const Tensor> needed) {
  llvm::SmallVector<const Tensor *> given;
  for (const Tensor &operand : operands)
    given.push_back(operand.defined() ? &operand : nullptr);
  std::vector<Value> ys, xs;
  std::vector<Tensor> seeds;
  std::vector<Tensor> made = call(info, given, std::move(attrs), {});
  for (size_t i = 0; i < made.size(); ++i)
    if (isFloat(made[i].dtype())) {
      ys.push_back(variableOf(made[i], {}));
      seeds.push_back(gradients[i]);
    }
  for (const Tensor &x : needed)
    xs.push_back(variableOf(x, {}));
  Backward backward(*this, ys, xs);
  backward.run(ys, seeds);
  for (size_t i = 0; i < made.size(); ++i) {
    Value value = valueOf(made[i], made[i].dtype(), {}), known = valueOf(results[i], made[i].dtype(), {});
    mlir::Operation *op = value.getDefiningOp();
    if (ir::opInfo(op) != &info) { // the result of the public function, before conversion to the strict one's shape
      value = op->getOperand(0);
      mlir::OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&function.front());
      known = ir::create(builder, op->getLoc(), "reshape", {known}, {{"shape", ir::shapeOf(value)}});
    }
    value.replaceAllUsesWith(known);
  }
  std::vector<Tensor> found;
  for (Value x : xs)
    found.push_back(backward.gradientOf(x));
  return found;
}

std::vector<Tensor> Trace::customVjp(const std::vector<Tensor> &inputs, const std::vector<Tensor> &results,
                                     VjpFunction vjp, const Location &where) {
  auto custom = std::make_shared<Custom>(Custom{std::move(vjp), inputs, {}, {}});
  for (const Tensor &input : inputs)
    custom->operands.push_back(valueOf(input, input.dtype(where), where));
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  std::vector<Tensor> wrapped;
  for (const Tensor &result : results) {
    Value value = valueOf(result, result.dtype(where), where);
    Value copy = ir::create(builder, location, "reshape", {value}, {{"shape", ir::shapeOf(value)}});
    custom->results.push_back(copy);
    customs[copy.getDefiningOp()] = custom;
    noteNew(copy);
    if (OriginNotes *notes = OriginNotes::of(*this))
      notes->custom(copy, custom->operands);
    wrapped.push_back(wrap(copy));
  }
  return wrapped;
}

Tensor Trace::detach(const Tensor &x, const Location &where) {
  Value value = valueOf(x, x.dtype(where), where);
  Value copy = ir::create(builder, detail::mlirLocation(&graph->context, where), "reshape", {value},
                          {{"shape", ir::shapeOf(value)}});
  detached.insert(copy);
  return wrap(copy);
}

} // namespace burin
