// Batch tiling: layers whose activations are larger than their weights run one part of the batch after the other,
// several layers in a row. The output of a layer is still in cache when the next layer reads it, memory holds one part
// instead of the whole batch, threads work on different parts, and code for a symbolic batch is the code for batch 1.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/BatchSemantics.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_BATCHTILINGPASS
#include "passes/Passes.h.inc"

namespace {

/// Consecutive ops that can work on parts.
using Run = llvm::SetVector<Operation *>;

class Splitter {
public:
  Splitter(func::FuncOp function, const Dim &parts, int64_t leastGain)
      : function(function), parts(parts), leastGain(leastGain) {}

  void run() {
    for (Run &run : findRuns())
      if (Run best = mostWorthwhile(run); !best.empty())
        split(best);
    sortByDependence(function.getBody().front());
  }

private:
  // ---- what can be split
  SmallVector<Run> findRuns() {
    SmallVector<Run> runs(1);
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<ConstantOp>(op) || isFree(&op))
        continue;
      members = &runs.back();
      if (canSplit(&op)) {
        runs.back().insert(&op);
      } else {
        runs.emplace_back();
      }
    }
    return runs;
  }

  bool canSplit(Operation *op) {
    auto sliced = slicedOperands(op, parts);
    return sliced && llvm::all_of(llvm::zip(op->getOperands(), *sliced), [&](auto operand) {
             return std::get<1>(operand) ? canSlice(std::get<0>(operand)) : isWhole(std::get<0>(operand));
           });
  }

  /// Whether the body can get a part of `v`: from a member, a free op, or a sliced input.
  bool canSlice(Value v) {
    Operation *op = v.getDefiningOp();
    if (op && members->contains(op))
      return true;
    if (op && isFree(op) && canSplit(op))
      return true;
    return hasParts(v, parts) && isWhole(v);
  }

  /// Whether `v` does not depend on members.
  bool isWhole(Value v) {
    Operation *op = v.getDefiningOp();
    return !op || (!members->contains(op) &&
                   (!isFree(op) || llvm::all_of(op->getOperands(), [&](Value x) { return isWhole(x); })));
  }

  // ---- selection of layers to split
  /// The consecutive ops that save the most: activations that stay in cache, minus weights that are read again for
  /// every part.
  Run mostWorthwhile(const Run &run) {
    int64_t best = leastGain, sum = 0, weights = 0;
    size_t from = 0, begin = 0, end = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      sum += gain(run, run[i], weights);
      if (sum < 0) {
        sum = weights = 0;
        from = i + 1;
      } else if (sum >= best) { // includes the free ops after the last product
        best = sum;
        begin = from;
        end = i + 1;
      }
    }
    return Run(run.begin() + begin, run.begin() + end);
  }

  /// Bytes that tiling saves by `op`, per part. `weights`: bytes of weights that the run keeps in cache so far.
  int64_t gain(const Run &run, Operation *op, int64_t &weights) {
    if (!readsMemory(op))
      return 0;
    int64_t bytes = 0, own = 0;
    auto sliced = slicedOperands(op, parts);
    for (auto [operand, isPart] : llvm::zip(op->getOperands(), *sliced))
      if (!isPart)
        own += bytesOf(operand.getType());
      else if (run.contains(skipReshapes(operand).getDefiningOp()))
        bytes += 2 * bytesOf(partType(operand, parts)); // written and read
    if (isa<ContractOp>(op) && rowsOfPart(op->getResult(0)) < kComputeBoundRows)
      return bytes - own;
    int64_t cached = std::min(own, std::max<int64_t>(kCachedBytes - weights, 0));
    weights += own;
    return bytes - (own - cached);
  }

  int64_t rowsOfPart(Value product) {
    Shape shape = specOf(partType(product, parts)).shape;
    return sizeOf(elements(Shape(shape.begin(), shape.end() - 1)));
  }

  static int64_t bytesOf(Type type) {
    TensorSpec spec = specOf(type);
    return sizeOf(elements(spec.shape)) * int64_t(byteWidth(spec.dtype));
  }
  static int64_t sizeOf(const Dim &size) {
    return size.evaluate([](std::string_view) { return std::optional<int64_t>(kTypicalSize); }).value_or(0);
  }

  // ---- the rewrite
  void split(const Run &run) {
    members = &run;
    OpBuilder b(function.getContext());
    mlir::Location loc = run[0]->getLoc();
    b.setInsertionPointAfter(function);
    std::string name;
    do
      name = (function.getName() + "_part" + llvm::Twine(number++)).str();
    while (SymbolTable::lookupNearestSymbolFrom(function, b.getStringAttr(name)));
    auto body = func::FuncOp::create(b, loc, name, b.getFunctionType({}, {}));
    body.setPrivate();
    inner = OpBuilder::atBlockEnd(body.addEntryBlock());
    whole.clear(), part.clear(), slicedInputs.clear(), wholeInputs.clear();
    SmallVector<Value> results, yielded;
    for (Operation *op : run) {
      Operation *clone = build(op);
      for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults())) {
        part[from] = to;
        if (neededOutside(from)) {
          results.push_back(from);
          yielded.push_back(to);
        }
      }
    }
    func::ReturnOp::create(inner, loc, yielded);
    body.setFunctionType(b.getFunctionType(body.front().getArgumentTypes(), ValueRange(yielded).getTypes()));
    b.setInsertionPointAfter(run.back());
    SmallVector<Value> inputs(slicedInputs);
    inputs.append(wholeInputs);
    auto count = cast<ArrayAttr>(toMlir(b.getContext(), Attr(Shape{parts})));
    auto scan = ScanOp::create(b, loc, ValueRange(results).getTypes(), name, inputs, slicedInputs.size(), count);
    for (auto [from, to] : llvm::zip(results, scan.getResults()))
      from.replaceAllUsesWith(to);
    eraseDead();
  }

  Operation *build(Operation *op) {
    SmallVector<Value> operands;
    auto sliced = slicedOperands(op, parts);
    for (auto [operand, isPart] : llvm::zip(op->getOperands(), *sliced))
      operands.push_back(isPart ? partOf(operand) : wholeOf(operand));
    return createPart(inner, op, operands, parts);
  }

  Value partOf(Value v) {
    if (Value known = part.lookup(v))
      return known;
    Operation *op = v.getDefiningOp();
    if (op && isFree(op) && canSplit(op))
      return part[v] = build(op)->getResult(cast<OpResult>(v).getResultNumber());
    Block &body = *inner.getBlock();
    Value argument = body.insertArgument(slicedInputs.size(), partType(v, parts), v.getLoc());
    slicedInputs.push_back(v);
    return part[v] = argument;
  }

  Value wholeOf(Value v) {
    if (Value known = whole.lookup(v))
      return known;
    Operation *op = v.getDefiningOp();
    if (op && (isa<ConstantOp>(op) || isFree(op))) {
      IRMapping map;
      for (Value operand : op->getOperands())
        map.map(operand, wholeOf(operand));
      return whole[v] = inner.clone(*op, map)->getResult(0);
    }
    wholeInputs.push_back(v);
    return whole[v] = inner.getBlock()->addArgument(v.getType(), v.getLoc());
  }

  /// Whether `v` is used outside of the body. Free ops are not members: they stay, and count if they have such users.
  bool neededOutside(Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      if (members->contains(user))
        return false;
      return !isFree(user) || neededOutside(user->getResult(0));
    });
  }

  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (op.use_empty() && (members->contains(&op) || isFree(&op)))
        op.erase();
  }

  func::FuncOp function;
  Dim parts;
  int64_t leastGain;
  const Run *members = nullptr;
  OpBuilder inner{function.getContext()}; // inserts into the body being built
  llvm::DenseMap<Value, Value> whole, part;
  SmallVector<Value> slicedInputs, wholeInputs;
  int number = 0;
};

struct BatchTilingPass : impl::BatchTilingPassBase<BatchTilingPass> {
  using BatchTilingPassBase::BatchTilingPassBase;
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    llvm::DenseSet<Operation *> bodies; // plans have no nested loops
    getOperation().walk([&](ScanOp scan) { bodies.insert(scan.body()); });
    llvm::erase_if(functions, [&](func::FuncOp function) { return bodies.contains(function); });
    for (func::FuncOp function : functions)
      for (const Dim &size : batchSizes(function))
        Splitter(function, size, leastGain).run();
  }

  /// Leading sizes of the inputs, except those of vectors.
  static SmallVector<Dim> batchSizes(func::FuncOp function) {
    SmallVector<Dim> sizes;
    if (!function.isExternal())
      for (Value argument : function.getArguments())
        if (Shape shape = shapeOf(argument);
            shape.size() > 1 && !isOne(shape[0]) && !llvm::is_contained(sizes, shape[0]))
          sizes.push_back(shape[0]);
    return sizes;
  }
  static bool isOne(const Dim &size) { return size.isStatic() && size.value() <= 1; }
};

} // namespace

} // namespace burin::passes
