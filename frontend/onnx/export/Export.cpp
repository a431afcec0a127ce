#include "frontend/onnx/export/Export.h"
#include "frontend/onnx/export/Emitter.h"
#include "frontend/onnx/import/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/format/Archive.h"
#include <algorithm>
#include <unordered_map>

namespace burin::onnx {

namespace {

const ExportRule *findRule(std::string_view op) {
  static const auto rules = [] {
    std::unordered_map<std::string_view, const ExportRule *> byName;
    for (auto family : {elementwiseExports(), neuralExports(), randomExports(), reductionExports(), selectionExports(),
                        shapeExports()})
      for (const ExportRule &rule : family)
        byName.emplace(rule.op, &rule);
    return byName;
  }();
  auto at = rules.find(op);
  return at == rules.end() ? nullptr : at->second;
}

/// The operator that the op's definition names.
Refs oneToOne(const OpEmitter &e) {
  if (e.info.elementwise)
    return {e.same(e.broadcasting())};
  Refs inputs;
  for (size_t i = 0; i < e.operands.size(); ++i)
    inputs.push_back(e.in(i));
  return {e.same(inputs)};
}

class GraphExporter {
public:
  explicit GraphExporter(mlir::func::FuncOp main) : main(main) {}

  const OutModel &run(const std::string &name, const Location &where) {
    graph.model.name = name;
    nameValues();
    for (mlir::Operation &op : main.front().without_terminator())
      attempt(&op, [&] { bind(&op, emit(&op)); });
    mlir::Operation *end = main.front().getTerminator();
    for (auto [i, value] : llvm::enumerate(end->getOperands()))
      attempt(end, [&, i = i, value = value] { output(outputs[i], value); });
    if (!problems.empty())
      throw Unsupported(where, "save", "ONNX cannot express:" + problems);
    rename();
    return graph.model;
  }

private:
  mlir::func::FuncOp main;
  GraphEmitter graph;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> renamed; // results that are outputs of the graph
  std::string problems;
  int count = 0;

  /// Names inputs, outputs and parameters first, so that they keep their names. State s is input s.in and output s.out.
  void nameValues() {
    auto named = [&](mlir::DictionaryAttr attributes, const char *stem, const char *ofState) {
      if (auto state = attributes ? attributes.getAs<mlir::FlatSymbolRefAttr>(ir::kStateAttr) : nullptr)
        return graph.nameFor(state.getValue().str() + ofState);
      auto text = attributes ? attributes.getAs<mlir::StringAttr>("burin.name") : mlir::StringAttr();
      return graph.nameFor(text && !text.empty() ? text.str() : stem);
    };
    for (mlir::BlockArgument argument : main.getArguments()) {
      Ref input{named(main.getArgAttrDict(argument.getArgNumber()), "x", ".in"), ir::dtypeOf(argument)};
      graph.model.inputs.push_back({input.name, ir::specOf(argument)});
      graph.bind(argument, input);
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      outputs.push_back(named(main.getResultAttrDict(i), "y", ".out"));
    for (auto constant : main.front().getOps<ir::ConstantOp>())
      if (auto name = constant.getName())
        graph.parameters[constant] = graph.nameFor(name->str());
  }

  /// Runs `step` and stores the error of an op without an ONNX form. Ops that depend on it are not reported.
  template <class F> void attempt(mlir::Operation *op, F &&step) {
    constexpr int kMost = 20;
    graph.doc = ir::fileLine(op->getLoc());
    try {
      step();
    } catch (const NoOnnxForm &problem) {
      std::string place = graph.doc.empty() ? "" : graph.doc + ": ";
      if (++count <= kMost)
        problems += "\n  " + place + op->getName().getStringRef().str() + ": " + problem.reason;
      else if (count == kMost + 1)
        problems += "\n  … and more";
      for (mlir::Value result : op->getResults())
        graph.bind(result, {"?", ir::dtypeOf(result)});
    }
  }

  Refs emit(mlir::Operation *op) {
    // Constants and broadcasts are created on use. ONNX has no prints.
    if (mlir::isa<ir::ConstantOp, ir::BroadcastToOp, ir::FullOp, ir::DebugPrintOp>(op))
      return {};
    if (auto scan = mlir::dyn_cast<ir::ScanOp>(op))
      return loop(scan);
    if (auto branch = mlir::dyn_cast<ir::IfOp>(op))
      return ifElse(branch);
    if (auto loop = mlir::dyn_cast<ir::WhileOp>(op))
      return whileLoop(loop);
    const ir::OpInfo *info = ir::opInfo(op);
    const ExportRule *rule = info ? findRule(info->name) : nullptr;
    if (!rule && (!info || onnxName(info->name).empty()))
      throw NoOnnxForm{"there is no such operator; save the traced graph, not one that passes have changed"};
    OpEmitter emitter(graph, op, rule ? rule->computedIn : inSingle);
    return rule && rule->emit ? rule->emit(emitter) : oneToOne(emitter);
  }

  /// ONNX's Scan splits along a dimension and returns only the final states; the states before them become an output.
  Refs loop(ir::ScanOp scan) {
    auto function = mlir::cast<mlir::func::FuncOp>(scan.body());
    auto states = unsigned(scan.getStates());
    std::shared_ptr<OutModel> body = graph.subgraph(function.getName().str(), [&] { emitBody(scan, function); });
    Refs inputs;
    for (unsigned i = 0; i < states; ++i)
      inputs.push_back(graph.valueOf(scan.getInputs()[i]));
    for (unsigned i = states; i < scan.firstWhole(); ++i) {
      Shape shape = ir::shapeOf(scan.getInputs()[i]), part = ir::shapeOf(function.getArgument(i));
      part.insert(part.begin(), scan.partCount());
      inputs.push_back(graph.reshape(graph.valueOf(scan.getInputs()[i]), shape, part));
    }
    std::vector<int64_t> in(size_t(scan.getSliced()), scan.getReverse()), out(scan.getNumResults(), scan.getReverse());
    std::fill_n(out.begin(), states, 0);
    Refs given = graph.nodes("Scan", inputs, states + scan.getNumResults(),
                             {{"body", body},
                              {"num_scan_inputs", int64_t(scan.getSliced())},
                              {"scan_input_directions", in},
                              {"scan_output_directions", out}});
    Refs results;
    for (unsigned i = 0; i < scan.getNumResults(); ++i) {
      Shape parts = ir::shapeOf(scan.getResult(i)), stacked = ir::specOf(function.getResultTypes()[i]).shape;
      stacked.insert(stacked.begin(), scan.partCount());
      if (i < states)
        parts[0] = scan.partCount() * stacked[1];
      Ref all{given[states + i].name, ir::dtypeOf(scan.getResult(i))};
      all = graph.reshape(all, stacked, parts);
      results.push_back(i < states ? graph.node("Concat", {inputs[i], all}, {{"axis", int64_t(0)}}, all.dtype) : all);
    }
    return results;
  }

  /// The states and results of one iteration: the new states also as outputs.
  void emitBody(ir::ScanOp scan, mlir::func::FuncOp function) {
    for (mlir::BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (i >= scan.firstWhole()) {
        graph.bind(argument, graph.valueOf(scan.getInputs()[i]));
        continue;
      }
      Ref input{graph.nameFor(i < scan.getStates() ? "state" : "element"), ir::dtypeOf(argument)};
      graph.model.inputs.push_back({input.name, ir::specOf(argument)});
      graph.bind(argument, input);
    }
    for (auto constant : function.front().getOps<ir::ConstantOp>())
      if (auto name = constant.getName())
        graph.parameters[constant] = graph.nameFor(name->str());
    for (mlir::Operation &op : function.front().without_terminator())
      attempt(&op, [&] { bind(&op, emit(&op)); });
    mlir::ValueRange results = function.front().getTerminator()->getOperands();
    auto add = [&](mlir::Value value) {
      Ref copy = graph.node("Identity", {graph.valueOf(value)}, {}, ir::dtypeOf(value));
      graph.model.outputs.push_back({copy.name, ir::specOf(value)});
    };
    for (mlir::Value state : results.take_front(scan.getStates()))
      add(state);
    for (mlir::Value result : results)
      add(result);
  }

  /// Adds the ops of a function, and returns its results. It may be called again with other arguments.
  Refs inlined(mlir::func::FuncOp function, const Refs &arguments) {
    for (auto [argument, ref] : llvm::zip(function.getArguments(), arguments))
      graph.bind(argument, ref);
    for (mlir::Operation &op : function.front().without_terminator()) {
      auto constant = mlir::dyn_cast<ir::ConstantOp>(op);
      if (constant && constant.getName() && !graph.parameters.contains(constant))
        graph.parameters[constant] = graph.nameFor(constant.getName()->str());
      for (mlir::Value result : op.getResults())
        if (!constant)
          graph.unbind(result);
    }
    for (mlir::Operation &op : function.front().without_terminator())
      attempt(&op, [&] { bind(&op, emit(&op)); });
    Refs results;
    for (mlir::Value value : function.front().getTerminator()->getOperands())
      results.push_back(graph.valueOf(value));
    return results;
  }

  /// Makes values outputs of the present subgraph, under names of their own.
  void addOutputs(const Refs &refs, mlir::TypeRange types) {
    for (auto [ref, type] : llvm::zip(refs, types))
      graph.model.outputs.push_back({graph.node("Identity", {ref}, {}, ref.dtype).name, ir::specOf(type)});
  }

  Refs valuesOf(mlir::ValueRange list) {
    Refs refs;
    for (mlir::Value value : list)
      refs.push_back(graph.valueOf(value));
    return refs;
  }

  static Refs typed(Refs refs, mlir::ResultRange results) {
    for (auto [ref, value] : llvm::zip(refs, results))
      ref.dtype = ir::dtypeOf(value);
    return refs;
  }

  /// The branches see the values around them, so the inputs need no counterpart.
  Refs ifElse(ir::IfOp op) {
    const Refs inputs = valuesOf(op.getInputs());
    auto branch = [&](bool condition) {
      auto function = mlir::cast<mlir::func::FuncOp>(op.branch(condition));
      return graph.subgraph(function.getName().str(),
                            [&] { addOutputs(inlined(function, inputs), op.getResultTypes()); });
    };
    OutAttributes branches{{"then_branch", branch(true)}, {"else_branch", branch(false)}};
    return typed(graph.nodes("If", {graph.valueOf(op.getCondition())}, op.getNumResults(), branches), op.getResults());
  }

  /// ONNX's Loop takes the condition before the first iteration, and its body computes the next one.
  Refs whileLoop(ir::WhileOp op) {
    auto condition = mlir::cast<mlir::func::FuncOp>(op.conditionFunction());
    auto turn = mlir::cast<mlir::func::FuncOp>(op.bodyFunction());
    const Refs inputs = valuesOf(op.getInputs());
    const auto carried = std::ptrdiff_t(op.getCarried());
    const Ref first = inlined(condition, inputs).front();
    auto body = graph.subgraph(turn.getName().str(), [&] {
      Refs arguments = inputs;
      graph.model.inputs.push_back({graph.nameFor("iteration"), {DType::i64, {}}});
      graph.model.inputs.push_back({graph.nameFor("condition"), {DType::boolean, {}}});
      for (std::ptrdiff_t i = 0; i < carried; ++i) {
        arguments[size_t(i)].name = graph.nameFor("state");
        graph.model.inputs.push_back({arguments[size_t(i)].name, ir::specOf(turn.getArgument(unsigned(i)))});
      }
      Refs next = inlined(turn, arguments);
      std::copy(next.begin(), next.end(), arguments.begin());
      addOutputs(inlined(condition, arguments), condition.getResultTypes());
      addOutputs(next, op.getResultTypes());
    });
    Refs given{{}, first};
    given.insert(given.end(), inputs.begin(), inputs.begin() + carried);
    return typed(graph.nodes("Loop", given, size_t(carried), {{"body", body}}), op.getResults());
  }

  void bind(mlir::Operation *op, const Refs &refs) {
    for (auto [value, ref] : llvm::zip(op->getResults(), refs)) {
      Ref bound = graph.cast(ref, ir::dtypeOf(value));
      graph.bind(value, bound);
      if (graph.isResult(bound.name))
        graph.model.values.push_back({bound.name, ir::specOf(value)});
    }
  }

  /// Gives the result of a node the name of the output; other values, and results that are outputs already, are copied.
  void output(const std::string &name, mlir::Value value) {
    std::string source = graph.valueOf(value).name;
    graph.model.outputs.push_back({name, ir::specOf(value)});
    if (graph.isResult(source) && renamed.emplace(source, name).second)
      return;
    graph.model.nodes.push_back({"Identity", {source}, {name}, {}, ""});
  }

  void rename() {
    auto apply = [&](std::string &name) {
      if (auto at = renamed.find(name); at != renamed.end())
        name = at->second;
    };
    auto applyIn = [&](auto &self, OutModel &model) -> void {
      for (OutNode &node : model.nodes) {
        std::for_each(node.inputs.begin(), node.inputs.end(), apply);
        std::for_each(node.outputs.begin(), node.outputs.end(), apply);
        for (auto &[name, value] : node.attributes)
          if (auto *graph = std::get_if<std::shared_ptr<OutModel>>(&value))
            self(self, **graph);
      }
    };
    applyIn(applyIn, graph.model);
    std::erase_if(graph.model.values, [&](const OutValue &value) { return renamed.count(value.name); });
  }
};

void check(const rt::Status &status, const Location &where) {
  if (!status.ok())
    throw Error(where, "save", status.message());
}

/// Writes the weights of `external` at their offsets.
rt::Status writeData(const std::string &path, const OutModel &model, const ExternalData &external) {
  static constexpr std::byte zeros[4096] = {};
  std::vector<rt::Bytes> parts;
  uint64_t end = 0;
  for (auto [index, offset] : external.places) {
    rt::Bytes bytes = std::as_bytes(model.initializers[index].bytes);
    parts.push_back(rt::Bytes(zeros).first(offset - end));
    parts.push_back(bytes);
    end = offset + bytes.size();
  }
  return rt::writeFile(path, parts);
}

} // namespace

void exportModel(mlir::func::FuncOp main, const std::string &path, const Location &where, uint64_t maxInline) {
  std::string file = path.substr(path.rfind('/') + 1);
  GraphExporter exporter(main);
  const OutModel &model = exporter.run(file.substr(0, file.rfind('.')), where);
  uint64_t weights = 0;
  for (const OutTensor &tensor : model.initializers)
    weights += tensor.bytes.size();
  std::optional<ExternalData> external;
  if (weights > maxInline) {
    external.emplace(file + ".data", model);
    check(writeData(path + ".data", model, *external), where);
  }
  std::string bytes = serialize(model, external ? &*external : nullptr);
  rt::Bytes all = std::as_bytes(std::span(bytes));
  check(rt::writeFile(path, all), where);
}

} // namespace burin::onnx
