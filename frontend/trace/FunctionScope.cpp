#include "frontend/trace/FunctionScope.h"
#include "llvm/ADT/SetVector.h"

namespace burin {

using mlir::Value;

Trace::FunctionScope::FunctionScope(Trace &trace, Kind kind, const std::string &stem, mlir::Location location)
    : kind(kind), trace(trace), iterations(std::make_shared<mlir::Block>()), checksBefore(trace.checks.size()),
      assumedBefore(trace.assumed ? trace.assumed->size() : 0) {
  mlir::OpBuilder::InsertionGuard guard(trace.builder);
  trace.builder.setInsertionPointToEnd(trace.graph->module->getBody());
  std::string name = stem + std::to_string(trace.graph->privateFunctions++);
  function = mlir::func::FuncOp::create(trace.builder, location, name, trace.builder.getFunctionType({}, {}));
  function.setPrivate();
  function.addEntryBlock();
  trace.iterationBlocks.push_back(iterations);
}

Trace::FunctionScope::~FunctionScope() {
  if (isComplete)
    return;
  if (!last) {
    restoreCells();
    forgetChecks();
  }
  // Tensors may still refer to recorded values, here and in functions that this one uses.
  for (mlir::Operation *next = function; next;) {
    mlir::Operation *gone = std::exchange(next, next == last ? nullptr : next->getNextNode());
    gone->remove();
    trace.abandoned.emplace_back(llvm::cast<mlir::func::FuncOp>(gone));
  }
}

void Trace::FunctionScope::dissolve() { last = &trace.graph->module->getBody()->back(); }

void Trace::FunctionScope::enter() {
  outside = trace.builder.saveInsertionPoint();
  trace.builder.setInsertionPointToEnd(block());
  trace.scopes.push_back(this);
}

void Trace::FunctionScope::leave() {
  trace.scopes.pop_back();
  trace.builder.restoreInsertionPoint(*outside);
  if (kind == Kind::Step || kind == Kind::Example)
    return;
  checks.append(trace.checks.begin() + checksBefore, trace.checks.end());
  forgetChecks();
}

void Trace::FunctionScope::forgetChecks() {
  trace.checks.truncate(checksBefore);
  if (trace.assumed)
    trace.assumed->resize(assumedBefore);
}

Tensor Trace::FunctionScope::argument(const TensorSpec &spec, mlir::Location location) {
  return trace.wrap(block()->addArgument(ir::tensorType(&trace.graph->context, spec), location));
}

void Trace::FunctionScope::finish(llvm::ArrayRef<Value> results, mlir::Location location) {
  mlir::OpBuilder::InsertionGuard guard(trace.builder);
  trace.builder.setInsertionPointToEnd(block());
  mlir::func::ReturnOp::create(trace.builder, location, results);
}

std::vector<Value> Trace::FunctionScope::capture(llvm::ArrayRef<FunctionScope *> scopes) {
  auto isConstant = [](Value value) { return value.getDefiningOp<ir::ConstantOp>() != nullptr; };
  llvm::SetVector<Value> captured;
  for (FunctionScope *scope : scopes)
    for (mlir::Operation &op : *scope->block())
      for (Value operand : op.getOperands())
        if (operand.getParentBlock() != scope->block() && !isConstant(operand))
          captured.insert(operand);
  for (FunctionScope *scope : scopes) {
    mlir::Block &block = *scope->block();
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&block);
    llvm::DenseMap<Value, Value> known;
    for (Value outer : captured)
      known[outer] = block.addArgument(outer.getType(), outer.getLoc());
    for (mlir::Operation &op : llvm::make_early_inc_range(block))
      for (mlir::OpOperand &operand : op.getOpOperands()) {
        Value outer = operand.get();
        if (outer.getParentBlock() == &block)
          continue;
        Value &inner = known[outer];
        if (!inner)
          inner = builder.clone(*outer.getDefiningOp())->getResult(0);
        operand.set(inner);
      }
    scope->function.setFunctionType(
        builder.getFunctionType(block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
    if (!scope->checks.empty())
      scope->function->setAttr(ir::kChecksAttr, builder.getArrayAttr(scope->checks));
    scope->isComplete = true;
  }
  return {captured.begin(), captured.end()};
}

// ---- calls whose ops are dropped

Trace::Rehearsal::Before::Before(Trace &trace)
    : trace(trace), privateFunctions(trace.graph->privateFunctions), hostFunctions(trace.graph->hostFunctions.size()),
      conditions(trace.conditions.size()), barriers(trace.barriers) {
  for (auto function : trace.graph->module->getOps<mlir::func::FuncOp>())
    functions.insert(function);
}

Trace::Rehearsal::Before::~Before() {
  trace.graph->privateFunctions = privateFunctions;
  trace.graph->hostFunctions.resize(hostFunctions);
  trace.conditions.resize(conditions);
  trace.barriers = barriers;
  for (auto function : llvm::make_early_inc_range(trace.graph->module->getOps<mlir::func::FuncOp>()))
    if (!functions.contains(function)) {
      function->remove();
      trace.abandoned.emplace_back(function);
    }
  for (auto &gone : trace.abandoned) // or they would use constants
    (*gone)->dropAllReferences();
}

// ---- parameters

static Value heldBy(const Tensor &traced) {
  auto *held = std::get_if<detail::TracedValue>(&detail::Access::state(traced)->value);
  return held ? Value::getFromOpaquePointer(held->value) : Value();
}

Trace::FunctionScope::Touched *Trace::FunctionScope::find(const CellUse *use) {
  auto at = llvm::find_if(touched, [&](const Touched &known) { return known.use == use; });
  return at == touched.end() ? nullptr : &*at;
}

void Trace::FunctionScope::touch(CellUse &use) {
  if (find(&use))
    return;
  touched.push_back({&use, use.value, use.isSet});
  if (kind == Kind::Branch || kind == Kind::Example)
    return;
  Value outer = heldBy(use.value);
  touched.back().iteration = iterations->addArgument(outer.getType(), outer.getLoc());
  use.value = leafLike(trace.wrap(touched.back().iteration), use.cell->value());
}

void Trace::FunctionScope::restoreCells() {
  for (Touched &cell : touched) {
    Value inside = cell.iteration ? Value(cell.iteration) : heldBy(cell.before);
    cell.after = cell.use->value;
    cell.isChanged = heldBy(cell.after) != inside;
    cell.use->value = cell.before;
    cell.use->isSet = cell.wasSet;
  }
}

} // namespace burin
