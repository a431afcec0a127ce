// Parameters and buffers in a trace: reads and writes, and their representation in the graph.
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/FunctionScope.h"
#include "frontend/trace/Origins.h"
#include "llvm/ADT/BitVector.h"

namespace burin {

using mlir::Value;

/// A traced value that requires a gradient if the tensor in its cell does.
Tensor Trace::leafLike(const Tensor &traced, const Tensor &held) {
  detail::TensorState state = *detail::Access::state(traced);
  state.node = detail::Access::state(held)->node;
  return detail::Access::make(std::move(state));
}

Trace::CellUse &Trace::useOf(const std::shared_ptr<detail::Cell> &cell) {
  auto known = llvm::find_if(cells, [&](const CellUse &use) { return use.cell == cell; });
  CellUse *use = known == cells.end() ? nullptr : &*known;
  if (!use) {
    if (std::shared_ptr<const detail::Mode> mode = cell->mode.lock(); mode && !isGraphOnly)
      observe(mode); // see isState
    runWhere(*detail::Access::state(cell->value()), "trace", detail::inScope({}));
    mlir::Type type = ir::tensorType(&graph->context, cell->value().spec());
    mlir::BlockArgument argument = function.front().addArgument(type, builder.getUnknownLoc());
    if (OriginNotes *notes = OriginNotes::of(*this))
      notes->leaf(argument, cell.get());
    use = &cells.emplace_back(
        CellUse{cell, leafLike(wrap(argument), cell->value()), argument, cell->version, false, false, {}});
  }
  for (FunctionScope *scope : scopes)
    scope->touch(*use);
  return *use;
}

const Tensor &Trace::read(const std::shared_ptr<detail::Cell> &cell) { return useOf(cell).value; }

void Trace::set(const std::shared_ptr<detail::Cell> &cell, const Tensor &value, const Location &where) {
  CellUse &use = useOf(cell);
  TensorSpec held = cell->value().spec(where), given = value.spec(where);
  bool isNumber = detail::stateOf(value, where).weak;
  if (!isNumber && held.dtype != given.dtype)
    throw Error(where, "set",
                "the new value is " + str(given) + ", but the parameter " + str(held) +
                    "; a compiled function keeps the element types of its state: use .to(" +
                    std::string(name(held.dtype)) + ")");
  // As eagerly, the new value is a leaf: no gradient flows back through its computation.
  Tensor leaf = detach(wrap(valueOf(value, held.dtype, where)), where);
  if (OriginNotes *notes = OriginNotes::of(*this))
    notes->leaf(valueOf(leaf, held.dtype, where), cell.get());
  use.value = leafLike(leaf, cell->value());
  use.gradient = {};
  use.isSet = true;
}

Trace::CellUse &Trace::leafOf(const Tensor &value, const char *op, const Location &where) {
  const void *wanted = std::get<detail::TracedValue>(detail::stateOf(value, where).value).value;
  for (CellUse &use : cells)
    if (std::get<detail::TracedValue>(detail::Access::state(use.value)->value).value == wanted)
      return use;
  throw Error(where, op, "only parameters keep a gradient in a traced function; use grad(y, {x}) for other values");
}

void Trace::refuseInScope(const char *op, const Location &where) const {
  if (!scopes.empty())
    throw Error(
        where, op,
        "gradients are not kept with parameters in a branch, a loop or vmap; use grad(), and return what it gives");
}

Tensor Trace::gradient(const Tensor &value, const Location &where) {
  const Tensor &found = leafOf(value, "grad", where).gradient;
  if (found.defined())
    unreadBackward.reset();
  return found;
}

void Trace::setGradient(const Tensor &value, const Tensor &gradient, const Location &where) {
  refuseInScope("set_grad", where);
  CellUse &use = leafOf(value, "set_grad", where);
  use.gradient = gradient;
  use.ownsGradient = true;
}

/// Whether the value is expected to change: a gradient was taken with respect to it, or it is a parameter of a module
/// in training mode and not frozen.
bool Trace::isTrained(const CellUse &use) const {
  const std::shared_ptr<const detail::Mode> mode = use.cell->mode.lock();
  return use.isVariable || (mode && mode->isTraining && detail::Access::state(use.cell->value())->node);
}

/// Whether only the trace refers to the cell.
bool Trace::isLocal(const CellUse &use) const { return isMadeHere(use.cell) && use.cell.use_count() == 1; }

bool Trace::isState(const CellUse &use) const {
  if (isLocal(use))
    return false;
  bool isChanged = use.isSet || use.cell->alwaysInput || llvm::is_contained(unstable, use.cell);
  return isChanged || (!isGraphOnly && isTrained(use)); // in a saved graph, cells that do not change are constants
}

/// The argument of an op's functions that is always equal to operand `index` of the op; nullopt if there is none.
static std::optional<unsigned> argumentFor(mlir::Operation *op, unsigned index) {
  auto from = [&](unsigned first) { return index >= first ? std::optional(index) : std::nullopt; };
  if (auto scan = llvm::dyn_cast<ir::ScanOp>(op))
    return from(scan.firstWhole());
  if (auto loop = llvm::dyn_cast<ir::WhileOp>(op))
    return from(unsigned(loop.getCarried()));
  if (llvm::isa<ir::IfOp>(op) && index > 0)
    return index - 1;
  return std::nullopt;
}

/// Copies constants into the functions that use them, so that they can be folded and packed there.
static void sinkIntoFunctions(ir::ConstantOp constant, mlir::ModuleOp module) {
  llvm::SmallVector<mlir::Operation *> users(constant->getUsers());
  for (mlir::Operation *op : users) {
    auto *use = llvm::find_if(op->getOpOperands(), [&](mlir::OpOperand &x) { return x.get() == constant.getResult(); });
    if (use == op->getOpOperands().end())
      continue;
    unsigned index = use->getOperandNumber();
    std::optional<unsigned> argument = argumentFor(op, index);
    auto functions = ir::appliedFunctions(op);
    auto isShared = [&](mlir::Operation *function) { // shared with the gradient of a branch
      auto uses = mlir::SymbolTable::getSymbolUses(function, module.getOperation());
      return !uses || !llvm::hasSingleElement(*uses);
    };
    if (!argument || llvm::any_of(functions, isShared))
      continue;
    for (mlir::Operation *applied : functions) {
      auto body = llvm::cast<mlir::func::FuncOp>(applied);
      mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&body.front());
      auto copy = llvm::cast<ir::ConstantOp>(builder.clone(*constant));
      body.getArgument(*argument).replaceAllUsesWith(copy.getResult());
      (void)body.eraseArgument(*argument);
      sinkIntoFunctions(copy, module);
    }
    op->eraseOperand(index);
  }
}

void Trace::makeConstant(CellUse &use, const Location &where) {
  if (use.argument.use_empty())
    return;
  const Tensor value = use.cell->value();
  const detail::TensorState &held = *detail::Access::state(value);
  bool isNumber = std::holds_alternative<detail::ScalarValue>(held.value);
  mlir::OpBuilder::InsertionGuard guard(builder);
  if (isNumber)
    builder.setInsertionPointToStart(&function.front());
  Value constant = isNumber ? scalarOf(held, held.spec.dtype, where) : constantOf(held, where);
  use.argument.replaceAllUsesWith(constant);
  if (auto op = constant.getDefiningOp<ir::ConstantOp>())
    sinkIntoFunctions(op, *graph->module);
}

/// The value of a cell outside of the trace, as a separate constant.
Value Trace::valueNow(const CellUse &use, const Location &where) {
  const Tensor value = use.cell->value();
  const detail::TensorState &held = *detail::Access::state(value);
  if (std::holds_alternative<detail::ScalarValue>(held.value))
    return scalarOf(held, held.spec.dtype, where);
  const detail::StorageRef &storage = std::get<detail::StorageRef>(held.value);
  llvm::ArrayRef<char> bytes(static_cast<const char *>(detail::await(storage, where).data()),
                             detail::byteCount(held.spec));
  return ir::createConstant(builder, detail::mlirLocation(&graph->context, where), held.spec, bytes, "",
                            std::shared_ptr<const void>(storage));
}

/// Makes a cell a state of the module, in a saved graph with its current value; functions that share the cell share the
/// state.
void Trace::addState(const CellUse &use, std::string name, const Location &where) {
  mlir::FlatSymbolRefAttr &symbol = graph->states[use.cell.get()];
  if (!symbol)
    symbol = makeState(use, std::move(name), where);
  stateInputs.push_back(symbol);
  if (use.isSet)
    stateOutputs.push_back(symbol);
}

mlir::FlatSymbolRefAttr Trace::makeState(const CellUse &use, std::string name, const Location &where) {
  auto isTaken = [&] { return graph->module->lookupSymbol(name) != nullptr; };
  for (size_t i = 1; isTaken(); ++i)
    name = name.substr(0, name.find('#')) + "#" + std::to_string(i);
  mlir::ElementsAttr value;
  if (isGraphOnly) {
    auto initial = valueNow(use, where).getDefiningOp<ir::ConstantOp>();
    value = initial.getValue();
    initial.erase();
  }
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(graph->module->getBody());
  for (auto state : graph->module->getOps<ir::StateOp>()) // find the last one
    builder.setInsertionPointAfter(state);
  ir::StateOp::create(builder, detail::mlirLocation(&graph->context, where), builder.getStringAttr(name),
                      mlir::TypeAttr::get(use.argument.getType()), value);
  return mlir::FlatSymbolRefAttr::get(&graph->context, name);
}

std::vector<std::shared_ptr<detail::Cell>> Trace::cellsSet() const {
  std::vector<std::shared_ptr<detail::Cell>> list;
  for (const CellUse &use : cells)
    if (use.isSet && !isLocal(use))
      list.push_back(use.cell);
  return list;
}

/// The module's name for the cell; "" if it has none.
std::string Trace::nameOf(const detail::Cell &cell) const {
  const Tensor value = cell.value();
  if (auto *storage = std::get_if<detail::StorageRef>(&detail::Access::state(value)->value))
    if (auto known = weightNames.find(storage->get()); known != weightNames.end())
      return known->second;
  std::shared_ptr<detail::Cell> owner = cell.owner.lock();
  std::string before = owner && !cell.name.empty() ? nameOf(*owner) : "";
  return before.empty() ? cell.name : before + "." + cell.name;
}

/// Decides which cells are states, and appends their new values to the results.
void Trace::resolveCells(llvm::SmallVectorImpl<Value> &results, const Location &where) {
  llvm::BitVector erased(function.front().getNumArguments());
  size_t next = signature().inputs.size();
  for (CellUse &use : cells) {
    bool isNeeded = use.isSet || !use.argument.use_empty();
    if (isState(use) && isNeeded) {
      TensorSpec spec = use.cell->value().spec(where);
      std::string name = nameOf(*use.cell);
      if (name.empty())
        name = "state" + std::to_string(states.size());
      StateUse state{use.cell, next++, std::nullopt};
      if (use.isSet) {
        state.output = results.size();
        results.push_back(valueOf(use.value, spec.dtype, where));
      }
      graph->statesAreGiven = !isGraphOnly;
      addState(use, name, where);
      states.push_back(std::move(state));
      continue;
    }
    if (isNeeded) {
      makeConstant(use, where);
      if (!isLocal(use))
        guards.push_back({use.cell, use.version, use.cell});
    }
    erased.set(use.argument.getArgNumber());
  }
  function.front().eraseArguments(erased);
}

} // namespace burin
