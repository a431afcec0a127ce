#include "tools/burin/Model.h"
#include "ir/Burin.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace burin::cli {

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>();
  ir::loadDialects(*context);
  context->printOpOnDiagnostic(false);
  context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    std::string place = ir::fileLine(diagnostic.getLocation());
    const char *kind = diagnostic.getSeverity() == DiagnosticSeverity::Error ? "error" : "note";
    llvm::errs() << "burin: " << kind << ": " << (place.empty() ? "" : place + ": ") << diagnostic.str() << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << "  " << note.str() << "\n";
    return success();
  });
  return context;
}

OwningOpRef<ModuleOp> readGraph(MLIRContext &context, const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) {
    llvm::errs() << "burin: error: cannot read '" << path << "': " << file.getError().message()
                 << "\n  give the path of a graph: model.burin, or model.mlir\n";
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}

} // namespace burin::cli
