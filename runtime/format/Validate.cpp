#include "runtime/format/Archive.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Stages.h"
#include "runtime/support/Format.h"

namespace burin::rt {
namespace {

constexpr size_t kMaxRank = 32;

/// Checks one artifact; `problem` is the first thing found wrong.
class Validator {
public:
  Validator(const Artifact &artifact, uint64_t weightBytes) : a(artifact), weightBytes(weightBytes) {}

  std::string problem;

  bool run() {
    if (a.locations.empty())
      return fail("no locations");
    for (size_t i = 0; i < a.exprs.size(); ++i)
      if (!wellFormed(a.exprs[i], a.symbols.size()))
        return fail(text("expression ", i, " is not well formed"));
    if (!all(a.inputs, "input", &Validator::tensor) || !all(a.outputs, "output", &Validator::tensor) ||
        !all(a.symbols, "symbol", &Validator::symbol) || !all(a.constants, "constant", &Validator::constant) ||
        !all(a.buffers, "buffer", &Validator::buffer) || !all(a.checks, "check", &Validator::check))
      return false;
    stages = stagesOf(a);
    return all(a.symbols, "symbol", &Validator::computed) && all(a.inputs, "input", &Validator::knownAtOnce) &&
           all(a.buffers, "buffer", &Validator::placed) && all(a.kernels, "kernel", &Validator::kernel) &&
           all(a.parts, "part", &Validator::part) && all(a.loops, "loop", &Validator::loop) &&
           all(a.steps, "step", &Validator::step) && all(a.codes, "target", &Validator::code);
  }

private:
  const Artifact &a;
  const uint64_t weightBytes;
  Stages stages; // known from where all indices are

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }
  template <class T>
  bool all(const std::vector<T> &records, const char *what, bool (Validator::*check)(const T &, size_t)) {
    for (size_t i = 0; i < records.size(); ++i)
      if (!(this->*check)(records[i], i))
        return fail(text(what, " ", i, ": ", problem));
    return true;
  }

  bool expr(ExprId id) { return id < a.exprs.size() || fail(text("no expression ", id)); }
  bool exprs(const std::vector<ExprId> &ids) {
    for (ExprId id : ids)
      if (!expr(id))
        return false;
    return true;
  }
  bool location(uint32_t id) { return id < a.locations.size() || fail(text("no location ", id)); }
  bool dtype(DType t) { return int(t) < kNumDTypes || fail(text("no element type ", int(t))); }

  bool tensor(const TensorInfo &t, size_t) {
    return dtype(t.dtype) && exprs(t.dims) && location(t.location) &&
           (t.dims.size() <= kMaxRank || fail(text("rank ", t.dims.size(), " is above ", kMaxRank)));
  }

  bool symbol(const Symbol &s, size_t index) {
    if (s.kind > Symbol::Kind::Computed)
      return fail(text("no kind ", int(s.kind)));
    const Symbol *before = index ? &a.symbols[index - 1] : nullptr;
    if (before && (before->kind > s.kind || (before->kind == s.kind && before->step > s.step)))
      return fail("comes after one that is known later");
    if (s.kind == Symbol::Kind::Computed)
      return expr(s.limit) && location(s.location) && exists(s.count) &&
             (s.step <= a.steps.size() || fail(text("read before step ", s.step, ", which does not exist")));
    return s.step == 0 ? dimension(s, index) : fail("the size of an input is read before the first step");
  }

  // The dimension a symbol is read from is the symbol itself.
  bool dimension(const Symbol &s, size_t index) {
    if (s.input >= a.inputs.size() || s.axis >= a.inputs[s.input].dims.size())
      return fail(text("read from axis ", s.axis, " of input ", s.input, ", which does not exist"));
    if (s.min < 0 || s.max < s.min)
      return fail(text("empty range [", s.min, ", ", s.max, "]"));
    const Expr &dim = a.exprs[a.inputs[s.input].dims[s.axis]];
    bool itself =
        dim.program.size() == 1 && dim.program[0].op == Expr::Op::Symbol && uint64_t(dim.program[0].value) == index;
    return itself || fail(text("axis ", s.axis, " of input ", s.input, " has another size"));
  }

  /// What is read must be there: a scalar of the caller or of an output, 8 bytes of weights, a buffer already written.
  bool computed(const Symbol &s, size_t) {
    if (s.kind == Symbol::Kind::Dimension)
      return true;
    uint32_t before = s.step == 0 ? 0 : stages.ofStep(s.step - 1);
    bool isThere = false;
    if (s.count.kind == Slot::Kind::Input || s.count.kind == Slot::Kind::Output) {
      bool isInput = s.count.kind == Slot::Kind::Input;
      const TensorInfo &t = isInput ? a.inputs[s.count.index] : a.outputs[s.count.index];
      isThere = t.dtype == DType::i64 && t.dims.empty();
    } else if (s.count.kind == Slot::Kind::Constant) {
      isThere = a.constants[s.count.index].bytes >= sizeof(int64_t);
    } else if (s.count.kind == Slot::Kind::Buffer) { // how large it is turns out when it is placed
      const ArenaBuffer &b = a.buffers[s.count.index];
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

  bool constant(const Constant &c, size_t) {
    uint64_t bytes = 1;
    if (!dtype(c.dtype))
      return false;
    bytes = byteWidth(c.dtype);
    for (int64_t dim : c.shape)
      if (dim < 0 || __builtin_mul_overflow(bytes, uint64_t(dim), &bytes))
        return fail("impossible shape");
    if (c.offset % 64 || c.offset > weightBytes || c.bytes > weightBytes - c.offset)
      return fail("outside the weights, or not 64-byte aligned");
    return bytes <= c.bytes || fail("its shape is larger than its data");
  }

  bool range(uint32_t first, uint32_t last, const char *what) {
    return (first <= last && last < a.steps.size()) || fail(text(what, " outside the plan"));
  }
  const Loop *loopAround(size_t first, size_t last) {
    for (const Loop &l : a.loops)
      if (l.firstStep <= first && last <= l.lastStep)
        return &l;
    return nullptr;
  }

  static bool hasCopies(const Loop *l) { return l && !l->sequential; }

  bool buffer(const ArenaBuffer &b, size_t) {
    return expr(b.bytes) && range(b.firstStep, b.lastStep, "live range") &&
           (b.perWorker == 0 || (b.perWorker == 1 && hasCopies(loopAround(b.firstStep, b.lastStep))) ||
            fail("one per worker, but not within one loop of independent turns"));
  }

  bool loop(const Loop &l, size_t index) {
    if (!expr(l.turns) || !range(l.firstStep, l.lastStep, "steps") || !known(l.turns, l.firstStep))
      return false;
    if (stages.ofStep(l.firstStep) != stages.ofStep(l.lastStep))
      return fail("a size is computed within");
    if (l.sequential > 1)
      return fail(text("no kind ", int(l.sequential)));
    return (index == 0 || a.loops[index - 1].lastStep < l.firstStep || fail("does not follow the one before it"));
  }

  // What it is a part of lives as long as the loop: see operand().
  bool part(const Part &p, size_t) {
    return expr(p.begin) && expr(p.stride) && exists(p.whole) &&
           (p.whole.kind != Slot::Kind::Part || fail("is a part of a part"));
  }

  bool kernel(const Kernel &k, size_t) { return location(k.location); }

  bool exists(const Slot &slot) {
    size_t counts[] = {a.inputs.size(), a.outputs.size(), a.constants.size(), a.buffers.size(), a.parts.size()};
    return (slot.kind <= Slot::Kind::Part && slot.index < counts[size_t(slot.kind)]) ||
           fail(text("operand of kind ", int(slot.kind), " and index ", slot.index, " does not exist"));
  }
  bool live(const Slot &slot, size_t first, size_t last) {
    if (slot.kind == Slot::Kind::Output && stages.ofOutput[slot.index] > stages.ofStep(uint32_t(first)))
      return fail(text("the shape of output ", slot.index, " is not known yet"));
    if (slot.kind != Slot::Kind::Buffer)
      return true;
    const ArenaBuffer &b = a.buffers[slot.index];
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
    const Slot &whole = a.parts[slot.index].whole;
    bool own = whole.kind == Slot::Kind::Buffer && a.buffers[whole.index].perWorker;
    if (!l || own)
      return fail(text("part ", slot.index, " is used outside a loop"));
    return live(whole, l->firstStep, l->lastStep) && known(a.parts[slot.index].begin, step) &&
           known(a.parts[slot.index].stride, step);
  }

  bool step(const Step &s, size_t index) {
    if (s.kernel >= a.kernels.size())
      return fail(text("no kernel ", s.kernel));
    for (const Slot &slot : s.operands)
      if (!operand(slot, index))
        return false;
    for (uint32_t dep : s.deps)
      if (dep >= index)
        return fail(text("depends on step ", dep, ", which does not come before it"));
    if (!exprs(s.sizes) || !expr(s.tasks) || !expr(s.scratchBytes) || !expr(s.flops) || !expr(s.bytes) ||
        !location(s.location))
      return false;
    std::vector<ExprId> needed = s.sizes;
    needed.insert(needed.end(), {s.tasks, s.scratchBytes, s.flops, s.bytes});
    for (ExprId id : needed)
      if (!known(id, index))
        return false;
    return true;
  }

  bool code(const Code &c, size_t) {
    return c.entries.size() == a.kernels.size() ||
           fail(text(c.target, " has ", c.entries.size(), " entry points for ", a.kernels.size(), " kernels"));
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
