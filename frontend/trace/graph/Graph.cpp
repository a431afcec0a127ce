#include "burin/graph/graph.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <ostream>

namespace burin {

using detail::inScope;

Graph::Data::Data() {
  ir::loadDialects(context);
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return;
    std::string place = ir::fileLine(diagnostic.getLocation());
    diagnostics += (diagnostics.empty() ? "" : "\n") + (place.empty() ? "" : place + ": ") + diagnostic.str();
  });
}
Graph::Data::~Data() = default;

std::string str(const NamedSpec &named) { return named.name + ": " + str(named.spec); }

const std::vector<NamedSpec> &Graph::inputs() const { return data->functions[chosen.value_or(0)].inputs; }
const std::vector<NamedSpec> &Graph::outputs() const { return data->functions[chosen.value_or(0)].outputs; }

std::vector<std::string> Graph::functions() const {
  std::vector<std::string> names;
  for (const Data::Signature &function : data->functions)
    names.push_back(function.name);
  return names;
}

Graph Graph::function(const std::string &name, Location where) const {
  for (size_t i = 0; i < data->functions.size(); ++i)
    if (data->functions[i].name == name)
      return Graph(data, i, place);
  throw Error(inScope(where), "function",
              "the graph has no function \"" + name + "\"; it has " + llvm::join(functions(), ", "));
}

Device Graph::device() const { return place.value_or(data->device.value_or(cpu)); }
Graph Graph::to(Device device) const { return Graph(data, chosen, device); }

std::string Graph::str() const {
  std::lock_guard lock(data->mutex);
  std::string text;
  llvm::raw_string_ostream out(text);
  data->module->print(out, mlir::OpPrintingFlags().elideLargeElementsAttrs(64).elideLargeResourceString(64));
  return text;
}
void Graph::print(std::ostream &out) const { out << str(); }

Graph detail::trace(const Function &function, std::span<const TensorSpec> inputs, std::vector<std::string> inputNames,
                    std::vector<std::string> outputNames, const TensorNames &names, const Location &where) {
  const Location &place = inScope(where);
  std::vector<Trace::Input> traced;
  for (const TensorSpec &spec : inputs)
    traced.push_back({spec});
  Escapes escapes;
  auto record = [&] {
    Trace trace(traced, std::move(inputNames), names, place);
    trace.isGraphOnly = true;
    trace.runInScope(place);
    Trace::Recording recording(trace);
    EnableGrad on; // gradients of the function do not depend on where it is traced
    std::vector<Tensor> results = function(trace.inputs(), place);
    escapes = trace.takeEscapes();
    return trace.finish(results, std::move(outputNames), place);
  };
  Graph graph = record();
  escapes.refuse("trace", place);
  return graph;
}

std::vector<Tensor> Graph::run(std::span<const Tensor> inputs, Location where) const {
  const int number = device().is_cuda() ? device().index() : -1;
  std::shared_ptr<const Artifact> native;
  {
    std::lock_guard lock(data->mutex);
    native = data->native[number];
  }
  if (!native) { // two threads may both get here; one result is dropped
    native = std::make_shared<Artifact>(compile(*this, {}, where));
    std::lock_guard lock(data->mutex);
    data->native[number] = native;
  }
  return native->function(data->functions[chosen.value_or(0)].name).run(inputs, where);
}

} // namespace burin
