// Orders the kernels of a function to reduce peak memory: weights are packed next to their use, activations are freed
// as soon as the gradient that needs them exists, and parameters are updated before the next gradient is computed,
// where dependences permit.
//
// List scheduling over groups of steps. A step that allocates more than it frees, and has one user, is in the group of
// that user. A ready group that frees at least as much as it allocates runs at once, alone or as a chain with the
// groups that only wait for it; if there is none, the first group runs that the next result of the function needs. The
// original order stays if the new one needs as much memory or more.
#include "passes/Passes.h"
#include "passes/analysis/ValueChecks.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/kernels/memory/Recompute.h"
#include <queue>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_ORDERKERNELSPASS
#include "passes/Passes.h.inc"

namespace {

using ValueId = MemoryModel::ValueId;

class Scheduler {
public:
  explicit Scheduler(const MemoryModel &model) : model(model), makers(model.values.size()) {}

  /// The steps in their new order.
  std::vector<uint32_t> run() {
    connect();
    groupSteps();
    prepare();
    for (uint32_t group = 0; group < groups.size(); ++group)
      if (groups[group].isResult)
        reach(group);
    for (uint32_t group = 0; group < groups.size(); ++group) // groups that no result needs
      reach(group);
    return std::move(order);
  }

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Group {
    SmallVector<uint32_t> steps; // in program order
    SmallVector<uint32_t> needs; // groups that must run before, in program order
    SmallVector<uint32_t> neededBy;
    SmallVector<ValueId> reads, makes; // buffers read from, and made for, other groups
    uint32_t missing = 0;              // number of `needs` that have not run
    bool isResult = false, isDone = false;
  };

  void need(uint32_t step, ArrayRef<uint32_t> others) {
    for (uint32_t other : others)
      if (other != step && !llvm::is_contained(needs[step], other))
        needs[step].push_back(other);
  }

  /// Dependences of each step: on the makers of its operands; for a write to a state, on all readers of the old value
  /// and on all steps before it that may fail (in the body of a loop others may fail later); and for a step with
  /// effects, on the previous one.
  void connect() {
    needs.resize(model.steps.size());
    std::vector<SmallVector<uint32_t>> readers(model.values.size());
    SmallVector<uint32_t> failing;
    for (auto [at, step] : llvm::enumerate(model.steps)) {
      for (ValueId v : step.results)
        makers[v].push_back(uint32_t(at));
      for (ValueId v : step.inputs)
        readers[v].push_back(uint32_t(at));
      if (canFail(step.op))
        failing.push_back(uint32_t(at));
    }
    for (auto [at, step] : llvm::enumerate(model.steps)) {
      for (ValueId v : step.inputs)
        need(uint32_t(at), makers[v]);
      for (ValueId v : step.overwritten) {
        need(uint32_t(at), readers[v]);
        need(uint32_t(at), llvm::ArrayRef(failing).take_while([&](uint32_t other) { return other < at; }));
      }
    }
    if (model.steps.empty())
      return;
    llvm::DenseMap<Operation *, uint32_t> stepOf;
    for (auto [at, step] : llvm::enumerate(model.steps))
      stepOf[step.op] = uint32_t(at);
    for (auto [op, before] : orderOfEffects(*model.steps.front().op->getBlock()))
      if (before && stepOf.contains(op) && stepOf.contains(before))
        need(stepOf.lookup(op), stepOf.lookup(before));
    for (SmallVector<uint32_t> &list : needs)
      llvm::sort(list);
  }

  void groupSteps() {
    std::vector<uint32_t> onlyUser(model.steps.size(), kNone);
    std::vector<uint32_t> users(model.steps.size());
    for (uint32_t at = 0; at < model.steps.size(); ++at)
      for (uint32_t before : needs[at]) {
        ++users[before];
        onlyUser[before] = at;
      }
    std::vector<uint32_t> reads(model.values.size()); // number of steps that read each value
    for (const MemoryModel::Step &step : model.steps)
      for (ValueId v : llvm::SmallDenseSet<ValueId>(step.inputs.begin(), step.inputs.end()))
        ++reads[v];
    groupOf.assign(model.steps.size(), kNone);
    std::vector<uint32_t> leader(model.steps.size());
    for (uint32_t at = uint32_t(model.steps.size()); at-- > 0;) {
      const bool isInner = users[at] == 1 && !isResult(at) && !canFail(model.steps[at].op) && !isShrinking(at, reads);
      leader[at] = isInner ? leader[onlyUser[at]] : at;
    }
    for (uint32_t at = 0; at < model.steps.size(); ++at) // groups are in the order of their last steps
      if (leader[at] == at) {
        groupOf[at] = uint32_t(groups.size());
        groups.emplace_back();
      }
    for (uint32_t at = 0; at < model.steps.size(); ++at) {
      groupOf[at] = groupOf[leader[at]];
      groups[groupOf[at]].steps.push_back(at);
      groups[groupOf[at]].isResult |= isResult(at);
    }
  }

  /// Whether it frees more than it allocates, whatever runs after it.
  bool isShrinking(uint32_t at, ArrayRef<uint32_t> reads) const {
    int64_t bytes = 0;
    for (ValueId v : model.steps[at].results)
      bytes += model.values[v].isBuffer ? model.values[v].bytes : 0;
    for (ValueId v : llvm::SmallDenseSet<ValueId>(model.steps[at].inputs.begin(), model.steps[at].inputs.end()))
      bytes -= model.values[v].isBuffer && reads[v] == 1 ? model.values[v].bytes : 0;
    return bytes < 0;
  }

  bool isResult(uint32_t at) const {
    return llvm::any_of(model.steps[at].results, [&](ValueId v) { return !model.values[v].isBuffer; });
  }

  void prepare() {
    remaining.assign(model.values.size(), 0);
    readers.resize(model.values.size());
    for (uint32_t g = 0; g < groups.size(); ++g) {
      Group &group = groups[g];
      for (uint32_t at : group.steps) {
        for (uint32_t before : needs[at])
          if (uint32_t other = groupOf[before]; other != g && !llvm::is_contained(group.needs, other))
            group.needs.push_back(other);
        for (ValueId v : model.steps[at].inputs)
          if (model.values[v].isBuffer && !isMadeBy(v, g) && !llvm::is_contained(group.reads, v)) {
            group.reads.push_back(v);
            readers[v].push_back(g);
            ++remaining[v];
          }
      }
      llvm::sort(group.needs);
      group.missing = uint32_t(group.needs.size());
      for (uint32_t other : group.needs)
        groups[other].neededBy.push_back(g);
    }
    for (uint32_t g = 0; g < groups.size(); ++g)
      for (uint32_t at : groups[g].steps)
        for (ValueId v : model.steps[at].results)
          if (model.values[v].isBuffer && !readers[v].empty() && !llvm::is_contained(groups[g].makes, v))
            groups[g].makes.push_back(v);
    for (uint32_t g = 0; g < groups.size(); ++g)
      consider(g);
  }

  bool isMadeBy(ValueId v, uint32_t group) const {
    return llvm::any_of(makers[v], [&](uint32_t at) { return groupOf[at] == group; });
  }

  /// Growth of live bytes once these groups have run.
  int64_t growth(ArrayRef<uint32_t> chain) const {
    int64_t bytes = 0;
    llvm::SmallDenseMap<ValueId, uint32_t> reads;
    for (uint32_t g : chain)
      for (ValueId v : groups[g].reads)
        ++reads[v];
    for (auto [v, count] : reads)
      if (remaining[v] == count)
        bytes -= model.values[v].bytes;
    for (uint32_t g : chain)
      for (ValueId v : groups[g].makes)
        bytes += model.values[v].bytes;
    return bytes;
  }

  /// The only group that waits for this one, if it waits for no other one.
  uint32_t follower(uint32_t g) const {
    uint32_t found = kNone;
    for (uint32_t other : groups[g].neededBy)
      if (found == kNone)
        found = other;
      else
        return kNone;
    return found != kNone && groups[found].missing == 1 ? found : kNone;
  }

  void consider(uint32_t g) {
    if (groups[g].isDone || groups[g].missing != 0)
      return;
    constexpr size_t kLongest = 8;
    SmallVector<uint32_t> chain;
    for (uint32_t at = g; at != kNone && chain.size() < kLongest; at = follower(at)) {
      chain.push_back(at);
      if (int64_t bytes = growth(chain); bytes <= 0)
        return freeing.push({-bytes, ~g});
    }
  }

  void emit(uint32_t g) {
    Group &group = groups[g];
    group.isDone = true;
    order.insert(order.end(), group.steps.begin(), group.steps.end());
    for (uint32_t other : group.neededBy) {
      uint32_t missing = --groups[other].missing;
      if (missing == 0)
        consider(other);
      else if (missing == 1) // the last group that it waits for may pay off together with it
        for (uint32_t last : groups[other].needs)
          consider(last);
    }
    for (ValueId v : group.reads)
      if (--remaining[v] == 1)
        for (uint32_t other : readers[v])
          consider(other);
  }

  /// Runs ready groups that allocate no more than they free.
  void emitFreeing() {
    while (!freeing.empty()) {
      uint32_t g = ~freeing.top().second;
      freeing.pop();
      if (!groups[g].isDone)
        emit(g);
    }
  }

  /// Runs a group after the groups that it needs.
  void reach(uint32_t wanted) {
    SmallVector<std::pair<uint32_t, uint32_t>> path{{wanted, 0}}; // group, and how many of its needs were visited
    while (!path.empty()) {
      emitFreeing();
      auto &[g, seen] = path.back();
      if (groups[g].isDone) {
        path.pop_back();
      } else if (seen < groups[g].needs.size()) {
        uint32_t next = groups[g].needs[seen++];
        if (!groups[next].isDone)
          path.push_back({next, 0});
      } else {
        emit(g);
      }
    }
  }

  const MemoryModel &model;
  // Steps that make a value; a loop appends to its initial states, so there may be two.
  std::vector<SmallVector<uint32_t, 1>> makers;
  std::vector<SmallVector<uint32_t>> needs;
  std::vector<Group> groups;
  std::vector<uint32_t> groupOf, remaining;
  std::vector<SmallVector<uint32_t>> readers; // per value: groups
  // Bytes freed, and the complement of a group, so that the first group wins ties.
  std::priority_queue<std::pair<int64_t, uint32_t>> freeing;
  std::vector<uint32_t> order;
};

struct OrderKernelsPass : impl::OrderKernelsPassBase<OrderKernelsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && function.getOps<PrefixOp>().empty())
        order(function);
  }

private:
  static void order(func::FuncOp function) {
    if (std::distance(function.getBody().front().begin(), function.getBody().front().end()) < 4)
      return;
    auto built = memoryModelOf(function, SizesAs::Typical);
    BufferReuseCache cache;
    MemoryModel ordered = *built;
    ordered.steps.clear();
    for (uint32_t at : Scheduler(*built).run())
      ordered.steps.push_back(built->steps[at]);
    if (livenessOf(ordered, cache).peakBytes() >= livenessOf(*built, cache).peakBytes())
      return;
    Recipes none(ordered);
    applySteps(function, ordered, none);
    for (KernelOp kernel : function.getOps<KernelOp>())
      kernel.removeInPlaceAttr(); // values die elsewhere now
  }
};

} // namespace

} // namespace burin::passes
