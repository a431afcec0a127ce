#include "tools/burin/model/Execute.h"
#include "codegen/target/Precision.h"
#include "tools/burin/Commands.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/FileKind.h"
#include "tools/burin/model/Model.h"
#include "tools/common/Runner.h"

namespace burin::cli {

int artifactOf(const run::Options &run, const codegen::CompileOptions &options, std::vector<std::byte> &out) {
  if (kindOf(run.model) == FileKind::Artifact)
    return run.fixed.empty() ? kOk : fail(kUsage, "--fix is for ONNX models, which are compiled with it");
  Model model;
  int code = model.read(run.model, {.fixed = run.fixed});
  return code ? code : model.compile(options, out);
}

int InputArguments::moveTo(run::Options &out) const {
  for (const std::string &input : inputs) {
    size_t equals = input.find('=');
    if (equals == 0 || equals == input.npos || equals + 1 == input.size())
      return fail(kUsage, "--input needs NAME=@FILE.npy or NAME=NUMBER, got '" + input + "'");
    out.readArray = readArray;
    out.inputs.emplace_back(input.substr(0, equals), input.substr(equals + 1));
  }
  return parseDims(dims, out.dims);
}

/// burin run: burin-run for graphs too, with the same options and output.
static int runCommand(const std::vector<std::string> &arguments) {
  run::Parsed parsed =
      run::parseOptions("burin run", "model.plate|.onnx|.burin|.mlir", {arguments.begin(), arguments.end()});
  if (!parsed.options)
    return parsed.exitCode;
  parsed.options->readArray = readArray;
  std::vector<std::byte> artifact;
  codegen::CompileOptions options;
  if (parsed.options->device.starts_with("cuda"))
    options.targets = {codegen::gpuTarget(8, 0, codegen::matmulPrecision())};
  if (int code = artifactOf(*parsed.options, options, artifact))
    return code;
  return run::Runner(*parsed.options).runAll(artifact);
}

void addRun(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("run", "Run an artifact, or a graph, which is compiled first");
  command->set_help_flag();
  command->prefix_command(); // passes all further arguments through to burin-run's own parser
  command->callback([command, &exitCode] { exitCode = runCommand(command->remaining()); });
}

} // namespace burin::cli
