// Keeps the memory of each function below a limit: long-lived values, such as activations that gradients need, are
// recomputed by the same kernels, so that results keep their bits.
#include "passes/Passes.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/kernels/memory/BudgetedSteps.h"
#include "passes/kernels/memory/MemoryChoice.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_LIMITMEMORYPASS
#include "passes/Passes.h.inc"

namespace {

std::string megabytes(uint64_t bytes) { return llvm::formatv("{0:f3} MB", double(bytes) / 1e6).str(); }

std::string nameOf(Operation *op) {
  auto kernel = dyn_cast<KernelOp>(op);
  return kernel && kernel.getName() ? kernel.getName()->str() : op->getName().stripDialect().str();
}

/// "gelu f32[8, 128], model.cpp:12"
std::string described(mlir::Value v) {
  Operation *op = v.getDefiningOp();
  std::string place = fileLine(v.getLoc());
  return (op ? nameOf(op) : "an argument") + " " + str(specOf(v)) + (place.empty() ? "" : ", " + place);
}

/// Applies the limit to one function.
class Limiter {
public:
  Limiter(func::FuncOp function, const MemoryLimit &limit, uint64_t shared, std::vector<std::string> &report)
      : function(function), limit(limit), shared(shared), report(report) {}

  LogicalResult run() {
    if (!function.getOps<PrefixOp>().empty())
      return function.emitError(
          "sizes of this function depend on data, so that no limit of memory can be kept; compile "
          "it without, or keep the sizes and mask what is not wanted");
    const uint64_t outside = shared + bytesOfSignature();
    const uint64_t inside = limit.bytes > outside ? limit.bytes - outside : 0;
    auto built = memoryModelOf(function, SizesAs::UpperBounds);
    if (failed(built))
      return failure();
    const uint64_t before = arenaOf(*built);
    // Value by value is cheaper just below the peak, step by step far below it.
    auto chosen = stepByStep(*built, inside);
    if (auto other = valueByValue(*built, inside, inside);
        other->arena <= inside && (chosen->arena > inside || other->seconds() <= chosen->seconds()))
      chosen = std::move(other);
    // Aimed lower than needed it takes another way, by which the limit may be kept.
    if (chosen->arena > inside)
      if (auto other = valueByValue(*built, inside, 0); other->arena < chosen->arena)
        chosen = std::move(other);
    if (chosen->arena > inside)
      return refuse(*chosen, outside);
    tell(*chosen, outside, before);
    if (!chosen->changes.empty())
      apply(*chosen);
    return success();
  }

private:
  /// Steps of the function that need less memory.
  struct Attempt {
    explicit Attempt(const MemoryModel &model) : model(model), recipes(this->model) {}
    double seconds() const {
      double sum = 0;
      for (const MemoryChange &change : changes)
        sum += change.seconds;
      return sum;
    }
    MemoryModel model;
    Recipes recipes;
    std::vector<MemoryChange> changes;
    uint64_t arena = UINT64_MAX;
  };

  std::unique_ptr<Attempt> valueByValue(const MemoryModel &model, uint64_t bytes, uint64_t aim) {
    auto attempt = std::make_unique<Attempt>(model);
    MemoryChoice choice(attempt->model, attempt->recipes, limit);
    choice.fit(bytes, aim);
    attempt->changes = choice.changes();
    attempt->arena = choice.arenaBytes();
    return attempt;
  }

  /// Steps that need at most `bytes`; the least that is found if that is not possible.
  std::unique_ptr<Attempt> stepByStep(const MemoryModel &model, uint64_t bytes) {
    auto best = std::make_unique<Attempt>(model);
    std::optional<BudgetedSteps> steps;
    auto within = [&](uint64_t budget) -> std::optional<uint64_t> {
      std::optional<BudgetedSteps> found = stepsWithin(int64_t(budget), model, best->recipes, bufferReuse);
      if (!found)
        return std::nullopt;
      const uint64_t arena = arenaOf(found->model);
      if (arena < best->arena) {
        best->arena = arena;
        steps = std::move(found);
      }
      return arena;
    };
    // The arena exceeds the live bytes by what its placement wastes.
    constexpr int kAttempts = 4, kHalvings = 12;
    uint64_t budget = bytes;
    for (int i = 0; i < kAttempts && best->arena > bytes; ++i)
      if (std::optional<uint64_t> arena = within(budget); arena && *arena > bytes)
        budget -= std::min(budget, *arena - bytes);
      else
        break;
    if (best->arena > bytes) {
      // The same search for every limit, so that a limit of the bytes that a message reports is kept.
      best->arena = UINT64_MAX;
      uint64_t low = 0, high = arenaOf(model);
      for (int i = 0; i < kHalvings; ++i) {
        const uint64_t middle = low + (high - low) / 2;
        (within(middle) ? high : low) = middle;
      }
    }
    if (steps) {
      best->model = std::move(steps->model);
      best->changes = std::move(steps->changes);
    }
    return best;
  }

  void apply(Attempt &attempt) {
    applySteps(function, attempt.model, attempt.recipes);
    for (KernelOp kernel : function.getOps<KernelOp>())
      kernel.removeInPlaceAttr(); // values die elsewhere now
  }

  uint64_t arenaOf(const MemoryModel &model) {
    const Liveness live = livenessOf(model, bufferReuse);
    return limit.arenaBytes ? limit.arenaBytes(buffersOf(model, live)) : uint64_t(live.peakBytes());
  }

  /// Bytes of inputs and outputs. States are counted elsewhere; a new value that overwrites its state takes no memory.
  uint64_t bytesOfSignature() {
    uint64_t bytes = 0;
    for (BlockArgument argument : function.getArguments())
      if (!function.getArgAttr(argument.getArgNumber(), kStateAttr))
        bytes += uint64_t(maxBytes(argument).value_or(0));
    for (mlir::Value result : function.getBody().front().getTerminator()->getOperands()) {
      auto made = dyn_cast<OpResult>(storedIn(result));
      auto kernel = made ? dyn_cast<KernelOp>(made.getOwner()) : KernelOp();
      bool isInPlace = kernel && kernel.getInPlace() && (*kernel.getInPlace())[made.getResultNumber()] >= 0;
      if (!isInPlace)
        bytes += uint64_t(maxBytes(result).value_or(0));
    }
    return bytes;
  }

  void tell(const Attempt &attempt, uint64_t outside, uint64_t before) {
    int64_t flops = 0;
    for (const MemoryChange &change : attempt.changes)
      flops += change.flops;
    report.push_back(
        llvm::formatv("{0}: limit {1}: {2} for weights, states, inputs and outputs, and {3} for intermediate "
                      "values, which were {4}; {5} are not kept, {6:f3} MFLOP are added",
                      function.getName(), megabytes(limit.bytes), megabytes(outside), megabytes(attempt.arena),
                      megabytes(before), attempt.changes.size(), double(flops) / 1e6));
    static constexpr const char *how[] = {"again", "later", "kept in bf16"};
    for (const MemoryChange &change : attempt.changes)
      report.push_back(llvm::formatv("{0}: {1}: saves {2}, adds {3:f3} MFLOP, for {4}", how[int(change.kind)],
                                     described(change.value), megabytes(uint64_t(change.bytes)),
                                     double(change.flops) / 1e6, described(change.next->getResult(0))));
  }

  LogicalResult refuse(const Attempt &attempt, uint64_t outside) {
    const MemoryModel &model = attempt.model;
    BufferReuseCache ownBufferReuse; // the other one knows ops that are gone
    const Liveness live = livenessOf(model, ownBufferReuse);
    const size_t peak = live.peak();
    std::vector<MemoryModel::ValueId> held; // one value of each buffer
    llvm::DenseSet<MemoryModel::ValueId> homes;
    for (MemoryModel::ValueId v = 0; v < model.values.size(); ++v)
      if (model.values[v].isBuffer && live.first[v] <= peak && live.last[v] >= peak &&
          homes.insert(live.bufferOwner[v]).second)
        held.push_back(v);
    llvm::stable_sort(held, [&](auto x, auto y) { return model.values[x].bytes > model.values[y].bytes; });
    Operation *op = peak < model.steps.size() ? model.steps[peak].op : function.getOperation();
    auto error = mlir::emitError(op->getLoc())
                 << "cannot run in " << megabytes(limit.bytes) << ": at least " << megabytes(outside + attempt.arena)
                 << " are needed, " << megabytes(outside) << " for weights, states, inputs and outputs, and "
                 << megabytes(attempt.arena) << " while '" << nameOf(op)
                 << "' runs, which is the least that was found. Then are held:";
    constexpr size_t kMostShown = 8;
    for (size_t i = 0; i < std::min(held.size(), kMostShown); ++i)
      error << "\n  " << megabytes(uint64_t(model.values[held[i]].bytes)) << "  "
            << described(model.values[held[i]].source);
    if (held.size() > kMostShown)
      error << "\n  and " << held.size() - kMostShown << " smaller ones";
    return error << "\n  use a smaller batch, or a higher limit";
  }

  func::FuncOp function;
  const MemoryLimit &limit;
  uint64_t shared; // weights and states
  std::vector<std::string> &report;
  BufferReuseCache bufferReuse;
};

struct LimitMemoryPass : impl::LimitMemoryPassBase<LimitMemoryPass> {
  using LimitMemoryPassBase::LimitMemoryPassBase;
  explicit LimitMemoryPass(const MemoryLimit &limit) : limit(limit) {}

  void runOnOperation() override {
    if (bytes)
      limit.bytes = bytes;
    limit.allowBf16 |= allowBf16;
    if (!limit.bytes)
      return;
    std::vector<std::string> report;
    for (func::FuncOp function : publicFunctions(getOperation()))
      if (failed(Limiter(function, limit, sharedBytes(), report).run()))
        return signalPassFailure();
    getOperation()->setAttr(kMemoryReport, StringAttr::get(&getContext(), llvm::join(report, "\n")));
  }

private:
  uint64_t sharedBytes() {
    uint64_t bytes = 0;
    llvm::DenseSet<Attribute> seen;
    getOperation().walk([&](ConstantOp constant) {
      if (seen.insert(constant.getValue()).second)
        bytes += uint64_t(maxBytes(constant.getResult()).value_or(0));
    });
    for (auto state : getOperation().getOps<StateOp>())
      bytes += uint64_t(upperBound(elements(specOf(state.getType()).shape)).value_or(0)) *
               byteWidth(specOf(state.getType()).dtype);
    return bytes;
  }

  MemoryLimit limit;
};

} // namespace

std::unique_ptr<Pass> createLimitMemoryPass(const MemoryLimit &limit) {
  return std::make_unique<LimitMemoryPass>(limit);
}

} // namespace burin::passes
