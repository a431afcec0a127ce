// burin inspect for graphs: signature, op counts, weights.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tools/burin/Commands.h"
#include "tools/burin/Table.h"
#include "tools/burin/inspect/Inspect.h"
#include "tools/burin/model/Model.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using llvm::json::Array;
using llvm::json::Object;

namespace burin::cli {
namespace {

struct Entry {
  std::string name, type, source;
  uint64_t bytes = 0;
};
struct GraphFacts {
  std::vector<Entry> inputs, outputs, weights;
  std::map<std::string, int64_t> ops;
};

std::string nameOf(Attribute attribute, const char *stem, unsigned i) {
  auto name = dyn_cast_or_null<StringAttr>(attribute);
  return name ? name.str() : stem + std::to_string(i);
}

GraphFacts factsOf(func::FuncOp main) {
  GraphFacts facts;
  for (BlockArgument argument : main.getArguments()) {
    unsigned i = argument.getArgNumber();
    facts.inputs.push_back({nameOf(main.getArgAttr(i, "burin.name"), "input", i), str(ir::specOf(argument)),
                            ir::fileLine(argument.getLoc())});
  }
  for (auto [i, value] : llvm::enumerate(main.front().getTerminator()->getOperands()))
    facts.outputs.push_back({nameOf(main.getResultAttr(i, "burin.name"), "output", i), str(ir::specOf(value)),
                             ir::fileLine(value.getLoc())});
  main->getParentOfType<ModuleOp>().walk([&](Operation *op) { // includes ops in the bodies of loops
    if (op->hasTrait<OpTrait::IsTerminator>() || isa<func::FuncOp, ModuleOp>(op))
      return;
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      TensorSpec spec = ir::specOf(constant.getResult());
      uint64_t bytes = byteWidth(spec.dtype);
      for (const Dim &size : spec.shape)
        bytes *= uint64_t(size.value());
      facts.weights.push_back({constant.getName().value_or("").str(), str(spec), ir::fileLine(op->getLoc()), bytes});
    } else {
      ++facts.ops[op->getName().stripDialect().str()];
    }
  });
  return facts;
}

void print(const std::string &path, const GraphFacts &facts) {
  int64_t count = 0;
  Table ops({"count", "op"}, 1);
  for (auto &[name, n] : facts.ops)
    ops.row({std::to_string(n), name}), count += n;
  std::printf("%s: graph\n", path.c_str());
  Table signature({"", "name", "type", "source"});
  for (const Entry &e : facts.inputs)
    signature.row({"input", e.name, e.type, e.source});
  for (const Entry &e : facts.outputs)
    signature.row({"output", e.name, e.type, e.source});
  signature.print("signature");
  ops.print("ops: " + std::to_string(count));
  uint64_t bytes = 0;
  Table weights({"bytes", "type", "name", "source"}, 1);
  for (const Entry &e : facts.weights)
    weights.row({std::to_string(e.bytes), e.type, e.name, e.source}), bytes += e.bytes;
  weights.print("weights: " + std::to_string(facts.weights.size()) + ", " + std::to_string(bytes) + " bytes");
}

Array jsonOf(const std::vector<Entry> &entries, bool bytes) {
  Array out;
  for (const Entry &e : entries) {
    Object entry{{"name", e.name}, {"type", e.type}, {"source", e.source}};
    if (bytes)
      entry["bytes"] = e.bytes;
    out.push_back(std::move(entry));
  }
  return out;
}

} // namespace

int inspectGraph(const std::string &path, bool json) {
  Model model;
  if (int code = model.read(path))
    return code;
  GraphFacts facts = factsOf(ir::mainFunction(model.module()));
  if (!json) {
    print(path, facts);
    return kOk;
  }
  Object ops;
  for (auto &[name, n] : facts.ops)
    ops[name] = n;
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(Object{{"file", path},
                                                                    {"kind", "graph"},
                                                                    {"inputs", jsonOf(facts.inputs, false)},
                                                                    {"outputs", jsonOf(facts.outputs, false)},
                                                                    {"ops", std::move(ops)},
                                                                    {"weights", jsonOf(facts.weights, true)}}));
  return kOk;
}

} // namespace burin::cli
