#include "tools/burin/verify/GraphCut.h"
#include "ir/dialect/Burin.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace mlir;

namespace burin::cli {
namespace {

class Cutter {
public:
  Cutter(ArrayRef<Operation *> ops, ArrayRef<Value> outputs)
      : ops(ops), outputs(outputs), inside(ops.begin(), ops.end()) {
    for (Operation *op : ops)
      for (Value v : op->getOperands())
        need(v);
    for (Value v : outputs)
      need(v);
  }

  GraphCut cut() {
    MLIRContext *context = outputs.front().getContext();
    OpBuilder b(context);
    mlir::Location loc = outputs.front().getLoc();
    GraphCut result{ModuleOp::create(loc), inputs.takeVector(), {}};
    result.symbols = hiddenSymbols(result.inputs);
    SmallVector<Type> types;
    for (Value v : result.inputs)
      types.push_back(v.getType());
    for (const std::string &symbol : result.symbols)
      types.push_back(ir::tensorType(context, {DType::i8, {Dim(symbol)}}));
    b.setInsertionPointToStart(result.module->getBody());
    auto main = func::FuncOp::create(b, loc, "main", b.getFunctionType(types, ValueRange(outputs).getTypes()));
    Block *body = main.addEntryBlock();
    IRMapping map;
    for (auto [v, argument] : llvm::zip(result.inputs, body->getArguments())) {
      argument.setLoc(v.getLoc());
      map.map(v, argument);
    }
    name(main, result);
    b.setInsertionPointToStart(body);
    for (Operation *constant : constants)
      b.clone(*constant, map);
    for (Operation *op : ops) {
      b.clone(*op, map);
      if (auto scan = dyn_cast<ir::ScanOp>(op))
        result.module->push_back(scan.body()->clone());
    }
    SmallVector<Value> results;
    for (Value v : outputs)
      results.push_back(map.lookup(v));
    func::ReturnOp::create(b, loc, results);
    return result;
  }

private:
  void need(Value v) {
    Operation *op = v.getDefiningOp();
    if (op && inside.contains(op))
      return;
    if (op && isa<ir::ConstantOp>(op))
      constants.insert(op);
    else
      inputs.insert(v);
  }

  std::vector<std::string> hiddenSymbols(ArrayRef<Value> inputs) {
    std::set<std::string> symbols;
    auto add = [&](const Shape &shape) {
      for (const Dim &size : shape)
        for (const Dim::Symbol &symbol : size.symbols())
          symbols.insert(symbol.name);
    };
    for (Value v : inputs)
      add(ir::shapeOf(v));
    auto addAll = [&](Operation *op) {
      for (Value v : op->getResults())
        add(ir::shapeOf(v));
      if (ir::opInfo(op))
        for (const ir::Attr &attr : ir::attrsOf(op))
          if (auto *shape = std::get_if<Shape>(&attr))
            add(*shape);
    };
    for (Operation *op : ops) {
      addAll(op);
      if (auto scan = dyn_cast<ir::ScanOp>(op))
        cast<func::FuncOp>(scan.body()).getBody().walk(addAll);
    }
    for (Value v : inputs)
      for (const Dim &size : ir::shapeOf(v))
        if (auto symbol = size.symbol())
          symbols.erase(symbol->name);
    for (Operation *op : ops)
      if (auto size = ir::newSizeOf(op))
        symbols.erase(size->str());
    return {symbols.begin(), symbols.end()};
  }

  static std::string nameOf(Value v) {
    auto argument = dyn_cast<BlockArgument>(v);
    auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "burin.name") : StringAttr();
    return name ? name.str() : "";
  }

  /// Names the arguments: inputs of the whole graph keep their names, the others are numbered.
  static void name(func::FuncOp main, const GraphCut &cut) {
    auto set = [&](unsigned i, const std::string &name) {
      main.setArgAttr(i, "burin.name", StringAttr::get(main.getContext(), name));
    };
    llvm::StringSet<> taken;
    for (Value v : cut.inputs)
      taken.insert(nameOf(v));
    unsigned argument = 0, number = 0;
    for (Value v : cut.inputs) {
      std::string name = nameOf(v);
      while (name.empty())
        if (std::string next = "in" + std::to_string(number++); taken.insert(next).second)
          name = next;
      set(argument++, name);
    }
    for (const std::string &symbol : cut.symbols)
      set(argument++, "size of " + symbol);
    for (unsigned o = 0; o < main.getNumResults(); ++o)
      main.setResultAttr(o, "burin.name", StringAttr::get(main.getContext(), "out" + std::to_string(o)));
  }

  ArrayRef<Operation *> ops;
  ArrayRef<Value> outputs;
  llvm::DenseSet<Operation *> inside;
  llvm::SetVector<Value, std::vector<Value>> inputs;
  llvm::SetVector<Operation *> constants;
};

} // namespace

GraphCut cutGraph(ArrayRef<Operation *> ops, ArrayRef<Value> outputs) { return Cutter(ops, outputs).cut(); }

std::vector<Operation *> computingOps(func::FuncOp main) {
  std::vector<Operation *> ops;
  for (Operation &op : main.front().without_terminator())
    if (!isa<ir::ConstantOp>(op))
      ops.push_back(&op);
  return ops;
}

func::FuncOp mainOf(ModuleOp module) { return ir::mainFunction(module); }

std::string opAndPlace(Operation *op) {
  std::string place = ir::fileLine(op->getLoc());
  return op->getName().stripDialect().str() + (place.empty() ? "" : " at " + place);
}

} // namespace burin::cli
