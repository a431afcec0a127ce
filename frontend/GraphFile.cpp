// Graphs as files: MLIR bytecode, or MLIR text.
#include "frontend/GraphData.h"
#include "frontend/Scope.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Archive.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace burin {

void Graph::save(const std::string &path, Location where) const {
  std::string bytes;
  {
    std::lock_guard lock(data->mutex);
    llvm::raw_string_ostream out(bytes);
    if (mlir::failed(mlir::writeBytecodeToFile(*data->module, out, mlir::BytecodeWriterConfig("burin " BURIN_VERSION))))
      throw Error(detail::inScope(where), "save", "internal error: " + data->takeDiagnostics());
  }
  rt::Status status = rt::writeFile(path, std::as_bytes(std::span(bytes)));
  if (!status.ok())
    throw Error(detail::inScope(where), "save", status.message());
}

static std::string firstLines(const std::string &text, int lines) {
  size_t end = 0;
  for (int i = 0; i < lines && end != std::string::npos; ++i)
    end = text.find('\n', end + (i > 0));
  return text.substr(0, end);
}

/// The name of an input or output, or a default where the file has none.
static std::string nameOf(mlir::Attribute attribute, const char *stem, size_t index, size_t count) {
  if (auto name = llvm::dyn_cast_or_null<mlir::StringAttr>(attribute); name && !name.empty())
    return name.str();
  return count == 1 ? stem : stem + std::to_string(index);
}

/// Reads the signature; returns what is wrong with it, or "".
static std::string readSignature(Graph::Data &graph) {
  auto main = graph.module->lookupSymbol<mlir::func::FuncOp>("main");
  if (!main || main.isExternal())
    return "it has no function @main";
  if (main.getNumResults() == 0)
    return "@main has no results";
  for (unsigned i = 0; i < main.getNumArguments() + main.getNumResults(); ++i) {
    bool isInput = i < main.getNumArguments();
    unsigned index = isInput ? i : i - main.getNumArguments();
    mlir::Type type = isInput ? main.getArgument(index).getType() : main.getResultTypes()[index];
    std::string problem;
    auto spec = ir::trySpecOf(type, problem);
    if (!spec)
      return "an input or output of @main " + problem;
    mlir::Attribute name = isInput ? main.getArgAttr(index, "burin.name") : main.getResultAttr(index, "burin.name");
    auto &list = isInput ? graph.inputs : graph.outputs;
    list.push_back({nameOf(name, isInput ? "x" : "y", index, isInput ? main.getNumArguments() : main.getNumResults()),
                    std::move(*spec)});
  }
  return "";
}

Graph Graph::load(const std::string &path, Location where) {
  const Location &place = detail::inScope(where);
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true,
                                          /*IsVolatile=*/false, llvm::Align(64)); // weights are used in place
  if (!file)
    throw Error(place, "load", "cannot read \"" + path + "\": " + file.getError().message());
  auto graph = std::make_shared<Data>();
  auto sources = std::make_shared<llvm::SourceMgr>(); // owns the file; weights refer to it
  sources->AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  mlir::ParserConfig config(&graph->context);
  graph->module = mlir::parseSourceFile<mlir::ModuleOp>(sources, config);
  bool isValid = graph->module && mlir::succeeded(ir::verifyTensorTypes(*graph->module));
  std::string problem = isValid ? readSignature(*graph) : firstLines(graph->takeDiagnostics(), 3);
  if (!problem.empty() || !isValid)
    throw Error(place, "load", "\"" + path + "\" is not a graph that burin " BURIN_VERSION " can read: " + problem);
  return Graph(std::move(graph));
}

} // namespace burin
