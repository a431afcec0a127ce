// The shell of one kernel function and the small vocabulary emitters speak: sizes, loops, loads, stores.
#pragma once
#include "codegen/target/Target.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <map>

namespace burin::codegen {

using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Location;
using mlir::OpBuilder;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

/// A position along one dimension, for each lane of the vector being computed: `base` (i64), plus lane * `stride`, or
/// plus `offsets[lane]` where the distances are known but not all the same, plus known multiples of sizes that only a
/// run knows; or any positions at all in `lanes` (vector of i64) when that is set.
struct Index {
  struct Term {
    Value factor;                            // i64
    llvm::SmallVector<int64_t, 0> multiples; // by lane
    friend bool operator==(const Term &, const Term &) = default;
  };
  Value base;
  int64_t stride = 0;
  Value lanes = {};
  llvm::SmallVector<int64_t, 0> offsets = {}; // the first one is 0
  llvm::SmallVector<Term, 0> terms = {};
  bool uniform() const { return !lanes && stride == 0 && offsets.empty() && terms.empty(); }
  /// Whether `stride` or `offsets` say how far all lanes are from `base`.
  bool hasKnownOffsets() const { return !lanes && terms.empty(); }
  friend bool operator==(const Index &, const Index &) = default;
};

/// Bytes in memory seen as a dense row-major tensor.
struct Memory {
  Value pointer;
  DType dtype;
  Shape shape;
  /// Whole vectors are written past the cache; their addresses must be multiples of their size, and fence() follows.
  bool streamed = false;
};

/// How a GPU runs a kernel.
struct GpuLaunch {
  Dim blocks;
  int64_t threads; // per block, a multiple of 32
  /// Set where each thread does whole tasks alone: first the one of its number in the grid, then every further one as
  /// many beyond as there are threads. Else the body is run by all threads of a block, and lo is the block's number.
  std::optional<Dim> tasksOfThreads = {};
  Dim scratchOfThread = 0; // bytes, for those
};

/// Builds one kernel: `i64 name(ptr operands, ptr sizes, ptr scratch, i64 lo, i64 hi)`, see runtime/format/Artifact.h.
class KernelBuilder {
public:
  /// `shared` tells of each operand whether another may have the same memory.
  KernelBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, const Target &target,
                ArrayRef<bool> shared, std::vector<Dim> knownSizes);
  /// Ends the body and adds the entry that runs tasks [lo, hi).
  void finish();
  /// Ends the body and adds the entry that a GPU launches: `name(operand pointers…, sizes…, scratch, error)`,
  /// see rt::GpuKernel.
  void finishGpu(const GpuLaunch &);

  OpBuilder b;
  mlir::Location loc;
  const Target &target;
  Value scratch, lo, hi;
  /// Lanes of the vectors being built at this moment; 1 means scalars.
  int64_t width = 1;
  /// Sizes the plan has to hand in, in order; those known from the start keep their places.
  std::vector<Dim> sizes;

  /// The ops that may find values that are not allowed.
  SmallVector<mlir::Operation *> checks;

  Value operandPointer(int64_t i) { return operands[i]; }
  /// Whether two operands may have the same memory: a result that takes over that of an input.
  bool sharesMemory() const { return isMemoryShared; }
  /// The kernel reports that `check` found a value that is not allowed, where `isBad` (a bool, or lanes of them), at
  /// `position` (i64, or lanes). Of several reports the one of the earlier op counts, then the one of the lower
  /// position.
  void reportWhere(Value isBad, const Index &position, mlir::Operation *check);

  // ---- integers (i64), folded when constant
  Value constant(int64_t n);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y); // both non-negative
  Value rem(Value x, Value y);
  Value minimum(Value x, Value y);
  Value maximum(Value x, Value y);
  Value compare(mlir::arith::CmpIPredicate, Value x, Value y);
  std::optional<int64_t> constantOf(Value x);
  /// x as a value, or none, and the constant added to it.
  std::pair<Value, int64_t> apart(Value x);
  Value dim(const Dim &size);
  /// The same, but read at run time even if it is known.
  Value handedIn(const Dim &size);
  /// The bound of a mask over elements of this type. LLVM 22 writes too many bytes when it knows that a masked store of
  /// a truncated value has a single lane, so for types below 32 bits the bound is kept from it.
  Value maskBound(const Dim &size, DType stored);

  /// A special register of a GPU, "tid.x", as an i64.
  Value special(llvm::StringRef reg);

  // ---- lanes
  int64_t laneCount(Value v);
  Value broadcast(Value v, int64_t width);
  /// Lanes [first, first + count).
  Value slice(Value v, int64_t first, int64_t count);
  /// The lanes of x from `drop` on, then as many of y.
  Value shiftedIn(Value x, Value y, int64_t drop);
  /// The lanes of vectors of one length side by side; their number is a power of two.
  Value sideBySide(ArrayRef<Value> vectors);
  /// The lower and the upper half of the lanes.
  std::pair<Value, Value> halves(Value v);
  /// Transposes a square: as many vectors as each has lanes.
  void turn(llvm::MutableArrayRef<Value> square);
  /// 0, 1, 2, … as i64 lanes.
  Value iota(int64_t width);
  /// The positions of all lanes as a vector of i64.
  Value lanesOf(const Index &, int64_t width);
  /// Which of the lanes at positions from `begin` on lie before `end`.
  Value below(Value begin, Value end, int64_t width);
  /// x * y + sum, rounded once where these are floats.
  Value multiplyAdd(DType, Value x, Value y, Value sum);
  Index add(const Index &, const Index &);
  Index scale(const Index &, Value factor);
  Index shift(const Index &i, Value by) { return add(i, Index{by}); }
  /// Of positions that are not in `lanes`: how far each lane is from `base`, apart from multiples of sizes.
  SmallVector<int64_t> offsetsOf(const Index &, int64_t width);
  Index indexAt(Value base, ArrayRef<int64_t> offsets);
  /// The quotient and the remainder of positions that are not negative.
  std::pair<Index, Index> split(const Index &, Value size);
  /// What is known of a number: it is a multiple of `factor`, plus `rest`; with factor 0 it is `rest`.
  struct Congruence {
    int64_t factor, rest;
  };
  Congruence congruence(Value x, int depth = 0);
  /// A position that is not negative, which its computation does not show.
  void assumeNatural(Value x) { naturals.insert(x); }

  // ---- control
  /// for (i = from; i < to; i += step); `body(i, carried)` returns the next carried values.
  SmallVector<Value> loop(Value from, Value to, Value step, ValueRange init,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body);
  /// while (condition(carried)) carried = body(carried); returns the last ones.
  SmallVector<Value> loopWhile(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                               llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  void when(Value condition, llvm::function_ref<void()> body);
  void unless(Value condition, llvm::function_ref<void()> body);
  /// What `body` gives where the condition holds, else `otherwise`.
  SmallVector<Value> when(Value condition, ValueRange otherwise, llvm::function_ref<SmallVector<Value>()> body);

  // ---- memory
  /// The type of lanes, see laneType.
  Type storageType(DType);
  /// Row-major position of an element.
  Index linear(const Shape &shape, ArrayRef<Index> at);
  /// Elements at row-major positions. Masked-off lanes read as 0. A uniform position gives a scalar, is read whatever
  /// the mask says, and so must lie in the tensor.
  Value load(const Memory &, const Index &position, int64_t width, Value mask);
  void store(const Memory &, const Index &position, Value value, int64_t width, Value mask);
  Value elementPointer(const Memory &, Value position);
  /// The same elements from that one on, by `names` pointers, each in a register of its own: LLVM does not know them
  /// for the same and so leaves each load from them to the instruction that uses it.
  SmallVector<Memory> namesOf(Memory, Value position, int64_t names);
  /// Whether an address is a multiple of `bytes`, a power of two.
  Value isAligned(Value pointer, int64_t bytes);
  /// Streamed stores before are visible to whoever sees the kernel's end.
  void fence();

private:
  bool isNatural(Value x, int depth = 0);
  std::pair<Value, Value> floorSplit(Value x, Value size);
  std::optional<std::pair<Index, Index>> splitKnown(const Index &, int64_t size);
  std::pair<Index, Index> splitNear(const Index &, Value size);
  Type movedType(DType);
  Value fromMoved(DType, Value moved);
  Value loadGroups(const Memory &, const Index &position, int64_t width, Value mask);
  Value loadPieces(const Memory &, const Index &position, int64_t width, Value mask);
  Value usedElements(Value mask, ArrayRef<SmallVector<int64_t>> users, size_t uses);
  Value hidden(Value, llvm::StringRef constraints);
  void storeFirst(const Memory &, Value position, Value vector, Value count);
  void beginEntry(Type result, ArrayRef<Type> types);
  void addSize(const Dim &);
  void runTasksOfThread(const GpuLaunch &, SmallVector<Value> arguments);
  void callBodyOnGpu(ValueRange arguments);
  std::string name;
  int64_t operandCount;
  bool isMemoryShared = false;
  mlir::LLVM::LLVMFuncOp function, entry;
  SmallVector<Value> operands;
  Value sizesPointer;
  Value lowestError; // a variable; null if the kernel cannot fail
  llvm::StringMap<Value> sizeValues;
  llvm::DenseSet<Value> naturals;
  llvm::DenseMap<Value, int64_t> sizeFactors;            // that a size is known to be a multiple of
  llvm::DenseMap<Value, std::pair<Value, Value>> bounds; // of masks: lanes at positions from the first below the second
  std::map<int64_t, Value> constants; // at the top of the function, so that equal positions are equal values
};

} // namespace burin::codegen
