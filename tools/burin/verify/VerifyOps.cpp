#include "tools/burin/verify/VerifyOps.h"
#include "ir/reference/Reference.h"
#include "tools/burin/Progress.h"
#include "tools/burin/Table.h"
#include "tools/burin/verify/GraphCut.h"

using namespace mlir;

namespace burin::cli {
namespace {

/// Number of ops that are compiled together. More than one, so that fusion is tested too; few, as every result of a
/// group is kept in memory.
constexpr size_t kOpsAtOnce = 16;

double largest(const ir::RefTensor &t) {
  double result = 1;
  if (isFloat(t.dtype))
    for (double x : t.reals())
      if (std::isfinite(x))
        result = std::max(result, std::abs(x));
  return result;
}

class Walk {
public:
  Walk(OpCheck &check, ModuleOp module, const std::vector<rt::NpyArray> &inputs) : check(check), main(mainOf(module)) {
    std::vector<std::vector<int64_t>> shapes;
    for (auto [v, array] : llvm::zip(main.getArguments(), inputs)) {
      values[v] = {array, toReference(valuesOf(array))};
      shapes.push_back(array.shape);
    }
    sizes = sizesOf(module, shapes);
    ops = computingOps(main);
    for (auto [i, op] : llvm::enumerate(ops))
      for (Value v : op->getOperands())
        lastUse[v] = i;
    for (Value v : main.front().getTerminator()->getOperands())
      lastUse[v] = ops.size();
  }

  bool run() {
    Progress progress;
    for (size_t first = 0; first < ops.size(); first += kOpsAtOnce) {
      progress.say(std::to_string(first) + " of " + std::to_string(ops.size()) + " ops");
      if (!part(first, std::min(first + kOpsAtOnce, ops.size())))
        return false;
    }
    return outputs();
  }

private:
  struct Pair {
    rt::NpyArray compiled;
    ir::RefTensor reference;
  };

  /// Checks the ops [first, end), whose operands have known values.
  bool part(size_t first, size_t end) {
    ArrayRef<Operation *> chosen = ArrayRef(ops).slice(first, end - first);
    SmallVector<Value> results;
    for (Operation *op : chosen)
      llvm::append_range(results, op->getResults());
    GraphCut cut = cutGraph(chosen, results);
    std::vector<rt::NpyArray> inputs;
    std::vector<ir::RefTensor> reference;
    for (Value v : cut.inputs) {
      inputs.push_back(values[v].compiled);
      reference.push_back(values[v].reference);
    }
    for (const std::string &symbol : cut.symbols) {
      inputs.push_back(run::filled(DType::i8, {sizes[symbol]}, 0));
      reference.push_back(toReference(valuesOf(inputs.back())));
    }
    OwningOpRef<ModuleOp> consumed = cut.module->clone();
    auto got = compileAndRun(*consumed, check.compile, inputs, check.threads);
    if (!got || !compareLocally(*cut.module, inputs, *got))
      return false;
    auto expected = ir::interpret(*cut.module, reference);
    if (failed(expected))
      return false;
    keep(results, std::move(*got), std::move(*expected), end);
    return true;
  }

  /// Interprets each op on the operands that the compiled code had. After each comparison the compiled results replace
  /// those of the interpreter, so that errors do not accumulate.
  bool compareLocally(ModuleOp module, const std::vector<rt::NpyArray> &inputs, const std::vector<rt::NpyArray> &got) {
    std::vector<ir::RefTensor> operands;
    for (const rt::NpyArray &array : inputs)
      operands.push_back(toReference(valuesOf(array)));
    Block *body = &mainOf(module).front();
    size_t next = 0;
    auto onOp = [&](Operation *op, MutableArrayRef<ir::RefTensor> results) {
      if (op->getBlock() != body || isa<ir::ConstantOp>(op))
        return;
      for (ir::RefTensor &result : results) {
        const rt::NpyArray &array = got[next++];
        check.outcomes.push_back(outcome(op, array, result));
        result = toReference(valuesOf(array));
      }
    };
    return succeeded(ir::interpret(module, operands, onOp));
  }

  OpOutcome outcome(Operation *op, const rt::NpyArray &got, const ir::RefTensor &expected) {
    OpOutcome o{op->getName().stripDialect().str(),
                ir::fileLine(op->getLoc()),
                run::typeText(got.dtype, got.shape),
                0,
                0,
                {},
                {}};
    double unit = largest(expected);
    o.tolerance = check.tolerance.of(got.dtype);
    if (got.shape != expected.shape) { // a data-dependent shape that is wrong
      o.difference.index = 0;
      o.local = INFINITY;
      return o;
    }
    o.difference = compare(valuesOf(got), expected, {o.tolerance.rtol, o.tolerance.atol * unit});
    o.local = o.difference.worstAbsolute / unit;
    return o;
  }

  /// Adds the accumulated error of each result to its outcome, and keeps the values that later groups read.
  void keep(ArrayRef<Value> results, std::vector<rt::NpyArray> got, std::vector<ir::RefTensor> expected, size_t end) {
    OpOutcome *outcomes = check.outcomes.data() + check.outcomes.size() - results.size();
    for (size_t i = 0; i < results.size(); ++i) {
      outcomes[i].accumulated =
          got[i].shape == expected[i].shape
              ? compare(valuesOf(got[i]), expected[i], outcomes[i].tolerance).worstAbsolute / largest(expected[i])
              : INFINITY; // a data-dependent shape that differs, as its data does
      if (auto size = ir::newSizeOf(results[i].getDefiningOp()))
        sizes[size->str()] = got[i].shape[0];
      values[results[i]] = {std::move(got[i]), std::move(expected[i])};
    }
    std::erase_if(values, [&](auto &entry) {
      auto use = lastUse.find(entry.first);
      return use == lastUse.end() || use->second < end;
    });
  }

  bool outputs() {
    for (Value v : main.front().getTerminator()->getOperands()) {
      if (auto known = values.find(v); known != values.end()) {
        check.expected.push_back(known->second.reference);
        continue;
      }
      auto constant = ir::evaluate(v.getDefiningOp(), {});
      if (failed(constant))
        return false;
      check.expected.push_back(std::move(constant->front()));
    }
    return true;
  }

  struct ByPointer {
    bool operator()(Value a, Value b) const { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); }
  };

  OpCheck &check;
  func::FuncOp main;
  Sizes sizes;
  std::vector<Operation *> ops;
  llvm::DenseMap<Value, size_t> lastUse; // index of the last op that reads the value
  std::map<Value, Pair, ByPointer> values;
};

} // namespace

bool OpCheck::run(ModuleOp module, const std::vector<rt::NpyArray> &inputs) {
  return Walk(*this, module, inputs).run();
}

void printOps(const std::vector<OpOutcome> &outcomes) {
  Table table({"op", "source", "type", "local error", "accumulated", ""});
  for (const OpOutcome &o : outcomes)
    table.row({o.op, o.source, o.type, scientific(o.local), scientific(o.accumulated),
               o.difference.index < 0 ? "ok" : "DIFFERS"});
  table.printRows();
}

} // namespace burin::cli
