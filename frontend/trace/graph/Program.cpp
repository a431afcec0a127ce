#include "burin/graph/program.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include "llvm/ADT/StringExtras.h"

namespace burin {

using namespace detail;

struct Program::Data {
  struct Function {
    std::unique_ptr<Trace> trace;
    Location where;
  };
  std::shared_ptr<Graph::Data> graph = std::make_shared<Graph::Data>();
  TensorNames names;
  std::vector<Function> functions;
  std::optional<Graph> made;
  Escapes escapes; // of its traces
};

Program::Program() : data(std::make_unique<Data>()) {}
Program::Program(TensorNames names) : Program() { data->names = std::move(names); }
Program::~Program() = default;
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;

static void checkName(const std::string &name, const Graph::Data &graph, const Location &where) {
  bool isPlain = !name.empty() && llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!isPlain || llvm::isDigit(name[0]))
    throw Error(where, "add", "\"" + name + "\" is no name for a function: use letters, digits and underscores");
  if (mlir::ModuleOp module = graph.module.get(); module && module.lookupSymbol(name))
    throw Error(where, "add", "the program has a function \"" + name + "\" already");
}

void Program::record(std::string name, const Function &function, std::span<const TensorSpec> inputs,
                     std::vector<std::string> inputNames, std::vector<std::string> outputNames, TensorNames names,
                     const Location &where) {
  const Location place = inScope(where);
  if (data->made)
    throw Error(place, "add", "graph() has been called; make a new Program for other functions");
  checkName(name, *data->graph, place);
  std::vector<Trace::Input> traced;
  for (const TensorSpec &spec : inputs)
    traced.push_back({spec});
  names.insert(names.end(), data->names.begin(), data->names.end());
  auto trace = std::make_unique<Trace>(data->graph, std::move(name), traced, std::move(inputNames), names, place);
  trace->isGraphOnly = true;
  trace->runInScope(place);
  try {
    Trace::Recording recording(*trace);
    EnableGrad on;
    trace->setResults(function(trace->inputs(), place), std::move(outputNames), place);
  } catch (...) {
    trace->discard();
    throw;
  }
  data->functions.push_back({std::move(trace), place});
}

Graph Program::graph(Location where) {
  const Location place = inScope(where);
  if (data->made) {
    data->escapes.refuse("graph", place);
    return *data->made;
  }
  if (data->functions.empty())
    throw Error(place, "graph", "the program has no function; add one");
  std::vector<std::shared_ptr<Cell>> set;
  for (const Data::Function &function : data->functions)
    llvm::append_range(set, function.trace->cellsSet());
  for (Data::Function &function : data->functions) {
    function.trace->unstable = set;
    function.trace->close(function.where);
    data->escapes.append(function.trace->takeEscapes());
  }
  data->functions.clear();
  data->made = Trace::verified(data->graph, place);
  data->escapes.refuse("graph", place);
  return *data->made;
}

} // namespace burin
