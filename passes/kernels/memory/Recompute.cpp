#include "passes/kernels/memory/Recompute.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/ValueChecks.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/analysis/cost/KernelCost.h"
#include "passes/kernels/families/KernelFamily.h"
#include "passes/kernels/fusion/FusionKind.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

using ValueId = MemoryModel::ValueId;

// ---- kernels

void Recipes::clear() {
  known.clear();
  narrowings.clear();
  for (KernelOp kernel : llvm::reverse(made)) // users before definitions
    kernel->erase();
  made.clear();
}

const Recipe &Recipes::of(ValueId value) {
  auto found = known.find(value);
  if (found == known.end())
    found = known.emplace(value, make(value)).first;
  return found->second;
}

Recipe Recipes::make(ValueId id) {
  mlir::Value value = model.values[id].source;
  if (model.values[id].isShared) // two steps make it
    return {};
  const auto made = dyn_cast<OpResult>(value);
  if (auto scan = made ? dyn_cast<ScanOp>(made.getOwner()) : ScanOp())
    return loop(scan, made.getResultNumber());
  auto kernel = value.getDefiningOp<KernelOp>();
  if (!kernel)
    return {};
  const unsigned result = made.getResultNumber();
  if (kernel.getNumResults() > 1)
    for (bool stopsAtResults : {true, false})
      if (KernelOp part = slice(kernel, result, stopsAtResults); part && checksOf(part).empty())
        return finish(part, 0, upperBound(flopsOf(part)).value_or(0));
  return checksOf(kernel).empty() ? finish(kernel, result, upperBound(flopsOf(kernel)).value_or(0)) : Recipe{};
}

namespace {

/// FLOP of the kernels that a loop runs.
int64_t flopsOfLoop(ScanOp scan) {
  int64_t sum = 0;
  for (Operation &op : cast<func::FuncOp>(scan.body()).getBody().front())
    if (auto kernel = dyn_cast<KernelOp>(op))
      sum += upperBound(flopsOf(kernel)).value_or(0);
    else if (auto inner = dyn_cast<ScanOp>(op))
      sum += flopsOfLoop(inner);
  return sum * upperBound(scan.partCount()).value_or(1);
}

} // namespace

Recipe Recipes::loop(ScanOp scan, unsigned result) {
  if (canFail(scan) || !isMemoryEffectFree(scan) || llvm::any_of(scan.getResults(), [&](mlir::Value v) {
        return model.values[model.idOf.lookup(v)].isShared; // the initial states are gone
      }))
    return {};
  Recipe recipe = finish(scan, result, flopsOfLoop(scan));
  for (const MemoryModel::Step &step : model.steps)
    if (step.op == scan)
      recipe.innerBytes = step.innerBytes;
  return recipe;
}

double Recipes::secondsFor(int64_t flops, int64_t bytes) {
  // Rough throughput of one core and overhead of a step: only the ratio matters.
  constexpr double kFlopsPerSecond = 4e10, kBytesPerSecond = 1e10, kStart = 1e-6;
  return std::max(double(flops) / kFlopsPerSecond, double(bytes) / kBytesPerSecond) + kStart;
}

Recipe Recipes::finish(Operation *op, unsigned result, int64_t flops) {
  Recipe recipe{op, result, {}, 0, flops, 0};
  int64_t bytes = 0;
  for (mlir::Value input : op->getOperands()) {
    recipe.inputs.push_back(model.idOf.lookup(storedIn(input)));
    bytes += maxBytes(input).value_or(0);
  }
  for (mlir::Value output : op->getResults())
    bytes += maxBytes(output).value_or(0);
  recipe.seconds = secondsFor(recipe.flops, bytes);
  return recipe;
}

/// A kernel of the ops that one result needs; null if no family accepts it. If `stopsAtResults`, other results of the
/// kernel on the way are operands.
KernelOp Recipes::slice(KernelOp kernel, unsigned result, bool stopsAtResults) {
  Block &body = kernel.getBody().front();
  auto yielded = body.getTerminator()->getOperands();
  llvm::DenseMap<mlir::Value, unsigned> others;
  for (auto [i, v] : llvm::enumerate(yielded))
    if (stopsAtResults && v != yielded[result])
      others.try_emplace(v, unsigned(i));
  llvm::DenseSet<Operation *> needed;
  llvm::SetVector<mlir::Value> leaves;
  SmallVector<mlir::Value> open{yielded[result]};
  while (!open.empty()) {
    mlir::Value v = open.pop_back_val();
    Operation *op = v.getDefiningOp();
    if (!op || others.count(v))
      leaves.insert(v);
    else if (needed.insert(op).second)
      open.append(op->operand_begin(), op->operand_end());
  }
  if (needed.empty() || (stopsAtResults && needed.size() + 1 == body.getOperations().size()))
    return {};
  OpBuilder b(kernel.getContext());
  auto region = std::make_unique<Region>();
  Block &part = region->emplaceBlock();
  IRMapping map;
  SmallVector<mlir::Value> inputs;
  for (mlir::Value leaf : leaves) {
    auto argument = dyn_cast<BlockArgument>(leaf);
    inputs.push_back(argument ? kernel.getInputs()[argument.getArgNumber()] : kernel.getResult(others.lookup(leaf)));
    map.map(leaf, part.addArgument(leaf.getType(), leaf.getLoc()));
  }
  b.setInsertionPointToEnd(&part);
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    if (needed.contains(&op)) {
      b.clone(op, map);
      ops.push_back(&op);
    }
  YieldOp::create(b, kernel.getLoc(), ValueRange{map.lookup(yielded[result])});
  if (!isKernelBody(KernelBody(part, SizeClasses(kernel))))
    return {};
  OpBuilder detached(kernel.getContext());
  auto made = KernelOp::create(detached, yielded[result].getLoc(), TypeRange{kernel.getResult(result).getType()},
                               inputs, detached.getStringAttr(kernelName(ops)), DenseI64ArrayAttr());
  made.getBody().takeBody(*region);
  this->made.push_back(made);
  return made;
}

KernelOp Recipes::castKernel(mlir::Value from, DType to) {
  OpBuilder b(from.getContext());
  auto type = tensorType(b.getContext(), {to, shapeOf(from)});
  auto kernel = KernelOp::create(b, from.getLoc(), TypeRange{type}, ValueRange{from}, b.getStringAttr("cast"),
                                 DenseI64ArrayAttr());
  Block &body = kernel.getBody().emplaceBlock();
  b.setInsertionPointToEnd(&body);
  mlir::Value cast =
      create<CastOp>(b, from.getLoc(), {body.addArgument(from.getType(), from.getLoc())}, {{"dtype", to}});
  YieldOp::create(b, from.getLoc(), ValueRange{cast});
  made.push_back(kernel);
  return kernel;
}

const Recipes::Narrowing &Recipes::narrowing(ValueId value) {
  auto found = narrowings.find(value);
  if (found != narrowings.end())
    return found->second;
  mlir::Value source = model.values[value].source;
  Narrowing n;
  n.down = finish(castKernel(source, DType::bf16), 0, 0);
  mlir::Value narrow = n.down.op->getResult(0);
  model.idOf[narrow] = model.add({narrow, maxBytes(narrow).value_or(0), true});
  n.up = finish(castKernel(narrow, dtypeOf(source)), 0, 0);
  return narrowings.emplace(value, std::move(n)).first->second;
}

// ---- functions

namespace {

/// Gives a copied loop copies of the functions that it runs, as each loop needs its own.
void copyFunctions(Operation *op, SymbolTable &symbols) {
  const SmallVector<NamedAttribute> attributes(op->getAttrs());
  for (NamedAttribute attribute : attributes) {
    auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
    auto function = name ? symbols.lookup<func::FuncOp>(name.getValue()) : func::FuncOp();
    if (!function)
      continue;
    func::FuncOp copy = function.clone();
    symbols.insert(copy); // under a new name
    op->setAttr(attribute.getName(), FlatSymbolRefAttr::get(copy.getSymNameAttr()));
    copy.walk([&](Operation *inner) { copyFunctions(inner, symbols); });
  }
}

class Application {
public:
  Application(func::FuncOp function, const MemoryModel &model)
      : block(function.getBody().front()), model(model), symbols(function->getParentOfType<ModuleOp>()) {}

  void run() {
    SmallVector<Operation *> constants; // placing moves them to the end of the block
    for (auto constant : block.getOps<ConstantOp>())
      constants.push_back(constant);
    for (Operation *constant : constants)
      place(constant);
    for (ValueId v = 0; v < model.values.size(); ++v)
      current[v] = model.values[v].source;
    for (const MemoryModel::Step &step : model.steps) {
      // Repeated kernels and recipes are cloned.
      const bool isCopy = step.op->getBlock() != &block || placed.contains(step.op);
      Operation *op = isCopy ? step.op->clone() : step.op;
      if (isCopy && isa<ScanOp>(op))
        copyFunctions(op, symbols);
      for (auto [i, v] : llvm::enumerate(step.inputs))
        op->setOperand(unsigned(i), viewOf(op->getOperand(unsigned(i)), v));
      place(op);
      for (auto [v, result] : llvm::zip(step.results, op->getResults()))
        current[v] = result;
    }
    Operation *end = block.getTerminator();
    for (OpOperand &operand : end->getOpOperands())
      operand.set(viewOf(operand.get(), model.idOf.lookup(storedIn(operand.get()))));
  }

  void eraseOthers() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (&op != block.getTerminator() && !placed.contains(&op))
        op.erase();
  }

private:
  void place(Operation *op) {
    if (op->getBlock())
      op->moveBefore(block.getTerminator());
    else
      block.getOperations().insert(block.getTerminator()->getIterator(), op);
    placed.insert(op);
  }

  /// `operand` is a view of some value; returns the same view of version `version` of that value.
  mlir::Value viewOf(mlir::Value operand, ValueId version) {
    mlir::Value source = storedIn(operand), wanted = current.lookup(version);
    SmallVector<Operation *> views;
    for (mlir::Value v = operand; v != source; v = v.getDefiningOp()->getOperand(0))
      views.push_back(v.getDefiningOp());
    if (wanted == source) {
      for (Operation *view : llvm::reverse(views))
        if (!placed.contains(view))
          place(view);
      return operand;
    }
    mlir::Value &known = shown[{operand, version}];
    if (known)
      return known;
    IRMapping map;
    map.map(source, wanted);
    for (Operation *view : llvm::reverse(views))
      place(view->clone(map));
    return known = map.lookup(operand);
  }

  Block &block;
  const MemoryModel &model;
  SymbolTable symbols;
  llvm::DenseMap<ValueId, mlir::Value> current; // per version: its value in the function
  llvm::DenseMap<std::pair<mlir::Value, ValueId>, mlir::Value> shown;
  llvm::DenseSet<Operation *> placed;
};

} // namespace

void removeUnused(MemoryModel &model) {
  std::vector<uint32_t> uses(model.values.size());
  for (const MemoryModel::Step &step : model.steps)
    for (ValueId v : step.inputs)
      ++uses[v];
  for (size_t at = model.steps.size(); at-- > 0;) {
    const MemoryModel::Step &step = model.steps[at];
    auto kernel = dyn_cast<KernelOp>(step.op);
    if (!kernel || !checksOf(kernel).empty() ||
        !llvm::all_of(step.results, [&](ValueId v) { return model.values[v].isBuffer && uses[v] == 0; }))
      continue;
    for (ValueId v : step.inputs)
      --uses[v];
    model.steps.erase(model.steps.begin() + ptrdiff_t(at));
  }
}

void applySteps(func::FuncOp function, const MemoryModel &model, Recipes &recipes) {
  Application application(function, model);
  application.run();
  recipes.clear();
  application.eraseOthers();
}

} // namespace burin::passes
