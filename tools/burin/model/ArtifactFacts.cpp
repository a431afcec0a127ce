#include "tools/burin/model/ArtifactFacts.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Stages.h"
#include "runtime/format/Target.h"
#include "runtime/npy/Npy.h"
#include "runtime/support/Cursor.h"
#include "tools/burin/Commands.h"
#include <algorithm>
#include <cmath>

namespace burin::cli {
namespace {

/// Sets symbols that `dims` does not name to `others`, clamped to their ranges.
int chooseSymbols(const Dims &dims, int64_t others, ArtifactFacts &out) {
  const std::vector<rt::Symbol> &symbols = out.plan().symbols;
  out.symbols.clear();
  for (const rt::Symbol &symbol : symbols)
    out.symbols.push_back(std::max(symbol.min, std::min(others, symbol.max)));
  for (const auto &[name, size] : dims) {
    size_t i = 0;
    while (i < symbols.size() && symbols[i].name != name)
      ++i;
    if (i == symbols.size()) {
      std::string known;
      for (const rt::Symbol &symbol : symbols)
        known += " " + symbol.name;
      return fail(kUsage, "the artifact has no symbolic size '" + name + "'\n  " +
                              (known.empty() ? "all its sizes are fixed: leave --dim out" : "it has:" + known));
    }
    if (size < symbols[i].min || size > symbols[i].max)
      return fail(kUsage, "--dim " + name + "=" + std::to_string(size) + " is out of range: it must be from " +
                              std::to_string(symbols[i].min) + " to " + std::to_string(symbols[i].max));
    out.symbols[i] = size;
  }
  return kOk;
}

/// Returns the expressions that are sizes or counts, and so may not be negative. Other expressions may be, such as the
/// strides of a loop that runs backwards.
std::vector<rt::ExprId> amounts(const rt::Plan &a) {
  std::vector<rt::ExprId> ids;
  for (const auto *tensors : {&a.inputs, &a.outputs})
    for (const rt::TensorInfo &tensor : *tensors)
      ids.insert(ids.end(), tensor.dims.begin(), tensor.dims.end());
  for (const rt::ArenaBuffer &buffer : a.buffers)
    ids.push_back(buffer.bytes);
  for (const rt::Step &step : a.steps)
    ids.insert(ids.end(), {step.tasks, step.flops, step.bytes, step.scratchBytes});
  return ids;
}

/// Evaluates all expressions for the chosen sizes. Returns a message if one is impossible, or an empty string.
std::string evaluateSizes(ArtifactFacts &out) {
  const rt::Plan &a = out.plan();
  out.values.clear();
  auto impossible = [&](const rt::Expr &expr) {
    return "a size of the artifact is impossible for " + out.symbolText() + ": " + rt::printed(expr, a.symbols) +
           "\n  choose another with --dim NAME=SIZE";
  };
  for (const rt::Expr &expr : a.exprs) {
    auto value = rt::evaluate(expr, out.symbols);
    if (!value)
      return impossible(expr);
    out.values.push_back(*value);
  }
  for (rt::ExprId id : amounts(a))
    if (out.values[id] < 0)
      return impossible(a.exprs[id]);
  return "";
}

void planMemory(ArtifactFacts &out) {
  const rt::Plan &a = out.plan();
  std::vector<uint64_t> live(a.steps.size());
  for (const rt::ArenaBuffer &buffer : a.buffers) {
    uint64_t bytes = uint64_t(out.values[buffer.bytes]);
    out.buffers.push_back({bytes, buffer.firstStep, buffer.lastStep, rt::loopOf(a, buffer)});
    for (uint32_t step = buffer.firstStep; step <= buffer.lastStep && step < live.size(); ++step)
      live[step] += bytes;
  }
  // Each stage has its own arena; the picture shows them one after the other.
  const rt::Stages stages = rt::stagesOf(a);
  out.placement.offsets.resize(out.buffers.size());
  for (uint32_t stage = 0; stage < stages.list.size(); ++stage) {
    std::vector<rt::LiveRange> own = out.buffers;
    for (size_t i = 0; i < own.size(); ++i)
      if (stages.ofBuffer[i] != stage)
        own[i].bytes = 0;
    rt::Placement placement = rt::placeBuffers(own, rt::loopRanges(a), /*workers=*/1);
    for (size_t i = 0; i < own.size(); ++i)
      if (stages.ofBuffer[i] == stage)
        out.placement.offsets[i] = out.placement.arenaBytes + placement.offsets[i];
    out.placement.arenaBytes += placement.arenaBytes;
  }
  for (uint32_t step = 0; step < live.size(); ++step)
    if (live[step] > out.largestLiveBytes)
      out.largestLiveBytes = live[step], out.largestLiveStep = step;
  for (const rt::Step &step : a.steps)
    out.scratchBytes = std::max(out.scratchBytes, uint64_t(out.values[step.scratchBytes]));
}

void chooseCode(ArtifactFacts &out) {
  int best = -1;
  for (size_t i = 0; i < out.artifact().codes.size(); ++i)
    if (int rank = rt::targetRank(out.artifact().codes[i].target); rank > best)
      best = rank, out.chosenCode = int(i);
}

} // namespace

static int chooseFunction(const std::string &name, ArtifactFacts &out) {
  std::string known;
  const std::vector<rt::Plan> &plans = out.artifact().plans;
  for (uint32_t i = 0; i < plans.size(); ++i) {
    if (plans[i].name == name || name.empty()) {
      out.function = i;
      return kOk;
    }
    known += plans[i].isPrivate ? "" : " " + plans[i].name;
  }
  return fail(kUsage, "the artifact has no function " + name + "; it has:" + known);
}

int readFacts(const std::string &path, const std::string &function, const Dims &dims, ArtifactFacts &out) {
  std::string error;
  auto file = rt::readWholeFile(path, error);
  if (!file)
    return fail(kBadModel, error);
  return factsOf(std::move(*file), path, function, dims, out);
}

int factsOf(std::vector<std::byte> file, const std::string &path, const std::string &function, const Dims &dims,
            ArtifactFacts &out) {
  out.file = std::move(file);
  rt::Status status = rt::parseArtifact(out.file, rt::WeightCheck::Verify, out.view);
  if (!status.ok())
    return fail(kBadModel, path + ": " + status.message());
  rt::Writer writer;
  rt::Artifact copy = out.artifact();
  fields(writer, copy);
  out.metaBytes = writer.bytes.size();
  if (int code = chooseFunction(function, out))
    return code;
  constexpr int64_t kMostDefault = 4096; // not smaller: a convolution without padding has no result for small images
  std::string problem, first;
  for (int64_t others = 1; others <= kMostDefault && (others == 1 || !problem.empty()); others *= 2) {
    if (int code = chooseSymbols(dims, others, out))
      return code;
    problem = evaluateSizes(out);
    first = others == 1 ? problem : first;
  }
  if (!problem.empty())
    return fail(kUsage, first);
  planMemory(out);
  chooseCode(out);
  return kOk;
}

std::string ArtifactFacts::type(const rt::TensorInfo &tensor) const {
  std::string text(name(tensor.dtype));
  text += "[";
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? ", " : "") + rt::printed(plan().exprs[tensor.dims[i]], plan().symbols);
  return text + "]";
}

std::string ArtifactFacts::symbolText() const {
  std::string text;
  for (size_t i = 0; i < symbols.size(); ++i)
    text += (i ? ", " : "") + plan().symbols[i].name + "=" + std::to_string(symbols[i]);
  return text;
}

std::string ArtifactFacts::slotName(const rt::Slot &slot) const {
  switch (slot.kind) {
  case rt::Slot::Kind::Input:
    return plan().inputs[slot.index].name;
  case rt::Slot::Kind::Output:
    return plan().outputs[slot.index].name;
  case rt::Slot::Kind::Constant: {
    const std::string &name = artifact().constants[slot.index].name;
    return name.empty() ? "weight " + std::to_string(slot.index) : name;
  }
  case rt::Slot::Kind::Buffer:
    return std::string("buffer ") + bufferLetter(slot.index);
  case rt::Slot::Kind::Part: {
    const rt::Part &part = plan().parts[slot.index];
    return part.kind == rt::Part::Kind::Alternating ? slotName(part.whole) + " or " + slotName(part.other)
                                                    : "part of " + slotName(part.whole);
  }
  }
  return "";
}

int64_t ArtifactFacts::iterations(size_t step) const {
  for (const rt::Loop &loop : plan().loops)
    if (loop.firstStep <= step && step <= loop.lastStep)
      return values[loop.iterations];
  return 1;
}

char bufferLetter(size_t buffer) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return letters[buffer % (sizeof letters - 1)];
}

std::vector<std::string> memoryPicture(const ArtifactFacts &facts) {
  constexpr uint64_t kRows = 12, kColumns = 64;
  uint64_t arena = facts.placement.arenaBytes, steps = facts.plan().steps.size();
  if (arena == 0 || steps == 0)
    return {};
  uint64_t columns = std::min(steps, kColumns), cell = columns <= 16 ? 3 : 1;
  std::vector<std::string> rows(kRows, std::string(columns * cell, '.'));
  for (size_t b = 0; b < facts.buffers.size(); ++b) {
    const rt::LiveRange &range = facts.buffers[b];
    if (range.bytes == 0)
      continue;
    // In doubles, which are exact for arenas up to 2^53 bytes; the picture may be off by one row.
    double scale = double(kRows) / double(arena), start = double(facts.placement.offsets[b]) * scale;
    auto first = uint64_t(std::llround(start)), last = uint64_t(std::llround(start + double(range.bytes) * scale));
    first = std::min(first, kRows - 1);
    last = std::min(std::max(last, first + 1), kRows); // a small buffer still gets one row
    for (uint64_t row = first; row < last; ++row)
      for (uint64_t column = range.firstStep * columns / steps; column <= range.lastStep * columns / steps; ++column)
        std::fill_n(rows[kRows - 1 - row].begin() + ptrdiff_t(column * cell), cell, bufferLetter(b));
  }
  return rows;
}

} // namespace burin::cli
