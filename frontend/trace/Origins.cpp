#include "frontend/trace/Origins.h"

namespace burin {

using mlir::Value;

static thread_local OriginNotes *innermost = nullptr;
static thread_local bool makesConstants = false;

OriginNotes::Constants::Constants() : before(std::exchange(makesConstants, true)) {}
OriginNotes::Constants::~Constants() { makesConstants = before; }

OriginNotes::OriginNotes(const Trace &trace) : trace(trace), outer(std::exchange(innermost, this)) {}
OriginNotes::~OriginNotes() { innermost = outer; }

OriginNotes *OriginNotes::of(const Trace &trace) {
  OriginNotes *notes = innermost;
  while (notes && &notes->trace != &trace)
    notes = notes->outer;
  return notes;
}

void OriginNotes::made(Value value) {
  if (makesConstants)
    constants.insert(value);
  else
    constants.erase(value); // of an op that was deleted
}

/// Adds what a value is, if that is known; otherwise the values that it was computed from become `open`.
void OriginNotes::addTo(Origins &found, Value value, llvm::SmallVectorImpl<Value> &open) const {
  if (auto cell = cells.find(value); cell != cells.end()) {
    found.cells.push_back(cell->second);
    return;
  }
  if (auto known = captured.find(value); known != captured.end())
    llvm::append_range(found.captured, known->second);
  if (!isFloat(ir::dtypeOf(value)) || isConstant(value))
    return;
  if (auto custom = customs.find(value); custom != customs.end()) {
    llvm::append_range(open, custom->second);
    return;
  }
  mlir::Operation *op = value.getDefiningOp();
  if (!op) {
    found.arguments.push_back(llvm::cast<mlir::BlockArgument>(value).getArgNumber());
    return;
  }
  llvm::append_range(open, op->getOperands());
  if (!ir::appliedFunctions(op).empty()) // they have copies of constants
    for (const auto &[constant, nodes] : captured)
      llvm::append_range(found.captured, nodes);
}

Origins OriginNotes::originsOf(const Tensor &result, const Location &where) const {
  Origins found;
  const detail::TensorState &state = detail::stateOf(result, where);
  auto *traced = std::get_if<detail::TracedValue>(&state.value);
  if (!traced) {
    if (state.node)
      found.captured.push_back(state.node);
    return found;
  }
  llvm::DenseSet<Value> seen;
  llvm::SmallVector<Value> open{Value::getFromOpaquePointer(traced->value)};
  while (!open.empty())
    if (Value value = open.pop_back_val(); value && seen.insert(value).second)
      addTo(found, value, open);
  return found;
}

} // namespace burin
