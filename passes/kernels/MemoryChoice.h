// Which values of a function are kept for later, and which are computed again, so that its buffers fit a limit.
#pragma once
#include "passes/Passes.h"
#include "passes/kernels/Recompute.h"

namespace burin::passes {

/// Changes the steps of a model until its buffers need at most a number of bytes, one value at a time: of those that
/// are held at the peak but not used there, the one that costs the least time per byte and step of being over the
/// limit. It is computed again before its next use; so are its inputs where they are gone by then.
class MemoryChoice {
public:
  /// One value that is not kept.
  struct Change {
    enum class Kind { Again, Later, Narrow } kind; // computed once more; computed later; stored in bf16 in between
    mlir::Value value;
    int64_t bytes = 0, flops = 0;    // saved at the peak; added
    mlir::Operation *next = nullptr; // the step that uses it then
  };

  MemoryChoice(MemoryModel &model, Recipes &recipes, const MemoryLimit &limit);

  /// False if nothing more can be done while the buffers need more than `bytes`.
  bool fit(uint64_t bytes);

  llvm::ArrayRef<Change> changes() const { return made; }
  /// Bytes that the buffers need now.
  uint64_t arenaBytes() const { return arena; }
  const Liveness &liveness() const { return now; }

private:
  using ValueId = MemoryModel::ValueId;
  struct Candidate {
    Change::Kind kind = Change::Kind::Again;
    ValueId value = 0;
    uint32_t after = 0, next = 0;      // its uses around the peak
    llvm::SmallVector<ValueId> chain;  // originals of what is computed, in order; the last one is the value's
    llvm::SmallVector<ValueId> longer; // values that live longer for it
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
  void removeUnused();

  MemoryModel &model;
  Recipes &recipes;
  const MemoryLimit &limit;
  TakeOverCache takeOver;
  Liveness now;
  uint64_t arena = 0;
  std::vector<ValueId> originalOf;                              // per value
  llvm::DenseMap<ValueId, llvm::SmallVector<ValueId>> versions; // of an original, with it
  llvm::DenseSet<ValueId> narrowed;
  std::vector<Change> made;
};

} // namespace burin::passes
