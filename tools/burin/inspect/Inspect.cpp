// burin inspect: prints the contents of an artifact or a graph.
#include "tools/burin/inspect/Inspect.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/format/Expr.h"
#include "runtime/format/Target.h"
#include "tools/burin/Commands.h"
#include "tools/burin/Table.h"
#include "tools/burin/inspect/MemoryReport.h"
#include "tools/burin/model/FileKind.h"
#include <cstdio>
#include <map>

namespace burin::cli {
namespace {

std::string number(uint64_t n) { return std::to_string(n); }

void printSignature(const ArtifactFacts &f) {
  const rt::Artifact &a = f.artifact();
  const rt::Plan &p = f.plan();
  Table table({"", "name", "type", "source"});
  auto add = [&](const char *what, const std::vector<rt::TensorInfo> &tensors) {
    for (const rt::TensorInfo &t : tensors)
      table.row({what, t.name, f.type(t), a.locations[t.location]});
  };
  add("input", p.inputs);
  add("output", p.outputs);
  table.print("signature");
  for (const rt::Symbol &s : p.symbols) {
    if (s.kind == rt::Symbol::Kind::Computed) {
      const std::string &source = a.locations[s.location];
      std::printf("  %s is computed before step %u, up to %s%s%s\n", s.name.c_str(), s.step,
                  rt::printed(p.exprs[s.limit], p.symbols).c_str(), source.empty() ? "" : ", at ", source.c_str());
      continue;
    }
    const rt::TensorInfo &input = p.inputs[s.input];
    std::string dimension = rt::printed(p.exprs[input.dims[s.axis]], p.symbols);
    if (dimension != s.name)
      dimension += ", " + s.name;
    std::printf("  dimension %u of %s is %s, from %lld%s\n", s.axis, input.name.c_str(), dimension.c_str(),
                static_cast<long long>(s.min), s.max == INT64_MAX ? " up" : (" to " + std::to_string(s.max)).c_str());
  }
}

void printTargets(const ArtifactFacts &f) {
  std::string text;
  for (size_t i = 0; i < f.artifact().codes.size(); ++i)
    text += (i ? ", " : "") + f.artifact().codes[i].target + (int(i) == f.chosenCode ? " (taken by this machine)" : "");
  std::printf("targets: %s\n", text.c_str());
  if (f.chosenCode < 0)
    std::printf("  none is for this machine, which is %s\n", std::string(rt::hostTarget()).c_str());
}

void printKernels(const ArtifactFacts &f) {
  const rt::Artifact &a = f.artifact();
  std::vector<uint64_t> steps(a.kernels.size());
  for (const rt::Plan &p : a.plans)
    for (const rt::Step &step : p.steps)
      steps[step.kernel] += step.kind == rt::Step::Kind::Kernel;
  Table table({"", "steps", "kernel", "source"}, 2);
  for (size_t i = 0; i < a.kernels.size(); ++i)
    table.row({number(i), number(steps[i]), kernelText(a, uint32_t(i)), a.locations[a.kernels[i].location]});
  table.print("kernels: " + number(a.kernels.size()));
}

std::string listed(const ArtifactFacts &f, const std::vector<rt::Slot> &slots) {
  std::string text;
  for (const rt::Slot &slot : slots)
    text += (text.empty() ? "" : ", ") + f.slotName(slot);
  return text;
}

/// How a function uses a state: how it writes the state, or "read" if it only reads it; "" if neither.
const char *useOf(const rt::Plan &plan, uint32_t state) {
  for (const rt::StateOutput &output : plan.stateOutputs)
    if (output.state == state)
      return output.update == rt::StateOutput::Update::InPlace ? "set in place" : "set by a second buffer";
  return llvm::is_contained(plan.stateInputs, state) ? "read" : "";
}

void printFunctions(const ArtifactFacts &f) {
  const rt::Artifact &a = f.artifact();
  if (a.plans.size() > 1) {
    Table table({"function", "steps", ""}, 0);
    for (const rt::Plan &p : a.plans)
      table.row({p.name, number(p.steps.size()), p.isPrivate ? "run by others" : &p == &f.plan() ? "shown here" : ""});
    table.print("functions: " + number(a.plans.size()));
  }
  if (a.states.empty())
    return;
  Table table({"state", "type", "starts as", "here"}, 0);
  for (size_t i = 0; i < a.states.size(); ++i) {
    const rt::State &s = a.states[i];
    table.row({s.name, rt::tensorText(s.dtype, s.shape), s.initial == UINT32_MAX ? "zeros" : "its value",
               useOf(f.plan(), uint32_t(i))});
  }
  table.print("states: " + number(a.states.size()));
}

void printPlan(const ArtifactFacts &f, const std::string &sizes) {
  const rt::Artifact &a = f.artifact();
  const rt::Plan &p = f.plan();
  Table table({"step", "iterations", "tasks", "MFLOP", "KB", "kernel", "source", "after", "operands"}, 5);
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const rt::Step &s = p.steps[i];
    std::string after;
    for (uint32_t dep : s.deps)
      after += (after.empty() ? "" : ",") + number(dep);
    auto iterations = double(f.iterations(i));
    table.row({number(i), number(uint64_t(iterations)), number(uint64_t(f.values[s.tasks])),
               fixed(iterations * double(f.values[s.flops]) / 1e6, 3),
               fixed(iterations * double(f.values[s.bytes]) / 1e3, 1), stepText(a, f.plan(), s),
               a.locations[s.location], after, listed(f, s.operands)});
  }
  table.print("launch plan" + sizes + ": " + number(p.steps.size()) + " steps");
}

void printMemory(const ArtifactFacts &f, const std::string &sizes) {
  std::printf("\nmemory plan%s: planned %llu bytes, largest live set %llu bytes (step %u), ratio %.3f\n", sizes.c_str(),
              static_cast<unsigned long long>(f.placement.arenaBytes),
              static_cast<unsigned long long>(f.largestLiveBytes), f.largestLiveStep, f.plannedOverLive());
  std::printf("  scratch per thread: %llu bytes\n", static_cast<unsigned long long>(f.scratchBytes));
  Table table({"", "offset", "bytes", "steps"}, 3);
  for (size_t i = 0; i < f.buffers.size(); ++i)
    table.row({std::string(1, bufferLetter(i)), number(f.placement.offsets[i]), number(f.buffers[i].bytes),
               number(f.buffers[i].firstStep) + "-" + number(f.buffers[i].lastStep)});
  table.printRows();
  std::vector<std::string> picture = memoryPicture(f);
  if (picture.empty())
    return;
  std::printf("  the arena, step by step from left to right:\n");
  for (const std::string &row : picture)
    std::printf("    |%s|\n", row.c_str());
}

void printWeights(const ArtifactFacts &f) {
  Table table({"bytes", "type", "name"}, 1);
  for (const rt::Constant &c : f.artifact().constants)
    table.row({number(c.bytes), rt::tensorText(c.dtype, c.shape), c.name});
  table.print("weights: " + number(f.artifact().constants.size()));
}

void printFile(const ArtifactFacts &f) {
  Table table({"bytes", "section"}, 1);
  uint64_t rest = f.file.size() - f.metaBytes - f.view.weights.size();
  table.row({number(f.metaBytes), "plan"});
  for (const rt::Code &code : f.artifact().codes) {
    table.row({number(code.bytes), "code for " + code.target});
    rest -= code.bytes;
  }
  table.row({number(f.view.weights.size()), "weights"});
  table.row({number(rest), "header and padding"});
  table.print("file: " + number(f.file.size()) + " bytes");
}

} // namespace

void printFacts(const std::string &path, const ArtifactFacts &f) {
  const rt::Artifact &a = f.artifact();
  std::string sizes = f.symbols.empty() ? "" : " for " + f.symbolText();
  std::printf("%s: artifact, format version %u, made by %s\n", path.c_str(), a.version(), a.producer.c_str());
  printTargets(f);
  printFunctions(f);
  printSignature(f);
  printKernels(f);
  printPlan(f, sizes);
  printMemory(f, sizes);
  printMemoryReport(f);
  printWeights(f);
  printFile(f);
  Table metadata({"key", "value"});
  size_t others = 0;
  for (const auto &[key, value] : a.metadata)
    if (key != rt::kMemoryReportKey) {
      metadata.row({key, value});
      ++others;
    }
  if (others)
    metadata.print("metadata");
}

void addInspect(CLI::App &app, int &exitCode) {
  struct Arguments {
    std::string model;
    std::vector<std::string> dims;
    std::string function;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand("inspect", "Print the contents of an artifact or a graph");
  command->add_option("model", arguments->model, "model.plate, model.onnx, model.burin or model.mlir")->required();
  command->add_option("--dim", arguments->dims, "NAME=SIZE: a symbolic size to plan for (default 1)");
  command->add_option("--function", arguments->function, "Function whose plan is printed (default: the first)");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, &exitCode] {
    if (kindOf(arguments->model) != FileKind::Artifact) {
      exitCode = inspectGraph(arguments->model, arguments->json);
      return;
    }
    Dims dims;
    ArtifactFacts facts;
    if ((exitCode = parseDims(arguments->dims, dims)) ||
        (exitCode = readFacts(arguments->model, arguments->function, dims, facts)))
      return;
    (arguments->json ? printFactsJson : printFacts)(arguments->model, facts);
  });
}

} // namespace burin::cli
