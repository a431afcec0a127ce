// burin compile: compiles a graph to an artifact, or prints it at an intermediate stage.
#include "codegen/Compiler.h"
#include "codegen/object/ObjectCode.h"
#include "ir/dialect/Burin.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/format/Archive.h"
#include "tools/burin/Commands.h"
#include "tools/burin/Draw.h"
#include "tools/burin/inspect/MemoryReport.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/Model.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <filesystem>
#include <map>

namespace burin::cli {
namespace {

struct Arguments {
  std::string model, output, emit = "plate", stage = "kernels";
  codegen::CompileOptions compile;
  std::vector<std::string> printAfter;
  ImportArguments import;
  bool timing = false, kernelCosts = false, check = false, report = false;
  std::string memoryLimit, function;
};

const std::map<std::string, codegen::EmitStage> stages{
    {"graph", codegen::EmitStage::Graph},     {"optimized", codegen::EmitStage::Optimized},
    {"kernels", codegen::EmitStage::Kernels}, {"schedule", codegen::EmitStage::Schedule},
    {"loops", codegen::EmitStage::Loops},     {"llvm", codegen::EmitStage::LLVM},
    {"asm", codegen::EmitStage::Assembly}};

int write(const std::string &path, rt::Bytes bytes) {
  if (path == "-") {
    llvm::outs().write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return kOk;
  }
  rt::Status status = rt::writeFile(path, bytes);
  return status.ok() ? kOk : fail(kUsage, status.message() + "\n  choose another place with -o");
}

/// "2G", "512M", "100k" or a number of bytes, by powers of 1024.
std::optional<uint64_t> parseBytes(llvm::StringRef text) {
  unsigned shift = 0;
  if (!text.empty())
    if (size_t at = llvm::StringRef("KMGT").find(llvm::toUpper(text.back())); at != llvm::StringRef::npos) {
      shift = unsigned(at + 1) * 10;
      text = text.drop_back();
    }
  double number = 0;
  if (text.getAsDouble(number) || !(number > 0) || number * std::ldexp(1.0, int(shift)) >= 0x1p63)
    return std::nullopt;
  return uint64_t(number * std::ldexp(1.0, int(shift)));
}

/// Prints the memory report of each function.
int printReports(const std::vector<std::byte> &artifact, const std::string &path) {
  ArtifactFacts first;
  if (int code = factsOf(artifact, path, "", {}, first))
    return code;
  for (const rt::Plan &plan : first.artifact().plans) {
    ArtifactFacts facts;
    if (plan.isPrivate)
      continue;
    if (int code = factsOf(artifact, path, plan.name, {}, facts))
      return code;
    printMemoryReport(facts);
  }
  return kOk;
}

passes::Stage stageNamed(llvm::StringRef name) {
  return name == "graph"       ? passes::Stage::Graph
         : name == "optimized" ? passes::Stage::Optimized
                               : passes::Stage::Kernels;
}

/// Produces the text of the stage, or its picture, in `out`.
int emit(Model &model, const Arguments &arguments, std::string &out) {
  if (int code = checkTargets(arguments.compile.targets))
    return code;
  bool isPicture = arguments.emit == "dot" || arguments.emit == "svg";
  int code = model.attempt("compile", [&] {
    if (isPicture) {
      mlir::PassManager passes(model.module().getContext());
      buildPipeline(passes, passes::Stage::Graph, stageNamed(arguments.stage), arguments.compile.pipeline);
      arguments.compile.instrument(passes);
      if (failed(passes.run(model.module())))
        return false;
      out = drawDot(model.module());
      return true;
    }
    auto emitted = emitText(model.module(), arguments.compile, stages.at(arguments.emit));
    if (succeeded(emitted))
      out = std::move(*emitted);
    return succeeded(emitted);
  });
  if (code || arguments.emit != "svg")
    return code;
  std::string dot = std::move(out);
  return renderSvg(dot, out);
}

std::string withEnding(const std::string &path, const char *ending) { return path.substr(0, path.rfind('.')) + ending; }

/// The traced graph as an ONNX model.
int saveOnnx(Model &model, const Arguments &arguments) {
  std::string output = arguments.output.empty() ? withEnding(arguments.model, ".onnx") : arguments.output;
  std::error_code ignored;
  if (std::filesystem::equivalent(output, arguments.model, ignored))
    return fail(kUsage, "'" + output + "' is the model itself\n  choose another place with -o");
  llvm::SmallVector<std::string> names;
  for (mlir::func::FuncOp function : ir::publicFunctions(model.module()))
    names.push_back(function.getName().str());
  const std::string has = "'" + arguments.model + "' has " + llvm::join(names, ", ");
  if (arguments.function.empty() && names.size() > 1)
    return fail(kUsage, "an ONNX model holds one function, but " + has + "\n  choose one with --function");
  if (!arguments.function.empty() && !llvm::is_contained(names, arguments.function))
    return fail(kUsage, "there is no function " + arguments.function + "; " + has);
  return model.saveOnnx(output, "choose another place with -o", arguments.function);
}

/// The kernels that took longest come first.
void printCosts(std::vector<std::pair<codegen::KernelCost, std::string>> &costs) {
  llvm::sort(costs, [](auto &x, auto &y) { return x.first.seconds() > y.first.seconds(); });
  llvm::errs() << "  MLIR ms  passes ms  code ms  emitted  optimized  kernel\n";
  for (auto &[cost, kernel] : costs)
    llvm::errs() << llvm::format("%9.1f %10.1f %8.1f %8u %10u  ", cost.emission * 1e3, cost.passes * 1e3,
                                 cost.code * 1e3, cost.emitted, cost.optimized)
                 << kernel << '\n';
}

int run(Arguments &arguments) {
  Model model;
  if (!arguments.memoryLimit.empty()) {
    std::optional<uint64_t> bytes = parseBytes(arguments.memoryLimit);
    if (!bytes)
      return fail(kUsage, "--memory-limit needs a number of bytes, as 500M or 2G, got '" + arguments.memoryLimit + "'");
    arguments.compile.pipeline.memory.bytes = *bytes;
  } else if (arguments.compile.pipeline.memory.allowBf16) {
    return fail(kUsage, "--memory-allow-bf16 is for --memory-limit, which is missing");
  }
  if (!arguments.function.empty() && arguments.emit != "onnx")
    return fail(kUsage, "--function is for --emit onnx; an artifact holds all functions");
  if (arguments.report && (arguments.output == "-" || arguments.emit != "plate"))
    return fail(kUsage, "--report is about an artifact in a file\n  name one with -o, and leave --emit out");
  if (arguments.check)
    return model.check(arguments.model, arguments.import, arguments.compile);
  if (int code = model.read(arguments.model, arguments.import))
    return code;
  std::string output = arguments.output;
  if (arguments.emit == "plate") {
    std::vector<std::byte> artifact;
    std::vector<std::pair<codegen::KernelCost, std::string>> costs;
    if (arguments.kernelCosts)
      arguments.compile.reportCost = [&](const std::string &kernel, const codegen::KernelCost &cost) {
        costs.emplace_back(cost, kernel);
      };
    if (int code = model.compile(arguments.compile, artifact))
      return code;
    if (arguments.kernelCosts)
      printCosts(costs);
    if (output.empty())
      output = withEnding(arguments.model, ".plate");
    int code = write(output, artifact);
    return code || !arguments.report ? code : printReports(artifact, output);
  }
  if (arguments.emit == "onnx")
    return saveOnnx(model, arguments);
  std::string text;
  if (int code = emit(model, arguments, text))
    return code;
  return write(output.empty() ? "-" : output, std::as_bytes(std::span(text)));
}

} // namespace

void addCompile(CLI::App &app, int &exitCode) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand("compile", "Compile a graph to an artifact");
  command->add_option("model", arguments->model, "model.onnx, model.burin or model.mlir")->required();
  command->add_option("-o,--output", arguments->output,
                      "Where to write; model.plate or model.onnx by default, - is standard output");
  arguments->import.warns = true;
  arguments->import.addTo(*command);
  command->add_flag("--check", arguments->check, "Write nothing; print every problem that prevents compilation");
  command
      ->add_option(
          "--target", arguments->compile.targets,
          "native (the best of the next three that this machine has, tuned to its processor), x86-64-v3, x86-64-v4, "
          "x86-64-v4+bf16 (products of bf16 by AVX512-BF16); several make one artifact; or x86-64-v4+amx alone: f32 "
          "products by bf16 tiles, as exact but with "
          "other last bits; cuda-sm_80+ptx (NVIDIA GPUs from compute capability 8.0 on), cuda-sm_90a+ptx (9.0 alone), "
          "both also with +tf32 (f32 products rounded to tf32) or +bf16x3 (by two bf16 per number)")
      ->delimiter(',');
  const std::map<std::string, passes::Provider> providers{{"none", passes::Provider::None},
                                                          {"cublaslt", passes::Provider::CublasLt}};
  command
      ->add_option("--provider", arguments->compile.pipeline.provider,
                   "For GPUs: cublaslt lets cuBLASLt compute matrix products where its library is installed; the "
                   "artifact has kernels for them all the same")
      ->transform(CLI::CheckedTransformer(providers));
  std::vector<std::string> names{"plate", "onnx", "dot", "svg"};
  for (auto &[name, stage] : stages)
    names.push_back(name);
  command
      ->add_option("--emit", arguments->emit,
                   "Stop at a stage and write its text; dot and svg are pictures, onnx is the traced graph as an "
                   "ONNX model")
      ->check(CLI::IsMember(names));
  command->add_option("--function", arguments->function, "The function that --emit onnx writes, if there are several");
  command->add_option("--stage", arguments->stage, "The stage that dot and svg draw (default kernels)")
      ->check(CLI::IsMember({"graph", "optimized", "kernels"}));
  command->add_option(
      "--memory-limit", arguments->memoryLimit,
      "Limit in bytes (or as 500M, 2G) for weights, states, inputs, outputs and intermediate values of a "
      "run: where needed, values are recomputed instead of stored until their next use, the cheapest "
      "first; results keep their bits");
  command->add_flag("--memory-allow-bf16", arguments->compile.pipeline.memory.allowBf16,
                    "With --memory-limit: values may be stored in bf16 between two uses, which changes results");
  command->add_flag("--report", arguments->report,
                    "Print the memory of a run, the step of its peak with the values held there, and the decisions of "
                    "--memory-limit");
  command->add_option("--disable-pass", arguments->compile.pipeline.disabled, "Leave out a pass, by name");
  command->add_option("--print-after", arguments->printAfter,
                      "Print the graph to stderr after a pass, by name, or 'all'");
  command->add_flag("--time-passes", arguments->timing, "Print the time each pass took to stderr");
  command->add_flag("--time-kernels", arguments->kernelCosts,
                    "Print the CPU time that each kernel took to stderr, with its instructions of LLVM IR");
  command->callback([arguments, &exitCode] {
    arguments->compile.instrument = [options = arguments.get()](mlir::PassManager &manager) {
      if (options->timing)
        manager.enableTiming();
      if (options->printAfter.empty())
        return;
      manager.getContext()->disableMultithreading();
      manager.enableIRPrinting([](mlir::Pass *, mlir::Operation *) { return false; },
                               [options](mlir::Pass *pass, mlir::Operation *) {
                                 return llvm::is_contained(options->printAfter, "all") ||
                                        llvm::is_contained(options->printAfter, pass->getArgument().str());
                               },
                               /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false,
                               /*printAfterOnlyOnFailure=*/false, llvm::errs());
    };
    exitCode = run(*arguments);
  });
}

} // namespace burin::cli
