#include "runtime/format/Target.h"
#include "tools/burin/inspect/Inspect.h"
#include "tools/burin/inspect/MemoryReport.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace burin::cli {
namespace {

using llvm::json::Array;
using llvm::json::Object;

template <class List, class F> Array arrayOf(const List &list, F make) {
  Array out;
  for (size_t i = 0; i < list.size(); ++i)
    out.push_back(make(list[i], i));
  return out;
}

class Json {
public:
  explicit Json(const ArtifactFacts &f) : f(f), a(f.artifact()), p(f.plan()) {}

  Object all(const std::string &path) {
    return Object{{"file", path},
                  {"kind", "artifact"},
                  {"version", int64_t(a.version())},
                  {"producer", a.producer},
                  {"host", std::string(rt::hostTarget())},
                  {"targets", arrayOf(a.codes, [&](auto &c, size_t i) { return target(c, i); })},
                  {"functions", arrayOf(a.plans, [&](auto &f, size_t) { return function(f); })},
                  {"function", p.name},
                  {"states", arrayOf(a.states, [&](auto &s, size_t) { return state(s); })},
                  {"inputs", arrayOf(p.inputs, [&](auto &t, size_t) { return tensor(t); })},
                  {"outputs", arrayOf(p.outputs, [&](auto &t, size_t) { return tensor(t); })},
                  {"symbols", arrayOf(p.symbols, [&](auto &s, size_t i) { return symbol(s, i); })},
                  {"kernels", arrayOf(a.kernels, [&](auto &k, size_t i) { return kernel(k, i); })},
                  {"steps", arrayOf(p.steps, [&](auto &s, size_t i) { return step(s, f.iterations(i)); })},
                  {"memory", memory()},
                  {"weights", arrayOf(a.constants, [&](auto &c, size_t) { return weight(c); })},
                  {"bytes", Object{{"file", f.file.size()}, {"plan", f.metaBytes}, {"weights", f.view.weights.size()}}},
                  {"metadata", metadata()}};
  }

private:
  const ArtifactFacts &f;
  const rt::Artifact &a;
  const rt::Plan &p;

  Object target(const rt::Code &code, size_t i) {
    return Object{{"name", code.target}, {"bytes", code.bytes}, {"taken", int(i) == f.chosenCode}};
  }
  Object function(const rt::Plan &f) {
    return Object{{"name", f.name}, {"steps", int64_t(f.steps.size())}, {"private", f.isPrivate != 0}};
  }
  Object state(const rt::State &s) {
    return Object{{"name", s.name}, {"dtype", name(s.dtype).data()}, {"shape", Array(s.shape)}};
  }
  Object tensor(const rt::TensorInfo &t) {
    return Object{{"name", t.name},
                  {"type", f.type(t)},
                  {"dtype", name(t.dtype).data()},
                  {"shape", arrayOf(t.dims, [&](rt::ExprId id, size_t) { return f.values[id]; })},
                  {"source", a.locations[t.location]}};
  }
  Object symbol(const rt::Symbol &s, size_t i) {
    if (s.kind == rt::Symbol::Kind::Computed)
      return Object{{"name", s.name}, {"value", f.symbols[i]}, {"step", int64_t(s.step)}, {"limit", f.values[s.limit]}};
    return Object{{"name", s.name},   {"value", f.symbols[i]},     {"min", s.min},
                  {"max", s.max},     {"input", int64_t(s.input)}, {"axis", int64_t(s.axis)},
                  {"scale", s.scale}, {"offset", s.offset}};
  }
  Object kernel(const rt::Kernel &k, size_t i) {
    int64_t steps = 0;
    for (const rt::Plan &f : a.plans)
      for (const rt::Step &s : f.steps)
        steps += s.kind == rt::Step::Kind::Kernel && s.kernel == i;
    Object made{{"name", k.name}, {"source", a.locations[k.location]}, {"steps", steps}};
    if (rt::productOf(a, uint32_t(i)))
      made["provider"] = "cuBLASLt";
    return made;
  }
  Object step(const rt::Step &s, int64_t iterations) {
    static constexpr const char *kinds[] = {"kernel", "call", "branch", "while", "host"};
    return Object{{"kind", kinds[int(s.kind)]},
                  {"kernel", int64_t(s.kernel)},
                  {"functions", arrayOf(s.plans, [&](uint32_t plan, size_t) { return a.plans[plan].name; })},
                  {"source", a.locations[s.location]},
                  {"operands", arrayOf(s.operands, [&](const rt::Slot &slot, size_t) { return f.slotName(slot); })},
                  {"iterations", iterations},
                  {"tasks", f.values[s.tasks]},
                  {"flops", iterations * f.values[s.flops]},
                  {"bytes", iterations * f.values[s.bytes]},
                  {"scratch_bytes", f.values[s.scratchBytes]},
                  {"after", arrayOf(s.deps, [&](uint32_t dep, size_t) { return int64_t(dep); })}};
  }
  Object memory() {
    Array buffers = arrayOf(f.buffers, [&](const rt::LiveRange &b, size_t i) {
      return Object{{"bytes", b.bytes},
                    {"offset", f.placement.offsets[i]},
                    {"first_step", int64_t(b.firstStep)},
                    {"last_step", int64_t(b.lastStep)}};
    });
    const MemoryReport report = memoryReportOf(f);
    Array held = arrayOf(report.held, [&](const MemoryReport::Held &h, size_t) {
      return Object{{"bytes", h.bytes}, {"buffer", h.buffer}, {"made_by", h.value}, {"source", h.source}};
    });
    return Object{{"total_bytes", report.total()},
                  {"weight_bytes", report.weights},
                  {"state_bytes", report.states},
                  {"input_bytes", report.inputs},
                  {"output_bytes", report.outputs},
                  {"held_at_peak", std::move(held)},
                  {"planned_bytes", f.placement.arenaBytes},
                  {"largest_live_bytes", f.largestLiveBytes},
                  {"largest_live_step", int64_t(f.largestLiveStep)},
                  {"ratio", f.plannedOverLive()},
                  {"scratch_bytes_per_thread", f.scratchBytes},
                  {"buffers", std::move(buffers)}};
  }
  Object weight(const rt::Constant &c) {
    return Object{{"name", c.name}, {"dtype", name(c.dtype).data()}, {"shape", Array(c.shape)}, {"bytes", c.bytes}};
  }
  Object metadata() {
    Object out;
    for (const auto &[key, value] : a.metadata)
      out[key] = value;
    return out;
  }
};

} // namespace

void printFactsJson(const std::string &path, const ArtifactFacts &facts) {
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(Json(facts).all(path)));
}

} // namespace burin::cli
