// Parameters and buffers in a trace: what the function reads and sets, and what becomes of them in the graph.
#include "frontend/trace/Trace.h"
#include "llvm/ADT/BitVector.h"

namespace burin {

using mlir::Value;

/// A traced value that tells, like the tensor in its cell, whether it requires a gradient.
static Tensor leafLike(const Tensor &traced, const Tensor &held) {
  detail::TensorState state = *detail::Access::state(traced);
  state.node = detail::Access::state(held)->node;
  return detail::Access::make(std::move(state));
}

Trace::CellUse &Trace::useOf(const std::shared_ptr<detail::Cell> &cell) {
  for (CellUse &use : cells)
    if (use.cell == cell)
      return use;
  mlir::Type type = ir::tensorType(&graph->context, cell->value.spec());
  mlir::BlockArgument argument = function.front().addArgument(type, builder.getUnknownLoc());
  return cells.emplace_back(
      CellUse{cell, leafLike(wrap(argument), cell->value), argument, cell->version, false, false, {}});
}

const Tensor &Trace::read(const std::shared_ptr<detail::Cell> &cell) { return useOf(cell).value; }

void Trace::set(const std::shared_ptr<detail::Cell> &cell, const Tensor &value, const Location &where) {
  if (isGraphOnly)
    throw Error(where, "set",
                "a graph that is saved or compiled cannot change a parameter yet; call eval() on modules that are in "
                "training mode, return the new value and set it outside, or use jit");
  if (inner)
    throw Error(where, "set",
                "a parameter cannot be set in one step of a loop; make it a state of the loop and set it afterwards");
  CellUse &use = useOf(cell);
  TensorSpec held = cell->value.spec(where), given = value.spec(where);
  bool isNumber = detail::stateOf(value, where).weak;
  if (!isNumber && held.dtype != given.dtype)
    throw Error(where, "set",
                "the new value is " + str(given) + ", but the parameter " + str(held) +
                    "; a compiled function keeps the element types of its state: use .to(" +
                    std::string(name(held.dtype)) + ")");
  // As eagerly, the new value is a leaf: no gradient flows back into what has computed it.
  use.value = leafLike(detach(wrap(valueOf(value, held.dtype, where)), where), cell->value);
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

Tensor Trace::gradient(const Tensor &value, const Location &where) { return leafOf(value, "grad", where).gradient; }

void Trace::setGradient(const Tensor &value, const Tensor &gradient, const Location &where) {
  CellUse &use = leafOf(value, "set_grad", where);
  use.gradient = gradient;
  use.ownsGradient = true;
}

bool Trace::isState(const CellUse &use) const {
  if (isGraphOnly)
    return false;
  return use.isSet || use.isVariable || use.cell->alwaysInput || llvm::is_contained(unstable, use.cell);
}

/// A loop has copies of the constants that its step uses, so that they can be folded and packed there.
static void sinkIntoLoops(ir::ConstantOp constant) {
  for (mlir::OpOperand &use : llvm::make_early_inc_range(constant->getUses())) {
    auto loop = llvm::dyn_cast<ir::ScanOp>(use.getOwner());
    if (!loop || use.getOperandNumber() < loop.firstWhole())
      continue;
    auto body = llvm::cast<mlir::func::FuncOp>(loop.body());
    unsigned index = use.getOperandNumber();
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&body.front());
    body.getArgument(index).replaceAllUsesWith(builder.clone(*constant)->getResult(0));
    loop->eraseOperand(index);
    (void)body.eraseArgument(index);
  }
}

void Trace::makeConstant(CellUse &use, const Location &where) {
  if (use.argument.use_empty())
    return;
  const detail::TensorState &held = *detail::Access::state(use.cell->value);
  bool isNumber = std::holds_alternative<detail::ScalarValue>(held.value);
  mlir::OpBuilder::InsertionGuard guard(builder);
  if (isNumber)
    builder.setInsertionPointToStart(&function.front());
  Value constant = isNumber ? scalarOf(held, held.spec.dtype, where) : constantOf(held, where);
  use.argument.replaceAllUsesWith(constant);
  if (auto op = constant.getDefiningOp<ir::ConstantOp>())
    sinkIntoLoops(op);
}

/// Decides which cells are states; appends their new values to the results.
void Trace::resolveCells(llvm::SmallVectorImpl<Value> &results, const Location &where) {
  llvm::BitVector erased(function.front().getNumArguments());
  size_t next = graph->inputs.size();
  for (CellUse &use : cells) {
    bool isNeeded = use.isSet || !use.argument.use_empty();
    if (isState(use) && isNeeded) {
      TensorSpec spec = use.cell->value.spec(where);
      auto *storage = std::get_if<detail::StorageRef>(&detail::Access::state(use.cell->value)->value);
      auto name = storage ? weightNames.find(storage->get()) : weightNames.end();
      graph->inputs.push_back(
          {name != weightNames.end() ? name->second : "state" + std::to_string(states.size()), spec});
      StateUse state{use.cell, next++, std::nullopt};
      if (use.isSet) {
        state.output = results.size();
        results.push_back(valueOf(use.value, spec.dtype, where));
        graph->outputs.push_back({graph->inputs.back().name + ".new", spec});
      }
      states.push_back(std::move(state));
      continue;
    }
    if (isNeeded) {
      makeConstant(use, where);
      guards.push_back({use.cell, use.version, use.cell});
    }
    erased.set(use.argument.getArgNumber());
  }
  function.front().eraseArguments(erased);
}

} // namespace burin
