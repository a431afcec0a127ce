// The artifact (.plate): everything that compiled functions need to run. This file defines the format: the writer
// (codegen) and the reader (runtime) both use the `fields` functions below, so they cannot diverge.
#pragma once
#include "burin/dtype.h"
#include <cstdint>
#include <string>
#include <vector>

namespace burin::rt {

/// Version of files with products that a library may compute. Files without them have the version before, in which they
/// are the same bytes.
inline constexpr uint32_t kArtifactVersion = 16, kVersionWithoutProducts = 15;

/// A size as an expression, evaluated at run time: a postfix program over 64-bit integers.
struct Expr {
  enum class Op : uint8_t { Const, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max };
  struct Instr {
    Op op = Op::Const;
    int64_t value = 0; // Const: the number; Symbol: its index
  };
  std::vector<Instr> program;
};
using ExprId = uint32_t; // index into Plan::exprs

/// Two sizes that must be equal, checked as soon as both are known.
struct Check {
  ExprId left = 0, right = 0;
  uint32_t location = 0; // of the op that requires it
};

/// An input or output. All tensors are dense and row-major.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<ExprId> dims;
  uint32_t location = 0; // index into Artifact::locations
};

/// A weight: a range of the weights section, 64-byte aligned.
struct Constant {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t offset = 0, bytes = 0;
};

/// A tensor that persists between runs: running statistics, a cache, a random key. Each session has its own, shared by
/// all functions.
struct State {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint32_t initial = UINT32_MAX; // a constant; UINT32_MAX: zeros
};

/// An output that is the new value of a state.
struct StateOutput {
  enum class Update : uint8_t {
    Replace, // written to separate memory, which replaces the old value after the last step
    // Shares the memory of the input with the old value: no step reads the old value after the write, and no step that
    // can fail follows it.
    InPlace,
  };
  uint32_t state = 0;
  Update update = Update::Replace;
};

/// A buffer in the arena. Buffers are placed in table order, each at the lowest 64-byte aligned offset where it
/// overlaps no placed buffer that is live at the same time (first fit); the compiler chooses the order.
struct ArenaBuffer {
  ExprId bytes = 0;
  uint32_t firstStep = 0, lastStep = 0; // live range, both ends included
  uint8_t perWorker = 0; // 1: local to an iteration of a loop with independent iterations; one copy per thread
};

/// The storage of an operand.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Constant, Buffer, Part };
  Kind kind = Kind::Buffer;
  uint32_t index = 0;
};

/// A symbolic size: a dimension of an input, a number that the caller of a private function passes, or a computed one.
/// Computed symbols are last, in the order of their steps.
struct Symbol {
  enum class Kind : uint8_t { Dimension, Passed, Computed };
  std::string name;
  Kind kind = Kind::Dimension;
  int64_t min = 0, max = INT64_MAX; // range of a dimension
  uint32_t input = 0, axis = 0;     // the dimension to read it from: symbol * scale + offset
  int64_t scale = 1, offset = 0;
  Slot count;        // an i64, read when the steps before `step` are complete; it must be in [0, limit],
  uint32_t step = 0; // and `limit` uses only earlier symbols
  ExprId limit = 0;
  uint32_t location = 0; // of the op that defines a computed size; of the range of a dimension
};

/// A compiled kernel: `int64_t k(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi)`
/// runs tasks [lo, hi). The tasks of a step are independent and may run on any thread in any order. The result is
/// INT64_MAX, or the lowest error: the index of its message, shifted left by kErrorPositionBits, plus the row-major
/// position of the invalid value.
struct Kernel {
  std::string name;
  uint32_t location = 0;
  std::vector<std::string> errors; // messages; empty: the kernel cannot fail
};
inline constexpr int kErrorPositionBits = 48;

/// A step of the launch plan. It starts when the steps in `deps` are complete.
struct Step {
  enum class Kind : uint8_t {
    Kernel, // runs a kernel over its tasks
    Call,   // runs plans[0]; operands: its inputs, then its outputs
    Branch, // operands: a bool, inputs, outputs; runs plans[0] if the bool is true, else plans[1]
    // Operands: inputs, the first of which are the carried values, as many as there are results; results; a buffer for
    // each carried value. While plans[0] yields true, plans[1] computes the next carried values; both take all inputs.
    // A value that plans[1] overwrites has the same place as an input, a result and a buffer.
    While,
    Host, // the host runs hostCalls[hostCall]
  };
  Kind kind = Kind::Kernel;
  uint32_t kernel = 0;
  uint32_t hostCall = 0;
  std::vector<uint32_t> plans; // private plans that come after this one in the table
  std::vector<Slot> operands;  // of a kernel: inputs, then results
  // Of a kernel: its size parameters; else the symbols of the plans, one plan after the other.
  std::vector<ExprId> sizes;
  ExprId tasks = 0;            // of a kernel: number of tasks; 0 runs nothing
  ExprId scratchBytes = 0;     // per worker, 64-byte aligned, undefined contents
  std::vector<ExprId> blocks;  // of a kernel, for each code for GPUs: number of thread blocks; 0 runs nothing
  ExprId gpuScratchBytes = 0;  // on a GPU: for all threads together, 256-byte aligned, undefined contents
  ExprId flops = 0, bytes = 0; // cost of the step, for profiles and for choosing serial execution
  std::vector<uint32_t> deps;  // earlier steps that must be complete
  uint32_t location = 0;
  std::vector<uint32_t> errorLocations; // of the kernel's errors
};

/// A call of the host with the operands of a step, which have these types: inputs, then results.
struct HostCall {
  enum class Kind : uint8_t {
    Print,    // prints the inputs to standard error, after the location of the step and the label
    Function, // calls a function of the process that compiled the artifact; only that process can run it
  };
  Kind kind = Kind::Print;
  std::string label;
  uint32_t function = 0;
  std::vector<TensorInfo> inputs, results;
};

/// An operand that differs between the iterations of a loop.
struct Part {
  enum class Kind : uint8_t {
    Strided, // a part of an input, output, constant or buffer: in iteration i it begins at begin + i * stride, in bytes
    // All of `whole` in iteration i if begin + i is even, else all of `other`: a value that each iteration computes
    // from that of the previous one. Outside of a loop: as in iteration 0.
    Alternating,
  };
  Slot whole;
  ExprId begin = 0, stride = 0;
  Kind kind = Kind::Strided;
  Slot other = {}; // if alternating
};

/// Consecutive steps that run repeatedly. Iterations are independent, such as parts of a batch, and may run on any
/// thread; or they are sequential, each depending on the previous one. A loop with steps other than kernels is
/// sequential.
struct Loop {
  uint32_t firstStep = 0, lastStep = 0; // both ends included; loops do not overlap
  ExprId iterations = 0;
  uint8_t sequential = 0; // 1: iterations run one after the other
};

/// The launch plan of one function. Inputs are those of the caller, then the states that it reads; outputs are those of
/// the caller, then new values of states.
struct Plan {
  std::string name;
  uint8_t isPrivate = 0; // 1: run by steps of other plans only; all its symbols are passed, and it has no states
  std::vector<Expr> exprs;
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<uint32_t> stateInputs; // the states behind the last inputs
  std::vector<StateOutput> stateOutputs;
  std::vector<ArenaBuffer> buffers;
  std::vector<Step> steps;
  std::vector<HostCall> hostCalls;
  std::vector<Part> parts;
  std::vector<Loop> loops; // in the order of their steps

  size_t callerInputs() const { return inputs.size() - stateInputs.size(); }
  size_t callerOutputs() const { return outputs.size() - stateOutputs.size(); }
};

/// A size that the host needs for a launch: one of the sizes that the kernel takes, or a number.
struct LaunchSize {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t index = kNone;
  int64_t value = 0;
};

/// An operand of a kernel as bulk copies see it (CUtensorMap): a tensor of 16-bit elements, innermost dimension first,
/// of which a copy moves a box. Elements outside of the tensor are zeros.
struct TensorMap {
  static constexpr size_t kMostRank = 5;
  uint32_t operand = 0;
  uint32_t line = 0; // bytes of a row of the box, within which pieces of 16 bytes are permuted: 64 or 128
  std::vector<LaunchSize> sizes;
  std::vector<LaunchSize> strides; // bytes; of all dimensions but the innermost
  std::vector<uint32_t> box;
};

/// A kernel on a GPU: `entry(operand pointers…, sizes…, maps…, scratch, error)`, with the first sizes of the step. Maps
/// are of 128 bytes each. `error` points to an i64, which becomes the minimum of its value and of the result that a CPU
/// kernel would return. If the blocks of a step are launched in groups, the number of the group's first block follows.
struct GpuKernel {
  std::string entry;
  uint32_t threads = 0; // per block
  uint32_t sizes = 0;
  uint32_t sharedBytes = 0; // of shared memory per block, beside what the code itself reserves
  // 0: all blocks of the step are launched. Else at most so many per multiprocessor; they share the work of all.
  uint32_t blocksPerMultiprocessor = 0;
  std::vector<TensorMap> maps = {};
  /// Number of blocks of one launch: a group, which reads what the groups before it have written. 0: all blocks.
  LaunchSize group = {};
};

/// Code for one target. CPU: a position-independent ELF image that imports only the math functions listed in the
/// loader; entries[k] is the virtual address of kernel k in the image. GPU: PTX; gpuKernels[k] describes the launch of
/// kernel k.
struct Code {
  std::string target; // "x86-64-v3", "x86-64-v4", "cuda-sm_80+ptx", …
  std::vector<uint64_t> entries;
  std::vector<GpuKernel> gpuKernels;
  uint64_t offset = 0, bytes = 0; // of the image, in the file

  bool isForGpu() const { return target.starts_with("cuda-"); }
};

/// A kernel that is a matrix product, result[b, i, j] = sum over k of left[b, i, k] * right[b, k, j], plus bias[j] if
/// it has one. On a GPU cuBLASLt may compute it instead of the kernel. Rows of the left operand are dense; all other
/// operands are, row-major.
struct Product {
  enum Operand { Left, Right, Result, Bias };
  /// Strides are in elements; LeftStride is that of rows.
  enum Size { Rows, Columns, Depth, Batches, LeftStride, LeftBatchStride, kSizes };
  uint32_t kernel = 0;
  DType type = DType::f32, resultType = DType::f32; // of both operands; of the result and the bias
  std::vector<uint32_t> operands;                   // of the step, by Operand; the bias may be missing
  std::vector<LaunchSize> sizes;                    // by Size

  bool hasBias() const { return operands.size() > Bias; }
};

struct Artifact {
  std::string producer;               // "burin 0.1.0"
  std::vector<std::string> locations; // "file:line" of the user's source, [0] is ""
  std::vector<Constant> constants;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  std::vector<Plan> plans; // public ones first; at least one
  std::vector<Code> codes;
  std::vector<std::pair<std::string, std::string>> metadata; // free text: options, hash of the graph
  std::vector<Product> products;                             // by kernel; the last field, absent if empty

  uint32_t version() const { return products.empty() ? kVersionWithoutProducts : kArtifactVersion; }
};

/// Metadata key of the report of the memory limit: lines of text.
inline constexpr const char *kMemoryReportKey = "memory";

/// The product that a kernel is for libraries; null if it is none.
inline const Product *productOf(const Artifact &a, uint32_t kernel) {
  for (const Product &product : a.products)
    if (product.kernel == kernel)
      return &product;
  return nullptr;
}

/// Whether a step may report an invalid value.
inline bool canFail(const Artifact &a, const Step &step) {
  return step.kind == Step::Kind::Kernel && !a.kernels[step.kernel].errors.empty();
}

/// Whether some function has a host call of this kind.
inline bool hasHostCall(const Artifact &a, HostCall::Kind kind) {
  for (const Plan &plan : a.plans)
    for (const HostCall &call : plan.hostCalls)
      if (call.kind == kind)
        return true;
  return false;
}

// One function per record lists its fields once; `io` reads or writes them.
template <class IO> void fields(IO &io, Expr::Instr &x) { io(x.op, x.value); }
template <class IO> void fields(IO &io, Expr &x) { io(x.program); }
template <class IO> void fields(IO &io, Symbol &x) {
  io(x.name, x.kind, x.min, x.max, x.input, x.axis, x.scale, x.offset, x.count, x.step, x.limit, x.location);
}
template <class IO> void fields(IO &io, Check &x) { io(x.left, x.right, x.location); }
template <class IO> void fields(IO &io, TensorInfo &x) { io(x.name, x.dtype, x.dims, x.location); }
template <class IO> void fields(IO &io, Constant &x) { io(x.name, x.dtype, x.shape, x.offset, x.bytes); }
template <class IO> void fields(IO &io, State &x) { io(x.name, x.dtype, x.shape, x.initial); }
template <class IO> void fields(IO &io, StateOutput &x) { io(x.state, x.update); }
template <class IO> void fields(IO &io, ArenaBuffer &x) { io(x.bytes, x.firstStep, x.lastStep, x.perWorker); }
template <class IO> void fields(IO &io, Slot &x) { io(x.kind, x.index); }
template <class IO> void fields(IO &io, Kernel &x) { io(x.name, x.location, x.errors); }
template <class IO> void fields(IO &io, Step &x) {
  io(x.kind, x.kernel, x.hostCall, x.plans, x.operands, x.sizes, x.tasks, x.scratchBytes, x.blocks, x.gpuScratchBytes,
     x.flops, x.bytes, x.deps, x.location, x.errorLocations);
}
template <class IO> void fields(IO &io, HostCall &x) { io(x.kind, x.label, x.function, x.inputs, x.results); }
template <class IO> void fields(IO &io, Part &x) { io(x.whole, x.begin, x.stride, x.kind, x.other); }
template <class IO> void fields(IO &io, Loop &x) { io(x.firstStep, x.lastStep, x.iterations, x.sequential); }
template <class IO> void fields(IO &io, Plan &x) {
  io(x.name, x.isPrivate, x.exprs, x.symbols, x.checks, x.inputs, x.outputs, x.stateInputs, x.stateOutputs, x.buffers,
     x.steps, x.hostCalls, x.parts, x.loops);
}
template <class IO> void fields(IO &io, LaunchSize &x) { io(x.index, x.value); }
template <class IO> void fields(IO &io, TensorMap &x) { io(x.operand, x.line, x.sizes, x.strides, x.box); }
template <class IO> void fields(IO &io, GpuKernel &x) {
  io(x.entry, x.threads, x.sizes, x.sharedBytes, x.blocksPerMultiprocessor, x.maps, x.group);
}
template <class IO> void fields(IO &io, Code &x) { io(x.target, x.entries, x.gpuKernels, x.offset, x.bytes); }
template <class IO> void fields(IO &io, Product &x) { io(x.kernel, x.type, x.resultType, x.operands, x.sizes); }
/// All but the products.
template <class IO> void fields(IO &io, Artifact &x) {
  io(x.producer, x.locations, x.constants, x.states, x.kernels, x.plans, x.codes, x.metadata);
}

} // namespace burin::rt
