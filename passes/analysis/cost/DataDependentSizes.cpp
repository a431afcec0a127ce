#include "passes/analysis/cost/DataDependentSizes.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "passes/analysis/IterationSpace.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

Value storedIn(Value v) {
  for (v = skipReshapes(v); auto prefix = v.getDefiningOp<PrefixOp>();)
    v = skipReshapes(prefix.getX());
  return v;
}

namespace {

/// Calls `visit` with each size symbol whose value must be known before `op` runs.
void forEachSymbol(Operation *op, llvm::function_ref<void(StringRef)> visit) {
  auto visitShape = [&](const Shape &shape) {
    for (const Dim &size : shape)
      if (!size.isStatic())
        for (const Dim::Symbol &symbol : size.symbols())
          visit(symbol.name);
  };
  // The initial state of a loop shares its buffer with the states that the iterations leave, whose sizes must be known;
  // which of two buffers it is in depends on their number.
  for (OpOperand &use : op->getUses())
    if (auto scan = dyn_cast<ScanOp>(use.getOwner()); scan && use.getOperandNumber() < scan.getStates()) {
      visitShape(shapeOf(scan.getResult(use.getOperandNumber())));
      visitShape({scan.partCount()});
    }
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      visitShape(shapeOf(operand));
    if (newSizeOf(inner))
      return;
    for (Value result : inner->getResults())
      visitShape(shapeOf(result));
    if (opInfo(inner))
      for (const Attr &attr : attrsOf(inner))
        if (auto *shape = std::get_if<Shape>(&attr))
          visitShape(*shape);
  });
}

} // namespace

llvm::DenseMap<Operation *, Operation *> orderOfEffects(Block &block) {
  llvm::DenseMap<Operation *, Operation *> before;
  Operation *last = nullptr;
  for (Operation &op : block.without_terminator())
    if (isOwnStep(&op) && !isMemoryEffectFree(&op)) // not the prefixes that sizes are read from
      before[&op] = std::exchange(last, &op);
  return before;
}

void sortByDependence(Block &block) {
  const llvm::DenseMap<Operation *, Operation *> effectBefore = orderOfEffects(block);
  if (effectBefore.empty())
    return void(sortTopologically(&block));
  llvm::DenseSet<Operation *> placed;
  std::function<void(Operation *)> place = [&](Operation *op) {
    if (!op || op->getBlock() != &block || !placed.insert(op).second)
      return;
    place(effectBefore.lookup(op));
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) // operands from within `op` are skipped above
        place(operand.getDefiningOp());
    });
    op->moveBefore(block.getTerminator());
  };
  for (Operation *op : llvm::to_vector(llvm::make_pointer_range(block.without_terminator())))
    place(op);
}

void sortBySizes(Block &block) {
  sortByDependence(block);
  const llvm::DenseMap<Operation *, Operation *> effectBefore = orderOfEffects(block);
  llvm::StringSet<> undefined;
  for (Operation &op : block)
    if (auto size = newSizeOf(&op))
      undefined.insert(size->str());
  if (undefined.empty())
    return;
  llvm::DenseSet<Operation *> waiting;
  auto isReady = [&](Operation *op) {
    bool ready = llvm::none_of(op->getOperands(), [&](Value v) { return waiting.contains(v.getDefiningOp()); });
    for (Operation *before = effectBefore.lookup(op); before; before = effectBefore.lookup(before))
      ready &= !waiting.contains(before);
    forEachSymbol(op, [&](StringRef symbol) { ready &= !undefined.contains(symbol); });
    return ready;
  };
  Operation *terminator = block.getTerminator();
  auto place = [&](Operation *op) {
    op->moveBefore(terminator);
    waiting.erase(op);
    if (auto size = newSizeOf(op))
      undefined.erase(size->str());
  };
  std::vector<Operation *> later;
  for (Operation *op : llvm::to_vector(llvm::make_pointer_range(block.without_terminator()))) {
    if (!isReady(op)) {
      waiting.insert(op);
      later.push_back(op);
      continue;
    }
    bool defines = newSizeOf(op).has_value();
    place(op);
    for (size_t i = 0; defines && i < later.size();) {
      if (!isReady(later[i])) {
        ++i;
        continue;
      }
      place(later[i]);
      later.erase(later.begin() + ptrdiff_t(i));
      i = 0; // start over: the op may define a value or size that an earlier op of the list waits for
    }
  }
  for (Operation *op : later) // ops whose sizes nothing defines stay at the end; building the launch plan reports them
    place(op);
}

} // namespace burin::passes
