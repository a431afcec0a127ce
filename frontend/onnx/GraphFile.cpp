// Reading and writing of graph files.
#include "ir/dialect/GraphFile.h"
#include "frontend/onnx/export/Export.h"
#include "frontend/onnx/import/Import.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/GraphData.h"
#include "runtime/format/Archive.h"
#include "llvm/ADT/StringExtras.h"

namespace burin {

static mlir::func::FuncOp functionOf(const Graph::Data &graph, size_t index) {
  return graph.module.get().lookupSymbol<mlir::func::FuncOp>(graph.functions[index].name);
}

void Graph::save(const std::string &path, Location where) const {
  std::unique_lock lock(data->mutex);
  detail::refuseToSave(data->hostFunctions, detail::inScope(where));
  if (path.ends_with(".onnx") && data->functions.size() > 1 && !chosen)
    throw Error(detail::inScope(where), "save",
                "an ONNX model holds one function, but this graph has " + llvm::join(functions(), ", ") +
                    "\n  save one: graph.function(\"" + data->functions[0].name + "\").save(\"" + path +
                    "\"); .burin files and artifacts hold all");
  if (path.ends_with(".onnx"))
    return onnx::exportModel(functionOf(*data, chosen.value_or(0)), path, detail::inScope(where));
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

/// The name of an input or output; a default if the file has none.
static std::string nameOf(mlir::Attribute attribute, const char *stem, size_t index, size_t count) {
  if (auto name = llvm::dyn_cast_or_null<mlir::StringAttr>(attribute); name && !name.empty())
    return name.str();
  return count == 1 ? stem : stem + std::to_string(index);
}

/// Reads the signature of a function. Returns a description of the problem with it, or "".
static std::string readSignature(mlir::func::FuncOp function, Graph::Data::Signature &signature) {
  signature.name = function.getName().str();
  unsigned arguments = function.getNumArguments(), results = function.getNumResults();
  if (function.isExternal() || results == 0)
    return "@" + signature.name + (results == 0 ? " has no results" : " has no body");
  for (unsigned i = 0; i < arguments + results; ++i) {
    bool isInput = i < arguments;
    unsigned index = isInput ? i : i - arguments;
    mlir::Type type = isInput ? function.getArgument(index).getType() : function.getResultTypes()[index];
    std::string problem;
    auto spec = ir::trySpecOf(type, problem);
    if (!spec)
      return "an input or output of @" + signature.name + " " + problem;
    auto attribute = [&](llvm::StringRef name) {
      return isInput ? function.getArgAttr(index, name) : function.getResultAttr(index, name);
    };
    if (attribute(ir::kStateAttr))
      continue; // callers neither pass nor receive states
    auto &list = isInput ? signature.inputs : signature.outputs;
    std::string name = nameOf(attribute("burin.name"), isInput ? "x" : "y", index, isInput ? arguments : results);
    list.push_back({std::move(name), std::move(*spec)});
  }
  return "";
}

static std::string readSignatures(Graph::Data &graph) {
  for (mlir::func::FuncOp function : ir::publicFunctions(*graph.module))
    if (std::string problem = readSignature(function, graph.functions.emplace_back()); !problem.empty())
      return problem;
  return graph.functions.empty() ? "it has no public function" : "";
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
  std::string reason = graph->module ? readSignatures(*graph) : firstLines(graph->takeDiagnostics(), 3);
  if (!reason.empty() || !graph->module)
    throw Error(place, "load", "\"" + path + "\" is not a graph that burin " BURIN_VERSION " can read: " + reason);
  return Graph(std::move(graph));
}

} // namespace burin
