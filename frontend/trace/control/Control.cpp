// Branches and loops that depend on data.
#include "burin/graph/control.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/FunctionScope.h"
#include "frontend/trace/Origins.h"

namespace burin {

using mlir::Value;

namespace {

void requireBool(const Tensor &condition, const char *op, const Location &where) {
  TensorSpec spec = condition.spec(where);
  if (spec != TensorSpec{DType::boolean, {}})
    throw Error(where, op,
                "the condition is " + str(spec) +
                    ", but must be one bool; compare, as in x.sum() > 0, or use any() or all()");
}

/// The element type of a result of both branches.
DType commonType(const Tensor &a, const Tensor &b, size_t index, const Location &where) {
  TensorSpec left = a.spec(where), right = b.spec(where);
  bool isLeftWeak = detail::stateOf(a, where).weak, isRightWeak = detail::stateOf(b, where).weak;
  if (left.shape == right.shape && (left.dtype == right.dtype || isRightWeak))
    return left.dtype;
  if (left.shape == right.shape && isLeftWeak)
    return right.dtype;
  throw Error(where, "cond",
              "result " + std::to_string(index) + " is " + str(left) + " of one branch and " + str(right) +
                  " of the other; both must give the same shape and element type");
}

void requireSameCount(size_t left, size_t right, const Location &where) {
  if (left != right)
    throw Error(where, "cond",
                "one branch gives " + std::to_string(left) + " tensors, the other one " + std::to_string(right));
}

} // namespace

// ---- in a trace

std::vector<Tensor> Trace::cond(const Tensor &condition, const detail::Branch &then, const detail::Branch &otherwise,
                                const Location &where) {
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  const Rehearsal rehearsal(*this);
  auto rehearse = [&](const detail::Branch &branch) {
    rehearsal.call(FunctionScope::Kind::Branch, location, [&](FunctionScope &) { return branch(); });
  };
  rehearse(then);
  rehearse(otherwise);
  FunctionScope taken(*this, FunctionScope::Kind::Branch, "branch", location);
  std::vector<Tensor> left = taken.record(then);
  taken.restoreCells();
  FunctionScope other(*this, FunctionScope::Kind::Branch, "branch", location);
  std::vector<Tensor> right = other.record(otherwise);
  other.restoreCells();
  rehearse(then); // the last one in this trace only: variables that both branches assign differ
  requireSameCount(left.size(), right.size(), where);

  // Parameters that one branch sets are additional results of both.
  std::vector<CellUse *> set;
  for (FunctionScope *scope : {&taken, &other})
    for (const FunctionScope::Touched &cell : scope->touched)
      if (cell.isChanged && !llvm::is_contained(set, cell.use))
        set.push_back(cell.use);
  std::vector<DType> dtypes;
  for (size_t i = 0; i < left.size(); ++i)
    dtypes.push_back(commonType(left[i], right[i], i, where));
  llvm::SmallVector<mlir::Type> types;
  auto finish = [&](FunctionScope &scope, const std::vector<Tensor> &results) {
    std::vector<Value> values = scope.record([&] {
      std::vector<Value> list;
      for (size_t i = 0; i < results.size(); ++i)
        list.push_back(valueOf(results[i], dtypes[i], where));
      for (CellUse *use : set) {
        FunctionScope::Touched *known = scope.find(use);
        const Tensor &after = known ? known->after : use->value;
        list.push_back(valueOf(after, after.dtype(where), where));
      }
      addConditions(list);
      return list;
    });
    scope.finish(values, location);
    types = llvm::SmallVector<mlir::Type>(mlir::ValueRange(values).getTypes());
  };
  finish(taken, left);
  finish(other, right);
  std::vector<Value> captured = FunctionScope::capture({&taken, &other});
  auto op = ir::IfOp::create(builder, location, types, valueOf(condition, DType::boolean, where),
                             taken.function.getName(), other.function.getName(), captured);
  noteNew(op->getResults());
  for (size_t i = 0; i < set.size(); ++i)
    setInside(*set[i], op.getResult(unsigned(left.size() + i)));
  std::vector<Tensor> results;
  for (size_t i = 0; i < left.size(); ++i)
    results.push_back(wrap(op.getResult(unsigned(i))));
  return results;
}

/// Sets a parameter to the value that a function of the graph has computed.
void Trace::setInside(CellUse &use, Value value) {
  detached.insert(value);
  if (OriginNotes *notes = OriginNotes::of(*this))
    notes->leaf(value, use.cell.get());
  use.value = leafLike(wrap(value), use.cell->value());
  use.isSet = true;
}

std::vector<Tensor> Trace::whileLoop(const detail::LoopCondition &condition, const detail::LoopBody &body,
                                     const std::vector<Tensor> &initial, const Location &where) {
  mlir::Location location = detail::mlirLocation(&graph->context, where);
  std::vector<Value> inputs;
  for (const Tensor &x : initial)
    inputs.push_back(valueOf(x, x.dtype(where), where));
  auto arguments = [&](FunctionScope &scope) {
    std::vector<Tensor> list;
    for (Value input : inputs)
      list.push_back(scope.argument(ir::specOf(input), location));
    return list;
  };
  const Rehearsal rehearsal(*this);
  rehearsal.call(FunctionScope::Kind::Iteration, location,
                 [&](FunctionScope &scope) { return body(arguments(scope)); });
  rehearsal.call(FunctionScope::Kind::Iteration, location,
                 [&](FunctionScope &scope) { return condition(arguments(scope)); });
  FunctionScope iteration(*this, FunctionScope::Kind::Iteration, "body", location);
  std::vector<Value> results = iteration.record([&] {
    std::vector<Tensor> before = arguments(iteration), after = body(before);
    detail::checkStates(before, after, where, "while_loop", "body");
    std::vector<Value> values;
    for (size_t i = 0; i < before.size(); ++i)
      values.push_back(valueOf(after[i], before[i].dtype(where), where));
    addConditions(values);
    return values;
  });
  iteration.restoreCells();
  FunctionScope test(*this, FunctionScope::Kind::Iteration, "condition", location);
  Value goesOn = test.record([&] {
    Tensor result = condition(arguments(test));
    requireBool(result, "while_loop", where);
    Value value = valueOf(result, DType::boolean, where);
    addConditions(value);
    return value;
  });
  test.restoreCells();
  for (const FunctionScope::Touched &cell : test.touched)
    if (cell.isChanged)
      throw Error(where, "while_loop", "the condition sets a parameter or draws random numbers; do that in the body");

  // Parameters that the body sets are carried between iterations; others are loop-invariant.
  std::vector<CellUse *> set;
  for (FunctionScope::Touched &cell : iteration.touched) {
    if (!cell.isChanged)
      continue;
    Value before = valueOf(cell.before, cell.before.dtype(where), where);
    set.push_back(cell.use);
    inputs.push_back(before);
    results.push_back(iteration.record([&] { return valueOf(cell.after, cell.before.dtype(where), where); }));
  }
  iteration.finish(results, location);
  test.finish({goesOn}, location);
  for (FunctionScope *scope : {&iteration, &test}) {
    std::vector<mlir::BlockArgument> carried;
    for (CellUse *use : set)
      carried.push_back(
          scope->block()->addArgument(valueOf(use->value, use->value.dtype(where), where).getType(), location));
    for (FunctionScope::Touched &cell : scope->touched) {
      auto at = llvm::find(set, cell.use);
      cell.iteration.replaceAllUsesWith(at != set.end() ? Value(carried[size_t(at - set.begin())])
                                                        : valueOf(cell.before, cell.before.dtype(where), where));
    }
  }
  size_t carried = inputs.size();
  std::vector<Value> captured = FunctionScope::capture({&iteration, &test});
  llvm::append_range(inputs, captured);
  auto types = mlir::ValueRange(inputs).getTypes();
  auto op =
      ir::WhileOp::create(builder, location, llvm::SmallVector<mlir::Type>(types.begin(), types.begin() + carried),
                          test.function.getName(), iteration.function.getName(), int64_t(carried), inputs);
  noteNew(op->getResults());
  for (size_t i = 0; i < set.size(); ++i)
    setInside(*set[i], op.getResult(unsigned(initial.size() + i)));
  std::vector<Tensor> values;
  for (size_t i = 0; i < initial.size(); ++i)
    values.push_back(wrap(op.getResult(unsigned(i))));
  return values;
}

// ---- eagerly

void check(const Tensor &condition, const std::string &message, Location where) {
  const Location &place = detail::inScope(where);
  if (condition.dtype(place) != DType::boolean)
    throw Error(place, "check", "the condition is " + str(condition.spec(place)) + ", but must be bool; compare it");
  if (condition.isTraced())
    Trace::active()->check(condition, message, place);
  else if (!all(condition, {}, false, place).item<bool>(place))
    throw Error(place, "check", message);
}

std::vector<Tensor> detail::cond(const Tensor &condition, const Branch &then, const Branch &otherwise,
                                 const Location &where) {
  const Location place = inScope(where);
  requireBool(condition, "cond", place);
  if (Trace *trace = Trace::active(); trace && condition.isTraced())
    return trace->cond(condition, then, otherwise, place);
  return condition.item<bool>(place) ? then() : otherwise();
}

static std::vector<Tensor> runLoop(const detail::LoopCondition &condition, const detail::LoopBody &body,
                                   std::vector<Tensor> values, const Location &where) {
  for (;;) {
    Tensor goesOn = condition(values);
    requireBool(goesOn, "while_loop", where);
    if (!goesOn.item<bool>(where))
      return values;
    std::vector<Tensor> next = body(values);
    detail::checkStates(values, next, where, "while_loop", "body");
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = next[i].to(values[i].dtype(where), where);
  }
}

/// A loop with a limit is a scan of that many iterations, without effect once the condition has been false.
static std::vector<Tensor> limitedLoop(const detail::LoopCondition &condition, const detail::LoopBody &body,
                                       const std::vector<Tensor> &initial, int64_t limit, const Location &where) {
  ScanStep step = [&](const std::vector<Tensor> &before, const std::vector<Tensor> &) {
    std::vector<Tensor> values(before.begin() + 1, before.end());
    Tensor goesOn = detail::cond(
                        before[0], [&] { return std::vector{condition(values)}; },
                        [&] { return std::vector{zeros({}, DType::boolean, where)}; }, where)
                        .front();
    auto once = [&] {
      std::vector<Tensor> next = body(values);
      detail::checkStates(values, next, where, "while_loop", "body");
      return next;
    };
    std::vector<Tensor> next = detail::cond(goesOn, once, [&] { return values; }, where);
    next.insert(next.begin(), goesOn);
    return ScanResult{next, {}};
  };
  std::vector<Tensor> states{ones({}, DType::boolean, where)};
  states.insert(states.end(), initial.begin(), initial.end());
  std::vector<Tensor> last = scan(step, states, {iota({limit}, DType::i64, 0, where)}, false, where).states;
  return {last.begin() + 1, last.end()};
}

std::vector<Tensor> detail::whileLoop(const LoopCondition &condition, const LoopBody &body,
                                      const std::vector<Tensor> &initial, std::optional<int64_t> limit,
                                      const Location &where) {
  const Location place = inScope(where);
  if (limit && *limit < 0)
    throw Error(place, "while_loop", "the limit of " + std::to_string(*limit) + " iterations is negative");
  Trace *trace = Trace::active();
  if (!trace && !limit)
    return runLoop(condition, body, initial, place);
  if (trace && !limit)
    return trace->whileLoop(condition, body, initial, place);
  if (trace)
    return limitedLoop(condition, body, initial, *limit, place);
  int64_t iteration = 0;
  auto isWithin = [&](const std::vector<Tensor> &values) {
    return iteration++ < *limit ? condition(values) : zeros({}, DType::boolean);
  };
  return runLoop(isWithin, body, initial, place);
}

std::vector<Tensor> detail::switchCase(const Tensor &index, std::span<const Branch> branches, const Location &where) {
  const Location place = inScope(where);
  TensorSpec spec = index.spec(place);
  if (!isInteger(spec.dtype) || !spec.shape.empty())
    throw Error(place, "switch_case", "the index is " + str(spec) + ", but must be one integer, as i64[]");
  if (branches.size() == 1)
    return branches[0]();
  auto isLower = le(index, Tensor(int64_t(0)), place);
  auto others = [&] { return switchCase(sub(index, Tensor(int64_t(1)), place), branches.subspan(1), place); };
  return cond(isLower, branches[0], others, place);
}

static std::vector<Tensor> checkedIteration(const detail::CountedBody &body, const Tensor &iteration,
                                            const std::vector<Tensor> &values, const Location &where) {
  std::vector<Tensor> next = body(iteration, values);
  detail::checkStates(values, next, where, "fori_loop", "body");
  for (size_t i = 0; i < values.size(); ++i)
    next[i] = next[i].to(values[i].dtype(where), where);
  return next;
}

std::vector<Tensor> detail::countedLoop(int64_t lower, const Dim &upper, const CountedBody &body,
                                        const std::vector<Tensor> &initial, const Location &where) {
  const Location place = inScope(where);
  Dim count = upper - lower;
  if (count.isStatic() && count.value() <= 0)
    return initial;
  if (!Trace::active()) {
    if (!count.isStatic())
      throw Error(place, "fori_loop", "the size " + upper.str() + " is not known outside of a trace");
    std::vector<Tensor> values = initial;
    for (int64_t i = 0; i < count.value(); ++i)
      values = checkedIteration(body, tensor(lower + i, DType::i64), values, place);
    return values;
  }
  ScanStep step = [&](const std::vector<Tensor> &values, const std::vector<Tensor> &elements) {
    return ScanResult{checkedIteration(body, add(elements[0], Tensor(lower), place), values, place), {}};
  };
  return scan(step, initial, {iota({count}, DType::i64, 0, place)}, false, place).states;
}

std::vector<Tensor> detail::countedLoop(const Tensor &lower, const Tensor &upper, const CountedBody &body,
                                        const std::vector<Tensor> &initial, std::optional<int64_t> limit,
                                        const Location &where) {
  const Location place = inScope(where);
  for (const Tensor &bound : {lower, upper})
    if (!isInteger(bound.dtype(place)) || bound.rank(place) != 0)
      throw Error(place, "fori_loop", "a bound is " + str(bound.spec(place)) + ", but must be one integer, as i64[]");
  if (limit)
    check(le(sub(upper.to(DType::i64, place), lower.to(DType::i64, place), place), Tensor(*limit), place),
          "fori_loop: there are more iterations than its limit of " + std::to_string(*limit), place);
  std::vector<Tensor> values{lower.to(DType::i64, place)};
  values.insert(values.end(), initial.begin(), initial.end());
  auto isBelow = [&](const std::vector<Tensor> &now) { return lt(now[0], upper, place); };
  auto iteration = [&](const std::vector<Tensor> &now) {
    std::vector<Tensor> next = checkedIteration(body, now[0], {now.begin() + 1, now.end()}, place);
    next.insert(next.begin(), add(now[0], Tensor(int64_t(1)), place));
    return next;
  };
  std::vector<Tensor> last = whileLoop(isBelow, iteration, values, limit, place);
  return {last.begin() + 1, last.end()};
}

} // namespace burin
