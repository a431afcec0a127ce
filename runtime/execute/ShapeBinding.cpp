#include "runtime/execute/ShapeBinding.h"
#include "runtime/execute/StepSchedule.h"
#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/CostModel.h"
#include "runtime/format/ErrorList.h"
#include "runtime/format/Expr.h"
#include "runtime/support/Format.h"
#include <algorithm>

namespace burin::rt {
namespace {

// Number of tasks per chunk. By shapes alone, so that results and schedules do not depend on the number of threads.
int64_t chooseGrain(int64_t tasks, double flops, double bytes) {
  double ns = cost::nsOf(flops, bytes);
  if (tasks <= 1 || ns < cost::kSerialNs)
    return tasks;
  return std::clamp<int64_t>(int64_t(double(tasks) * std::max(cost::kChunkNs / ns, 1 / cost::kMostChunks)), 1, tasks);
}

constexpr int64_t kMaxBytes = int64_t(1) << 47; // limit for a tensor, and for the arena

} // namespace

std::string tensorText(DType dtype, std::span<const int64_t> shape) {
  std::string out(int(dtype) < kNumDTypes ? name(dtype) : "an unknown type");
  out += "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

/// Builds a ShapeBinding.
class Binder {
public:
  Binder(const Program &program, ShapeBinding &out)
      : program(program), a(program.artifact()), p(a.plans[out.plan]), stages(program.stages(out.plan)), out(out) {}

  Status runFirst(std::span<const TensorView> given) {
    inputs = given;
    if (inputs.size() != p.inputs.size())
      return {ErrorCode::InvalidArgument, text(p.name == "main" ? "the artifact" : p.name, " takes ", p.callerInputs(),
                                               " inputs, ", inputs.size() - p.stateInputs.size(), " were given")};
    checkTypes();
    if (problems.any())
      return problems.status("cannot run: ");
    readSymbols();
    if (problems.any())
      return problems.status("cannot run: ");
    out.values.resize(p.exprs.size());
    evaluateAll();
    checkInputShapes();
    return finish();
  }

  Status runPrivate(std::span<const int64_t> symbols) {
    out.known.assign(symbols.begin(), symbols.end());
    out.values.resize(p.exprs.size());
    evaluateAll();
    for (size_t i = 0; i < p.inputs.size(); ++i)
      addShape(p.inputs[i], inputName(i), true);
    return finish();
  }

  Status runNext(const ShapeBinding &before, std::span<const int64_t> symbols) {
    out.stage = before.stage + 1;
    out.known.assign(symbols.begin(), symbols.end());
    out.values = before.values;
    out.shapes.assign(before.shapes.begin(), before.shapes.begin() + int64_t(p.inputs.size()));
    out.bytes.assign(before.bytes.begin(), before.bytes.begin() + int64_t(p.inputs.size()));
    evaluateAll();
    return finish();
  }

private:
  const Program &program;
  const Artifact &a;
  const Plan &p;
  const Stages &stages;
  std::span<const TensorView> inputs;
  ShapeBinding &out;
  ErrorList problems;
  const Loop *inLoop = nullptr;
  StepSchedule order;
  std::vector<uint64_t> strides; // of loops, see Placement

  Status finish() {
    checkSizes();
    for (size_t i = 0; i < p.outputs.size(); ++i)
      addShape(p.outputs[i], text("output ", i, " (", p.outputs[i].name, ")"), stages.ofOutput[i] <= out.stage);
    if (problems.any())
      return problems.status("cannot run: ");
    orderAll();
    placeAll();
    fillSteps();
    if (out.place.isGpu() && order.groups)
      orderSideBySide();
    return problems.any() ? problems.status("cannot run: ") : Status();
  }

  std::string inputName(size_t i) { return text("input ", i, " (", p.inputs[i].name, ")"); }
  std::string expected(size_t input) {
    std::string dims;
    for (ExprId id : p.inputs[input].dims)
      dims += (dims.empty() ? "" : ", ") + printed(p.exprs[id], p.symbols);
    return text(name(p.inputs[input].dtype), "[", dims, "]");
  }

  void checkTypes() {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorInfo &info = p.inputs[i];
      const TensorView &got = inputs[i];
      if (got.rank && !got.shape)
        problems.add(inputName(i), " has no shape");
      else if (got.dtype != info.dtype || got.rank != info.dims.size())
        problems.add(inputName(i), " must be ", expected(i), ", got ", tensorText(got.dtype, {got.shape, got.rank}));
    }
  }

  void readSymbols() {
    for (const Symbol &s : p.symbols) {
      if (s.kind != Symbol::Kind::Dimension)
        break; // computed symbols are last
      const int64_t size = inputs[s.input].shape[s.axis];
      int64_t rest = 0;
      bool isFit = !__builtin_sub_overflow(size, s.offset, &rest) && rest % s.scale == 0;
      const int64_t value = rest / s.scale;
      const char *separator = s.location ? ": " : "";
      if (!isFit)
        problems.add(a.locations[s.location], separator, inputName(s.input), " axis ", s.axis, " must be ",
                     dimension(s), ", got ", size);
      else if (value < s.min || value > s.max)
        problems.add(a.locations[s.location], separator, inputName(s.input), " axis ", s.axis, ": ", s.name,
                     " must be ", s.max == INT64_MAX ? text("at least ", s.min) : text("in [", s.min, ", ", s.max, "]"),
                     ", got ", value, value == size ? "" : text(", as the size is ", dimension(s), " = ", size));
      out.known.push_back(value);
    }
  }
  std::string dimension(const Symbol &s) { return printed(p.exprs[p.inputs[s.input].dims[s.axis]], p.symbols); }

  /// Evaluates the expressions that are known from this stage on.
  void evaluateAll() {
    for (size_t i = 0; i < p.exprs.size(); ++i) {
      if (stages.ofExpr[i] != out.stage)
        continue;
      std::optional<int64_t> value = evaluate(p.exprs[i], out.known);
      if (!value)
        problems.add("a size is not computable with these shapes: ", printed(p.exprs[i], p.symbols), " for ",
                     symbolsText());
      out.values[i] = value.value_or(0);
    }
  }

  void checkSizes() {
    for (const Check &check : p.checks) {
      const int64_t left = out.values[check.left], right = out.values[check.right];
      if (std::max(stages.ofExpr[check.left], stages.ofExpr[check.right]) != out.stage || left == right)
        continue;
      const Expr &size = p.exprs[check.left], &wanted = p.exprs[check.right];
      const char *separator = check.location ? ": " : "";
      if (std::optional<Expr> limit = limitOf(size, wanted))
        problems.add(a.locations[check.location], separator, printed(size, p.symbols),
                     left < right ? " must be at least " : " must be at most ", printed(*limit, p.symbols), ", but is ",
                     left, " for ", symbolsText());
      else
        problems.add(a.locations[check.location], separator, printed(size, p.symbols), " must be equal to ",
                     printed(wanted, p.symbols), ", but they are ", left, " and ", right, " for ", symbolsText());
    }
  }

  std::string symbolsText() {
    std::string text;
    for (size_t i = 0; i < out.known.size(); ++i)
      text += (i ? ", " : "") + p.symbols[i].name + " = " + std::to_string(out.known[i]);
    return text;
  }

  void checkInputShapes() {
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      addShape(p.inputs[i], inputName(i), true);
      for (size_t axis = 0; axis < p.inputs[i].dims.size(); ++axis)
        checkDim(i, axis);
    }
  }

  /// "model.cpp:12: ", the place of the first symbol of a size that has one, or "".
  std::string placeOf(const Expr &size) {
    for (const Expr::Instr &instr : size.program)
      if (instr.op == Expr::Op::Symbol && p.symbols[size_t(instr.value)].location)
        return a.locations[p.symbols[size_t(instr.value)].location] + ": ";
    return "";
  }

  void checkDim(size_t input, size_t axis) {
    ExprId id = p.inputs[input].dims[axis];
    int64_t want = out.values[id], got = inputs[input].shape[axis];
    if (want == got)
      return;
    const Expr &expr = p.exprs[id];
    bool isConstant = expr.program.size() == 1 && expr.program[0].op == Expr::Op::Const;
    problems.add(placeOf(expr), inputName(input), " axis ", axis, ": expected ",
                 isConstant ? std::string() : printed(expr, p.symbols) + " = ", want, ", got ", got,
                 isConstant ? std::string() : text(" (", symbolsText(), ")"));
  }

  void addShape(const TensorInfo &info, const std::string &what, bool isKnown) {
    std::vector<int64_t> shape;
    int64_t bytes = int64_t(byteWidth(info.dtype));
    bool fits = true;
    for (ExprId id : info.dims) {
      shape.push_back(stages.ofExpr[id] <= out.stage ? out.values[id] : -1);
      fits &= shape.back() >= 0 && !__builtin_mul_overflow(bytes, shape.back(), &bytes) && bytes <= kMaxBytes;
    }
    if (!fits && isKnown)
      problems.add(what, " would have the impossible shape ", tensorText(info.dtype, shape));
    out.shapes.push_back(std::move(shape));
    out.bytes.push_back(fits ? uint64_t(bytes) : 0);
  }

  /// A size that must be non-negative.
  int64_t amount(ExprId id, const char *what, size_t index) {
    int64_t value = out.values[id];
    if (value < 0 || value > kMaxBytes)
      problems.add(what, " ", index, " would have the impossible size ", value);
    return std::clamp<int64_t>(value, 0, kMaxBytes);
  }

  void orderAll() {
    const Stages::Stage &stage = stages.list[out.stage];
    std::vector<double> ns;
    for (uint32_t i = stage.firstStep; i < stage.endStep; ++i)
      ns.push_back(out.place.lanes() > 1 && isAlone(i) ? sideBySideNs(p.steps[i]) : -1);
    order = orderSteps(p, stage.firstStep, stage.endStep, ns,
                       {out.place.lanes(), out.place.isGpu() ? cost::kGpuForkNs : cost::kWakeNs});
    out.parallelCount += order.groups;
  }

  /// Whether a step is a kernel outside of all loops.
  bool isAlone(uint32_t i) {
    return p.steps[i].kind == Step::Kind::Kernel &&
           std::ranges::none_of(p.loops, [&](const Loop &l) { return l.firstStep <= i && i <= l.lastStep; });
  }

  /// Estimated time of a step when it runs concurrently with others; negative if it can use the whole machine, or is
  /// empty.
  double sideBySideNs(const Step &step) {
    const double flops = double(out.values[step.flops]), bytes = double(out.values[step.bytes]);
    if (out.place.isGpu()) {
      int64_t blocks = out.values[step.blocks[out.place.gpuCode]];
      return blocks > 0 && blocks <= cost::kFewBlocks ? cost::gpuNsOf(blocks, flops, bytes) : -1;
    }
    int64_t tasks = out.values[step.tasks];
    return tasks > 0 && chooseGrain(tasks, flops, bytes) == tasks ? cost::nsOf(flops, bytes) : -1;
  }

  void placeAll() {
    std::vector<LiveRange> ranges = liveRanges(p, order);
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      const ArenaBuffer &b = p.buffers[i];
      bool isOwn = stages.ofBuffer[i] == out.stage; // other buffers take no space in this stage
      ranges[i].bytes = isOwn ? uint64_t(amount(b.bytes, "buffer", i)) : 0;
      ranges[i].loop = loopOf(p, b);
    }
    Placement placement = placeBuffers(ranges, loopRanges(p), out.place.workers);
    if (placement.arenaBytes > uint64_t(kMaxBytes))
      problems.add("the intermediate results do not fit into memory");
    out.bufferOffsets = std::move(placement.offsets);
    strides = std::move(placement.strides);
    out.arenaSize = placement.arenaBytes;
  }

  void fillSteps() {
    const Stages::Stage &stage = stages.list[out.stage];
    size_t operandCount = 2 * p.parts.size(), sizeCount = 0; // the wholes of parts have entries, too
    for (uint32_t i = stage.firstStep; i < stage.endStep; ++i)
      operandCount += p.steps[i].operands.size(), sizeCount += p.steps[i].sizes.size();
    out.operands.reserve(operandCount); // BoundStep points into both
    out.sizes.reserve(sizeCount);
    out.inputPatches.resize(p.inputs.size());
    out.outputPatches.resize(p.outputs.size());
    out.bufferPatches.resize(p.buffers.size());
    for (const Part &part : p.parts) {
      addOperand(part.whole);
      addOperand(part.kind == Part::Kind::Alternating ? part.other : part.whole);
    }
    auto loop = p.loops.begin();
    while (loop != p.loops.end() && loop->firstStep < stage.firstStep)
      ++loop;
    for (auto [i, together] : order.entries) {
      if (loop != p.loops.end() && loop->firstStep == i)
        beginLoop(*loop);
      fillStep(p.steps[i], i, together);
      if (loop != p.loops.end() && loop->lastStep == i)
        endLoop(*loop++);
    }
    for (uint32_t i = 0; i < p.buffers.size(); ++i)
      if (stages.ofBuffer[i] < out.stage && !out.bufferPatches[i].empty())
        out.earlier.push_back(i);
  }

  /// Assigns concurrent steps to lanes of the GPU.
  void orderSideBySide() {
    std::vector<TouchedMemory> buffers;
    for (uint32_t i = 0; i < p.buffers.size(); ++i)
      if (const uint64_t begin = out.bufferOffsets[i]; stages.ofBuffer[i] == out.stage)
        buffers.push_back({0, begin, begin + uint64_t(out.values[p.buffers[i].bytes])});
      else
        buffers.push_back({uint64_t(1) + i, 0, 1});
    orderLanes(p, out.bound, buffers, out.place.lanes());
  }

  void beginLoop(const Loop &loop) {
    BoundLoop b;
    b.first = uint32_t(out.bound.size());
    b.iterations = amount(loop.iterations, "the number of iterations of the loop at step", loop.firstStep);
    b.entry = uint32_t(out.operands.size());
    out.boundLoops.push_back(b);
    inLoop = &loop;
  }

  void endLoop(const Loop &loop) {
    BoundLoop &b = out.boundLoops.back();
    b.end = uint32_t(out.bound.size());
    b.entries = uint32_t(out.operands.size()) - b.entry;
    double flops = 0, bytes = 0, n = double(b.iterations);
    for (uint32_t i = loop.firstStep; i <= loop.lastStep; ++i)
      flops += double(out.values[p.steps[i].flops]), bytes += double(out.values[p.steps[i].bytes]);
    b.sequential = loop.sequential;
    b.grain = loop.sequential ? b.iterations : chooseGrain(b.iterations, flops * n, bytes * n);
    out.parallelCount += b.grain < b.iterations;
    out.loopOperands.resize(std::max(out.loopOperands.size(), size_t(b.entries) * size_t(out.place.workers)));
    inLoop = nullptr;
  }

  void fillStep(const Step &step, uint32_t index, uint32_t together) {
    bool onGpu = out.place.isGpu();
    const bool hasBlocks = onGpu && step.kind == Step::Kind::Kernel; // other steps have one task anywhere
    int64_t tasks = amount(hasBlocks ? step.blocks[out.place.gpuCode] : step.tasks, "the task count of step", index);
    ExprId scratchBytes = onGpu ? step.gpuScratchBytes : step.scratchBytes;
    uint64_t scratch = uint64_t(amount(scratchBytes, "the scratch memory of step", index));
    bool isKernel = step.kind == Step::Kind::Kernel;
    if (isKernel && tasks == 0)
      return;
    if (hasBlocks && out.place.gpu)
      scratch = std::max(scratch, out.place.gpu->workspaceBytes(step.kernel));
    out.scratchSize = std::max(out.scratchSize, (scratch + 127) / 128 * 128);
    BoundStep b{isKernel && !onGpu ? program.kernel(step.kernel) : nullptr,
                isKernel,
                out.operands.data() + out.operands.size(),
                out.sizes.data() + out.sizes.size(),
                tasks,
                0,
                index,
                together};
    b.grain =
        isKernel && !onGpu ? chooseGrain(tasks, double(out.values[step.flops]), double(out.values[step.bytes])) : tasks;
    if (b.grain < b.tasks) // in each iteration, if iterations are sequential
      out.parallelCount += !inLoop ? 1 : inLoop->sequential ? uint32_t(std::min<int64_t>(iterations(), 2)) : 0;
    for (const Slot &slot : step.operands)
      addOperand(slot);
    for (ExprId id : step.sizes)
      out.sizes.push_back(out.values[id]);
    out.bound.push_back(b);
  }

  int64_t iterations() { return out.boundLoops.back().iterations; }

  /// The parts of the first and of the last iteration must begin within the whole.
  void addPart(uint32_t entry, uint32_t index) {
    const Part &part = p.parts[index];
    const bool alternates = part.kind == Part::Kind::Alternating;
    int64_t begin = out.values[part.begin], stride = out.values[part.stride], end = 0;
    bool fits = !__builtin_mul_overflow(std::max<int64_t>(iterations() - 1, 0), stride, &end) &&
                !__builtin_add_overflow(end, begin, &end) &&
                (iterations() == 0 || (begin >= 0 && end >= 0 && std::max(begin, end) <= bytesOf(part.whole)));
    if (!fits && !alternates)
      problems.add("part ", index, " of a loop of ", iterations(), " iterations lies outside of what it is a part of");
    out.boundLoops.back().parts.push_back({entry, 2 * index, alternates ? begin & 1 : begin, stride, alternates});
  }

  int64_t bytesOf(const Slot &slot) {
    switch (slot.kind) {
    case Slot::Kind::Input:
      return int64_t(out.bytes[slot.index]);
    case Slot::Kind::Output:
      return int64_t(out.bytes[p.inputs.size() + slot.index]);
    case Slot::Kind::Constant:
      return int64_t(a.constants[slot.index].bytes);
    case Slot::Kind::Buffer:
      return out.values[p.buffers[slot.index].bytes];
    case Slot::Kind::Part:
      break;
    }
    return 0;
  }

  void addOperand(const Slot &slot) {
    if (const Part *part = slot.kind == Slot::Kind::Part && !inLoop ? &p.parts[slot.index] : nullptr)
      return addOperand(out.values[part->begin] % 2 == 0 ? part->whole : part->other);
    uint32_t entry = uint32_t(out.operands.size());
    void *data = nullptr;
    switch (slot.kind) {
    case Slot::Kind::Input:
      out.inputPatches[slot.index].push_back(entry);
      break;
    case Slot::Kind::Output:
      out.outputPatches[slot.index].push_back(entry);
      break;
    case Slot::Kind::Buffer:
      out.bufferPatches[slot.index].push_back(entry);
      if (const ArenaBuffer &b = p.buffers[slot.index]; b.perWorker && inLoop)
        out.boundLoops.back().copies.push_back({entry, strides[loopOf(p, b)]});
      break;
    case Slot::Kind::Part:
      addPart(entry, slot.index);
      break;
    case Slot::Kind::Constant:
      data = out.place.isGpu() ? out.place.gpuWeights + a.constants[slot.index].offset
                               : const_cast<void *>(program.constant(slot.index)); // kernels do not write to inputs
      break;
    }
    out.operands.push_back(data);
  }
};

Status ShapeBinding::create(const Program &program, uint32_t plan, std::span<const TensorView> inputs,
                            const Place &place, std::unique_ptr<ShapeBinding> &out) {
  auto binding = std::make_unique<ShapeBinding>();
  binding->plan = plan;
  binding->place = place;
  if (Status s = Binder(program, *binding).runFirst(inputs); !s.ok())
    return s;
  out = std::move(binding);
  return {};
}

Status ShapeBinding::create(const Program &program, uint32_t plan, std::span<const int64_t> symbols, const Place &place,
                            std::unique_ptr<ShapeBinding> &out) {
  auto binding = std::make_unique<ShapeBinding>();
  binding->plan = plan;
  binding->place = place;
  if (Status s = Binder(program, *binding).runPrivate(symbols); !s.ok())
    return s;
  out = std::move(binding);
  return {};
}

Status ShapeBinding::create(const Program &program, const ShapeBinding &before, std::span<const int64_t> symbols,
                            std::unique_ptr<ShapeBinding> &out) {
  auto binding = std::make_unique<ShapeBinding>();
  binding->plan = before.plan;
  binding->place = before.place;
  if (Status s = Binder(program, *binding).runNext(before, symbols); !s.ok())
    return s;
  out = std::move(binding);
  return {};
}

bool ShapeBinding::matches(const Program &program, std::span<const TensorView> inputs) const {
  const Plan &p = program.artifact().plans[plan];
  if (inputs.size() != p.inputs.size())
    return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t> &shape = shapes[i];
    if (inputs[i].dtype != p.inputs[i].dtype || inputs[i].rank != shape.size() || (inputs[i].rank && !inputs[i].shape))
      return false;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (inputs[i].shape[axis] != shape[axis])
        return false;
  }
  return true;
}

void ShapeBinding::enter(const BoundLoop &loop) {
  for (int worker = 0; worker < place.workers; ++worker) {
    void **own = loopOperands.data() + size_t(worker) * loop.entries;
    std::copy_n(operands.data() + loop.entry, loop.entries, own);
    for (auto [entry, bytes] : loop.copies)
      own[entry - loop.entry] = static_cast<std::byte *>(operands[entry]) + uint64_t(worker) * bytes;
  }
}

void *const *ShapeBinding::operandsOfIteration(const BoundLoop &loop, int64_t iteration, int worker) {
  void **own = loopOperands.data() + size_t(worker) * loop.entries;
  for (const BoundLoop::Part &part : loop.parts)
    own[part.entry - loop.entry] =
        part.alternates ? operands[part.base + (part.begin + iteration) % 2]
                        : static_cast<std::byte *>(operands[part.base]) + part.begin + iteration * part.stride;
  return own;
}

void ShapeBinding::setArena(std::byte *base) {
  if (base == arena)
    return;
  arena = base;
  for (size_t i = 0; i < bufferPatches.size(); ++i)
    patch(bufferPatches[i], base + bufferOffsets[i]);
}

} // namespace burin::rt
