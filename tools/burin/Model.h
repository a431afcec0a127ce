// A graph out of a file, for the commands that compile or look at one.
#pragma once
#include "burin/graph.h"
#include "codegen/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace burin::cli {

/// A graph and its context. What MLIR reports is kept, so that a command prints one short message.
class Model {
public:
  Model();

  /// kOk, or an exit code after a message on stderr. `fixed`: see FixedInputs.
  int read(const std::string &path, const std::vector<std::string> &fixed = {});
  /// The same for the artifact, in `out`. The module is consumed.
  int compile(const codegen::CompileOptions &options, std::vector<std::byte> &out);
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
  int readOnnx(const std::vector<std::string> &fixed);
  int failWithProblems(int code, const std::string &headline, const std::string &advice);
};

/// kOk, or kUsage (kUnsupported: "native" on an old processor) after a message.
int checkTargets(const std::vector<std::string> &names);

} // namespace burin::cli
