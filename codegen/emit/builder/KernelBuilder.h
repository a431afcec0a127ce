// Builds one kernel function, with primitives for the emitters: sizes, loops, loads, stores.
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

/// A position along one dimension, per lane of the current vector: `base` (i64) + lane * `stride`; or base +
/// `offsets[lane]` for constant irregular distances, plus `terms`, constant multiples of run-time sizes; or arbitrary
/// positions in `lanes` (vector of i64), relative to `base` unless that is null.
struct Index {
  struct Term {
    Value factor;                            // i64
    llvm::SmallVector<int64_t, 0> multiples; // per lane
    friend bool operator==(const Term &, const Term &) = default;
  };
  Value base;
  int64_t stride = 0;
  Value lanes = {};
  llvm::SmallVector<int64_t, 0> offsets = {}; // the first one is 0
  llvm::SmallVector<Term, 0> terms = {};
  bool uniform() const { return !lanes && stride == 0 && offsets.empty() && terms.empty(); }
  /// Whether `stride` or `offsets` give the distances of all lanes from `base`.
  bool hasKnownOffsets() const { return !lanes && terms.empty(); }
  friend bool operator==(const Index &, const Index &) = default;
};

/// Memory seen as a dense row-major tensor.
struct Memory {
  Value pointer;
  DType dtype;
  Shape shape;
  /// Use non-temporal stores for whole vectors. Addresses must be multiples of the vector size, and fence() must
  /// follow.
  bool streamed = false;
};

/// Launch parameters of a GPU kernel.
struct GpuLaunch {
  Dim blocks;
  int64_t threads; // per block, a multiple of 32
  /// If set, each thread runs whole tasks: task t and then every task at a distance of the number of threads in the
  /// grid, where t is the thread's number. Otherwise all threads of a block run the body, and lo is the block's number.
  std::optional<Dim> tasksOfThreads = {};
  Dim scratchOfThread = 0; // bytes per thread, with tasksOfThreads
  int64_t sharedBytes = 0; // size of sharedPool()
  /// Blocks that a multiprocessor must have room for; 0: the assembler decides, which may spill registers.
  int64_t leastBlocks = 0;
};

/// Builds one kernel: `i64 name(ptr operands, ptr sizes, ptr scratch, i64 lo, i64 hi)`, see runtime/format/Artifact.h.
class KernelBuilder {
public:
  /// `shared`: for each operand, whether another operand may use the same memory.
  KernelBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, const Target &target,
                ArrayRef<bool> shared, std::vector<Dim> knownSizes);
  /// Ends the body and adds the CPU entry, which runs tasks [lo, hi).
  void finish();
  /// Ends the body and adds the GPU entry `name(operand pointers…, sizes…, scratch, error)`, see rt::GpuKernel.
  void finishGpu(const GpuLaunch &);

  OpBuilder b;
  mlir::Location loc;
  const Target &target;
  Value scratch, lo, hi; // scratch memory of this thread; the tasks [lo, hi)
  /// Lanes of the vectors currently being built; 1 stands for scalars.
  int64_t width = 1;
  /// Sizes that the plan passes to the kernel, in order; `knownSizes`, used by code for other targets, come first.
  std::vector<Dim> sizes;

  /// Ops that may find invalid values; the number of an error is the position of its op.
  SmallVector<mlir::Operation *> checks;

  Value operandPointer(int64_t i) { return operands[i]; }
  /// Whether two operands may use the same memory: a result in the buffer of an input.
  bool sharesMemory() const { return isMemoryShared; }
  /// Reports that `check` found an invalid value, where `isBad` (i1, or lanes), at `position` (i64, or lanes). Among
  /// several reports the earlier op wins, then the lower position.
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
  /// Splits x into a value and a constant that is added to it; the value is null if x is constant.
  std::pair<Value, int64_t> apart(Value x);
  Value dim(const Dim &size);
  /// Loads the size at run time even if it is static, so that LLVM does not know it.
  Value handedIn(const Dim &size);
  /// The bound of a mask for stores of this type. LLVM 22 writes too many bytes if it knows that a masked store of a
  /// truncated value has a single active lane, so for types below 32 bits the bound is loaded at run time.
  Value maskBound(const Dim &size, DType stored);

  /// A special register of a GPU, such as "tid.x", as an i64.
  Value special(llvm::StringRef reg);

  // ---- lanes
  int64_t laneCount(Value v);
  Value broadcast(Value v, int64_t width);
  /// Lanes [first, first + count).
  Value slice(Value v, int64_t first, int64_t count);
  /// Lanes of x from `drop` on, followed by the first `drop` lanes of y.
  Value shiftedIn(Value x, Value y, int64_t drop);
  /// Concatenates vectors of equal length; their number is a power of two.
  Value sideBySide(ArrayRef<Value> vectors);
  /// The lower and the upper half of the lanes.
  std::pair<Value, Value> halves(Value v);
  /// Transposes a square: n vectors of n lanes.
  void turn(llvm::MutableArrayRef<Value> square);
  /// 0, 1, 2, … as i64 lanes.
  Value iota(int64_t width);
  /// Lanes at arbitrary positions that lie in two vectors, from which a permutation picks them.
  struct Nearby {
    Value base;      // i64: position of the first vector
    Value picks;     // i32 lanes: distances from it
    Value inside[2]; // masks of the elements of both vectors that exist; null: all
  };
  /// For `Index::lanes` that are known to be such positions.
  llvm::DenseMap<Value, Nearby> nearby;
  /// Whether there is a permutation of two vectors of so many lanes.
  bool permutesPairs(int64_t width) const { return target.avx512 && width * 4 == target.vectorBytes; }
  /// The positions of all lanes as a vector of i64.
  Value lanesOf(const Index &, int64_t width);
  /// Mask of the lanes at positions begin, begin + 1, … that are below `end`.
  Value below(Value begin, Value end, int64_t width);
  /// An opaque copy, which LLVM keeps in a register instead of computing it again where it is used.
  Value hiddenMask(Value mask) { return hidden(mask, "=k,0"); }
  /// x * y + sum; fused, with one rounding, for floats.
  Value multiplyAdd(DType, Value x, Value y, Value sum);
  /// Adds to f32 lanes the products of both bf16 in the i32 lanes of x and y: that of the high halves, then that of the
  /// low ones. The instruction of AVX512-BF16 takes subnormal operands and results as 0; other targets do not.
  Value multiplyAddPairs(Value x, Value y, Value sum);
  Index add(const Index &, const Index &);
  Index scale(const Index &, Value factor);
  Index shift(const Index &i, Value by) { return add(i, Index{by}); }
  /// Distance of each lane from `base` without `terms`; `lanes` must not be set.
  SmallVector<int64_t> offsetsOf(const Index &, int64_t width);
  Index indexAt(Value base, ArrayRef<int64_t> offsets);
  /// Quotient and remainder of non-negative positions.
  std::pair<Index, Index> split(const Index &, Value size);
  /// What is known at compile time: x is a multiple of `factor` plus `rest`; factor 0 means that x is `rest`.
  struct Congruence {
    int64_t factor, rest;
  };
  Congruence congruence(Value x, int depth = 0);
  /// Declares a value non-negative where its computation does not show it.
  void assumeNatural(Value x) { naturals.insert(x); }

  // ---- control
  /// for (i = from; i < to; i += step); `body(i, carried)` returns the next carried values.
  SmallVector<Value> loop(Value from, Value to, Value step, ValueRange init,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body);
  /// while (condition(carried)) carried = body(carried); returns the last carried values.
  SmallVector<Value> loopWhile(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                               llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  void when(Value condition, llvm::function_ref<void()> body);
  void unless(Value condition, llvm::function_ref<void()> body);
  /// The values of `body` if the condition holds, else `otherwise`.
  SmallVector<Value> when(Value condition, ValueRange otherwise, llvm::function_ref<SmallVector<Value>()> body);

  // ---- memory
  /// The lane type of an element type, see laneType.
  Type storageType(DType);
  /// Row-major position of an element.
  Index linear(const Shape &shape, ArrayRef<Index> at);
  /// Elements at row-major positions. Lanes that are masked off read as 0. A uniform position yields a scalar and is
  /// loaded regardless of the mask, so it must lie in the tensor.
  Value load(const Memory &, const Index &position, int64_t width, Value mask);
  void store(const Memory &, const Index &position, Value value, int64_t width, Value mask);
  Value elementPointer(const Memory &, Value position);
  /// Returns `names` opaque aliases of the pointer to `position`, each in its own register, so that LLVM cannot merge
  /// loads through them and folds each load into the memory operand of its user.
  SmallVector<Memory> namesOf(Memory, Value position, int64_t names);
  /// Whether an address is a multiple of `bytes`, a power of two.
  Value isAligned(Value pointer, int64_t bytes);
  /// Makes earlier non-temporal stores visible after the end of the kernel.
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
  Value loadNear(const Memory &, const Index &position, const Nearby &, int64_t width);
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
  Value lowestError; // pointer to a variable; null if the kernel cannot fail
  llvm::StringMap<Value> sizeValues;
  llvm::DenseSet<Value> naturals;
  llvm::DenseMap<Value, int64_t> sizeFactors;            // sizes are known to be multiples of these
  llvm::DenseMap<Value, std::pair<Value, Value>> bounds; // of masks: (first position, end)
  std::map<int64_t, Value> constants; // at the top of the function, so that equal positions are equal values
};

} // namespace burin::codegen
