// Builds one kernel function. Emitters create its IR through these primitives: integer arithmetic that folds constants,
// positions per vector lane, loops, loads and stores.
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

/// An index along one dimension for each lane of the current vector, in one of three forms:
///   base + lane * stride                                 constant distance between lanes; 0: the same for all lanes
///   base + offsets[lane] + sum of factor * multiples[lane] over `terms`   other distances known at compile time
///   base + lanes[lane]                                   distances known at run time only; a null base counts as 0
struct Index {
  struct Term {
    Value factor;                            // i64, a size known at run time
    llvm::SmallVector<int64_t, 0> multiples; // per lane
    friend bool operator==(const Term &, const Term &) = default;
  };
  Value base; // i64
  int64_t stride = 0;
  Value lanes = {};                           // vector of i64
  llvm::SmallVector<int64_t, 0> offsets = {}; // the first one is 0
  llvm::SmallVector<Term, 0> terms = {};
  bool uniform() const { return !lanes && stride == 0 && offsets.empty() && terms.empty(); }
  /// Whether `stride` or `offsets` give the distances of all lanes from `base`.
  bool hasKnownOffsets() const { return !lanes && terms.empty(); }
  friend bool operator==(const Index &, const Index &) = default;
};

/// Memory seen as a dense row-major tensor. Loads and stores use pointer and dtype only; the shape may be empty.
struct Memory {
  Value pointer;
  DType dtype;
  Shape shape;
  /// Use non-temporal stores for whole vectors. Addresses must be multiples of the vector size, and fence() must
  /// follow.
  bool streamed = false;
};

/// An operand as bulk copies see it, see rt::TensorMap.
struct TensorMap {
  int64_t operand;
  int64_t line;                    // bytes
  SmallVector<Dim> sizes, strides; // elements; bytes
  SmallVector<int64_t> box;        // elements
};

/// Launch parameters of a GPU kernel.
struct GpuLaunch {
  Dim blocks;
  int64_t threads; // per block, a multiple of 32
  /// Number of tasks, if each thread runs whole tasks in a grid-stride loop. Otherwise the threads of a block run the
  /// body together, with the block's index as `lo`.
  std::optional<Dim> tasksOfThreads = {};
  /// Bytes of scratch memory per thread. With tasksOfThreads each thread has a piece of its own; otherwise the blocks
  /// share the whole, and exchange data through it.
  Dim scratchOfThread = 0;
  int64_t sharedBytes = 0; // size of sharedPool()
  /// Blocks that a multiprocessor must have room for; 0: the assembler decides, which may spill registers.
  int64_t leastBlocks = 0;
  /// Not 0: no more than so many blocks per multiprocessor are launched, and each also does the work of the blocks that
  /// follow at a distance of blockCount(). Results must not depend on their number.
  int64_t blocksPerMultiprocessor = 0;
  /// Number of blocks of one launch: a group. The threads of a group read what those of earlier groups have written.
  /// All blocks are one group if it is not set.
  std::optional<Dim> group = {};
};

/// Builds one kernel: `i64 name(ptr operands, ptr sizes, ptr scratch, i64 lo, i64 hi)`, which runs the tasks [lo, hi)
/// and returns the lowest error (see Kernel in runtime/format/Artifact.h).
class KernelBuilder {
public:
  /// `shared`: for each operand, whether another operand may use the same memory; the others are noalias.
  /// `knownSizes`: see `sizes`.
  KernelBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, const Target &target,
                ArrayRef<bool> shared, std::vector<Dim> knownSizes);
  /// Ends the body and adds the CPU entry, which runs tasks [lo, hi).
  void finish();
  /// Ends the body and adds the GPU entry `name(operand pointers…, sizes…, scratch, error)`, see rt::GpuKernel.
  void finishGpu(const GpuLaunch &);

  OpBuilder b;
  mlir::Location loc;
  const Target &target;
  Value scratch; // memory of this thread or, see GpuLaunch, of all blocks
  Value lo, hi;  // the tasks [lo, hi)
  /// Lanes of the vectors currently being built; 1 stands for scalars.
  int64_t width = 1;
  /// Whether loops made from here on stay as they are: ptxas unrolls loops, which would make code that seldom runs
  /// long.
  bool keepsRolled = false;
  /// Symbolic sizes that the plan passes to the kernel, in order. Code for all targets of an artifact gets the same
  /// array, so it begins with `knownSizes`, those of targets built before.
  std::vector<Dim> sizes;

  /// Ops that check values at run time, such as indices. An error is numbered by the position of its op in this list.
  SmallVector<mlir::Operation *> checks;

  Value operandPointer(int64_t i) { return operands[i]; }
  /// The operand with this pointer, or -1.
  int64_t operandOf(Value pointer) const {
    return llvm::is_contained(operands, pointer) ? llvm::find(operands, pointer) - operands.begin() : -1;
  }
  /// A parameter of a GPU kernel that describes an operand to bulk copies. Returns its address.
  Value addTensorMap(TensorMap);
  std::vector<TensorMap> tensorMaps;
  /// Whether two operands may use the same memory: a result in the buffer of an input.
  bool sharesMemory() const { return isMemoryShared; }
  /// Records an error of the op `check` at `position` for each lane in which `isBad` (i1 or a vector of i1) is true.
  /// The kernel returns the error of the first op in `checks`, at its lowest position.
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
  /// Returns {rest, c} with x == rest + c and c constant; rest is null if x is constant.
  std::pair<Value, int64_t> splitConstant(Value x);
  Value dim(const Dim &size);
  /// The size as loaded from the sizes of the plan, even if it is static: a value that LLVM does not know.
  Value runtimeSize(const Dim &size);
  /// Makes a size, if it is symbolic, one that the plan passes to the kernel.
  void addSize(const Dim &);
  /// The bound of a mask for stores of this type. LLVM 22 writes too many bytes if it knows that a masked store of a
  /// truncated value has a single active lane, so for types below 32 bits the bound is loaded at run time.
  Value maskBound(const Dim &size, DType stored);

  /// A special register of a GPU, such as "tid.x", as an i64.
  Value special(llvm::StringRef reg);

  // ---- lanes
  int64_t laneCount(Value v);
  Value broadcast(Value v, int64_t width);
  /// The lanes [first, first + count).
  Value slice(Value v, int64_t first, int64_t count);
  /// The lanes of x from `drop` on, followed by the first `drop` lanes of y.
  Value slideIn(Value x, Value y, int64_t drop);
  /// Concatenates vectors of equal length; their number is a power of two.
  Value concat(ArrayRef<Value> vectors);
  /// The lower and the upper half of the lanes.
  std::pair<Value, Value> halves(Value v);
  /// Transposes a square, n vectors of n lanes, in place.
  void transpose(llvm::MutableArrayRef<Value> square);
  /// 0, 1, 2, … as i64 lanes.
  Value iota(int64_t width);
  /// Replaces a gather from positions that all lie in two neighbouring vectors: both are loaded, and one permutation
  /// (vpermi2) picks the lanes.
  struct TwoVectors {
    Value base;      // i64: position of the first vector
    Value picks;     // i32 lanes: distances from it
    Value inside[2]; // masks of the elements of each vector that exist; null: all exist
  };
  /// By `Index::lanes`: positions that load() may read in this way, at the current insertion point.
  llvm::DenseMap<Value, TwoVectors> twoVectors;
  /// Whether the target permutes two vectors of so many lanes in one instruction.
  bool permutesPairs(int64_t width) const { return target.avx512 && width * 4 == target.vectorBytes; }
  /// The positions of all lanes as a vector of i64.
  Value lanesOf(const Index &, int64_t width);
  /// Mask of the lanes at positions begin, begin + 1, … that are below `end`.
  Value below(Value begin, Value end, int64_t width);
  /// A copy of the mask that LLVM cannot see through: it keeps the mask in a register instead of recomputing it.
  Value opaqueMask(Value mask) { return opaque(mask, "=k,0"); }
  /// x * y + sum; fused, with one rounding, for floats.
  Value multiplyAdd(DType, Value x, Value y, Value sum);
  /// x and y: i32 lanes with two bf16 each; sum: f32 lanes. Adds to each lane the product of the high halves, then that
  /// of the low halves, by vdpbf16ps where the target has it. That instruction takes subnormal operands and results as
  /// 0; the other targets do not.
  Value multiplyAddPairs(Value x, Value y, Value sum);
  Index add(const Index &, const Index &);
  Index scale(const Index &, Value factor);
  Index shift(const Index &i, Value by) { return add(i, Index{by}); }
  /// The constant distance of each lane from `base`, without `terms`; `lanes` must not be set.
  SmallVector<int64_t> offsetsOf(const Index &, int64_t width);
  /// The positions base + offsets[lane], in the form with a stride if there is one.
  Index indexAt(Value base, ArrayRef<int64_t> offsets);
  /// Quotient and remainder of non-negative positions.
  std::pair<Index, Index> split(const Index &, Value size);
  /// x is congruent to `rest` modulo `factor`; factor 0: x is equal to `rest`.
  struct Congruence {
    int64_t factor, rest;
  };
  /// What the ops that compute x show about it; {1, 0} if nothing. `depth` limits the recursion.
  Congruence congruence(Value x, int depth = 0);
  /// Declares a value non-negative where its computation does not show it. Division by sizes is cheaper then.
  void assumeNonNegative(Value x) { nonNegatives.insert(x); }

  // ---- control
  /// for (i = from; i < to; i += step); `body(i, carried)` returns the next carried values.
  SmallVector<Value> loop(Value from, Value to, Value step, ValueRange init,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body);
  /// Visits the row-major positions [from, to) of a tensor of these sizes, each as one index per dimension. Divides
  /// once by sizes that are symbols, and counts on from there: a division takes longer than a short row.
  void eachPosition(Value from, Value to, ArrayRef<Dim> sizes, llvm::function_ref<void(ArrayRef<Value> at)> visit);
  /// while (condition(carried)) carried = body(carried); returns the last carried values.
  SmallVector<Value> loopWhile(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                               llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  void when(Value condition, llvm::function_ref<void()> body);
  void unless(Value condition, llvm::function_ref<void()> body);
  /// The values of `body` if the condition holds, or unless it does; else `otherwise`.
  SmallVector<Value> when(Value condition, ValueRange otherwise, llvm::function_ref<SmallVector<Value>()> body);
  SmallVector<Value> unless(Value condition, ValueRange otherwise, llvm::function_ref<SmallVector<Value>()> body);

  // ---- memory
  /// The type in which elements are computed, see laneType in Scalar.h.
  Type storageType(DType);
  /// Row-major position of an element.
  Index linear(const Shape &shape, ArrayRef<Index> at);
  /// Elements at row-major positions; `mask` may be null. Masked-off lanes are not read and give 0. With a vector mask
  /// a uniform position yields a scalar and is read whatever the mask is, so it must lie in the tensor.
  Value load(const Memory &, const Index &position, int64_t width, Value mask);
  void store(const Memory &, const Index &position, Value value, int64_t width, Value mask);
  Value elementPointer(const Memory &, Value position);
  /// Returns `count` opaque aliases of the pointer to `position`, each in its own register, so that LLVM cannot merge
  /// loads through them and folds each load into the memory operand of its user.
  SmallVector<Memory> opaqueAliases(Memory, Value position, int64_t count);
  /// Whether an address is a multiple of `bytes`, a power of two.
  Value isAligned(Value pointer, int64_t bytes);
  /// Makes earlier non-temporal stores visible after the end of the kernel.
  void fence();

private:
  bool isNonNegative(Value x, int depth = 0);
  std::pair<Value, Value> floorSplit(Value x, Value size);
  std::optional<std::pair<Index, Index>> splitKnown(const Index &, int64_t size);
  std::pair<Index, Index> splitByCompare(const Index &, Value size);
  Type accessType(DType);
  Value fromAccessType(DType, Value loaded);
  Value loadGroups(const Memory &, const Index &position, int64_t width, Value mask);
  Value loadPieces(const Memory &, const Index &position, int64_t width, Value mask);
  Value loadFromTwoVectors(const Memory &, const Index &position, const TwoVectors &, int64_t width);
  Value usedElements(Value mask, ArrayRef<SmallVector<int64_t>> users, size_t uses);
  Value opaque(Value, llvm::StringRef constraints);
  Value opaqueRegisters(Value vector, int64_t lanes);
  bool isConstantMask(Value mask);
  Value maskedLoad(mlir::VectorType, Value pointer, Value mask, unsigned alignment);
  void storeFirst(const Memory &, Value position, Value vector, Value count);
  void beginEntry(Type result, ArrayRef<Type> types);
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
  llvm::DenseSet<Value> nonNegatives;
  llvm::DenseMap<Value, int64_t> sizeFactors;            // sizes are known to be multiples of these
  llvm::DenseMap<Value, std::pair<Value, Value>> bounds; // of masks: (first position, end)
  std::map<int64_t, Value> constants; // at the top of the function, so that equal positions are equal values
};

} // namespace burin::codegen
