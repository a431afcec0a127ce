#include "tools/burin/inspect/MemoryReport.h"
#include "tools/burin/Table.h"
#include <algorithm>
#include <cstdio>
#include <set>

namespace burin::cli {
namespace {

uint64_t bytesOf(const ArtifactFacts &f, const rt::TensorInfo &tensor) {
  uint64_t bytes = byteWidth(tensor.dtype);
  for (rt::ExprId size : tensor.dims)
    bytes *= uint64_t(f.values[size]);
  return bytes;
}

std::string megabytes(uint64_t bytes) { return fixed(double(bytes) / 1e6, 3); }

} // namespace

std::string kernelText(const rt::Artifact &a, uint32_t kernel) {
  return a.kernels[kernel].name + (rt::productOf(a, kernel) ? " (or cuBLASLt)" : "");
}

std::string stepText(const rt::Artifact &a, const rt::Plan &p, const rt::Step &s) {
  auto plan = [&](size_t i) { return a.plans[s.plans[i]].name; };
  switch (s.kind) {
  case rt::Step::Kind::Kernel:
    return kernelText(a, s.kernel);
  case rt::Step::Kind::Call:
    return "call " + plan(0);
  case rt::Step::Kind::Branch:
    return "if, then " + plan(0) + ", else " + plan(1);
  case rt::Step::Kind::While:
    return "while " + plan(0) + ", do " + plan(1);
  case rt::Step::Kind::Host: {
    const rt::HostCall &call = p.hostCalls[s.hostCall];
    return call.kind == rt::HostCall::Kind::Print
               ? "print " + call.label
               : "call function " + std::to_string(call.function) + " of the process";
  }
  }
  return "";
}

MemoryReport memoryReportOf(const ArtifactFacts &f) {
  const rt::Artifact &a = f.artifact();
  const rt::Plan &p = f.plan();
  MemoryReport out;
  std::set<uint64_t> known; // offsets of weights that are counted, or are initial values, which runs never read
  for (const rt::State &state : a.states) {
    uint64_t bytes = byteWidth(state.dtype);
    for (int64_t size : state.shape)
      bytes *= uint64_t(size);
    out.states += bytes;
    if (state.initial != UINT32_MAX)
      known.insert(a.constants[state.initial].offset);
  }
  for (const rt::Constant &weight : a.constants)
    if (known.insert(weight.offset).second)
      out.weights += weight.bytes;
  for (size_t i = 0; i < p.callerInputs(); ++i)
    out.inputs += bytesOf(f, p.inputs[i]);
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    bool isState = i >= p.callerOutputs();
    if (!isState || p.stateOutputs[i - p.callerOutputs()].update == rt::StateOutput::Update::Replace)
      out.outputs += bytesOf(f, p.outputs[i]);
  }
  out.arena = f.placement.arenaBytes;
  out.step = f.largestLiveStep;
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    const rt::LiveRange &buffer = f.buffers[i];
    if (buffer.bytes == 0 || buffer.firstStep > out.step || buffer.lastStep < out.step)
      continue;
    const rt::Step &maker = p.steps[buffer.firstStep];
    out.held.push_back(
        {i, buffer.bytes, buffer.firstStep, buffer.lastStep, stepText(a, p, maker), a.locations[maker.location]});
  }
  std::ranges::stable_sort(out.held, std::greater(), &MemoryReport::Held::bytes);
  return out;
}

void printMemoryReport(const ArtifactFacts &f) {
  const MemoryReport report = memoryReportOf(f);
  const rt::Plan &p = f.plan();
  std::printf("\nmemory of %s%s%s, at most: %s MB\n", p.name.c_str(), f.symbols.empty() ? "" : " for ",
              f.symbolText().c_str(), megabytes(report.total()).c_str());
  std::printf("  weights %s, states %s, inputs %s, outputs %s, intermediate values %s MB\n",
              megabytes(report.weights).c_str(), megabytes(report.states).c_str(), megabytes(report.inputs).c_str(),
              megabytes(report.outputs).c_str(), megabytes(report.arena).c_str());
  if (!report.held.empty()) {
    const rt::Step &step = p.steps[report.step];
    const std::string &place = f.artifact().locations[step.location];
    std::printf("  the peak is step %u, %s%s%s, while these are held:\n", report.step,
                stepText(f.artifact(), p, step).c_str(), place.empty() ? "" : ", ", place.c_str());
    constexpr size_t kMostShown = 12;
    Table table({"MB", "steps", "made by", "source"}, 1);
    for (const MemoryReport::Held &held : report.held)
      if (&held < &report.held[0] + kMostShown)
        table.row({megabytes(held.bytes), std::to_string(held.firstStep) + "-" + std::to_string(held.lastStep),
                   held.value, held.source});
    table.printRows();
    if (report.held.size() > kMostShown)
      std::printf("  and %zu smaller ones\n", report.held.size() - kMostShown);
  }
  for (const auto &[key, text] : f.artifact().metadata)
    if (key == rt::kMemoryReportKey)
      std::printf("%s\n", text.c_str());
}

} // namespace burin::cli
