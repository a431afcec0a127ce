// Reads graphs from files, for the commands that compile or print them.
#pragma once
#include "burin/graph/graph.h"
#include "codegen/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <CLI/CLI.hpp>
#include <string>

namespace burin::cli {

/// Import options for ONNX models: --fix, --dim, --range and --shape. They are rejected for other graphs.
struct ImportArguments {
  std::vector<std::string> fixed = {}, dims = {}, ranges = {}, shapes = {};
  bool warns = false; // prints import warnings to stderr

  void addTo(CLI::App &command);
};

/// A graph with its MLIR context. Diagnostics are collected, so that a command prints one short message.
class Model {
public:
  Model();

  /// Returns kOk, or another exit code after a message on stderr.
  int read(const std::string &path, const ImportArguments &arguments = {});
  /// Compiles the graph to an artifact in `out`; consumes the module. Returns as `read` does.
  int compile(const codegen::CompileOptions &options, std::vector<std::byte> &out);
  /// Prints every problem that prevents compilation, one per line, or that there is none. Returns kOk or another exit
  /// code.
  int check(const std::string &path, const ImportArguments &arguments, const codegen::CompileOptions &options);
  /// Writes the traced graph as an ONNX model. `wayOut` is the advice printed if the file cannot be written.
  int saveOnnx(const std::string &path, const std::string &wayOut, const std::string &function = "");

  /// Runs `step`, which may emit diagnostics. Returns kOk; kUnsupported after a message if it failed; or kInternal,
  /// with the path of a reproducer, if it failed without a diagnostic. A crash inside also writes a reproducer, and
  /// ends the process with kInternal.
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

/// Returns kOk, or after a message kUsage, or kUnsupported for "native" on a processor that is too old.
int checkTargets(const std::vector<std::string> &names);

} // namespace burin::cli
