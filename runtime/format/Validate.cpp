#include "runtime/format/Archive.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Stages.h"
#include "runtime/support/Format.h"
#include <algorithm>

namespace burin::rt {
namespace {

constexpr size_t kMaxRank = 32;

/// Checks one plan of an artifact; `problem` is the first error.
class PlanValidator {
public:
  PlanValidator(const Artifact &artifact, size_t index) : a(artifact), p(artifact.plans[index]), index(index) {}

  std::string problem;

  bool run() {
    if (p.isPrivate > 1)
      return fail(text("no kind ", int(p.isPrivate)));
    for (size_t i = 0; i < p.exprs.size(); ++i)
      if (!wellFormed(p.exprs[i], p.symbols.size()))
        return fail(text("expression ", i, " is not well formed"));
    if (!all(p.inputs, "input", &PlanValidator::tensor) || !all(p.outputs, "output", &PlanValidator::tensor) ||
        !all(p.symbols, "symbol", &PlanValidator::symbol) || !all(p.buffers, "buffer", &PlanValidator::buffer) ||
        !all(p.checks, "check", &PlanValidator::check) || !states())
      return false;
    stages = stagesOf(p);
    if (p.isPrivate && stages.list.size() > 1)
      return fail("a private function computes a size");
    return all(p.symbols, "symbol", &PlanValidator::computed) && all(p.inputs, "input", &PlanValidator::knownAtOnce) &&
           all(p.buffers, "buffer", &PlanValidator::placed) && all(p.parts, "part", &PlanValidator::part) &&
           all(p.loops, "loop", &PlanValidator::loop) && all(p.hostCalls, "host call", &PlanValidator::hostCall) &&
           all(p.steps, "step", &PlanValidator::step);
  }

private:
  const Artifact &a;
  const Plan &p;
  const size_t index;
  Stages stages; // known once all indices are valid

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }
  template <class T>
  bool all(const std::vector<T> &records, const char *what, bool (PlanValidator::*check)(const T &, size_t)) {
    for (size_t i = 0; i < records.size(); ++i)
      if (!(this->*check)(records[i], i))
        return fail(text(what, " ", i, ": ", problem));
    return true;
  }

  bool expr(ExprId id) { return id < p.exprs.size() || fail(text("no expression ", id)); }
  bool exprs(const std::vector<ExprId> &ids) {
    for (ExprId id : ids)
      if (!expr(id))
        return false;
    return true;
  }
  bool location(uint32_t id) { return id < a.locations.size() || fail(text("no location ", id)); }
  bool dtype(DType t) { return int(t) < kNumDTypes || fail(text("no element type ", int(t))); }

  /// Trailing inputs and outputs must have the types of their states.
  bool states() {
    if (p.stateInputs.size() > p.inputs.size() || p.stateOutputs.size() > p.outputs.size())
      return fail("more states than inputs or outputs");
    if (p.isPrivate && (!p.stateInputs.empty() || !p.stateOutputs.empty()))
      return fail("a private function has states");
    for (size_t i = 0; i < p.stateInputs.size(); ++i)
      if (!isState(p.inputs[p.callerInputs() + i], p.stateInputs[i]))
        return false;
    for (size_t i = 0; i < p.stateOutputs.size(); ++i) {
      const StateOutput &o = p.stateOutputs[i];
      if (!isState(p.outputs[p.callerOutputs() + i], o.state))
        return false;
      if (o.update > StateOutput::Update::InPlace)
        return fail(text("state output ", i, ": no kind ", int(o.update)));
      if (o.update == StateOutput::Update::InPlace && std::ranges::count(p.stateInputs, o.state) != 1)
        return fail(text("state output ", i, " is updated in place, but is no input"));
    }
    return true;
  }
  bool isState(const TensorInfo &t, uint32_t state) {
    if (state >= a.states.size())
      return fail(text("no state ", state));
    const State &s = a.states[state];
    bool fits = t.dtype == s.dtype && t.dims.size() == s.shape.size();
    for (size_t i = 0; fits && i < s.shape.size(); ++i) {
      const Expr &dim = p.exprs[t.dims[i]];
      fits = dim.program.size() == 1 && dim.program[0].op == Expr::Op::Const && dim.program[0].value == s.shape[i];
    }
    return fits || fail(text(t.name, " has not the type of the state ", s.name));
  }

  bool tensor(const TensorInfo &t, size_t) {
    return dtype(t.dtype) && exprs(t.dims) && location(t.location) &&
           (t.dims.size() <= kMaxRank || fail(text("rank ", t.dims.size(), " is above ", kMaxRank)));
  }

  bool symbol(const Symbol &s, size_t index) {
    if (s.kind > Symbol::Kind::Computed)
      return fail(text("no kind ", int(s.kind)));
    if ((s.kind == Symbol::Kind::Passed) != (p.isPrivate == 1))
      return fail("private functions, and no others, have their sizes from the caller");
    const Symbol *before = index ? &p.symbols[index - 1] : nullptr;
    if (before && (before->kind > s.kind || (before->kind == s.kind && before->step > s.step)))
      return fail("comes after one that is known later");
    if (s.kind == Symbol::Kind::Computed)
      return expr(s.limit) && location(s.location) && exists(s.count) &&
             (s.step <= p.steps.size() || fail(text("read before step ", s.step, ", which does not exist")));
    if (s.kind == Symbol::Kind::Passed)
      return true;
    return s.step == 0 ? dimension(s, index) : fail("the size of an input is read before the first step");
  }

  // The dimension that a symbol is read from must be symbol * scale + offset.
  bool dimension(const Symbol &s, size_t index) {
    if (s.input >= p.inputs.size() || s.axis >= p.inputs[s.input].dims.size())
      return fail(text("read from axis ", s.axis, " of input ", s.input, ", which does not exist"));
    if (s.min < 0 || s.max < s.min)
      return fail(text("empty range [", s.min, ", ", s.max, "]"));
    const Expr &dim = p.exprs[p.inputs[s.input].dims[s.axis]];
    std::vector<int64_t> values(p.symbols.size());
    bool isLinear = s.scale >= 1;
    for (const Expr::Instr &instr : dim.program)
      isLinear = isLinear && (instr.op != Expr::Op::Symbol || uint64_t(instr.value) == index);
    for (int64_t value : {0, 1, 1000}) {
      values[index] = value;
      __int128 size = __int128(value) * s.scale + s.offset;
      isLinear = isLinear && evaluate(dim, values) == size;
    }
    return location(s.location) &&
           (isLinear || fail(text("axis ", s.axis, " of input ", s.input, " has another size")));
  }

  /// A computed size must be readable: a scalar input or output, 8 bytes of weights, or a buffer written before.
  bool computed(const Symbol &s, size_t) {
    if (s.kind != Symbol::Kind::Computed)
      return true;
    uint32_t before = s.step == 0 ? 0 : stages.ofStep(s.step - 1);
    bool isThere = false;
    if (s.count.kind == Slot::Kind::Input || s.count.kind == Slot::Kind::Output) {
      bool isInput = s.count.kind == Slot::Kind::Input;
      const TensorInfo &t = isInput ? p.inputs[s.count.index] : p.outputs[s.count.index];
      isThere = t.dtype == DType::i64 && std::ranges::all_of(t.dims, [&](ExprId id) {
                  const std::vector<Expr::Instr> &program = p.exprs[id].program;
                  return program.size() == 1 && program[0].op == Expr::Op::Const && program[0].value == 1;
                });
    } else if (s.count.kind == Slot::Kind::Constant) {
      isThere = a.constants[s.count.index].bytes >= sizeof(int64_t);
    } else if (s.count.kind == Slot::Kind::Buffer) { // its size is checked when it is placed
      const ArenaBuffer &b = p.buffers[s.count.index];
      isThere = !b.perWorker && b.firstStep < s.step && b.lastStep + 1 >= s.step;
    }
    if (!isThere)
      return fail("its number is not there when it is read");
    return stages.ofExpr[s.limit] <= before || fail("its limit is not known when it is read");
  }

  bool knownAtOnce(const TensorInfo &t, size_t) {
    for (ExprId id : t.dims)
      if (stages.ofExpr[id])
        return fail("its shape depends on a computed size");
    return true;
  }

  bool placed(const ArenaBuffer &b, size_t i) {
    return stages.ofExpr[b.bytes] <= stages.ofBuffer[i] || fail("its size is not known when it is needed");
  }

  bool check(const Check &c, size_t) { return expr(c.left) && expr(c.right) && location(c.location); }

  bool range(uint32_t first, uint32_t last, const char *what) {
    return (first <= last && last < p.steps.size()) || fail(text(what, " outside the plan"));
  }
  const Loop *loopAround(size_t first, size_t last) {
    for (const Loop &l : p.loops)
      if (l.firstStep <= first && last <= l.lastStep)
        return &l;
    return nullptr;
  }

  static bool hasCopies(const Loop *l) { return l && !l->sequential; }

  bool buffer(const ArenaBuffer &b, size_t) {
    return expr(b.bytes) && range(b.firstStep, b.lastStep, "live range") &&
           (b.perWorker == 0 || (b.perWorker == 1 && hasCopies(loopAround(b.firstStep, b.lastStep))) ||
            fail("one per worker, but not within one loop of independent iterations"));
  }

  bool loop(const Loop &l, size_t index) {
    if (!expr(l.iterations) || !range(l.firstStep, l.lastStep, "steps") || !known(l.iterations, l.firstStep))
      return false;
    if (stages.ofStep(l.firstStep) != stages.ofStep(l.lastStep))
      return fail("a size is computed within");
    if (l.sequential > 1)
      return fail(text("no kind ", int(l.sequential)));
    return (index == 0 || p.loops[index - 1].lastStep < l.firstStep || fail("does not follow the one before it"));
  }

  // Liveness of the whole is checked in operand().
  bool part(const Part &p, size_t) {
    if (p.kind > Part::Kind::Alternating)
      return fail(text("no kind ", int(p.kind)));
    return expr(p.begin) && expr(p.stride) && isWhole(p.whole) && (p.kind == Part::Kind::Strided || isWhole(p.other));
  }
  bool isWhole(const Slot &slot) {
    return exists(slot) && (slot.kind != Slot::Kind::Part || fail("is a part of a part"));
  }

  bool exists(const Slot &slot) {
    size_t counts[] = {p.inputs.size(), p.outputs.size(), a.constants.size(), p.buffers.size(), p.parts.size()};
    return (slot.kind <= Slot::Kind::Part && slot.index < counts[size_t(slot.kind)]) ||
           fail(text("operand of kind ", int(slot.kind), " and index ", slot.index, " does not exist"));
  }
  bool live(const Slot &slot, size_t first, size_t last) {
    if (slot.kind == Slot::Kind::Output && stages.ofOutput[slot.index] > stages.ofStep(uint32_t(first)))
      return fail(text("the shape of output ", slot.index, " is not known yet"));
    if (slot.kind != Slot::Kind::Buffer)
      return true;
    const ArenaBuffer &b = p.buffers[slot.index];
    return (b.firstStep <= first && last <= b.lastStep) || fail(text("buffer ", slot.index, " is not live"));
  }
  bool known(ExprId id, size_t step) {
    return stages.ofExpr[id] <= stages.ofStep(uint32_t(step)) || fail(text("expression ", id, " is not known yet"));
  }

  bool operand(const Slot &slot, size_t step) {
    if (!exists(slot))
      return false;
    const Loop *l = loopAround(step, step);
    if (slot.kind != Slot::Kind::Part)
      return live(slot, step, step);
    const Part &part = p.parts[slot.index];
    const bool alternates = part.kind == Part::Kind::Alternating;
    auto isOwn = [&](const Slot &whole) {
      return whole.kind == Slot::Kind::Buffer && p.buffers[whole.index].perWorker;
    };
    if ((!l && !alternates) || isOwn(part.whole) || (alternates && isOwn(part.other)))
      return fail(text("part ", slot.index, " is used outside a loop"));
    if (alternates && hasCopies(l))
      return fail(text("part ", slot.index, " alternates in a loop of independent iterations"));
    const size_t first = l ? l->firstStep : step, last = l ? l->lastStep : step;
    return live(part.whole, first, last) && (!alternates || live(part.other, first, last)) && known(part.begin, step) &&
           known(part.stride, step);
  }

  bool step(const Step &s, size_t index) {
    if (s.kind > Step::Kind::Host)
      return fail(text("no kind ", int(s.kind)));
    if (s.kind == Step::Kind::Kernel && s.kernel >= a.kernels.size())
      return fail(text("no kernel ", s.kernel));
    if ((s.kind == Step::Kind::Kernel || s.kind == Step::Kind::Host) && !s.plans.empty())
      return fail("names functions, but runs none");
    for (const Slot &slot : s.operands)
      if (!operand(slot, index))
        return false;
    for (uint32_t dep : s.deps)
      if (dep >= index)
        return fail(text("depends on step ", dep, ", which does not come before it"));
    if (!exprs(s.sizes) || !expr(s.tasks) || !expr(s.scratchBytes) || !exprs(s.blocks) || !expr(s.gpuScratchBytes) ||
        !expr(s.flops) || !expr(s.bytes) || !location(s.location) ||
        !std::ranges::all_of(s.errorLocations, [&](uint32_t id) { return location(id); }))
      return false;
    if (s.kind == Step::Kind::Kernel ? !takesSizes(s)
        : s.kind == Step::Kind::Host ? !asksHost(s, index)
                                     : !calls(s, index))
      return false;
    const auto gpuCodes = size_t(std::ranges::count_if(a.codes, &Code::isForGpu));
    if (s.kind == Step::Kind::Kernel && s.blocks.size() != gpuCodes)
      return fail(text("has ", s.blocks.size(), " numbers of blocks for ", gpuCodes, " codes for GPUs"));
    std::vector<ExprId> needed = s.sizes;
    if (gpuCodes) {
      needed.insert(needed.end(), s.blocks.begin(), s.blocks.end());
      needed.push_back(s.gpuScratchBytes);
    }
    needed.insert(needed.end(), {s.tasks, s.scratchBytes, s.flops, s.bytes});
    for (ExprId id : needed)
      if (!known(id, index))
        return false;
    return true;
  }

  bool takesSizes(const Step &s) {
    const Product *product = productOf(a, s.kernel);
    auto isOperand = [&](uint32_t operand) { return operand < s.operands.size(); };
    auto isSize = [&](const LaunchSize &n) { return n.index == LaunchSize::kNone || n.index < s.sizes.size(); };
    if (product && !(std::ranges::all_of(product->operands, isOperand) && std::ranges::all_of(product->sizes, isSize)))
      return fail(text("lacks an operand or a size of the product of kernel ", s.kernel));
    for (const Code &c : a.codes) {
      if (!c.isForGpu())
        continue;
      const GpuKernel &kernel = c.gpuKernels[s.kernel];
      if (kernel.sizes > s.sizes.size())
        return fail(text("passes ", s.sizes.size(), " sizes to kernel ", s.kernel, " for ", c.target));
      if (std::ranges::any_of(kernel.maps, [&](const TensorMap &map) { return map.operand >= s.operands.size(); }))
        return fail(text("lacks an operand that kernel ", s.kernel, " for ", c.target, " has a map of"));
    }
    return true;
  }

  bool hostCall(const HostCall &c, size_t) {
    if (c.kind > HostCall::Kind::Function)
      return fail(text("no kind ", int(c.kind)));
    if (c.kind == HostCall::Kind::Print && !c.results.empty())
      return fail("a print has results");
    return all(c.inputs, "input", &PlanValidator::tensor) && all(c.results, "result", &PlanValidator::tensor);
  }
  /// The compiler is trusted that the operands have the shapes of the call.
  bool asksHost(const Step &s, size_t step) {
    if (s.hostCall >= p.hostCalls.size())
      return fail(text("no host call ", s.hostCall));
    const HostCall &c = p.hostCalls[s.hostCall];
    if (s.operands.size() != c.inputs.size() + c.results.size())
      return fail(text(s.operands.size(), " operands do not fit host call ", s.hostCall));
    for (const std::vector<TensorInfo> *list : {&c.inputs, &c.results})
      for (const TensorInfo &t : *list)
        for (ExprId id : t.dims)
          if (!known(id, step))
            return false;
    return outsideIndependentIterations(step);
  }
  bool outsideIndependentIterations(size_t step) {
    const Loop *l = loopAround(step, step);
    return !hasCopies(l) || fail("is no kernel, but in a loop of independent iterations");
  }

  /// The compiler is trusted that sizes match, as for kernels.
  bool calls(const Step &s, size_t step) {
    if (s.plans.size() != (s.kind == Step::Kind::Call ? 1u : 2u))
      return fail(text("names ", s.plans.size(), " functions"));
    size_t sizes = 0;
    for (uint32_t plan : s.plans) {
      if (plan <= index || plan >= a.plans.size() || !a.plans[plan].isPrivate)
        return fail(text("runs function ", plan, ", which is not a private one behind its own"));
      sizes += a.plans[plan].symbols.size();
    }
    if (sizes != s.sizes.size())
      return fail(text("passes ", s.sizes.size(), " sizes, not ", sizes));
    if (!outsideIndependentIterations(step))
      return false;
    return s.kind == Step::Kind::While ? takesCarried(s) : takesAll(s);
  }
  bool takesAll(const Step &s) {
    size_t own = s.kind == Step::Kind::Branch ? 1 : 0;
    for (uint32_t plan : s.plans)
      if (s.operands.size() != own + a.plans[plan].inputs.size() + a.plans[plan].outputs.size())
        return fail(text(s.operands.size(), " operands do not fit function ", plan));
    return true;
  }
  bool takesCarried(const Step &s) {
    const Plan &condition = a.plans[s.plans[0]], &body = a.plans[s.plans[1]];
    size_t inputs = body.inputs.size(), carried = body.outputs.size();
    if (s.operands.size() != inputs + 2 * carried || carried > inputs || condition.inputs.size() != inputs ||
        condition.outputs.size() != 1)
      return fail("the operands of a loop do not fit its functions");
    const TensorInfo &goesOn = condition.outputs[0];
    return (goesOn.dtype == DType::boolean && goesOn.dims.empty()) || fail("the condition of a loop is not one bool");
  }
};

/// Checks everything outside of the plans.
class Validator {
public:
  Validator(const Artifact &artifact, uint64_t weightBytes) : a(artifact), weightBytes(weightBytes) {}

  std::string problem;

  bool run() {
    if (a.locations.empty())
      return fail("no locations");
    if (a.plans.empty() || a.plans[0].isPrivate)
      return fail("no functions");
    for (size_t i = 1; i < a.plans.size(); ++i)
      if (a.plans[i - 1].isPrivate && !a.plans[i].isPrivate)
        return fail("a public function comes after a private one");
    if (!all(a.constants, "constant", &Validator::constant) || !all(a.states, "state", &Validator::state) ||
        !all(a.kernels, "kernel", &Validator::kernel) || !all(a.codes, "target", &Validator::code) ||
        !all(a.products, "product", &Validator::product))
      return false;
    for (size_t i = 0; i < a.plans.size(); ++i)
      if (PlanValidator plan(a, i); !plan.run())
        return fail(text("function ", i, ": ", plan.problem));
    return true;
  }

private:
  const Artifact &a;
  const uint64_t weightBytes;

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }
  template <class T> bool all(const std::vector<T> &records, const char *what, bool (Validator::*check)(const T &)) {
    for (size_t i = 0; i < records.size(); ++i)
      if (!(this->*check)(records[i]))
        return fail(text(what, " ", i, ": ", problem));
    return true;
  }

  /// Computes the size of a tensor in bytes.
  bool size(DType dtype, const std::vector<int64_t> &shape, uint64_t &bytes) {
    if (int(dtype) >= kNumDTypes)
      return fail(text("no element type ", int(dtype)));
    bytes = byteWidth(dtype);
    for (int64_t dim : shape)
      if (dim < 0 || __builtin_mul_overflow(bytes, uint64_t(dim), &bytes))
        return fail("impossible shape");
    return true;
  }
  bool constant(const Constant &c) {
    uint64_t bytes = 0;
    if (!size(c.dtype, c.shape, bytes))
      return false;
    if (c.offset % 64 || c.offset > weightBytes || c.bytes > weightBytes - c.offset)
      return fail("outside the weights, or not 64-byte aligned");
    return bytes <= c.bytes || fail("its shape is larger than its data");
  }
  bool state(const State &s) {
    uint64_t bytes = 0;
    if (!size(s.dtype, s.shape, bytes))
      return false;
    if (bytes > (uint64_t(1) << 47) || s.shape.size() > kMaxRank)
      return fail("impossible shape");
    if (s.initial == UINT32_MAX)
      return true;
    return (s.initial < a.constants.size() && bytes <= a.constants[s.initial].bytes) ||
           fail("its initial value is not there");
  }
  bool kernel(const Kernel &k) { return k.location < a.locations.size() || fail(text("no location ", k.location)); }
  bool product(const Product &p) {
    const size_t operands = p.operands.size();
    return (p.kernel < a.kernels.size() && int(p.type) < kNumDTypes && int(p.resultType) < kNumDTypes &&
            (operands == Product::Bias || operands == Product::Bias + 1) && p.sizes.size() == Product::kSizes) ||
           fail("not well formed");
  }
  static bool isSizeOf(const GpuKernel &k, const LaunchSize &n) {
    return n.index == LaunchSize::kNone || n.index < k.sizes;
  }
  static bool isKnown(const TensorMap &map, const GpuKernel &k) {
    constexpr uint32_t kMostInBox = 256;
    const size_t rank = map.sizes.size();
    auto isSize = [&](const LaunchSize &n) { return isSizeOf(k, n); };
    auto fits = [](uint32_t n) { return n > 0 && n <= kMostInBox; };
    return rank >= 1 && rank <= TensorMap::kMostRank && map.strides.size() + 1 == rank && map.box.size() == rank &&
           (map.line == 64 || map.line == 128) && std::ranges::all_of(map.sizes, isSize) &&
           std::ranges::all_of(map.strides, isSize) && std::ranges::all_of(map.box, fits);
  }
  bool code(const Code &c) {
    constexpr uint32_t kMostSharedBytes = 227 << 10; // of a block, on compute capability 9.0
    constexpr uint32_t kMostBlocks = 32;             // of a multiprocessor
    for (const GpuKernel &k : c.gpuKernels)
      if (k.threads < 1 || k.threads > 1024)
        return fail(text(c.target, ": ", k.entry, " has blocks of ", k.threads, " threads"));
      else if (k.sharedBytes > kMostSharedBytes)
        return fail(text(c.target, ": ", k.entry, " wants ", k.sharedBytes, " bytes of shared memory"));
      else if (k.blocksPerMultiprocessor > kMostBlocks)
        return fail(text(c.target, ": ", k.entry, " wants ", k.blocksPerMultiprocessor, " blocks per multiprocessor"));
      else if (!std::ranges::all_of(k.maps, [&](const TensorMap &map) { return isKnown(map, k); }))
        return fail(text(c.target, ": ", k.entry, " has a tensor map that is not known"));
      else if (!isSizeOf(k, k.group) || k.group.value < 0)
        return fail(text(c.target, ": ", k.entry, " has groups of blocks of a size that is not known"));
    const size_t count = c.isForGpu() ? c.gpuKernels.size() : c.entries.size();
    return count == a.kernels.size() ||
           fail(text(c.target, " has ", count, " entry points for ", a.kernels.size(), " kernels"));
  }
};

} // namespace

Status validate(const Artifact &artifact, uint64_t weightBytes) {
  Validator validator(artifact, weightBytes);
  if (validator.run())
    return {};
  return {ErrorCode::BadArtifact, text("the artifact is malformed: ", validator.problem,
                                       "\n  it was written by a broken compiler, or changed on purpose")};
}

} // namespace burin::rt
