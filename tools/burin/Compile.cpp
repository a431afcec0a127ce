// burin compile: a graph to an artifact, or to the text of a stage on the way.
#include "codegen/Compiler.h"
#include "runtime/Archive.h"
#include "tools/burin/Commands.h"
#include "tools/burin/Model.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

namespace burin::cli {
namespace {

struct Arguments {
  std::string model, output, emit = "plate";
  codegen::CompileOptions compile;
  std::vector<std::string> printAfter;
  bool timing = false;
};

const std::map<std::string, codegen::EmitStage> stages{
    {"graph", codegen::EmitStage::Graph},     {"optimized", codegen::EmitStage::Optimized},
    {"kernels", codegen::EmitStage::Kernels}, {"loops", codegen::EmitStage::Loops},
    {"llvm", codegen::EmitStage::LLVM},       {"asm", codegen::EmitStage::Assembly}};

bool write(const std::string &path, llvm::StringRef bytes) {
  if (path == "-") {
    llvm::outs() << bytes;
    return true;
  }
  auto *begin = reinterpret_cast<const std::byte *>(bytes.data());
  rt::Status status = rt::writeFile(path, {begin, bytes.size()});
  if (!status.ok())
    llvm::errs() << "burin: error: " << status.message() << "\n";
  return status.ok();
}

int run(const Arguments &arguments) {
  auto context = makeContext();
  auto module = readGraph(*context, arguments.model);
  if (!module)
    return kBadModel;
  if (arguments.emit != "plate") {
    auto text = emitText(*module, arguments.compile, stages.at(arguments.emit));
    if (failed(text))
      return kUnsupported;
    return write(arguments.output.empty() ? "-" : arguments.output, *text) ? kOk : kBadModel;
  }
  auto artifact = compile(*module, arguments.compile);
  if (failed(artifact))
    return kUnsupported;
  std::string output = arguments.output;
  if (output.empty())
    output = arguments.model.substr(0, arguments.model.rfind('.')) + ".plate";
  return write(output, {artifact->data(), artifact->size()}) ? kOk : kBadModel;
}

} // namespace

void addCompile(CLI::App &app, int &exitCode) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand("compile", "Compile a graph to an artifact");
  command->add_option("model", arguments->model, "model.burin or model.mlir")->required();
  command->add_option("-o,--output", arguments->output, "Where to write; model.plate by default, - is standard output");
  command->add_option("--target", arguments->compile.targets, "native, x86-64-v3, x86-64-v4; several make one artifact")
      ->delimiter(',');
  std::vector<std::string> names{"plate"};
  for (auto &[name, stage] : stages)
    names.push_back(name);
  command->add_option("--emit", arguments->emit, "Stop at a stage and write its text")->check(CLI::IsMember(names));
  command->add_option("--disable-pass", arguments->compile.pipeline.disabled, "Leave out a pass, by name");
  command->add_option("--print-after", arguments->printAfter, "Print the graph to stderr after a pass, by name, or 'all'");
  command->add_flag("--time-passes", arguments->timing, "Print the time each pass took to stderr");
  command->callback([arguments, &exitCode] {
    arguments->compile.instrument = [arguments](mlir::PassManager &manager) {
      if (arguments->timing)
        manager.enableTiming();
      if (arguments->printAfter.empty())
        return;
      manager.getContext()->disableMultithreading();
      manager.enableIRPrinting(
          [](mlir::Pass *, mlir::Operation *) { return false; },
          [arguments](mlir::Pass *pass, mlir::Operation *) {
            return llvm::is_contained(arguments->printAfter, "all") ||
                   llvm::is_contained(arguments->printAfter, pass->getArgument().str());
          },
          /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false, /*printAfterOnlyOnFailure=*/false, llvm::errs());
    };
    exitCode = run(*arguments);
  });
}

} // namespace burin::cli
