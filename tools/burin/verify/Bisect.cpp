// burin bisect: finds the pass and the op that make a graph fail, and reduces the graph to a small reproducer.
#include "ir/dialect/Burin.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/format/Archive.h"
#include "tools/burin/Progress.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/Execute.h"
#include "tools/burin/model/Model.h"
#include "tools/burin/verify/GraphCut.h"
#include "tools/burin/verify/Probe.h"
#include "tools/burin/verify/Shrink.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace burin::cli {
namespace {

struct Arguments {
  std::string model, output = "bisect.mlir";
  std::vector<std::string> fixed;
  InputArguments inputs;
  Probe probe;
  bool json = false;
};

struct Findings {
  Failure failure;
  std::vector<std::string> ops;   // of the small graph, with source locations; the last one computes the wrong value
  std::vector<std::string> cures; // passes that, when disabled, make the failure disappear
  bool cannotLeaveOut = false;    // the failing pass cannot be disabled, as later passes need it
  std::string kernels;            // kernels of the small graph, if the failure is in code generation
  std::string file, command;
};

const char *nameOf(Failure::Kind kind) {
  constexpr const char *names[] = {"nothing", "an output differs", "it does not compile", "a crash", "it does not end"};
  return names[kind];
}

/// All passes by name, each once.
std::vector<std::string> passNames(MLIRContext *context) {
  PassManager manager(context);
  passes::buildPipeline(manager, passes::Stage::Graph, passes::Stage::Kernels);
  llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>> names;
  for (Pass &pass : manager.getPasses())
    names.insert(pass.getArgument().str());
  return names.takeVector();
}

Probe without(const Probe &probe, const std::string &pass) {
  Probe other = probe;
  other.compile.pipeline.disabled.push_back(pass);
  return other;
}

/// Returns the kernels that the graph is compiled to, such as "contract+add+relu".
std::string kernelsOf(ModuleOp graph, const codegen::CompileOptions &options) {
  OwningOpRef<ModuleOp> copy = graph.clone();
  PassManager manager(graph.getContext());
  passes::buildPipeline(manager, passes::Stage::Graph, passes::Stage::Kernels, options.pipeline);
  if (failed(manager.run(*copy)))
    return "";
  std::string names;
  copy->walk([&](ir::KernelOp kernel) { names += (names.empty() ? "" : ", ") + kernel.getName().value_or("").str(); });
  return names;
}

/// Returns the command that reproduces the failure. Symbolic sizes are either fixed in the reduced graph, or repeated
/// as --dim options.
std::string commandFor(const Arguments &arguments, ModuleOp graph) {
  std::string text = "burin verify " + arguments.output;
  for (BlockArgument argument : mainOf(graph).getArguments())
    for (const Dim &size : ir::shapeOf(argument))
      for (const Dim::Symbol &symbol : size.symbols())
        for (auto &[name, value] : arguments.probe.sizes)
          if (name == symbol.name && text.find(" --dim " + name + "=") == text.npos)
            text += " --dim " + name + "=" + std::to_string(value);
  for (const std::string &input : arguments.inputs.inputs)
    for (unsigned i = 0; i < mainOf(graph).getNumArguments(); ++i)
      if (mainOf(graph).getArgAttrOfType<StringAttr>(i, "burin.name") == input.substr(0, input.find('=')))
        text += " --input " + input;
  if (arguments.probe.seed)
    text += " --seed " + std::to_string(arguments.probe.seed);
  for (const std::string &pass : arguments.probe.compile.pipeline.disabled)
    text += " --disable-pass " + pass;
  if (arguments.probe.compile.targets != std::vector<std::string>{"native"})
    text += " --target " + llvm::join(arguments.probe.compile.targets, ",");
  for (auto [name, value] :
       {std::pair("rtol", arguments.probe.tolerance.rtol), {"atol", arguments.probe.tolerance.atol}})
    if (value >= 0)
      text += llvm::formatv(" --{0} {1}", name, value);
  return text;
}

int write(const Arguments &arguments, const Findings &findings, ModuleOp graph) {
  std::string text = "// " + std::string(nameOf(findings.failure.kind)) + ", from " + findings.failure.stage + ": " +
                     findings.failure.what + "\n// see it: " + findings.command + "\n";
  llvm::raw_string_ostream out(text);
  graph.print(out, OpPrintingFlags().enableDebugInfo());
  out << "\n";
  rt::Status status = rt::writeFile(arguments.output, std::as_bytes(std::span(text)));
  return status.ok() ? kOk : fail(kUsage, status.message() + "\n  choose another place with -o");
}

void print(const Findings &f) {
  auto line = [](const char *name, const std::string &text) { std::printf("%-12s %s\n", name, text.c_str()); };
  line("failure:", std::string(nameOf(f.failure.kind)) + (f.failure.what.empty() ? "" : ": " + f.failure.what));
  line("pass:", f.failure.stage +
                    (f.kernels.empty()
                         ? ""
                         : (f.kernels.find(", ") == std::string::npos ? " (kernel " : " (kernels ") + f.kernels + ")"));
  line("op:", f.ops.back());
  for (size_t i = 0; i + 1 < f.ops.size(); ++i)
    line(i ? "" : "behind:", f.ops[i]);
  for (const std::string &cure : f.cures)
    line("way out:", "--disable-pass " + cure);
  if (f.cannotLeaveOut)
    line("way out:", "none: " + f.failure.stage + " cannot be left out");
  line("reproducer:", f.file + " (" + std::to_string(f.ops.size()) + (f.ops.size() == 1 ? " op)" : " ops)"));
  line("see it:", f.command);
}

void printJson(const Arguments &arguments, const Findings &f) {
  using namespace llvm::json;
  Object found{{"model", arguments.model}, {"failure", nameOf(f.failure.kind)}};
  if (f.failure.kind != Failure::None) {
    found["what"] = f.failure.what;
    found["pass"] = f.failure.stage;
    found["kernels"] = f.kernels;
    found["op"] = f.ops.back();
    found["ops"] = Array(f.ops);
    found["cured_without"] = Array(f.cures);
    found["reproducer"] = f.file;
    found["command"] = f.command;
  }
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(found)));
  llvm::outs().flush();
}

/// Reduces the graph as long as it fails in the same way, and finds the passes that the failure depends on.
OwningOpRef<ModuleOp> locate(const Arguments &arguments, ModuleOp graph, Findings &findings) {
  Probe probe = arguments.probe;
  // a rounding difference that only exceeds the tolerance in a smaller graph is a different failure
  probe.margin = findings.failure.margin;
  Progress progress;
  size_t tries = 0;
  OwningOpRef<ModuleOp> small = shrink(graph.clone(), probe.sizes, [&](ModuleOp candidate) {
    progress.say(std::to_string(++tries) + " graphs tried, now " +
                 std::to_string(computingOps(mainOf(candidate)).size()) + " ops");
    return probe.run(candidate).isLike(findings.failure);
  });
  findings.failure.what = probe.run(*small).what;
  if (findings.failure.stage == kCodeGeneration)
    findings.kernels = kernelsOf(*small, probe.compile);
  for (Operation *op : computingOps(mainOf(*small)))
    findings.ops.push_back(opAndPlace(op));
  std::vector<std::string> suspects = passNames(small->getContext());
  if (llvm::is_contained(suspects, findings.failure.stage))
    suspects = {findings.failure.stage};
  for (const std::string &pass : suspects) {
    Failure::Kind left = without(arguments.probe, pass).run(*small).kind;
    if (left == Failure::None)
      findings.cures.push_back(pass);
    else if (suspects.size() == 1)
      findings.cannotLeaveOut = true;
  }
  return small;
}

int prepare(Arguments &arguments) {
  run::Options options;
  if (int code = arguments.inputs.moveTo(options))
    return code;
  for (auto &[name, size] : options.dims)
    arguments.probe.sizes[name] = size;
  for (auto &[name, value] : options.inputs) {
    std::string error;
    if (value[0] != '@')
      return fail(kUsage, "--input of burin bisect takes files: NAME=@FILE.npy, got '" + name + "=" + value + "'");
    auto array = readArray(value.substr(1), error);
    if (!array)
      return fail(kUsage, error);
    arguments.probe.inputs[name] = std::move(*array);
  }
  return checkTargets(arguments.probe.compile.targets);
}

/// Gives each symbolic size a value: the one given, that of a given input's shape, or 1.
void completeSizes(Probe &probe, func::FuncOp main) {
  for (BlockArgument argument : main.getArguments()) {
    auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "burin.name");
    auto given = probe.inputs.find(name ? name.str() : "");
    Shape shape = ir::shapeOf(argument);
    for (size_t i = 0; given != probe.inputs.end() && i < std::min(shape.size(), given->second.shape.size()); ++i)
      if (auto linear = shape[i].linear())
        probe.sizes.try_emplace(linear->symbol.name, (given->second.shape[i] - linear->offset) / linear->scale);
  }
  for (BlockArgument argument : main.getArguments())
    for (const Dim &size : ir::shapeOf(argument))
      for (const Dim::Symbol &symbol : size.symbols())
        probe.sizes.try_emplace(symbol.name, smallSize(symbol));
}

int bisect(Arguments &arguments) {
  Model model;
  int code = prepare(arguments);
  if (code || (code = model.read(arguments.model, {.fixed = arguments.fixed})))
    return code;
  // The probe forks, which must not happen with MLIR's threads running.
  model.module().getContext()->disableMultithreading();
  func::FuncOp main = mainOf(model.module());
  if (main.getNumResults() == 0 || computingOps(main).empty())
    return fail(kUsage, "'" + arguments.model + "' computes nothing\n  give a graph with at least one op");
  completeSizes(arguments.probe, main);
  Findings findings;
  findings.failure = arguments.probe.run(model.module());
  findings.file = arguments.output;
  if (findings.failure.stage == kReference)
    return fail(kUnsupported, "the reference interpreter does not run '" + arguments.model + "': " +
                                  findings.failure.what + "\n  give other inputs, or more time with --time-limit");
  if (findings.failure.kind == Failure::None) {
    if (arguments.json)
      printJson(arguments, findings);
    else
      std::printf("nothing is wrong: the outputs of %s agree with the reference\n", arguments.model.c_str());
    return kOk;
  }
  OwningOpRef<ModuleOp> small = locate(arguments, model.module(), findings);
  findings.command = commandFor(arguments, *small);
  if ((code = write(arguments, findings, *small)))
    return code;
  if (arguments.json)
    printJson(arguments, findings);
  else
    print(findings);
  return kMismatch;
}

} // namespace

void addBisect(CLI::App &app, int &exitCode, const codegen::CompileOptions &defaults) {
  auto arguments = std::make_shared<Arguments>();
  arguments->probe.compile = defaults;
  CLI::App *command =
      app.add_subcommand("bisect", "Find the pass and the op that make a graph fail, and a small graph");
  command->add_option("model", arguments->model, "model.onnx, model.burin or model.mlir")->required();
  command->add_option("-o,--output", arguments->output, "Where to write the small graph (default bisect.mlir)");
  command->add_option("--input", arguments->inputs.inputs, "NAME=@FILE.npy; random if not given");
  command->add_option("--fix", arguments->fixed, kFixHelp);
  command->add_option("--dim", arguments->inputs.dims, "NAME=SIZE: a symbolic size (default 1)");
  command->add_option("--seed", arguments->probe.seed, "Seed of the random inputs (default 0)");
  command->add_option("--threads", arguments->probe.threads, "Number of threads (default: the processor's)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--time-limit", arguments->probe.seconds, "Seconds for each graph that is tried (default 60)")
      ->check(CLI::PositiveNumber);
  arguments->probe.tolerance.addTo(*command);
  command->add_option("--target", arguments->probe.compile.targets, "As for compile")->delimiter(',');
  command->add_option("--disable-pass", arguments->probe.compile.pipeline.disabled, "As for compile");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, &exitCode] { exitCode = bisect(*arguments); });
}

} // namespace burin::cli
