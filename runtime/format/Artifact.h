// The artifact (.plate): everything that compiled functions need to run. This page is the format: the writer (codegen)
// and the reader (runtime) both go through the `fields` functions below, so they cannot drift.
#pragma once
#include "burin/dtype.h"
#include <cstdint>
#include <string>
#include <vector>

namespace burin::rt {

inline constexpr uint32_t kArtifactVersion = 9;

/// A size computed at run time: a postfix program over 64-bit integers.
struct Expr {
  enum class Op : uint8_t { Const, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max };
  struct Instr {
    Op op = Op::Const;
    int64_t value = 0; // Const: the number; Symbol: its index
  };
  std::vector<Instr> program;
};
using ExprId = uint32_t; // index into Plan::exprs

/// Two sizes that must be equal for the plan to make sense, checked as soon as both are known.
struct Check {
  ExprId left = 0, right = 0;
  uint32_t location = 0; // what needs it
};

/// An input or output. All tensors are dense and row-major.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<ExprId> dims;
  uint32_t location = 0; // index into Artifact::locations
};

/// A weight: a range of the section of weights, 64-byte aligned.
struct Constant {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t offset = 0, bytes = 0;
};

/// A tensor that outlives a run: running statistics, a cache, a random key. A session has one of each, for all its
/// functions.
struct State {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint32_t initial = UINT32_MAX; // a constant; UINT32_MAX: zeros
};

/// An output that is the new value of a state.
struct StateOutput {
  enum class Update : uint8_t {
    Replace, // it is written beside the old value and takes its place after the last step
    InPlace, // its memory is that of the input with the old value: nothing reads the old value after it is written, and
             // no step that can fail follows
  };
  uint32_t state = 0;
  Update update = Update::Replace;
};

/// A piece of the arena. Buffers are placed in table order, each at the lowest 64-byte aligned offset where it
/// overlaps no placed buffer that is live at the same time (first fit); the compiler chooses the order.
struct ArenaBuffer {
  ExprId bytes = 0;
  uint32_t firstStep = 0, lastStep = 0; // live range, both ends included
  uint8_t perWorker = 0; // 1: lives within one turn of a loop whose turns are independent; each thread has a copy
};

/// Where an operand lives.
struct Slot {
  enum class Kind : uint8_t { Input, Output, Constant, Buffer, Part };
  Kind kind = Kind::Buffer;
  uint32_t index = 0;
};

/// A symbolic size: that of a dimension of an input, a number that the caller of a private function passes, or one that
/// the function computes. Computed ones come last, in the order of their steps.
struct Symbol {
  enum class Kind : uint8_t { Dimension, Passed, Computed };
  std::string name;
  Kind kind = Kind::Dimension;
  int64_t min = 0, max = INT64_MAX; // of a dimension
  uint32_t input = 0, axis = 0;     // where a dimension is read: it is symbol * scale + offset
  int64_t scale = 1, offset = 0;
  Slot count;        // an i64, read when the steps before `step` are done; it must lie in [0, limit],
  uint32_t step = 0; // where `limit` is over earlier symbols
  ExprId limit = 0;
  uint32_t location = 0; // of what has the computed size; of the range of a dimension
};

/// One compiled kernel: `int64_t k(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi)`
/// does tasks [lo, hi). Tasks of one step are independent and may run on any thread in any order. The result is
/// INT64_MAX, or the least error: the number of its text, shifted left by kErrorPositionBits, plus the position, in
/// row-major order, at which a value was not allowed.
struct Kernel {
  std::string name;
  uint32_t location = 0;
  std::vector<std::string> errors; // what may be wrong; none: the kernel cannot fail
};
inline constexpr int kErrorPositionBits = 48;

/// One line of the launch plan. A step starts when the steps in `deps` are complete.
struct Step {
  enum class Kind : uint8_t {
    Kernel, // runs a kernel over its tasks
    Call,   // runs plans[0]: operands are its inputs, then its outputs
    Branch, // operands: a bool, inputs, outputs; runs plans[0] if the bool is true, else plans[1]
    While,  // operands: inputs, of which the first ones, as many as there are results, are the carried values; results;
            // a buffer for each carried value. While plans[0] gives true, plans[1] makes the next carried values; both
            // take all inputs
    Host,   // the host does hostCalls[hostCall]
  };
  Kind kind = Kind::Kernel;
  uint32_t kernel = 0;
  uint32_t hostCall = 0;
  std::vector<uint32_t> plans; // private ones, all behind the plan of the step in the table
  std::vector<Slot> operands;  // of a kernel: its inputs, then its results
  std::vector<ExprId> sizes; // values handed to the kernel; else those of the symbols of the plans, one after the other
  ExprId tasks = 0;          // of a kernel: number of tasks; 0 tasks is allowed and runs nothing
  ExprId scratchBytes = 0;   // per worker, 64-byte aligned, contents undefined
  ExprId blocks = 0;         // on a GPU: number of thread blocks, where 0 runs nothing
  ExprId gpuScratchBytes = 0;  // on a GPU: of all threads together, 256-byte aligned, contents undefined
  ExprId flops = 0, bytes = 0; // work of the step, for profiles and for choosing serial execution
  std::vector<uint32_t> deps;  // earlier steps that must be complete
  uint32_t location = 0;
  std::vector<uint32_t> errorLocations; // of the kernel's errors
};

/// What a step has the host do with its operands, which have these types: inputs, then results.
struct HostCall {
  enum class Kind : uint8_t {
    Print,    // writes the inputs to standard error, after the place of the step and the label
    Function, // calls a function of the process that compiled the artifact; only that process can run it
  };
  Kind kind = Kind::Print;
  std::string label;
  uint32_t function = 0;
  std::vector<TensorInfo> inputs, results;
};

/// A piece of an input, output, constant or buffer, another one in every turn of a loop.
struct Part {
  Slot whole;
  ExprId begin = 0, stride = 0; // in bytes: the piece of turn i begins at begin + i * stride
};

/// Consecutive steps that run several times. Turns are independent, of parts of a batch for example, and may run on any
/// thread; or each one needs what the one before has left. A loop with a step that is no kernel is of the second kind.
struct Loop {
  uint32_t firstStep = 0, lastStep = 0; // both ends included; loops do not overlap
  ExprId turns = 0;
  uint8_t sequential = 0; // 1: one turn after the other
};

/// The launch plan of one function. The inputs are the caller's and then the states that it reads, the outputs the
/// caller's and then the new values of states.
struct Plan {
  std::string name;
  uint8_t isPrivate = 0; // 1: for steps of other plans only; all its symbols are passed, and it has no states
  std::vector<Expr> exprs;
  std::vector<Symbol> symbols;
  std::vector<Check> checks;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<uint32_t> stateInputs; // the states that the last inputs are
  std::vector<StateOutput> stateOutputs;
  std::vector<ArenaBuffer> buffers;
  std::vector<Step> steps;
  std::vector<HostCall> hostCalls;
  std::vector<Part> parts;
  std::vector<Loop> loops; // in order of their steps

  size_t callerInputs() const { return inputs.size() - stateInputs.size(); }
  size_t callerOutputs() const { return outputs.size() - stateOutputs.size(); }
};

/// How a GPU launches a kernel: `entry(operand pointers…, sizes…, scratch, error)`. The sizes are the first ones of the
/// step's. `error` points to an i64 that becomes the least of what it is and what a kernel for the CPU would return.
struct GpuKernel {
  std::string entry;
  uint32_t threads = 0; // per block
  uint32_t sizes = 0;
};

/// Code for one target. For a processor: a position-independent ELF image that imports nothing but the math functions
/// listed in the loader; entries[k] is the virtual address of kernel k in the image. For a GPU: PTX, and how to launch
/// kernel k is gpuKernels[k].
struct Code {
  std::string target; // "x86-64-v3", "x86-64-v4", "cuda-sm_80+ptx", …
  std::vector<uint64_t> entries;
  std::vector<GpuKernel> gpuKernels;
  uint64_t offset = 0, bytes = 0; // of the image, in the file

  bool isForGpu() const { return target.starts_with("cuda-"); }
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
};

/// The key of metadata on what a limit of memory has changed: lines of text.
inline constexpr const char *kMemoryReportKey = "memory";

/// Whether a step may find a value that is not allowed.
inline bool canFail(const Artifact &a, const Step &step) {
  return step.kind == Step::Kind::Kernel && !a.kernels[step.kernel].errors.empty();
}

/// Whether some function has a step of this kind.
inline bool hasHostCall(const Artifact &a, HostCall::Kind kind) {
  for (const Plan &plan : a.plans)
    for (const HostCall &call : plan.hostCalls)
      if (call.kind == kind)
        return true;
  return false;
}

// One function per record names its fields once; `io` reads or writes them.
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
template <class IO> void fields(IO &io, Part &x) { io(x.whole, x.begin, x.stride); }
template <class IO> void fields(IO &io, Loop &x) { io(x.firstStep, x.lastStep, x.turns, x.sequential); }
template <class IO> void fields(IO &io, Plan &x) {
  io(x.name, x.isPrivate, x.exprs, x.symbols, x.checks, x.inputs, x.outputs, x.stateInputs, x.stateOutputs, x.buffers,
     x.steps, x.hostCalls, x.parts, x.loops);
}
template <class IO> void fields(IO &io, GpuKernel &x) { io(x.entry, x.threads, x.sizes); }
template <class IO> void fields(IO &io, Code &x) { io(x.target, x.entries, x.gpuKernels, x.offset, x.bytes); }
template <class IO> void fields(IO &io, Artifact &x) {
  io(x.producer, x.locations, x.constants, x.states, x.kernels, x.plans, x.codes, x.metadata);
}

} // namespace burin::rt
