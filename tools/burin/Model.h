// A graph out of a file, for the commands that compile or look at one.
#pragma once
#include "burin/graph.h"
#include "codegen/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <CLI/CLI.hpp>
#include <string>

namespace burin::cli {

/// How to read an ONNX model: the values of --fix, --dim and --range. For other graphs there must be none.
struct ImportArguments {
  std::vector<std::string> fixed = {}, dims = {}, ranges = {};
  bool warns = false; // to stderr

  void addTo(CLI::App &command);
};

/// A graph and its context. What MLIR reports is kept, so that a command prints one short message.
class Model {
public:
  Model();

  /// kOk, or an exit code after a message on stderr.
  int read(const std::string &path, const ImportArguments &arguments = {});
  /// The same for the artifact, in `out`. The module is consumed.
  int compile(const codegen::CompileOptions &options, std::vector<std::byte> &out);
  /// Prints all that keeps a model from being compiled, one problem a line, or that nothing does. kOk, or an exit code.
  int check(const std::string &path, const ImportArguments &arguments, const codegen::CompileOptions &options);
  /// Writes the traced graph as an ONNX model. `wayOut` is for files that cannot be written.
  int saveOnnx(const std::string &path, const std::string &wayOut);

  /// Runs `step`, which may report problems. kOk; kUnsupported after a message if it failed; kInternal, with the path
  /// of a reproducer, if it failed without saying why. A crash inside ends the process like the last.
  int attempt(const char *what, llvm::function_ref<bool()> step);

  mlir::ModuleOp module() { return *graph; }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  std::shared_ptr<Graph::Data> imported; // owns the context of an imported graph
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  std::string path;
  std::vector<std::string> problems;

  void keepProblems(mlir::MLIRContext &from);
  int readOnnx(const ImportArguments &arguments);
  int failWithProblems(int code, const std::string &headline, const std::string &advice);
};

/// kOk, or kUsage (kUnsupported: "native" on an old processor) after a message.
int checkTargets(const std::vector<std::string> &names);

} // namespace burin::cli
