#include "passes/kernels/memory/MemoryChoice.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

MemoryChoice::MemoryChoice(MemoryModel &model, Recipes &recipes, const MemoryLimit &limit)
    : model(model), recipes(recipes), limit(limit) {
  for (ValueId v = 0; v < model.values.size(); ++v) {
    originalOf.push_back(v);
    versions[v] = {v};
  }
  measure();
}

void MemoryChoice::measure() {
  now = livenessOf(model, bufferReuse);
  arena = limit.arenaBytes ? limit.arenaBytes(buffersOf(model, now)) : uint64_t(now.peakBytes());
}

bool MemoryChoice::fit(uint64_t bytes, uint64_t aim) {
  // Bounds the growth of the function, and the changes: one that leaves a step without readers moves it, and another
  // one may move it back.
  const size_t most = 4 * model.steps.size() + 64;
  while (arena > bytes) {
    // The arena exceeds the peak by what first fit wastes; that must be saved, too.
    int64_t target = int64_t(aim) - int64_t(arena - uint64_t(now.peakBytes()));
    std::optional<Candidate> choice = std::max(made.size(), model.steps.size()) < most ? best(target) : std::nullopt;
    if (!choice)
      return false;
    apply(*choice);
    measure();
  }
  return true;
}

std::optional<MemoryChoice::Candidate> MemoryChoice::best(int64_t bytes) {
  const auto peak = uint32_t(now.peak());
  std::vector<uint32_t> over{0}; // prefix sums of the steps that need more than `bytes`
  for (int64_t live : now.live)
    over.push_back(over.back() + (live > bytes));
  // The last use of each value up to the peak, and the next one after it.
  std::vector<uint32_t> after(model.values.size(), UINT32_MAX), next(model.values.size(), UINT32_MAX);
  for (uint32_t at = 0; at < model.steps.size(); ++at)
    for (const auto *list : {&model.steps[at].inputs, &model.steps[at].results})
      for (ValueId v : *list) {
        if (at <= peak)
          after[v] = at;
        else if (next[v] == UINT32_MAX)
          next[v] = at;
      }
  std::optional<Candidate> best;
  auto consider = [&](std::optional<Candidate> candidate) {
    if (!candidate || candidate->gain <= 0 || !fitsAround(*candidate))
      return;
    uint32_t steps = over[candidate->next] - over[candidate->after + 1];
    candidate->score = candidate->seconds / (double(candidate->gain) * std::max(steps, 1u));
    if (!best || candidate->score < best->score)
      best = std::move(candidate);
  };
  for (ValueId v = 0; v < model.values.size(); ++v) {
    const MemoryModel::Value &value = model.values[v];
    if (!value.isBuffer || value.isShared || after[v] == UINT32_MAX || next[v] == UINT32_MAX || after[v] == peak)
      continue;
    consider(again(v, peak, after[v], next[v]));
    if (limit.allowBf16)
      consider(narrow(v, after[v], next[v]));
  }
  return best;
}

// ---- candidates

std::optional<MemoryChoice::Candidate> MemoryChoice::again(ValueId value, uint32_t peak, uint32_t after,
                                                           uint32_t next) {
  Candidate candidate;
  candidate.value = value;
  candidate.after = after;
  candidate.next = next;
  candidate.gain = model.values[value].bytes;
  if (narrowed.contains(originalOf[value]) || !collect(candidate, originalOf[value]))
    return std::nullopt;
  for (ValueId v : candidate.chain) {
    candidate.seconds += recipes.of(v).seconds;
    candidate.flops += recipes.of(v).flops;
  }
  for (ValueId v : candidate.longer)
    if (now.last[v] < peak)
      candidate.gain -= model.values[v].bytes;
  // A value without uses so far is computed later, not twice.
  const MemoryModel::Step &maker = model.steps[now.first[value]];
  if (after == now.first[value] && maker.results.size() == 1 && isa<KernelOp>(maker.op)) {
    candidate.kind = Change::Kind::Later;
    candidate.seconds -= recipes.of(originalOf[value]).seconds;
    candidate.flops -= recipes.of(originalOf[value]).flops;
  }
  return candidate;
}

/// Collects the ops to compute before step `next` to have the value there; false if that is impossible or too much.
bool MemoryChoice::collect(Candidate &candidate, ValueId original) const {
  constexpr size_t kLongest = 24;
  const bool isValue = original == originalOf[candidate.value];
  if (llvm::is_contained(candidate.chain, original))
    return true;
  if (!isValue && liveVersion(original, candidate.next, candidate.value))
    return true;
  const MemoryModel::Value &value = model.values[original];
  std::optional<ValueId> earlier = isValue ? std::nullopt : lastVersion(original, candidate.next);
  const int64_t saved = model.values[candidate.value].bytes;
  auto keepLonger = [&] {
    candidate.longer.push_back(*earlier);
    return true;
  };
  if (earlier && value.bytes * 2 <= saved)
    return keepLonger();
  const Recipe &recipe = recipes.of(original);
  size_t length = candidate.chain.size(), kept = candidate.longer.size();
  if (recipe.op && length < kLongest && !narrowed.contains(original) &&
      llvm::all_of(
          recipe.inputs, [&](ValueId input) { return collect(candidate, input); }) &&
      candidate.chain.size() < kLongest) {
    candidate.chain.push_back(original);
    return true;
  }
  candidate.chain.truncate(length);
  candidate.longer.truncate(kept);
  return earlier && value.bytes < saved && keepLonger();
}

/// A version of the value that is computed before step `at` and still live when it runs.
std::optional<MemoryChoice::ValueId> MemoryChoice::liveVersion(ValueId original, uint32_t at, ValueId except) const {
  for (ValueId v : versions.find(original)->second) {
    const MemoryModel::Value &value = model.values[v];
    const bool isMade = isa<BlockArgument>(value.source) || value.source.getDefiningOp<ConstantOp>() ||
                        (now.first[v] != UINT32_MAX && now.first[v] < at);
    if (v == except || !isMade)
      continue;
    if (value.isBuffer ? now.last[v] >= at : [&] {
          auto written = now.overwrittenAt.find(v);
          return written == now.overwrittenAt.end() || written->second >= at;
        }())
      return v;
  }
  return std::nullopt;
}

/// The version that was live last before step `at`.
std::optional<MemoryChoice::ValueId> MemoryChoice::lastVersion(ValueId original, uint32_t at) const {
  std::optional<ValueId> found;
  for (ValueId v : versions.find(original)->second)
    if (model.values[v].isBuffer && now.first[v] != UINT32_MAX && now.last[v] < at &&
        (!found || now.last[v] > now.last[*found]))
      found = v;
  return found;
}

std::optional<MemoryChoice::Candidate> MemoryChoice::narrow(ValueId value, uint32_t after, uint32_t next) {
  const MemoryModel::Value &v = model.values[value];
  if (dtypeOf(v.source) != DType::f32 || narrowed.contains(originalOf[value]) || next - after < 3)
    return std::nullopt;
  Candidate candidate;
  candidate.kind = Change::Kind::Narrow;
  candidate.value = value;
  candidate.after = after;
  candidate.next = next;
  candidate.gain = model.values[value].bytes / 2;
  candidate.seconds = 2 * Recipes::secondsFor(0, v.bytes + v.bytes / 2);
  return candidate;
}

/// Whether the intermediate values of the recomputation fit below the peak.
bool MemoryChoice::fitsAround(const Candidate &candidate) {
  int64_t added = 0;
  for (size_t i = 0; i + 1 < candidate.chain.size(); ++i) {
    const Recipe &user = recipes.of(candidate.chain[i + 1]);
    bool isReused = false;
    for (unsigned input = 0; input < user.inputs.size(); ++input)
      isReused |= user.inputs[input] == candidate.chain[i] && bufferReuse.mayReuseBuffer(user.op, user.result, input);
    if (!isReused)
      added += model.values[candidate.chain[i]].bytes;
  }
  for (ValueId v : candidate.longer)
    added += model.values[v].bytes;
  return added == 0 || now.live[candidate.next] + added < now.peakBytes();
}

// ---- changes

MemoryChoice::ValueId MemoryChoice::newVersion(ValueId original) {
  MemoryModel::Value value = model.values[original];
  value.isBuffer = true;
  value.isShared = false;
  ValueId v = model.add(value);
  originalOf.resize(model.values.size());
  originalOf[v] = original;
  versions[original].push_back(v);
  return v;
}

MemoryModel::Step MemoryChoice::stepOf(Recipe recipe, ValueId result,
                                       llvm::function_ref<MemoryModel::ValueId(MemoryModel::ValueId)> versionOf) {
  MemoryModel::Step step;
  step.op = recipe.op;
  step.innerBytes = recipe.innerBytes;
  for (ValueId input : recipe.inputs)
    step.inputs.push_back(versionOf(input));
  for (unsigned i = 0; i < recipe.op->getNumResults(); ++i)
    step.results.push_back(i == recipe.result ? result : newVersion(model.idOf.lookup(recipe.op->getResult(i))));
  return step;
}

void MemoryChoice::replaceFrom(size_t at, ValueId from, ValueId to) {
  for (; at < model.steps.size(); ++at)
    for (ValueId &v : model.steps[at].inputs)
      if (v == from)
        v = to;
}

void MemoryChoice::apply(const Candidate &candidate) {
  const ValueId value = candidate.value, original = originalOf[value];
  made.push_back({candidate.kind, model.values[value].source, candidate.gain, candidate.flops,
                  model.steps[candidate.next].op, candidate.seconds});
  llvm::DenseMap<ValueId, ValueId> fresh; // new version, by original
  auto insert = [&](size_t at, MemoryModel::Step step) {
    model.steps.insert(model.steps.begin() + ptrdiff_t(at), std::move(step));
  };
  auto versionOf = [&](ValueId input) {
    if (auto found = fresh.find(input); found != fresh.end())
      return found->second;
    for (ValueId v : candidate.longer)
      if (originalOf[v] == input)
        return v;
    return *liveVersion(input, candidate.next, value);
  };
  if (candidate.kind == Change::Kind::Narrow) {
    Recipes::Narrowing n = recipes.narrowing(original);
    ValueId narrow = model.idOf.lookup(n.down.op->getResult(0));
    originalOf.resize(model.values.size());
    originalOf[narrow] = narrow;
    versions[narrow] = {narrow};
    ValueId wide = newVersion(original);
    narrowed.insert(original);
    narrowed.insert(narrow);
    insert(candidate.next, stepOf(n.up, wide, [&](ValueId) { return narrow; }));
    insert(candidate.after + 1, stepOf(n.down, narrow, [&](ValueId) { return value; }));
    replaceFrom(candidate.next + 2, value, wide);
    return;
  }
  size_t at = candidate.next;
  for (ValueId made : candidate.chain) {
    ValueId version = newVersion(made);
    insert(at++, stepOf(recipes.of(made), version, versionOf));
    fresh[made] = version;
  }
  replaceFrom(at, value, fresh[original]);
  removeUnused(model);
}

} // namespace burin::passes
