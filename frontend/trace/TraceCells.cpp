// Cells in a trace. A cell is the variable behind a parameter or buffer of a module (frontend/tensor/core/Cell.h). A
// trace does not change cells: it keeps the traced value of each cell that the function reads or sets (CellUse). While
// it records, the cell is an argument of the graph; at the end it becomes a state of the graph (an input, and an output
// if it was set) or a constant. docs/state.md has the rules.
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/FunctionScope.h"
#include "frontend/trace/Origins.h"
#include "llvm/ADT/BitVector.h"

namespace burin {

using mlir::Value;

/// `traced`, with the leaf of the gradient tape that `held`, the tensor in the cell, has: it requires a gradient if
/// `held` does.
Tensor Trace::leafLike(const Tensor &traced, const Tensor &held) {
  detail::TensorState state = *detail::Access::state(traced);
  state.node = detail::Access::state(held)->node;
  return detail::Access::make(std::move(state));
}

/// The entry of a cell; the first use adds an argument to the graph and notes the access in the functions (branches,
/// loops) that are being recorded.
Trace::CellUse &Trace::useOf(const std::shared_ptr<detail::Cell> &cell) {
  auto known = llvm::find_if(cells, [&](const CellUse &use) { return use.cell == cell; });
  CellUse *use = known == cells.end() ? nullptr : &*known;
  if (!use) {
    if (std::shared_ptr<const detail::Mode> mode = cell->mode.lock(); mode && !isGraphOnly)
      observe(mode); // isState() depends on whether the module is in training mode
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
  bool isNumber = detail::stateOf(value, where).weak; // a C++ number takes the element type of the parameter
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

bool Trace::isOfCell(const Tensor &x) const {
  auto valueIn = [](const Tensor &y) {
    auto *traced = std::get_if<detail::TracedValue>(&detail::Access::state(y)->value);
    return traced ? traced->value : nullptr;
  };
  const void *wanted = valueIn(x);
  return wanted && llvm::any_of(cells, [&](const CellUse &use) { return valueIn(use.value) == wanted; });
}

/// The cell whose current value in the trace is `value`; throws if it is the value of no cell.
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

/// Whether the traced function has created the cell and nothing outside of the trace refers to it. It is a variable of
/// one call then, no state.
bool Trace::isLocal(const CellUse &use) const { return isMadeHere(use.cell) && use.cell.use_count() == 1; }

/// Whether the cell becomes a state of the graph; otherwise it becomes a constant, with a guard on its version.
bool Trace::isState(const CellUse &use) const {
  if (isLocal(use))
    return false;
  bool isChanged = use.isSet || use.cell->alwaysInput || llvm::is_contained(unstable, use.cell);
  return isChanged || (!isGraphOnly && isTrained(use)); // in a saved graph, cells that do not change are constants
}

/// The argument of the functions of a loop or branch that has the value of operand `index` of the op in every call;
/// nullopt if there is none, as for carried values.
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

/// Replaces operands of loops and branches that are this constant by copies in their functions, where passes can fold
/// and pack them.
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

/// Replaces the argument of a cell by the value that it has now.
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

/// The value that the cell has outside of the trace, as a constant that is not shared with other uses of the tensor.
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

/// Throws if another state has the name that a module gives to this one: its values could not be told apart by name.
void Trace::refuseSameName(const CellUse &use, const std::string &name, const Location &where) const {
  auto known = graph->module->lookupSymbol<ir::StateOp>(name);
  if (known && isNamedByModule(*use.cell))
    throw Error(where, "graph",
                "@" + graph->functions[index].name + " has a state \"" + name + "\", " + str(ir::specOf(use.argument)) +
                    ", and another function has one of that name, " + str(ir::specOf(known.getType())) +
                    ".\n  Register the modules of the functions in one module, and name the states after it: "
                    "Program program(module)");
}

/// Throws if the parameter has been converted since the function was recorded.
void Trace::refuseConverted(const CellUse &use, const Location &where) const {
  const TensorSpec before = ir::specOf(use.argument), now = use.cell->value().spec(where);
  if (before == now)
    return;
  const std::string name = nameOf(*use.cell);
  throw Error(where, "graph",
              "@" + graph->functions[index].name + " was recorded with a parameter " +
                  (name.empty() ? "" : "\"" + name + "\" ") + "that was " + str(before) + ", and is " + str(now) +
                  " now; convert modules before add() is called");
}

/// Adds the cell to the states of the function. The state is a symbol of the MLIR module, so that functions which use
/// the same cell name the same state.
void Trace::addState(const CellUse &use, std::string name, const Location &where) {
  mlir::FlatSymbolRefAttr &symbol = graph->states[use.cell.get()];
  if (!symbol) {
    refuseSameName(use, name, where);
    symbol = makeState(use, std::move(name), where);
  }
  stateInputs.push_back(symbol);
  if (use.isSet)
    stateOutputs.push_back(symbol);
}

/// Creates the burin.state of a cell, under `name` or, if that is taken, `name#1`, …; in a saved graph with the current
/// value of the cell.
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

/// Whether the module that names the weights has this one.
bool Trace::isNamedByModule(const detail::Cell &cell) const {
  const Tensor value = cell.value();
  auto *storage = std::get_if<detail::StorageRef>(&detail::Access::state(value)->value);
  return storage && weightNames.contains(storage->get());
}

/// The name of the cell's state: that of the weight in the module, or the cell's own behind its owner's, as in
/// "weight.momentum"; "" if it has none.
std::string Trace::nameOf(const detail::Cell &cell) const {
  const Tensor value = cell.value();
  if (auto *storage = std::get_if<detail::StorageRef>(&detail::Access::state(value)->value))
    if (auto known = weightNames.find(storage->get()); known != weightNames.end())
      return known->second;
  std::shared_ptr<detail::Cell> owner = cell.owner.lock();
  std::string before = owner && !cell.name.empty() ? nameOf(*owner) : "";
  return before.empty() ? cell.name : before + "." + cell.name;
}

/// At the end of the trace: makes each cell a state or a constant, appends the new values of states to the results, and
/// erases the arguments that are not needed.
void Trace::resolveCells(llvm::SmallVectorImpl<Value> &results, const Location &where) {
  llvm::BitVector erased(function.front().getNumArguments());
  size_t next = signature().inputs.size();
  for (CellUse &use : cells) {
    bool isNeeded = use.isSet || !use.argument.use_empty();
    if (isNeeded && !isLocal(use))
      refuseConverted(use, where);
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
