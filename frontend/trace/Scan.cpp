#include "burin/creation.h"
#include "burin/loops.h"
#include "burin/ops.h"
#include "frontend/tensor/LocationScope.h"
#include "frontend/trace/Trace.h"

namespace burin {

namespace {

Tensor rows(const Tensor &x, const Dim &first, const Dim &last, const Location &where) {
  Shape starts(x.shape(where).size(), Dim(0)), stops = x.shape(where);
  starts[0] = first;
  stops[0] = last;
  return slice(x, starts, stops, std::vector<int64_t>(starts.size(), 1), where);
}

Dim lengthOf(const std::vector<Tensor> &xs, const Location &where) {
  if (xs.empty())
    throw Error(where, "scan", "there is no tensor to go through; to count, give it iota({n}, i64)");
  for (const Tensor &x : xs) {
    if (x.rank(where) == 0)
      throw Error(where, "scan", "a scalar has no elements to go through: " + str(x.spec(where)));
    if (x.shape(where)[0] != xs[0].shape(where)[0])
      throw Error(where, "scan",
                  "the tensors to go through differ in length: " + str(xs[0].spec(where)) + " and " +
                      str(x.spec(where)));
  }
  return xs[0].shape(where)[0];
}

/// One call after the other, here and now.
class Unrolled {
public:
  Unrolled(const ScanStep &step, const std::vector<Tensor> &xs, int64_t length, const Location &where)
      : step(step), xs(xs), length(length), where(where) {}

  ScanResult run(const std::vector<Tensor> &initial, bool reverse) {
    ScanResult result{initial, {}};
    std::vector<std::vector<Tensor>> outputs;
    for (int64_t turn = 0; turn < length; ++turn) {
      int64_t at = reverse ? length - 1 - turn : turn;
      ScanResult given =
          call(result.states, [&](const Tensor &x) { return squeeze(rows(x, at, at + 1, where), {0}, where); });
      result.states = std::move(given.states);
      outputs.resize(given.outputs.size(), std::vector<Tensor>(size_t(length)));
      for (size_t i = 0; i < outputs.size(); ++i)
        outputs[i][size_t(at)] = given.outputs[i];
    }
    for (const std::vector<Tensor> &list : outputs)
      result.outputs.push_back(stack(list, 0, where));
    if (length == 0)
      addEmptyOutputs(result);
    return result;
  }

private:
  const ScanStep &step;
  const std::vector<Tensor> &xs;
  int64_t length;
  const Location &where;

  ScanResult call(const std::vector<Tensor> &states, const std::function<Tensor(const Tensor &)> &element) {
    std::vector<Tensor> elements;
    for (const Tensor &x : xs)
      elements.push_back(element(x));
    ScanResult given = step(states, elements);
    detail::checkStates(states, given.states, where);
    for (size_t i = 0; i < states.size(); ++i)
      given.states[i] = given.states[i].to(states[i].dtype(where), where);
    return given;
  }

  /// What their shapes are only a call tells.
  void addEmptyOutputs(ScanResult &result) {
    ScanResult given = call(result.states, [&](const Tensor &x) {
      return zeros(Shape(x.shape(where).begin() + 1, x.shape(where).end()), x.dtype(where), where);
    });
    for (const Tensor &output : given.outputs) {
      Shape shape = output.shape(where);
      shape.insert(shape.begin(), 0);
      result.outputs.push_back(zeros(shape, output.dtype(where), where));
    }
  }
};

} // namespace

void detail::checkStates(const std::vector<Tensor> &before, const std::vector<Tensor> &after, const Location &where) {
  if (before.size() != after.size())
    throw Error(where, "scan",
                "the step returns " + std::to_string(after.size()) + " states, but it is given " +
                    std::to_string(before.size()));
  for (size_t i = 0; i < before.size(); ++i) {
    TensorSpec old = before[i].spec(where), next = after[i].spec(where);
    if (old.shape != next.shape || (old.dtype != next.dtype && !stateOf(after[i], where).weak))
      throw Error(where, "scan",
                  "state " + std::to_string(i) + " is " + str(old) + " before the step and " + str(next) +
                      " after it; states keep their shape and element type");
  }
}

ScanResult scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs, bool reverse,
                Location where) {
  constexpr int64_t kMostUnrolled = 4096;
  const Location place = detail::inScope(where);
  Dim length = lengthOf(xs, place);
  Trace *trace = Trace::active();
  if (trace && !trace->isInLoop() && length != Dim(1))
    return trace->scan(step, initial, xs, reverse, place);
  if (!length.isStatic() || (trace && length.value() > kMostUnrolled))
    throw Error(place, "scan",
                "a loop of " + length.str() + " turns within another loop, where it has to be unrolled; give it a " +
                    "known length of at most " + std::to_string(kMostUnrolled));
  return Unrolled(step, xs, length.value(), place).run(initial, reverse);
}

// ---- in a trace: the step becomes a function of the graph

namespace {

/// Gives a function what it uses of the block that calls it: constants are repeated, other values become arguments.
std::vector<mlir::Value> capture(mlir::func::FuncOp function) {
  mlir::Block &block = function.front();
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockBegin(&block);
  llvm::DenseMap<mlir::Value, mlir::Value> known;
  std::vector<mlir::Value> captured;
  for (mlir::Operation &op : llvm::make_early_inc_range(block))
    for (mlir::OpOperand &operand : op.getOpOperands()) {
      mlir::Value outer = operand.get();
      if (outer.getParentBlock() == &block)
        continue;
      mlir::Value &inner = known[outer];
      if (!inner && outer.getDefiningOp<ir::ConstantOp>()) {
        inner = builder.clone(*outer.getDefiningOp())->getResult(0);
      } else if (!inner) {
        captured.push_back(outer);
        inner = block.addArgument(outer.getType(), outer.getLoc());
      }
      operand.set(inner);
    }
  return captured;
}

} // namespace

/// The function of a loop while its step is recorded.
class Trace::LoopBody {
  using Value = mlir::Value;

public:
  LoopBody(Trace &trace, mlir::Location location)
      : trace(trace), guard(trace.builder), checksBefore(trace.checks.size()) {
    trace.builder.setInsertionPointToEnd(trace.graph->module->getBody());
    std::string name = "loop" + std::to_string(trace.loops++);
    function = mlir::func::FuncOp::create(trace.builder, location, name, trace.builder.getFunctionType({}, {}));
    function.setPrivate();
    trace.inner = function.addEntryBlock();
    trace.builder.setInsertionPointToEnd(trace.inner);
  }
  ~LoopBody() {
    trace.inner = nullptr;
    if (isComplete)
      return;
    trace.checks.truncate(checksBefore);
    function->remove(); // the step has thrown; tensors may still refer to what it has recorded
    trace.abandoned.emplace_back(function);
  }
  LoopBody(const LoopBody &) = delete;

  Tensor argument(const Shape &element, DType dtype, mlir::Location location) {
    Shape row = element;
    row.insert(row.begin(), 1);
    Value value = trace.inner->addArgument(ir::tensorType(&trace.graph->context, {dtype, row}), location);
    return trace.wrap(ir::create(trace.builder, location, "squeeze", {value}, {{"axes", std::vector<int64_t>{0}}}));
  }

  /// Ends the function; returns what it has captured.
  std::vector<Value> finish(llvm::ArrayRef<Value> results, mlir::Location location) {
    mlir::func::ReturnOp::create(trace.builder, location, results);
    std::vector<Value> captured = capture(function);
    function.setFunctionType(
        trace.builder.getFunctionType(function.front().getArgumentTypes(), mlir::ValueRange(results).getTypes()));
    isComplete = true;
    return captured;
  }

  mlir::func::FuncOp function;

private:
  Trace &trace;
  mlir::OpBuilder::InsertionGuard guard;
  size_t checksBefore;
  bool isComplete = false;
};

ScanResult Trace::scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs,
                       bool reverse, const Location &where) {
  using mlir::Value;
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  const Dim length = xs[0].shape(where)[0];
  auto valueAlone = [&](const Tensor &x, DType dtype) {
    Value value = valueOf(x, dtype, where);
    return Value(ir::create(builder, location, "unsqueeze", {value}, {{"axes", std::vector<int64_t>{0}}}));
  };
  std::vector<Value> operands;
  for (const Tensor &state : initial)
    operands.push_back(valueAlone(state, state.dtype(where)));
  for (const Tensor &x : xs)
    operands.push_back(valueOf(x, x.dtype(where), where));

  std::vector<std::optional<size_t>> stateOfOutput; // those that are new states need no place of their own
  std::vector<Value> results;
  std::string name;
  {
    LoopBody body(*this, location);
    std::vector<Tensor> states, elements;
    for (const Tensor &state : initial)
      states.push_back(body.argument(state.shape(where), state.dtype(where), location));
    for (const Tensor &x : xs)
      elements.push_back(
          body.argument(Shape(x.shape(where).begin() + 1, x.shape(where).end()), x.dtype(where), location));
    ScanResult given = step(states, elements);
    detail::checkStates(states, given.states, where);
    for (size_t i = 0; i < initial.size(); ++i)
      results.push_back(valueAlone(given.states[i], states[i].dtype(where)));
    for (const Tensor &output : given.outputs) {
      auto same = std::ranges::find(given.states, detail::Access::state(output), detail::Access::state);
      bool isState = same != given.states.end();
      stateOfOutput.push_back(isState ? std::optional(size_t(same - given.states.begin())) : std::nullopt);
      if (!isState)
        results.push_back(valueAlone(output, detail::stateOf(output, where).spec.dtype));
    }
    std::vector<Value> captured = body.finish(results, location);
    operands.insert(operands.end(), captured.begin(), captured.end());
    name = body.function.getName();
  }
  llvm::SmallVector<mlir::Type> types;
  for (size_t i = 0; i < results.size(); ++i) {
    TensorSpec spec = ir::specOf(results[i]);
    spec.shape[0] = i < initial.size() ? length + 1 : length;
    types.push_back(ir::tensorType(&graph->context, spec));
  }
  auto parts = mlir::cast<mlir::ArrayAttr>(ir::toMlir(&graph->context, ir::Attr(Shape{length})));
  auto op = ir::ScanOp::create(builder, location, types, name, operands, int64_t(xs.size()), parts,
                               int64_t(initial.size()), reverse);
  auto after = [&](size_t state, const Dim &first) { // the states from turn `first` on
    return rows(wrap(op.getResult(unsigned(state))), first, length + 1, where);
  };
  ScanResult result;
  for (size_t i = 0; i < initial.size(); ++i)
    result.states.push_back(squeeze(after(i, length), {0}, where));
  for (size_t i = 0, next = initial.size(); i < stateOfOutput.size(); ++i) {
    Tensor all = stateOfOutput[i] ? after(*stateOfOutput[i], 1) : wrap(op.getResult(unsigned(next++)));
    result.outputs.push_back(stateOfOutput[i] && reverse ? flip(all, {0}, where) : all);
  }
  return result;
}

} // namespace burin
