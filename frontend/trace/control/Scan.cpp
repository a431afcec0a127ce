#include "burin/graph/loops.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/FunctionScope.h"
#include "frontend/trace/Origins.h"

namespace burin {

using mlir::Value;

namespace {

/// In a trace that assumes sizes: gives the states after a step the sizes of those before it.
void agreeOnStates(const std::vector<Tensor> &before, std::vector<Tensor> &after, const Location &where) {
  Trace *trace = Trace::active();
  for (size_t i = 0; trace && i < before.size() && i < after.size(); ++i)
    after[i] = trace->assumeShape(after[i], before[i].shape(where), where);
}

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

/// Eager loops: one call per iteration.
class Unrolled {
public:
  Unrolled(const ScanStep &step, const std::vector<Tensor> &xs, int64_t length, const Location &where)
      : step(step), xs(xs), length(length), where(where) {}

  ScanResult run(const std::vector<Tensor> &initial, bool reverse) {
    ScanResult result{initial, {}};
    std::vector<std::vector<Tensor>> outputs;
    for (int64_t iteration = 0; iteration < length; ++iteration) {
      int64_t at = reverse ? length - 1 - iteration : iteration;
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
    agreeOnStates(states, given.states, where);
    detail::checkStates(states, given.states, where);
    for (size_t i = 0; i < states.size(); ++i)
      given.states[i] = given.states[i].to(states[i].dtype(where), where);
    return given;
  }

  /// Outputs of an empty loop, whose shapes only a call reveals.
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

void detail::checkStates(const std::vector<Tensor> &before, const std::vector<Tensor> &after, const Location &where,
                         const char *op, const char *step) {
  const std::string name = step;
  if (before.size() != after.size())
    throw Error(where, op,
                "the " + name + " returns " + std::to_string(after.size()) + " states, but it is given " +
                    std::to_string(before.size()));
  for (size_t i = 0; i < before.size(); ++i) {
    TensorSpec old = before[i].spec(where), next = after[i].spec(where);
    if (old.shape != next.shape || (old.dtype != next.dtype && !stateOf(after[i], where).weak))
      throw Error(where, op,
                  "state " + std::to_string(i) + " is " + str(old) + " before the " + name + " and " + str(next) +
                      " after it; states keep their shape and element type");
  }
}

ScanResult scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs, bool reverse,
                Location where) {
  const Location place = detail::inScope(where);
  Dim length = lengthOf(xs, place);
  Trace *trace = Trace::active();
  if (trace && length != Dim(1))
    return trace->scan(step, initial, xs, reverse, place);
  return Unrolled(step, xs, length.value(), place).run(initial, reverse);
}

// ---- in a trace: the step becomes a function of the graph

/// The index of the state that `output` is, if any.
static std::optional<size_t> indexAmong(const std::vector<Tensor> &states, const Tensor &output) {
  auto same = std::ranges::find(states, detail::Access::state(output), detail::Access::state);
  return same == states.end() ? std::nullopt : std::optional(size_t(same - states.begin()));
}

/// Creates a loop over `length` parts; `results` are those of its body, states first.
static ir::ScanOp createScan(mlir::OpBuilder &builder, mlir::Location location, const Dim &length,
                             const std::string &step, mlir::ValueRange operands, mlir::ValueRange results,
                             size_t sliced, size_t states, bool reverse) {
  mlir::MLIRContext *context = builder.getContext();
  llvm::SmallVector<mlir::Type> types;
  for (size_t i = 0; i < results.size(); ++i) {
    TensorSpec spec = ir::specOf(results[i]);
    spec.shape[0] = i < states ? length + 1 : length;
    types.push_back(ir::tensorType(context, spec));
  }
  auto parts = mlir::cast<mlir::ArrayAttr>(ir::toMlir(context, ir::Attr(Shape{length})));
  return ir::ScanOp::create(builder, location, types, step, operands, int64_t(sliced), parts, int64_t(states), reverse);
}

/// x with a dimension 0 of size 1.
Value Trace::valueAlone(const Tensor &x, DType dtype, const Location &where) {
  Value value = valueOf(x, dtype, where);
  return ir::create(builder, detail::mlirLocation(&graph->context, where), "unsqueeze", {value},
                    {{"axes", std::vector<int64_t>{0}}});
}

/// Makes the parameters that the body of a scan sets additional states of the loop, behind its `states`. Returns them.
std::vector<Trace::CellUse *> Trace::carryCells(FunctionScope &body, std::vector<Value> &operands,
                                                std::vector<Value> &results, size_t states, const Location &where) {
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  std::vector<CellUse *> set;
  for (FunctionScope::Touched &cell : body.touched) {
    const DType dtype = cell.before.dtype(where);
    Value before = valueOf(cell.before, dtype, where);
    if (cell.isChanged) {
      const size_t at = states + set.size();
      set.push_back(cell.use);
      operands.insert(operands.begin() + ptrdiff_t(at), valueAlone(cell.before, dtype, where));
      results.insert(results.begin() + ptrdiff_t(at),
                     body.record([&] { return valueAlone(cell.after, dtype, where); }));
      Value argument = body.block()->insertArgument(unsigned(at), operands[at].getType(), location);
      mlir::OpBuilder atStart = mlir::OpBuilder::atBlockBegin(body.block());
      before = ir::create(atStart, location, "squeeze", {argument}, {{"axes", std::vector<int64_t>{0}}});
    }
    cell.iteration.replaceAllUsesWith(before);
  }
  return set;
}

ScanResult Trace::scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs,
                       bool reverse, const Location &where) {
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  const Dim length = xs[0].shape(where)[0];
  std::vector<Value> operands;
  for (const Tensor &state : initial)
    operands.push_back(valueAlone(state, state.dtype(where), where));
  for (const Tensor &x : xs)
    operands.push_back(valueOf(x, x.dtype(where), where));

  std::vector<std::optional<size_t>> stateOfOutput; // outputs that are new states share their value
  std::vector<Value> results;
  std::vector<CellUse *> set; // parameters, as additional states of the loop
  size_t states = initial.size();
  std::string name;
  auto call = [&](FunctionScope &body, std::vector<Tensor> &states) {
    std::vector<Tensor> elements;
    auto part = [&](Shape shape, DType dtype) { // without dimension 0, which is 1
      shape.insert(shape.begin(), 1);
      return squeeze(body.argument({dtype, shape}, location), {0}, where);
    };
    for (const Tensor &state : initial)
      states.push_back(part(state.shape(where), state.dtype(where)));
    for (const Tensor &x : xs)
      elements.push_back(part(Shape(x.shape(where).begin() + 1, x.shape(where).end()), x.dtype(where)));
    return step(states, elements);
  };
  Rehearsal(*this).call(FunctionScope::Kind::Step, location, [&](FunctionScope &body) {
    std::vector<Tensor> states;
    return call(body, states);
  });
  {
    FunctionScope body(*this, FunctionScope::Kind::Step, "loop", location);
    body.record([&] {
      std::vector<Tensor> states;
      ScanResult given = call(body, states);
      agreeOnStates(states, given.states, where);
      detail::checkStates(states, given.states, where);
      for (size_t i = 0; i < initial.size(); ++i)
        results.push_back(valueAlone(given.states[i], states[i].dtype(where), where));
      for (const Tensor &output : given.outputs) {
        stateOfOutput.push_back(indexAmong(given.states, output));
        if (!stateOfOutput.back())
          results.push_back(valueAlone(output, detail::stateOf(output, where).spec.dtype, where));
      }
      addConditions(results);
    });
    body.restoreCells();
    set = carryCells(body, operands, results, initial.size(), where);
    states += set.size();
    body.finish(results, location);
    std::vector<Value> captured = FunctionScope::capture({&body});
    operands.insert(operands.end(), captured.begin(), captured.end());
    name = body.function.getName().str();
  }
  ir::ScanOp op = createScan(builder, location, length, name, operands, results, xs.size(), states, reverse);
  noteNew(op->getResults());
  auto after = [&](size_t state, const Dim &first) { // the states from iteration `first` on
    return rows(wrap(op.getResult(unsigned(state))), first, length + 1, where);
  };
  ScanResult result;
  for (size_t i = 0; i < initial.size(); ++i)
    result.states.push_back(squeeze(after(i, length), {0}, where));
  for (size_t i = 0; i < set.size(); ++i) {
    Tensor last = squeeze(after(initial.size() + i, length), {0}, where);
    setInside(*set[i], valueOf(last, last.dtype(where), where));
  }
  for (size_t i = 0, next = states; i < stateOfOutput.size(); ++i) {
    Tensor all = stateOfOutput[i] ? after(*stateOfOutput[i], 1) : wrap(op.getResult(unsigned(next++)));
    result.outputs.push_back(stateOfOutput[i] && reverse ? flip(all, {0}, where) : all);
  }
  return result;
}

} // namespace burin
