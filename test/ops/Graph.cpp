#include "test/ops/Graph.h"
#include "codegen/Compiler.h"
#include "codegen/target/Target.h"
#include "ir/reference/Reference.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/format/Target.h"
#include <cstdlib>
#include <stdexcept>

namespace burin::test {

std::vector<std::string> cpuTargets() {
  std::vector<std::string> names{"native"};
  const std::string native = codegen::findTarget("native")->name;
  for (const codegen::Target &target : codegen::allTargets())
    if (target.name != native && rt::targetRank(target.name) >= 0 &&
        (target.name == std::string("x86-64-v3") || std::getenv("BURIN_LONG_TESTS")))
      names.emplace_back(target.name);
  return names;
}

using namespace mlir;

namespace {
using Replace = std::function<Shape(const Shape &)>;
/// A recorded call of a Graph, to be repeated on another graph with other shapes. All calls are repeated in order, so
/// values keep their numbers.
using Call = std::function<void(Graph &, const Replace &)>;
} // namespace

struct Graph::State {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string diagnostics;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &d) {
                                    diagnostics += d.str() + "\n";
                                    return success();
                                  }};
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  OpBuilder builder{&context};
  std::vector<mlir::Value> values, outputs;
  std::vector<TensorSpec> specs;
  std::vector<Graph::Value> inputs;
  bool finished = false;
  std::vector<Call> calls;

  State() {
    ir::loadDialects(context);
    mlir::Location loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    function = func::FuncOp::create(builder, loc, "main", builder.getFunctionType({}, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
  }

  Graph::Value add(mlir::Value v) {
    values.push_back(v);
    specs.push_back(ir::specOf(v));
    return values.size() - 1;
  }

  [[noreturn]] void fail(const std::string &what) {
    throw std::runtime_error(what + "\n" + std::exchange(diagnostics, ""));
  }

  /// Turns values that a function uses from outside into arguments. Returns the captured values.
  static std::vector<mlir::Value> capture(func::FuncOp function) {
    Block &block = function.front();
    std::vector<mlir::Value> captured;
    llvm::DenseMap<mlir::Value, mlir::Value> arguments;
    for (Operation &op : block)
      for (OpOperand &operand : op.getOpOperands()) {
        mlir::Value outer = operand.get();
        if (outer.getParentBlock() == &block)
          continue;
        mlir::Value &argument = arguments[outer];
        if (!argument) {
          argument = block.addArgument(outer.getType(), outer.getLoc());
          captured.push_back(outer);
        }
        operand.set(argument);
      }
    return captured;
  }

  /// Adds the return and sets the function's type. Nothing may be added afterwards.
  void finish() {
    if (std::exchange(finished, true))
      return;
    func::ReturnOp::create(builder, builder.getUnknownLoc(), outputs);
    function.setType(builder.getFunctionType(function.getBody().getArgumentTypes(), ValueRange(outputs).getTypes()));
    if (failed(verify(*module)))
      fail("the graph is not valid");
  }
};

Graph::Graph() : state(std::make_unique<State>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph &&) noexcept = default;

Graph Graph::fixed(const std::map<std::string, int64_t> &sizes) const {
  Replace replace = [&](const Shape &shape) {
    Shape result;
    for (const Dim &size : shape)
      result.push_back(size.substitute([&](std::string_view symbol) { return Dim(sizes.at(std::string(symbol))); }));
    return result;
  };
  Graph result;
  for (const Call &call : state->calls)
    call(result, replace);
  return result;
}

Graph::Value Graph::input(const TensorSpec &spec) {
  state->calls.push_back([spec](Graph &g, const Replace &replace) { g.input({spec.dtype, replace(spec.shape)}); });
  auto type = ir::tensorType(&state->context, spec);
  Value v = state->add(state->function.getBody().front().addArgument(type, state->builder.getUnknownLoc()));
  state->inputs.push_back(v);
  return v;
}

Graph::Value Graph::constant(const ir::RefTensor &tensor) {
  state->calls.push_back([tensor](Graph &g, const Replace &) { g.constant(tensor); });
  TensorSpec spec{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())};
  return state->add(ir::createConstant(state->builder, state->builder.getUnknownLoc(), spec, tensor.toBytes()));
}

std::vector<Graph::Value> Graph::apply(const std::string &op, const std::vector<Value> &operands, const Attrs &attrs) {
  state->calls.push_back([=](Graph &g, const Replace &replace) {
    Attrs changed = attrs;
    for (auto &[name, value] : changed)
      if (auto *shape = std::get_if<Shape>(&value))
        *shape = replace(*shape);
    g.apply(op, operands, changed);
  });
  const ir::OpInfo *info = ir::findOp(op);
  if (!info)
    state->fail("there is no op " + op);
  ir::InferCall call{*info, {}, {}, /*strict=*/false, {}, {}};
  for (const ir::AttrInfo &attr : info->attrs)
    call.attrs.push_back(attrs.count(attr.name) ? attrs.at(attr.name) : attr.fallback);
  SmallVector<mlir::Value> values;
  for (Value v : operands) {
    values.push_back(v == none ? mlir::Value() : state->values[v]);
    call.operands.push_back(v == none ? std::nullopt : std::optional(spec(v)));
  }
  if (!ir::infer(call))
    state->fail(op + ": " + call.error);
  Operation *created = ir::createOp(state->builder, state->builder.getUnknownLoc(), *info, values, call.attrs);
  if (!created)
    state->fail(op + " is not valid");
  std::vector<Value> results;
  for (mlir::Value v : created->getResults())
    results.push_back(state->add(v));
  return results;
}

Graph::Values Graph::loop(const Values &states, const Values &elements, bool reverse,
                          const std::function<Values(const Values &states, const Values &elements)> &body) {
  OpBuilder &b = state->builder;
  mlir::Location loc = b.getUnknownLoc();
  Dim turns = spec(elements.front()).shape[0];
  SmallVector<mlir::Value> operands;
  OpBuilder::InsertPoint outside = b.saveInsertionPoint();
  b.setInsertionPointToEnd(state->module->getBody());
  auto function =
      func::FuncOp::create(b, loc, "loop" + std::to_string(state->values.size()), b.getFunctionType({}, {}));
  function.setPrivate();
  Block *block = function.addEntryBlock();
  b.setInsertionPointToEnd(block);
  auto arguments = [&](const Values &values) {
    Values inner;
    for (Value v : values) {
      TensorSpec part = spec(v);
      part.shape[0] = 1;
      operands.push_back(state->values[v]);
      inner.push_back(state->add(block->addArgument(ir::tensorType(&state->context, part), loc)));
    }
    return inner;
  };
  Values innerStates = arguments(states), innerElements = arguments(elements);
  SmallVector<mlir::Value> given;
  SmallVector<Type> types;
  std::vector<Call> before = std::exchange(state->calls, {});
  Values inner = body(innerStates, innerElements);
  std::vector<Call> inside = std::exchange(state->calls, std::move(before));
  state->calls.push_back([=](Graph &g, const Replace &replace) {
    g.loop(states, elements, reverse, [&](const Values &, const Values &) {
      for (const Call &call : inside)
        call(g, replace);
      return inner;
    });
  });
  for (Value v : inner) {
    TensorSpec whole = spec(v);
    whole.shape[0] = given.size() < states.size() ? turns + 1 : turns;
    given.push_back(state->values[v]);
    types.push_back(ir::tensorType(&state->context, whole));
  }
  func::ReturnOp::create(b, loc, given);
  for (mlir::Value v : State::capture(function))
    operands.push_back(v);
  function.setType(b.getFunctionType(block->getArgumentTypes(), ValueRange(given).getTypes()));
  b.restoreInsertionPoint(outside);
  auto parts = cast<ArrayAttr>(ir::toMlir(&state->context, ir::Attr(Shape{turns})));
  auto op = ir::ScanOp::create(b, loc, types, function.getName(), operands, int64_t(elements.size()), parts,
                               int64_t(states.size()), reverse);
  Values results;
  for (mlir::Value v : op.getResults())
    results.push_back(state->add(v));
  return results;
}

void Graph::output(Value v) {
  state->calls.push_back([v](Graph &g, const Replace &) { g.output(v); });
  state->outputs.push_back(state->values[v]);
}
const TensorSpec &Graph::spec(Value v) const { return state->specs[v]; }
const std::vector<Graph::Value> &Graph::inputs() const { return state->inputs; }

Tensors Graph::interpret(const Tensors &inputs, const ir::RefOptions &options) {
  state->finish();
  auto results = ir::interpret(*state->module, inputs, {}, options);
  if (failed(results))
    state->fail("the interpreter fails");
  return std::move(*results);
}

std::unique_ptr<Compiled> Graph::compile(const std::string &target,
                                         const std::function<void(codegen::CompileOptions &)> &tune) {
  return std::make_unique<Compiled>(artifact({target}, tune));
}

std::vector<std::byte> Graph::artifact(const std::vector<std::string> &targets,
                                       const std::function<void(codegen::CompileOptions &)> &tune) {
  state->finish();
  OwningOpRef<ModuleOp> copy = state->module->clone();
  codegen::CompileOptions options;
  options.targets = targets;
  if (tune)
    tune(options);
  auto artifact = codegen::compile(*copy, options);
  if (failed(artifact))
    state->fail("the compiler fails");
  return std::move(*artifact);
}

std::string Graph::schedule(const std::string &target) {
  state->finish();
  OwningOpRef<ModuleOp> copy = state->module->clone();
  codegen::CompileOptions options;
  options.targets = {target};
  auto text = codegen::emitText(*copy, options, codegen::EmitStage::Schedule);
  if (failed(text))
    state->fail("the compiler fails");
  return std::move(*text);
}

std::string Graph::text() {
  state->finish();
  std::string text;
  llvm::raw_string_ostream out(text);
  state->module->print(out, OpPrintingFlags().elideLargeElementsAttrs(64).elideLargeResourceString(64));
  return text;
}

} // namespace burin::test
