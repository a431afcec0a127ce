#include "tools/burin/verify/Shrink.h"
#include "ir/dialect/Burin.h"
#include "tools/burin/verify/GraphCut.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;

namespace burin::cli {
namespace {

using Ops = std::vector<Operation *>;

class Shrinker {
public:
  Shrinker(OwningOpRef<ModuleOp> graph, const Sizes &sizes, llvm::function_ref<bool(ModuleOp)> fails)
      : best(std::move(graph)), sizes(sizes), fails(fails) {}

  OwningOpRef<ModuleOp> run() {
    oneOutput();
    dropFromTheEnd();
    dropFromTheStart();
    for (bool changed = true; changed;) {
      oneOutput();
      dropChunks();
      changed = skipOps();
      changed |= freeConstants();
    }
    smallerSizes();
    return std::move(best);
  }

private:
  Ops ops() { return computingOps(mainOf(*best)); }
  OperandRange returned() { return mainOf(*best).front().getTerminator()->getOperands(); }

  bool accept(OwningOpRef<ModuleOp> candidate) {
    if (!candidate || !fails(*candidate))
      return false;
    best = std::move(candidate);
    return true;
  }

  /// Tries the graph that computes `wanted` with those of the ops `allowed` that it depends on; other operands become
  /// inputs.
  bool tryCut(ArrayRef<Operation *> allowed, ArrayRef<Value> wanted) {
    if (wanted.empty())
      return false;
    llvm::SetVector<Value> unique(wanted.begin(), wanted.end());
    ArrayRef<Value> outputs = unique.getArrayRef();
    llvm::DenseSet<Value> needed(outputs.begin(), outputs.end());
    Ops chosen;
    for (Operation *op : llvm::reverse(allowed))
      if (llvm::any_of(op->getResults(), [&](Value v) { return needed.contains(v); })) {
        chosen.push_back(op);
        needed.insert(op->operand_begin(), op->operand_end());
      }
    std::reverse(chosen.begin(), chosen.end());
    return !chosen.empty() && accept(cutGraph(chosen, outputs).module);
  }

  /// Returns the graph outputs that `kept` computes. If it computes none, returns its results that the other ops read.
  std::vector<Value> outputsOf(ArrayRef<Operation *> kept) {
    llvm::DenseSet<Operation *> inside(kept.begin(), kept.end());
    auto isInside = [&](Value v) { return v.getDefiningOp() && inside.contains(v.getDefiningOp()); };
    llvm::SetVector<Value> outputs;
    for (Value v : returned())
      if (isInside(v))
        outputs.insert(v);
    if (outputs.empty())
      for (Operation *op : ops())
        for (Value v : op->getOperands())
          if (!inside.contains(op) && isInside(v))
            outputs.insert(v);
    return {outputs.begin(), outputs.end()};
  }

  void oneOutput() {
    size_t count = returned().size();
    for (size_t i = 0; count > 1 && i < count; ++i)
      if (tryCut(ops(), {returned()[i]}))
        return;
  }

  /// Finds by binary search a short prefix of the ops that fails.
  void dropFromTheEnd() {
    size_t right = 0; // length of the longest prefix known to compute correct results
    for (Ops all = ops(); all.size() - right > 1; all = ops()) {
      size_t middle = right + (all.size() - right) / 2;
      ArrayRef<Operation *> first = ArrayRef(all).take_front(middle);
      if (tryCut(first, llvm::to_vector_of<Value>(first.back()->getResults())))
        right = 0; // accepting a candidate renumbers the ops
      else if (!tryCut(first, liveBehind(first)))
        right = middle;
    }
  }

  bool tryWhole(ModuleOp graph) {
    auto outputs = llvm::to_vector(mainOf(graph).front().getTerminator()->getOperands());
    return llvm::all_of(outputs, [](Value v) { return v.getDefiningOp(); }) &&
           tryCut(computingOps(mainOf(graph)), outputs);
  }

  /// Returns the results of `first` that the rest of the graph reads.
  std::vector<Value> liveBehind(ArrayRef<Operation *> first) {
    llvm::DenseSet<Operation *> inside(first.begin(), first.end());
    std::vector<Value> live;
    for (Operation *op : first)
      for (Value v : op->getResults())
        if (llvm::any_of(v.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
          live.push_back(v);
    return live;
  }

  void dropFromTheStart() {
    for (size_t drop = ops().size() / 2; drop > 0;) {
      Ops all = ops();
      ArrayRef<Operation *> rest = ArrayRef(all).drop_front(std::min(drop, all.size()));
      if (!tryCut(rest, outputsOf(rest)))
        drop /= 2;
      drop = std::min(drop, ops().size() / 2);
    }
  }

  void dropChunks() {
    for (size_t size = std::max<size_t>(ops().size() / 4, 1);; size /= 2) {
      for (size_t at = 0; at < ops().size();) {
        Ops kept = ops();
        kept.erase(kept.begin() + int64_t(at), kept.begin() + int64_t(std::min(at + size, kept.size())));
        if (!tryCut(kept, outputsOf(kept)))
          at += size;
      }
      if (size <= 1)
        return;
    }
  }

  /// Tries to replace the results of each op by operands of the same type.
  bool skipOps() {
    bool changed = false;
    for (size_t i = 0; i < ops().size(); ++i)
      for (unsigned operand = 0; i < ops().size() && operand < ops()[i]->getNumOperands(); ++operand) {
        OwningOpRef<ModuleOp> copy = best->clone();
        Operation *op = computingOps(mainOf(*copy))[i];
        if (op->getNumResults() != 1 || op->getOperand(operand).getType() != op->getResult(0).getType())
          continue;
        op->getResult(0).replaceAllUsesWith(op->getOperand(operand));
        op->erase();
        changed |= tryWhole(*copy);
      }
    return changed;
  }

  bool freeConstants() {
    bool changed = false;
    for (size_t i = 0;;) {
      OwningOpRef<ModuleOp> copy = best->clone();
      auto constants = llvm::to_vector(mainOf(*copy).getOps<ir::ConstantOp>());
      if (i >= constants.size())
        return changed;
      ir::ConstantOp constant = constants[i];
      func::FuncOp main = mainOf(*copy);
      unsigned last = main.getNumArguments();
      if (failed(main.insertArgument(last, constant.getType(), {}, constant.getLoc())))
        return changed;
      constant.getResult().replaceAllUsesWith(main.getArgument(last));
      constant.erase();
      if (tryWhole(*copy))
        changed = true;
      else
        ++i;
    }
  }

  void smallerSizes() {
    for (auto &[symbol, value] : sizes)
      accept(resized(*best, [&](const Dim &size) {
        return size.substitute([&](std::string_view name) { return name == symbol ? Dim(value) : Dim(name); });
      }));
    std::set<int64_t, std::greater<>> found;
    for (Operation *op : ops())
      for (Value v : op->getOperands())
        for (const Dim &size : ir::shapeOf(v))
          if (size.isStatic())
            found.insert(size.value());
    for (int64_t from : found)
      for (int64_t to : {1, 2, 3, 5, 9, 17, 33})
        if (to < from && accept(resized(*best, [&](const Dim &size) { return size == Dim(from) ? Dim(to) : size; })))
          break;
  }

  OwningOpRef<ModuleOp> best;
  const Sizes &sizes;
  llvm::function_ref<bool(ModuleOp)> fails;
};

} // namespace

OwningOpRef<ModuleOp> shrink(OwningOpRef<ModuleOp> graph, const Sizes &sizes,
                             llvm::function_ref<bool(ModuleOp)> fails) {
  return Shrinker(std::move(graph), sizes, fails).run();
}

} // namespace burin::cli
