// burin verify: what the compiler made of a graph, against the reference interpreter.
#include "ir/Reference.h"
#include "tools/burin/Arrays.h"
#include "tools/burin/Commands.h"
#include "tools/burin/Execute.h"
#include "tools/burin/FileKind.h"
#include "tools/burin/Model.h"
#include "tools/burin/Table.h"
#include "tools/common/Runner.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

namespace burin::cli {
namespace {

struct Arguments {
  std::string model, artifact;
  InputArguments inputs;
  run::Options run;
  codegen::CompileOptions compile;
  double rtol = -1, atol = -1; // negative: by element type
};

struct Tolerance {
  double rtol, atol;
};

/// What rounding may do in a sum of some thousands of terms around 1.
Tolerance defaultTolerance(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return {1e-10, 1e-10};
  case DType::f32:
    return {1e-4, 1e-4};
  case DType::f16:
    return {1e-2, 1e-2};
  case DType::bf16:
    return {5e-2, 5e-2};
  default:
    return {0, 0};
  }
}

struct Outcome {
  std::string name, type;
  DType dtype;
  Tolerance tolerance;
  run::Difference difference;
};

std::vector<ir::RefTensor> referenceInputs(const run::Report &report) {
  std::vector<ir::RefTensor> inputs;
  for (const run::NamedTensor &input : report.inputs) {
    run::Values v = input.values();
    auto *data = reinterpret_cast<const char *>(v.data);
    inputs.push_back(ir::RefTensor::fromBytes(v.dtype, {v.shape.begin(), v.shape.end()},
                                              {data, size_t(v.count()) * byteWidth(v.dtype)}));
  }
  return inputs;
}

Outcome compareOutput(const Arguments &arguments, const run::NamedTensor &got, const ir::RefTensor &expected) {
  run::Values values = got.values();
  Outcome out{got.name, run::typeText(values.dtype, values.shape), values.dtype, defaultTolerance(values.dtype), {}};
  if (arguments.rtol >= 0)
    out.tolerance.rtol = arguments.rtol;
  if (arguments.atol >= 0)
    out.tolerance.atol = arguments.atol;
  bool isReal = expected.data.index() == 0;
  auto *data = isReal ? reinterpret_cast<const std::byte *>(expected.reals().data())
                      : reinterpret_cast<const std::byte *>(expected.ints().data());
  run::Values reference{isReal ? DType::f64 : DType::i64, expected.shape, data};
  out.difference = run::compare(values, reference, out.tolerance.rtol, out.tolerance.atol);
  return out;
}

std::string scientific(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", x);
  return text;
}

std::string exact(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

void print(const std::vector<Outcome> &outcomes) {
  Table table({"output", "type", "worst absolute", "worst relative", "rtol", "atol", ""});
  for (const Outcome &o : outcomes)
    table.row({o.name, o.type, scientific(o.difference.worstAbsolute), scientific(o.difference.worstRelative),
               scientific(o.tolerance.rtol), scientific(o.tolerance.atol), o.difference.index < 0 ? "ok" : "DIFFERS"});
  table.printRows();
}

void printJson(const Arguments &arguments, const std::vector<Outcome> &outcomes) {
  llvm::json::Array list;
  for (const Outcome &o : outcomes)
    list.push_back(llvm::json::Object{{"name", o.name},
                                      {"type", o.type},
                                      {"worst_absolute", o.difference.worstAbsolute},
                                      {"worst_relative", o.difference.worstRelative},
                                      {"rtol", o.tolerance.rtol},
                                      {"atol", o.tolerance.atol},
                                      {"ok", o.difference.index < 0}});
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{{"model", arguments.model},
                                                                                {"seed", arguments.run.seed},
                                                                                {"outputs", std::move(list)}}));
  llvm::outs().flush();
}

int report(const Arguments &arguments, const std::vector<Outcome> &outcomes) {
  if (arguments.run.json)
    printJson(arguments, outcomes);
  else
    print(outcomes);
  int code = kOk;
  for (const Outcome &o : outcomes)
    if (o.difference.index >= 0)
      code = fail(kMismatch, "output '" + o.name + "' differs: element " + std::to_string(o.difference.index) + " is " +
                                 exact(o.difference.got) + ", the reference says " + exact(o.difference.expected) +
                                 "\n  allow more with --rtol and --atol, or find the pass with --disable-pass");
  return code;
}

int verify(Arguments &arguments) {
  if (int code = arguments.inputs.moveTo(arguments.run))
    return code;
  Model model, reference; // compiling consumes the first
  std::vector<char> artifact;
  if (int code = reference.read(arguments.model, arguments.run.fixed))
    return code;
  arguments.run.model = arguments.artifact;
  if (arguments.artifact.empty()) {
    arguments.run.model = arguments.model;
    int code = model.read(arguments.model, arguments.run.fixed);
    if (code || (code = model.compile(arguments.compile, artifact)))
      return code;
  }
  run::Runner runner(arguments.run);
  if (!runner.load(bytesOf(artifact)) || !runner.prepareInputs() || !runner.openSession(arguments.run.threads) ||
      !runner.runOnce())
    return runner.exitCode;
  std::vector<ir::RefTensor> expected;
  int code = reference.attempt("interpret", [&] {
    auto results = ir::interpret(reference.module(), referenceInputs(runner.report));
    if (succeeded(results))
      expected = std::move(*results);
    return succeeded(results);
  });
  if (code)
    return code;
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < runner.report.outputs.size(); ++i) {
    const run::NamedTensor &got = runner.report.outputs[i];
    run::Values v = got.values();
    bool fits = i < expected.size() && expected[i].dtype == v.dtype &&
                std::equal(v.shape.begin(), v.shape.end(), expected[i].shape.begin(), expected[i].shape.end());
    if (!fits)
      return fail(kMismatch,
                  "output '" + got.name + "' of the artifact is " + run::typeText(v.dtype, v.shape) +
                      (i < expected.size() ? ", the graph gives " + run::typeText(expected[i].dtype, expected[i].shape)
                                           : ", the graph has no such output") +
                      "\n  give the artifact that was made from this graph");
    outcomes.push_back(compareOutput(arguments, got, expected[i]));
  }
  return report(arguments, outcomes);
}

} // namespace

void addVerify(CLI::App &app, int &exitCode) {
  auto arguments = std::make_shared<Arguments>();
  arguments->run.program = "burin verify";
  CLI::App *command = app.add_subcommand("verify", "Compare the compiled graph with the reference interpreter");
  command->add_option("model", arguments->model, "model.onnx, model.burin or model.mlir")->required();
  command->add_option("--artifact", arguments->artifact, "model.plate: compare this instead of compiling now");
  command->add_option("--input", arguments->inputs.inputs, "NAME=@FILE.npy or NAME=NUMBER; random if not given");
  command->add_option("--fix", arguments->run.fixed, kFixHelp);
  command->add_option("--dim", arguments->inputs.dims, "NAME=SIZE: a symbolic size (default 1)");
  command->add_option("--seed", arguments->run.seed, "Of the random inputs (default 0)");
  command->add_option("--threads", arguments->run.threads, "Default: the processor's")->check(CLI::NonNegativeNumber);
  command->add_option("--rtol", arguments->rtol, "Allowed: atol + rtol * |reference|; default by element type")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--atol", arguments->atol, "See --rtol")->check(CLI::NonNegativeNumber);
  command->add_option("--target", arguments->compile.targets, "As for compile")->delimiter(',');
  command->add_option("--disable-pass", arguments->compile.pipeline.disabled, "As for compile");
  command->add_flag("--json", arguments->run.json, "Print JSON");
  command->callback([arguments, &exitCode] { exitCode = verify(*arguments); });
}

} // namespace burin::cli
