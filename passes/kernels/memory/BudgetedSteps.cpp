#include "passes/kernels/memory/BudgetedSteps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

using ValueId = MemoryModel::ValueId;

namespace {

class PaperRun {
public:
  PaperRun(int64_t budget, const MemoryModel &given, Recipes &recipes, BufferReuseCache &bufferReuse)
      : budget(budget), given(given), recipes(recipes), bufferReuse(bufferReuse), values(given.values.size()) {
    out.model.values = given.values;
    out.model.idOf = given.idOf;
    for (ValueId v = 0; v < values.size(); ++v)
      values[v].version = v;
    for (uint32_t at = 0; at < given.steps.size(); ++at) {
      for (ValueId v : given.steps[at].inputs)
        values[v].uses.push_back(at);
      for (ValueId v : given.steps[at].overwritten)
        values[v].overwritten = at;
    }
    for (ValueId v = 0; v < values.size(); ++v)
      for (ValueId input : recipes.of(v).inputs)
        values[input].readers.push_back(v);
    for (ValueId v = 0; v < values.size(); ++v)
      sortFrom(v);
  }

  std::optional<BudgetedSteps> run() {
    for (uint32_t at = 0; at < given.steps.size(); ++at)
      if (!runStep(at))
        return std::nullopt;
    removeUnused(out.model);
    tell();
    return std::move(out);
  }

private:
  static constexpr uint32_t kNever = UINT32_MAX;
  static constexpr ValueId kUnwanted = UINT32_MAX;
  struct Value {
    SmallVector<uint32_t> uses;    // steps that read it
    SmallVector<ValueId> readers;  // values whose recipes read it
    uint32_t overwritten = kNever; // step that overwrites this argument
    uint32_t need = kNever;        // next step that reads it, or for which a dropped value is recomputed from it
    uint32_t pins = 0;             // a step that is about to run reads or writes it
    ValueId version = 0;           // of the new model
    bool isMade = false, isLive = false, isSorted = false;
    bool isRead = false; // since it was made
  };

  bool isBuffer(ValueId v) const { return given.values[v].isBuffer; }
  int64_t bytesOf(ValueId v) const { return given.values[v].bytes; }

  /// Appends to `order`, inputs of recipes before the values that they make.
  void sortFrom(ValueId v) {
    if (values[v].isSorted)
      return;
    values[v].isSorted = true;
    for (ValueId input : recipes.of(v).inputs)
      sortFrom(input);
    order.push_back(v);
  }

  /// Updates `need` of all values, for steps that begin with `from`.
  void findNeeds(uint32_t from) {
    for (ValueId v : llvm::reverse(order)) {
      Value &value = values[v];
      auto next = llvm::lower_bound(value.uses, from);
      value.need = next == value.uses.end() ? kNever : *next;
      for (ValueId reader : value.readers)
        if (isDropped(reader))
          value.need = std::min(value.need, values[reader].need);
    }
  }
  bool isDropped(ValueId v) const { return isBuffer(v) && values[v].isMade && !values[v].isLive; }

  /// Adds the time to recompute `v` before step `at`, with inputs that are gone; false if that is impossible.
  bool addTime(ValueId v, uint32_t at, llvm::DenseSet<ValueId> &seen, double &seconds) {
    if (!seen.insert(v).second)
      return true;
    const Recipe &recipe = recipes.of(v);
    if (!recipe.op)
      return false;
    seconds += recipe.seconds;
    return llvm::all_of(recipe.inputs, [&](ValueId input) {
      const Value &value = values[input];
      if (!isBuffer(input))
        return value.overwritten == kNever || value.overwritten >= at;
      return value.isLive || addTime(input, at, seen, seconds);
    });
  }

  /// The time per byte and step for which a live value could be dropped; negative if it cannot.
  double price(ValueId v, uint32_t from) {
    Value &value = values[v];
    if (!isBuffer(v) || !value.isLive || given.values[v].isShared)
      return -1;
    if (value.need == kNever)
      return 0;
    double seconds = 0;
    llvm::DenseSet<ValueId> seen;
    if (!addTime(v, value.need, seen, seconds))
      return -1;
    if (!value.isRead) // it is not computed twice, but later
      seconds -= recipes.of(v).seconds;
    return seconds / (double(bytesOf(v)) * double(value.need - std::min(from, value.need) + 1));
  }

  void drop(ValueId v) {
    values[v].isLive = false;
    live -= bytesOf(v);
  }

  /// Drops the value of least price; false if there is none.
  bool dropOne(uint32_t from) {
    std::optional<ValueId> best;
    double least = 0;
    findNeeds(from);
    for (ValueId v = 0; v < values.size(); ++v) {
      if (values[v].pins)
        continue;
      double found = price(v, from);
      if (found >= 0 && (!best || found < least)) {
        best = v;
        least = found;
      }
    }
    if (best)
      drop(*best);
    return best.has_value();
  }

  bool runStep(uint32_t at) {
    MemoryModel::Step step = given.steps[at];
    return withInputs(step.inputs, at, [&] { return emit(step, step.results, at + 1); });
  }

  bool remake(ValueId v, uint32_t at) {
    const Recipe &recipe = recipes.of(v);
    constexpr size_t kMost = 4; // bounds the growth of the function
    if (!recipe.op || out.model.steps.size() > kMost * given.steps.size() + 64)
      return false;
    return withInputs(recipe.inputs, at, [&] {
      MemoryModel::Step step;
      step.op = recipe.op;
      step.inputs = recipe.inputs;
      step.innerBytes = recipe.innerBytes;
      SmallVector<ValueId> originals;
      for (unsigned i = 0; i < recipe.op->getNumResults(); ++i) {
        const bool isWanted = i == recipe.result;
        originals.push_back(isWanted ? v : kUnwanted);
        MemoryModel::Value made = given.values[isWanted ? v : given.idOf.lookup(recipe.op->getResult(i))];
        made.isBuffer = true;
        step.results.push_back(out.model.add(made));
      }
      remakes.push_back({v, step.results[recipe.result], at});
      return emit(std::move(step), originals, at);
    });
  }

  /// Recomputes the inputs that are gone, and calls `then` while none of them may be dropped.
  bool withInputs(ArrayRef<ValueId> inputs, uint32_t at, llvm::function_ref<bool()> then) {
    SmallVector<ValueId> pinned;
    auto pin = [&](ValueId v) {
      ++values[v].pins;
      pinned.push_back(v);
    };
    for (ValueId v : inputs)
      if (isBuffer(v) && values[v].isLive)
        pin(v);
    for (ValueId v : inputs)
      if (isBuffer(v) && !values[v].isLive) {
        if (!remake(v, at))
          return false;
        pin(v);
      }
    if (!then())
      return false;
    for (ValueId v : pinned)
      if (--values[v].pins == 0 && values[v].isLive && values[v].need == kNever)
        drop(v);
    return true;
  }

  /// Appends a step. Its inputs are values of the given model, its results of the new one; `originals` are the values
  /// of the given model that these are. Later steps begin with `from`.
  bool emit(MemoryModel::Step step, ArrayRef<ValueId> originals, uint32_t from) {
    int64_t added = step.innerBytes;
    SmallVector<unsigned> fresh; // results with new buffers
    SmallVector<ValueId> made;
    for (auto [i, v] : llvm::enumerate(originals)) {
      if (v == kUnwanted) {
        added += out.model.values[step.results[i]].bytes;
        continue;
      }
      values[v].isMade = true;
      values[v].version = step.results[i];
      if (!isBuffer(v) || values[v].isLive)
        continue;
      fresh.push_back(unsigned(i));
      made.push_back(v);
      values[v].isLive = true;
      values[v].isRead = false;
      ++values[v].pins;
      added += bytesOf(v);
    }
    findNeeds(from);
    takeInputs(step, originals, fresh, [&](ValueId input) { return values[input].need == kNever; });
    while (live + added > budget)
      if (!dropOne(from) && !takeInputs(step, originals, fresh, [&](ValueId input) {
            double seconds = 0;
            llvm::DenseSet<ValueId> seen;
            return addTime(input, values[input].need, seen, seconds);
          }))
        return false;
    for (ValueId &input : step.inputs) {
      values[input].isRead = true;
      input = values[input].version;
    }
    out.model.steps.push_back(std::move(step));
    findNeeds(from);
    for (ValueId v : made) {
      live += bytesOf(v);
      if (--values[v].pins == 0 && values[v].need == kNever)
        drop(v);
    }
    return true;
  }

  /// Lets results overwrite inputs for which `mayGo` holds. Returns whether there was one.
  bool takeInputs(const MemoryModel::Step &step, ArrayRef<ValueId> originals, SmallVectorImpl<unsigned> &fresh,
                  llvm::function_ref<bool(ValueId)> mayGo) {
    bool isAny = false;
    llvm::erase_if(fresh, [&](unsigned r) {
      if (given.values[originals[r]].isShared)
        return false;
      for (auto [i, input] : llvm::enumerate(step.inputs)) {
        const MemoryModel::Value &value = given.values[input];
        if (!value.isBuffer || !value.isComputed || value.isShared || !values[input].isLive ||
            values[input].pins != 1 || llvm::count(step.inputs, input) != 1 ||
            !bufferReuse.mayReuseBuffer(step.op, r, unsigned(i)) || !mayGo(input))
          continue;
        drop(input);
        return isAny = true;
      }
      return false;
    });
    return isAny;
  }

  void tell() {
    llvm::DenseSet<ValueId> made, told;
    for (const MemoryModel::Step &step : out.model.steps)
      made.insert_range(step.results);
    for (const Remake &remake : remakes) {
      if (!made.contains(remake.version))
        continue;
      const bool isFirst = !made.contains(remake.value) && told.insert(remake.value).second;
      out.changes.push_back({isFirst ? MemoryChange::Kind::Later : MemoryChange::Kind::Again,
                             given.values[remake.value].source, bytesOf(remake.value),
                             isFirst ? 0 : recipes.of(remake.value).flops, given.steps[remake.before].op,
                             isFirst ? 0 : recipes.of(remake.value).seconds});
    }
  }

  struct Remake {
    ValueId value, version;
    uint32_t before; // a step of the given model
  };

  const int64_t budget;
  const MemoryModel &given;
  Recipes &recipes;
  BufferReuseCache &bufferReuse;
  std::vector<Value> values; // of the given model
  std::vector<ValueId> order;
  std::vector<Remake> remakes;
  int64_t live = 0; // bytes
  BudgetedSteps out;
};

} // namespace

std::optional<BudgetedSteps> stepsWithin(int64_t bytes, const MemoryModel &model, Recipes &recipes,
                                         BufferReuseCache &bufferReuse) {
  return PaperRun(bytes, model, recipes, bufferReuse).run();
}

} // namespace burin::passes
