// Chooses the values of a function that are recomputed instead of kept, so that its buffers fit a limit.
#pragma once
#include "passes/Passes.h"
#include "passes/kernels/memory/Recompute.h"

namespace burin::passes {

/// Changes the steps of a model, one value at a time, until its buffers fit. Candidates are values that are live but
/// not used at the peak; the one with the least cost in time per saved byte and step over the limit is taken. It is
/// recomputed before its next use, and so are those of its inputs that are dead by then.
class MemoryChoice {
public:
  using Change = MemoryChange;

  MemoryChoice(MemoryModel &model, Recipes &recipes, const MemoryLimit &limit);

  /// Changes values until the buffers need at most `bytes`. Candidates are judged by the steps that need more than
  /// `aim`, at most `bytes`. Returns false if nothing more can be done.
  bool fit(uint64_t bytes, uint64_t aim);

  const std::vector<Change> &changes() const { return made; }
  /// Bytes that the buffers need after the changes so far.
  uint64_t arenaBytes() const { return arena; }
  const Liveness &liveness() const { return now; }

private:
  using ValueId = MemoryModel::ValueId;
  struct Candidate {
    Change::Kind kind = Change::Kind::Again;
    ValueId value = 0;
    uint32_t after = 0, next = 0;      // its last use before the peak and the next one after it
    llvm::SmallVector<ValueId> chain;  // originals of the values to compute, in order; the value itself is last
    llvm::SmallVector<ValueId> longer; // values whose live ranges grow
    int64_t gain = 0, flops = 0;
    double seconds = 0, score = 0;
  };

  void measure();
  std::optional<Candidate> best(int64_t bytes);
  std::optional<Candidate> again(ValueId value, uint32_t peak, uint32_t after, uint32_t next);
  std::optional<Candidate> narrow(ValueId value, uint32_t after, uint32_t next);
  bool collect(Candidate &candidate, ValueId original) const;
  std::optional<ValueId> liveVersion(ValueId original, uint32_t at, ValueId except) const;
  std::optional<ValueId> lastVersion(ValueId original, uint32_t at) const;
  bool fitsAround(const Candidate &candidate);
  void apply(const Candidate &candidate);
  MemoryModel::Step stepOf(Recipe recipe, ValueId result,
                           llvm::function_ref<MemoryModel::ValueId(MemoryModel::ValueId)> versionOf);
  ValueId newVersion(ValueId original);
  void replaceFrom(size_t at, ValueId from, ValueId to);

  MemoryModel &model;
  Recipes &recipes;
  const MemoryLimit &limit;
  BufferReuseCache bufferReuse;
  Liveness now;
  uint64_t arena = 0;
  std::vector<ValueId> originalOf; // per value: the value of the function that it is a version of
  llvm::DenseMap<ValueId, llvm::SmallVector<ValueId>> versions; // of an original, itself included
  llvm::DenseSet<ValueId> narrowed;
  std::vector<Change> made;
};

} // namespace burin::passes
