#include "passes/analysis/cost/MemoryModel.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/cost/BufferReuse.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/analysis/cost/KernelCost.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

std::optional<int64_t> maxBytes(mlir::Value v) { return upperBound(byteSize(v)); }

namespace {

using ValueId = MemoryModel::ValueId;

class Builder {
public:
  Builder(func::FuncOp function, SizesAs sizes) : sizes(sizes), block(function.getBody().front()) {}

  FailureOr<MemoryModel> build() {
    for (BlockArgument argument : block.getArguments())
      if (failed(add(argument, /*isBuffer=*/false)))
        return failure();
    for (mlir::Value returned : block.getTerminator()->getOperands())
      outside.insert(storedIn(returned));
    for (Operation &op : block.without_terminator())
      if (failed(visit(&op)))
        return failure();
    return std::move(model);
  }

private:
  LogicalResult visit(Operation *op) {
    if (isa<ConstantOp>(op))
      return add(op->getResult(0), /*isBuffer=*/false);
    const bool isStep = isa<KernelOp, DebugPrintOp, HostCallOp>(op) || !appliedFunctions(op).empty();
    if (!isStep)
      return success(); // a view: no memory of its own
    MemoryModel::Step step;
    step.op = op;
    for (mlir::Value operand : op->getOperands())
      step.inputs.push_back(model.idOf.lookup(storedIn(operand)));
    for (mlir::Value result : op->getResults()) {
      if (failed(addResult(result)))
        return failure();
      step.results.push_back(model.idOf.lookup(result));
    }
    for (Operation *applied : appliedFunctions(op)) {
      auto callee = cast<func::FuncOp>(applied);
      auto inner = Builder(callee, sizes).build();
      if (failed(inner))
        return failure();
      BufferReuseCache cache;
      step.innerBytes = std::max(step.innerBytes, livenessOf(*inner, cache).peakBytes());
    }
    if (auto loop = dyn_cast<WhileOp>(op)) // carried values alternate between the results and other buffers
      for (unsigned i = 0; i < loop.getCarried(); ++i)
        if (!isUpdatedInPlace(loop, i))
          step.innerBytes += model.values[step.results[i]].bytes;
    if (auto scan = dyn_cast<ScanOp>(op))
      for (unsigned i = 0; i < scan.getStates(); ++i)
        if (alternates(scan, i))
          step.innerBytes += model.values[step.results[i]].bytes;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      if (int64_t input = overwrittenInput(op, i);
          input >= 0 && isa<BlockArgument>(storedIn(op->getOperand(unsigned(input)))))
        step.overwritten.push_back(step.inputs[unsigned(input)]);
    model.steps.push_back(std::move(step));
    return success();
  }

  /// Adds a result of a step. The initial states of a loop are stored in the buffer of the states that its iterations
  /// leave: the kernel that computes initial states therefore adds the loop's result, and the loop finds it there.
  LogicalResult addResult(mlir::Value result) {
    Operation *op = result.getDefiningOp();
    const unsigned i = cast<OpResult>(result).getResultNumber();
    if (isa<ScanOp, WhileOp>(op) && i < op->getNumOperands() && isInitialInPlace(op->getOpOperand(i)))
      if (auto shared = model.idOf.find(op->getOperand(i));
          shared != model.idOf.end() && model.values[shared->second].isShared) {
        model.idOf[result] = shared->second;
        return success();
      }
    if (OpOperand *initial = initialInPlace(result)) {
      mlir::Value states = initial->getOwner()->getResult(initial->getOperandNumber());
      if (failed(add(states, !outside.contains(states))))
        return failure();
      model.idOf[result] = model.idOf.lookup(states);
      model.values[model.idOf.lookup(states)].isShared = true;
      return success();
    }
    return add(result, !outside.contains(result));
  }

  LogicalResult add(mlir::Value v, bool isBuffer) {
    std::optional<int64_t> bytes = sizes == SizesAs::UpperBounds ? maxBytes(v) : typicalSize(byteSize(v));
    if (!bytes)
      return emitError(v.getLoc()) << "the size " << str(specOf(v))
                                   << " has no upper bound, so that no limit of memory "
                                   << "can be kept; give its symbols ranges, as in Dim(\"n\", 1, 512), or fix them "
                                   << "(--dim NAME=SIZE)";
    model.idOf[v] = model.add({v, *bytes, isBuffer, false, bool(v.getDefiningOp<KernelOp>())});
    return success();
  }

  SizesAs sizes;
  Block &block;
  MemoryModel model;
  llvm::DenseSet<mlir::Value> outside; // results of the function, which the caller's memory holds, not the arena
};

} // namespace

FailureOr<MemoryModel> memoryModelOf(func::FuncOp function, SizesAs sizes) { return Builder(function, sizes).build(); }

bool BufferReuseCache::mayReuseBuffer(Operation *kernel, unsigned result, unsigned input) {
  auto [it, isNew] = known.try_emplace({kernel, result << 16 | input}, false);
  if (auto op = dyn_cast<KernelOp>(kernel); isNew && op)
    it->second = passes::mayReuseBuffer(op, result, input);
  return it->second;
}

size_t Liveness::peak() const { return size_t(std::max_element(live.begin(), live.end()) - live.begin()); }

Liveness livenessOf(const MemoryModel &model, BufferReuseCache &cache) {
  Liveness out;
  const size_t count = model.values.size();
  out.first.assign(count, UINT32_MAX);
  out.last.assign(count, 0);
  out.bufferOwner.resize(count);
  for (ValueId v = 0; v < count; ++v)
    out.bufferOwner[v] = v;
  for (uint32_t at = 0; at < model.steps.size(); ++at) {
    for (const auto *list : {&model.steps[at].inputs, &model.steps[at].results})
      for (ValueId v : *list) {
        out.first[v] = std::min(out.first[v], at);
        out.last[v] = at;
      }
    for (ValueId v : model.steps[at].overwritten)
      out.overwrittenAt[v] = at;
  }
  std::vector<int64_t> change(model.steps.size() + 1);
  llvm::SmallVector<ValueId> reused;
  for (uint32_t at = 0; at < model.steps.size(); ++at) {
    const MemoryModel::Step &step = model.steps[at];
    reused.clear();
    // Which results will overwrite an input: the pass burin-in-place-results runs later and decides by the same rule.
    for (unsigned r = 0; isa<KernelOp>(step.op) && r < step.results.size(); ++r) {
      if (!model.values[step.results[r]].isBuffer || model.values[step.results[r]].isShared)
        continue;
      for (unsigned i = 0; i < step.inputs.size(); ++i) {
        ValueId input = step.inputs[i];
        const MemoryModel::Value &value = model.values[input];
        if (!value.isBuffer || !value.isComputed || value.isShared || out.last[input] != at ||
            llvm::count(step.inputs, input) != 1 || llvm::is_contained(reused, input) ||
            !cache.mayReuseBuffer(step.op, r, i))
          continue;
        reused.push_back(input);
        out.bufferOwner[step.results[r]] = out.bufferOwner[input];
        break;
      }
    }
    change[at] += step.innerBytes;
    change[at + 1] -= step.innerBytes;
  }
  for (ValueId v = 0; v < count; ++v) {
    if (!model.values[v].isBuffer || out.first[v] == UINT32_MAX)
      continue;
    // A value in the buffer of an input: during the step that writes it, the bytes are counted for the input.
    uint32_t begin = out.bufferOwner[v] == v ? out.first[v] : out.first[v] + 1;
    change[begin] += model.values[v].bytes;
    change[out.last[v] + 1] -= model.values[v].bytes;
  }
  int64_t bytes = 0;
  for (size_t at = 0; at < model.steps.size(); ++at)
    out.live.push_back(bytes += change[at]);
  return out;
}

std::vector<BufferRange> buffersOf(const MemoryModel &model, const Liveness &liveness) {
  std::vector<BufferRange> all(model.values.size());
  for (ValueId v = 0; v < model.values.size(); ++v) {
    if (!model.values[v].isBuffer || liveness.first[v] == UINT32_MAX)
      continue;
    BufferRange &home = all[liveness.bufferOwner[v]];
    if (!home.bytes)
      home = {uint64_t(model.values[v].bytes), liveness.first[v], liveness.last[v]};
    home.first = std::min(home.first, liveness.first[v]);
    home.last = std::max(home.last, liveness.last[v]);
  }
  llvm::erase_if(all, [](const BufferRange &range) { return range.bytes == 0; });
  for (uint32_t at = 0; at < model.steps.size(); ++at)
    if (model.steps[at].innerBytes)
      all.push_back({uint64_t(model.steps[at].innerBytes), at, at});
  return all;
}

} // namespace burin::passes
