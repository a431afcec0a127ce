// Graphs to and from files.
#include "ir/dialect/GraphFile.h"
#include "frontend/onnx/export/Export.h"
#include "frontend/onnx/import/Import.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/GraphData.h"
#include "runtime/format/Archive.h"

namespace burin {

void Graph::save(const std::string &path, Location where) const {
  std::unique_lock lock(data->mutex);
  if (path.ends_with(".onnx"))
    return onnx::exportModel(*data->module, path, detail::inScope(where));
  auto bytes = ir::writeGraph(*data->module, "burin " BURIN_VERSION);
  if (mlir::failed(bytes))
    throw Error(detail::inScope(where), "save", "internal error: " + data->takeDiagnostics());
  lock.unlock();
  rt::Status status = rt::writeFile(path, std::as_bytes(std::span(*bytes)));
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
    if (isInput ? main.getArgAttr(index, ir::kStateAttr) : main.getResultAttr(index, ir::kStateAttr))
      continue; // no caller passes or gets states
    auto &list = isInput ? graph.inputs : graph.outputs;
    list.push_back({nameOf(name, isInput ? "x" : "y", index, isInput ? main.getNumArguments() : main.getNumResults()),
                    std::move(*spec)});
  }
  return "";
}

Graph Graph::load(const std::string &path, Location where) {
  const Location &place = detail::inScope(where);
  if (onnx::isModelFile(path))
    return onnx::importModel(path, {}, place);
  auto graph = std::make_shared<Data>();
  ir::GraphFileProblem problem;
  graph->module = ir::readGraph(path, graph->context, problem);
  if (!problem.what.empty())
    throw Error(place, "load", "cannot read \"" + path + "\": " + problem.what + "\n  " + problem.advice);
  std::string reason = graph->module ? readSignature(*graph) : firstLines(graph->takeDiagnostics(), 3);
  if (!reason.empty() || !graph->module)
    throw Error(place, "load", "\"" + path + "\" is not a graph that burin " BURIN_VERSION " can read: " + reason);
  return Graph(std::move(graph));
}

} // namespace burin
