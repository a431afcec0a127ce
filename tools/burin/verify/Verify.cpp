// burin verify: compares a compiled graph with the reference interpreter.
#include "ir/reference/Reference.h"
#include "tools/burin/Table.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/Execute.h"
#include "tools/burin/model/FileKind.h"
#include "tools/burin/model/Model.h"
#include "tools/burin/verify/OnnxRuntime.h"
#include "tools/burin/verify/VerifyOps.h"
#include "tools/common/Runner.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace burin::cli {
namespace {

struct Arguments {
  std::string model, artifact, against = "reference";
  bool perOp = false;
  InputArguments inputs;
  run::Options run;
  codegen::CompileOptions compile;
  ToleranceArguments tolerance;
};

struct Outcome {
  std::string name, type;
  Tolerance tolerance;
  run::Difference difference;
};

/// The expected outputs, and statistics of the comparison.
struct Expected {
  std::vector<ir::RefTensor> outputs;
  std::vector<OpOutcome> ops;
};

Outcome compareOutput(const Arguments &arguments, const run::NamedTensor &got, const ir::RefTensor &expected) {
  run::Values values = got.values();
  Tolerance tolerance = arguments.tolerance.of(values.dtype);
  return {got.name, run::typeText(values.dtype, values.shape), tolerance, compare(values, expected, tolerance)};
}

void print(const std::vector<Outcome> &outcomes) {
  Table table({"output", "type", "worst absolute", "worst relative", "rtol", "atol", ""});
  for (const Outcome &o : outcomes)
    table.row({o.name, o.type, scientific(o.difference.worstAbsolute), scientific(o.difference.worstRelative),
               scientific(o.tolerance.rtol), scientific(o.tolerance.atol), o.difference.index < 0 ? "ok" : "DIFFERS"});
  table.printRows();
}

llvm::json::Array jsonOf(const std::vector<OpOutcome> &ops) {
  llvm::json::Array list;
  for (const OpOutcome &o : ops)
    list.push_back(llvm::json::Object{{"op", o.op},
                                      {"source", o.source},
                                      {"type", o.type},
                                      {"local_error", o.local},
                                      {"accumulated_error", o.accumulated},
                                      {"ok", o.difference.index < 0}});
  return list;
}

void printJson(const Arguments &arguments, const std::vector<Outcome> &outcomes, const std::vector<OpOutcome> &ops) {
  llvm::json::Array list;
  for (const Outcome &o : outcomes)
    list.push_back(llvm::json::Object{{"name", o.name},
                                      {"type", o.type},
                                      {"worst_absolute", o.difference.worstAbsolute},
                                      {"worst_relative", o.difference.worstRelative},
                                      {"rtol", o.tolerance.rtol},
                                      {"atol", o.tolerance.atol},
                                      {"ok", o.difference.index < 0}});
  llvm::json::Object all{{"model", arguments.model}, {"seed", arguments.run.seed}, {"outputs", std::move(list)}};
  if (arguments.perOp)
    all["ops"] = jsonOf(ops);
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(all)));
  llvm::outs().flush();
}

std::string whatDiffers(const run::Difference &d, const std::string &oracle) {
  return "element " + std::to_string(d.index) + " is " + exact(d.got) + ", " + oracle + " says " + exact(d.expected);
}

int report(const Arguments &arguments, const std::vector<Outcome> &outcomes, const std::vector<OpOutcome> &ops) {
  if (arguments.run.json) {
    printJson(arguments, outcomes, ops);
  } else {
    if (arguments.perOp)
      printOps(ops), std::printf("\n");
    print(outcomes);
  }
  std::string oracle = arguments.against == "reference" ? "the reference" : "ONNX Runtime";
  int code = kOk;
  auto wrong = std::find_if(ops.begin(), ops.end(), [](const OpOutcome &o) { return o.difference.index >= 0; });
  if (wrong != ops.end())
    code = fail(kMismatch, "the first op beyond the tolerance is " + wrong->op +
                               (wrong->source.empty() ? "" : " at " + wrong->source) + ": " +
                               whatDiffers(wrong->difference, oracle + ", from the same operands,") +
                               "\n  burin bisect cuts the graph down to what is wrong with it");
  for (const Outcome &o : outcomes)
    if (o.difference.index >= 0)
      code =
          fail(kMismatch, "output '" + o.name + "' differs: " + whatDiffers(o.difference, oracle) +
                              "\n  allow more with --rtol and --atol, or find the pass and the op with burin bisect");
  return code;
}

/// Compares with ONNX Runtime. A graph that is not an ONNX file is exported to one first.
int againstOnnxRuntime(const Arguments &arguments, Model &model, const run::Report &report, Expected &expected) {
  std::string file = arguments.model;
  llvm::SmallString<128> folder;
  auto remove = llvm::make_scope_exit([&] {
    if (!folder.empty())
      llvm::sys::fs::remove_directories(folder);
  });
  if (kindOf(arguments.model) != FileKind::Onnx) {
    const std::string wayOut = "set TMPDIR to a folder that can be written";
    if (llvm::sys::fs::createUniqueDirectory("burin-verify", folder))
      return fail(kInternal, "cannot create a temporary folder\n  " + wayOut);
    file = folder.str().str() + "/graph.onnx";
    if (int code = model.saveOnnx(file, wayOut))
      return code;
  }
  std::vector<std::pair<std::string, rt::NpyArray>> inputs;
  StateDict fixed;
  if (int code = readFixedInputs(arguments.run.fixed, fixed))
    return code;
  for (auto &[name, tensor] : fixed)
    inputs.emplace_back(name, arrayOf(tensor));
  for (const run::NamedTensor &input : report.inputs)
    inputs.emplace_back(input.name, copyOf(input.values()));
  std::vector<rt::NpyArray> outputs;
  if (int code = runOnnxRuntime(file, inputs, outputs))
    return code;
  for (const rt::NpyArray &output : outputs)
    expected.outputs.push_back(toReference(valuesOf(output)));
  return kOk;
}

int againstReference(const Arguments &arguments, Model &model, const run::Report &report, Expected &expected) {
  if (arguments.perOp) {
    std::vector<rt::NpyArray> inputs;
    for (const run::NamedTensor &input : report.inputs)
      inputs.push_back(copyOf(input.values()));
    OpCheck check{arguments.compile, arguments.tolerance, arguments.run.threads, {}, {}};
    int code = model.attempt("check the ops of", [&] { return check.run(model.module(), inputs); });
    expected = {std::move(check.expected), std::move(check.outcomes)};
    return code;
  }
  std::vector<ir::RefTensor> inputs;
  for (const run::NamedTensor &input : report.inputs)
    inputs.push_back(toReference(input.values()));
  return model.attempt("interpret", [&] {
    auto results = ir::interpret(model.module(), inputs);
    if (succeeded(results))
      expected.outputs = std::move(*results);
    return succeeded(results);
  });
}

/// Rejects combinations of options that exclude each other.
int checkArguments(const Arguments &arguments) {
  bool outside = arguments.against != "reference";
  if (arguments.perOp && (outside || !arguments.artifact.empty()))
    return fail(kUsage, "--per-op compiles the ops of the graph and compares with burin's reference\n  leave out " +
                            std::string(outside ? "--against" : "--artifact"));
  return kOk;
}

int verify(Arguments &arguments) {
  int code = checkArguments(arguments);
  if (code || (code = arguments.inputs.moveTo(arguments.run)))
    return code;
  Model model, reference; // compiling consumes `model`
  std::vector<std::byte> artifact;
  if ((code = reference.read(arguments.model, {.fixed = arguments.run.fixed})))
    return code;
  arguments.run.model = arguments.artifact;
  if (arguments.artifact.empty()) {
    arguments.run.model = arguments.model;
    code = model.read(arguments.model, {.fixed = arguments.run.fixed});
    if (code || (code = model.compile(arguments.compile, artifact)))
      return code;
  }
  run::Runner runner(arguments.run);
  if (!runner.load(artifact) || !runner.prepareInputs() || !runner.openSession(arguments.run.threads) ||
      !runner.runOnce())
    return runner.exitCode;
  Expected expected;
  code = arguments.against == "reference" ? againstReference(arguments, reference, runner.report, expected)
                                          : againstOnnxRuntime(arguments, reference, runner.report, expected);
  if (code)
    return code;
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < runner.report.outputs.size(); ++i) {
    const run::NamedTensor &got = runner.report.outputs[i];
    run::Values v = got.values();
    const ir::RefTensor *want = i < expected.outputs.size() ? &expected.outputs[i] : nullptr;
    if (!want || !sameType(v, *want))
      return fail(kMismatch, "output '" + got.name + "' of the artifact is " + run::typeText(v.dtype, v.shape) +
                                 (want ? ", the graph gives " + run::typeText(want->dtype, want->shape)
                                       : ", the graph has no such output") +
                                 "\n  give the artifact that was made from this graph");
    outcomes.push_back(compareOutput(arguments, got, *want));
  }
  return report(arguments, outcomes, expected.ops);
}

} // namespace

void addVerify(CLI::App &app, int &exitCode, const codegen::CompileOptions &defaults) {
  auto arguments = std::make_shared<Arguments>();
  arguments->compile = defaults;
  arguments->run.program = "burin verify";
  CLI::App *command = app.add_subcommand("verify", "Compare the compiled graph with the reference interpreter");
  command->add_option("model", arguments->model, "model.onnx, model.burin or model.mlir")->required();
  command->add_option("--artifact", arguments->artifact, "model.plate: compare this instead of compiling now");
  command->add_flag("--per-op", arguments->perOp, "Also compare every op, compiled with all results as outputs");
  command
      ->add_option("--against", arguments->against,
                   "reference (default), or onnxruntime, which needs a Python with that package")
      ->check(CLI::IsMember({"reference", "onnxruntime"}));
  command->add_option("--input", arguments->inputs.inputs, "NAME=@FILE.npy or NAME=NUMBER; random if not given");
  command->add_option("--fix", arguments->run.fixed, kFixHelp);
  command->add_option("--dim", arguments->inputs.dims, "NAME=SIZE: a symbolic size (default 1)");
  command->add_option("--seed", arguments->run.seed, "Seed of the random inputs (default 0)");
  command->add_option("--threads", arguments->run.threads, "Number of threads (default: the processor's)")
      ->check(CLI::NonNegativeNumber);
  arguments->tolerance.addTo(*command);
  command->add_option("--target", arguments->compile.targets, "As for compile")->delimiter(',');
  command->add_option("--disable-pass", arguments->compile.pipeline.disabled, "As for compile");
  command->add_flag("--json", arguments->run.json, "Print JSON");
  command->callback([arguments, &exitCode] { exitCode = verify(*arguments); });
}

} // namespace burin::cli
