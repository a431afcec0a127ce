// What the GPU kernels of reductions share: levels of dependent reductions, their accumulators, and slices that are cut
// into parts, one per block.
//
// If slices are cut, blocks are launched in groups (GpuLaunch::group), one per stage. A block of a stage that reduces a
// level stores the accumulators of its part in scratch memory. Each block of a later stage combines those of all parts,
// in an order that depends on their number alone; if they are many, a stage between them does it once for all.
#pragma once
#include "codegen/emit/Reducer.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "codegen/kernels/rowwise/RowwiseSchedule.h"

namespace burin::codegen {

using MutableReducers = llvm::MutableArrayRef<Reducer>;

class PartialReduction : protected RowwiseSchedule {
protected:
  explicit PartialReduction(const KernelEmission &);
  virtual ~PartialReduction() = default;

  /// Accumulators of this thread after its elements of the block's part, `width` lanes each.
  virtual SmallVector<Value> reducePart(MutableReducers reducers) = 0;
  /// Combines the accumulators of the threads of a slice; all of them get the result.
  virtual SmallVector<Value> join(MutableReducers reducers, SmallVector<Value> sums) = 0;
  /// Stores the results of full size.
  virtual void writeFull() = 0;
  /// Stores the results without reduced dimensions if `isWriter`, an i1 that is equal in all threads, is true.
  virtual void writePoints(Value isWriter) = 0;
  /// Barrier of the threads of a slice.
  virtual void syncSlice() = 0;

  /// The parts of a slice: blocks that share it.
  struct Parts {
    Dim count = 1;          // 1: slices are not cut
    Dim slices = 1;         // number of slices, or of groups of slices that a block reduces together
    int64_t columns = 1;    // slices of such a group
    bool isAdjacent = true; // blocks of a slice's parts are adjacent; else the first parts of all slices come first
  };
  /// Emits the body. `slice` and `part` are those of the block, `slice` the number of a group of slices.
  void emitLevels(llvm::function_ref<void(Value slice, Value part)> place);
  /// Launch parameters; `threads` must be set.
  GpuLaunch launchOfParts() const;
  bool isCut() const { return !parts.count.isStatic() || parts.count.value() > 1; }

  /// Emits the body twice: for operands that are aligned to 16 bytes, and for others.
  void forBothAlignments(llvm::function_ref<void()> emit);

  std::vector<Reducer> reducersOf(ArrayRef<mlir::Operation *> level);
  SmallVector<Value> identities(MutableReducers reducers, int64_t lanes);
  SmallVector<Value> combineAll(MutableReducers, ArrayRef<Value> x, ArrayRef<Value> y);
  /// Adds the elements at the point of all reductions of a level.
  SmallVector<Value> step(MutableReducers, ValueRange carried, const Index &position, Value mask = {});
  /// Sets the point to row-major position i of the dimensions `dims` of the space. Lanes run along the last of them
  /// if `lanes` is more than 1.
  void place(Value i, ArrayRef<int> dims, int64_t lanes = 1);
  /// KernelBuilder::loop over the positions of a thread, `step` apart. `body` visits `count` positions from `first` on,
  /// so that their loads overlap: `together` of them per iteration, then one by one in a loop that ptxas does not
  /// unroll.
  SmallVector<Value>
  loopTogether(Value from, Value to, int64_t step, int64_t together, ValueRange init,
               llvm::function_ref<SmallVector<Value>(Value first, ValueRange carried, int64_t count)> body);
  /// The same for a function that visits one position.
  SmallVector<Value> loopTogether(Value from, Value to, int64_t step, int64_t together, ValueRange init,
                                  llvm::function_ref<SmallVector<Value>(Value, ValueRange)> visit);
  /// Elements of 16 bytes of the widest value, if so many divide the innermost dimension; else 1.
  int64_t vectorLanes() const;
  static constexpr int64_t kMostShared = 44 << 10; // bytes of shared memory of a block
  /// Allocates shared memory for the accumulators of a level.
  void allocateShared(int64_t bytes);
  /// That memory. If there are two copies, levels use them in turn: between two uses of one copy is the barrier of the
  /// level that uses the other.
  Value useShared();
  /// Copies of that memory.
  int64_t copiesOfShared() const { return levels.size() > 1 ? 2 : 1; }
  /// Bytes of the accumulators of a level with the most, of one lane each.
  int64_t mostBytesOfLevel();
  void storeLanes(Value memory, Value at, Value v);
  Value loadLanes(Value memory, Value at, Type type);
  /// Bytes of an accumulator of one lane in memory.
  static int64_t bytesOf(Value accumulator);
  KernelBuilder &k;
  PointEmitter p;
  ArrayRef<Value> pointers; // of the results
  GpuResults full, points;  // results with, and without, reduced dimensions
  Shape rowShape, pointShape;
  int64_t threads = 0; // per block
  int64_t lanes = 1;   // of the accumulators of a thread between levels
  Value threadOfSlice; // number of this thread among those that share a slice
  int64_t threadsOfSlice = 1;
  bool isShort = false; // loops are not unrolled
  Value lane;           // number of the first of this thread's slices in the block's group of slices
  Parts parts;

private:
  /// What the blocks of one group do.
  struct Stage {
    enum Kind { Reduce, Combine, Results, Points } kind;
    size_t level = 0; // the level that is reduced or combined; all levels before it are known
  };
  SmallVector<Stage> stages() const;
  /// Whether the accumulators of a level are combined by a stage of their own.
  bool combinesApart(size_t level) const;
  /// Whether a result without reduced dimensions overwrites an input that threads of the slice read for results of full
  /// size, or for reductions.
  bool overwritesPoints(bool isForLevels) const;
  void dropRepeated(SmallVector<mlir::Operation *> &level);
  void bindLevel(MutableReducers, ArrayRef<Value> sums);
  void storePart(size_t level, ArrayRef<Value> sums);
  SmallVector<Value> loadPart(size_t level, Value number, ArrayRef<Value> like);
  SmallVector<Value> combineParts(size_t level, MutableReducers);
  SmallVector<Value> loadTotals(size_t level, MutableReducers);
  void emitWhole();
  void emitStage(const Stage &, Value isFirst);
  Value partAddress(Value part);
  void planSlots();

  llvm::DenseMap<mlir::Operation *, SmallVector<Value>>
      repeated;                            // results of further ops that equal that of a reduction
  SmallVector<SmallVector<int64_t>> slots; // offsets of the accumulators of each level in a block's scratch memory
  int64_t slotBytes = 0;                   // of a block
  Value slice, part;
  Value shared;
  int64_t sharedCopy = 0, sharedUses = 0; // bytes of a copy; uses in this stage
};

} // namespace burin::codegen
