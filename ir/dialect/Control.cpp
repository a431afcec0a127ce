// States, and the ops that call functions of the module: if, while and scan.
#include "ir/dialect/Carried.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace burin::ir;

// ---- states

LogicalResult StateOp::verify() {
  std::string error;
  if (!trySpecOf(getType(), error))
    return emitOpError("of type ") << getType() << ' ' << error;
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("of type ") << type << " needs a fixed shape";
  if (!getInitial())
    return success();
  if (getInitial()->getType() != type)
    return emitOpError("of type ") << type << " starts as " << getInitial()->getType();
  std::vector<char> storage;
  uint64_t bytes = type.getNumElements() * burin::byteWidth(*dtypeOf(type.getElementType()));
  if (constantBytes(*getInitial(), storage).size() != bytes)
    return emitOpError("of type ") << type << " needs an initial value of " << bytes << " bytes";
  return success();
}

/// Checks that value `index` of `types` has the type of the state that `attribute` names, and that no other value has
/// the same state; `attributeOf` returns the attributes of the other values.
static LogicalResult verifyState(Operation *op, StringRef what, unsigned index, NamedAttribute attribute,
                                 TypeRange types, llvm::function_ref<Attribute(unsigned)> attributeOf) {
  if (attribute.getName() != kStateAttr)
    return success();
  auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
  auto state = symbol ? SymbolTable::lookupNearestSymbolFrom<StateOp>(op, symbol) : StateOp();
  auto complain = [&]() { return op->emitError(what) << ' ' << index << ' '; };
  if (!state)
    return complain() << "is the state " << attribute.getValue() << ", which is not in this module";
  if (state.getType() != types[index])
    return complain() << "of type " << types[index] << " is the state " << symbol << " of type " << state.getType();
  for (unsigned i = 0; i < types.size(); ++i) {
    if (i > index && !attributeOf(i))
      return complain() << "is a state, so those behind it must be states, too";
    if (i < index && attributeOf(i) == symbol)
      return complain() << "is the state " << symbol << ", which " << what << ' ' << i << " is already";
  }
  return success();
}

LogicalResult BurinDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned index,
                                                     NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return success();
  return verifyState(op, "argument", index, attribute, function.getArgumentTypes(),
                     [&](unsigned i) { return function.getArgAttr(i, kStateAttr); });
}

LogicalResult BurinDialect::verifyRegionResultAttribute(Operation *op, unsigned region, unsigned index,
                                                        NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return success();
  return verifyState(op, "result", index, attribute, function.getResultTypes(),
                     [&](unsigned i) { return function.getResultAttr(i, kStateAttr); });
}

// ---- functions that ops call

static Operation *functionOf(Operation *op, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name);
}

SmallVector<Operation *, 2> burin::ir::appliedFunctions(Operation *op) {
  if (auto scan = dyn_cast<ScanOp>(op))
    return {scan.body()};
  if (auto branches = dyn_cast<IfOp>(op))
    return {branches.branch(true), branches.branch(false)};
  if (auto loop = dyn_cast<WhileOp>(op))
    return {loop.conditionFunction(), loop.bodyFunction()};
  return {};
}

bool burin::ir::isOwnStep(Operation *op) { return isa<ScanOp, IfOp, WhileOp, DebugPrintOp, HostCallOp>(op); }

static bool haveEffects(ArrayRef<Operation *> functions, llvm::SmallPtrSetImpl<Operation *> &seen) {
  return llvm::any_of(functions, [&](Operation *function) {
    auto visit = [&](Operation *op) {
      bool any = isa<DebugPrintOp, HostCallOp>(op) || haveEffects(appliedFunctions(op), seen);
      return any ? WalkResult::interrupt() : WalkResult::advance();
    };
    return function && seen.insert(function).second && function->walk(visit).wasInterrupted();
  });
}

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;
static void addEffects(Operation *op, Effects &effects) {
  llvm::SmallPtrSet<Operation *, 8> seen;
  if (haveEffects(appliedFunctions(op), seen))
    effects.emplace_back(MemoryEffects::Write::get());
}
void IfOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void WhileOp::getEffects(Effects &effects) { addEffects(*this, effects); }
void ScanOp::getEffects(Effects &effects) { addEffects(*this, effects); }

std::vector<func::FuncOp> burin::ir::publicFunctions(ModuleOp module) {
  std::vector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      functions.insert(function.getName() == "main" ? functions.begin() : functions.end(), function);
  return functions;
}

func::FuncOp burin::ir::mainFunction(ModuleOp module) {
  std::vector<func::FuncOp> functions = publicFunctions(module);
  return functions.empty() ? func::FuncOp() : functions.front();
}

/// Checks that `name` is a function with a body from `arguments` to `results`.
static LogicalResult verifyApplied(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                                   TypeRange arguments, TypeRange results) {
  auto function = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!function || function.isExternal())
    return op->emitOpError("applies ") << name << ", which has no body here";
  if (TypeRange(function.getArgumentTypes()) == arguments && TypeRange(function.getResultTypes()) == results)
    return success();
  return op->emitOpError("needs ") << name << " to be " << FunctionType::get(op->getContext(), arguments, results)
                                   << "; it is " << function.getFunctionType();
}

static RankedTensorType boolType(MLIRContext *context) { return tensorType(context, {burin::DType::boolean, {}}); }

// ---- if

Operation *IfOp::branch(bool condition) { return functionOf(*this, condition ? getThenAttr() : getOtherwiseAttr()); }

LogicalResult IfOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getCondition().getType() != boolType(getContext()))
    return emitOpError("needs one bool to choose by, not ") << getCondition().getType();
  for (FlatSymbolRefAttr name : {getThenAttr(), getOtherwiseAttr()})
    if (failed(verifyApplied(*this, symbols, name, getInputs().getTypes(), getResultTypes())))
      return failure();
  return success();
}

namespace {
/// Replaces an `if` with a constant condition by the ops of the branch.
struct InlineKnownBranch : OpRewritePattern<IfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(IfOp op, PatternRewriter &rewriter) const override {
    std::optional<double> condition = uniformValue(op.getCondition());
    auto function = condition ? cast_or_null<func::FuncOp>(op.branch(*condition != 0)) : func::FuncOp();
    if (!function || function.isExternal())
      return failure();
    Block &block = function.front();
    IRMapping map;
    map.map(block.getArguments(), op.getInputs());
    for (Operation &inner : block.without_terminator())
      rewriter.clone(inner, map);
    SmallVector<Value> results;
    for (Value result : block.getTerminator()->getOperands())
      results.push_back(map.lookup(result));
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void IfOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<InlineKnownBranch>(context);
}

// ---- while

Operation *WhileOp::conditionFunction() { return functionOf(*this, getConditionAttr()); }
Operation *WhileOp::bodyFunction() { return functionOf(*this, getBodyAttr()); }

LogicalResult WhileOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t carried = getCarried(), inputs = getInputs().size();
  if (carried < 0 || carried > inputs || int64_t(getNumResults()) != carried)
    return emitOpError("carries ") << carried << " values, but has " << inputs << " inputs and " << getNumResults()
                                   << " results";
  TypeRange types = getInputs().getTypes(), kept = types.take_front(size_t(carried));
  if (TypeRange(getResultTypes()) != kept)
    return emitOpError("carries ") << kept << " but its results are " << getResultTypes();
  Type condition = boolType(getContext());
  if (failed(verifyApplied(*this, symbols, getConditionAttr(), types, condition)))
    return failure();
  return verifyApplied(*this, symbols, getBodyAttr(), types, kept);
}

// ---- scan

burin::Dim ScanOp::partCount() { return std::get<burin::Shape>(*fromMlir(getPartsAttr(), AttrKind::Shape)).front(); }

Operation *ScanOp::body() { return functionOf(*this, getCalleeAttr()); }

/// Whether dimension 0 of `whole` is `count` times that of the part, and the other sizes are equal.
static bool isMadeOf(Type whole, Type part, const burin::Dim &count) {
  burin::TensorSpec a = specOf(part), b = specOf(whole);
  if (a.shape.empty() || b.shape.empty())
    return false;
  a.shape[0] = a.shape[0] * count;
  return a == b;
}

LogicalResult ScanOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee || callee.isExternal())
    return emitOpError("applies ") << getCalleeAttr() << ", which has no body here";
  int64_t states = getStates(), sliced = getSliced(), inputs = getInputs().size();
  if (getParts().size() != 1 || states < 0 || sliced < 0 || states > inputs || sliced > inputs - states ||
      states > getNumResults())
    return emitOpError("needs one number of parts, and as many operands as `states` and `sliced` say");
  burin::Dim parts = partCount();
  auto fits = [](TypeRange wholes, TypeRange ofBody, auto timesAt) {
    if (wholes.size() != ofBody.size())
      return false;
    for (auto [i, whole, part] : llvm::enumerate(wholes, ofBody)) {
      std::optional<burin::Dim> times = timesAt(int64_t(i));
      if (times ? !isMadeOf(whole, part, *times) : whole != part)
        return false;
    }
    return true;
  };
  auto ofOperand = [&](int64_t i) {
    return i < states ? std::optional(burin::Dim(1)) : i < states + sliced ? std::optional(parts) : std::nullopt;
  };
  auto ofResult = [&](int64_t i) {
    return std::optional(i >= states ? parts : isCarried(*this, i) ? burin::Dim(1) : parts + 1);
  };
  bool keepsStates = callee.getNumArguments() >= states && callee.getNumResults() >= states &&
                     callee.getArgumentTypes().take_front(states) == callee.getResultTypes().take_front(states);
  if (!keepsStates || !fits(getInputs().getTypes(), callee.getArgumentTypes(), ofOperand) ||
      !fits(getResultTypes(), callee.getResultTypes(), ofResult))
    return emitOpError("of ") << getInputs().getTypes() << " to " << getResultTypes() << " does not fit "
                              << getCalleeAttr() << " with " << getParts() << " parts and " << states
                              << " states; it is " << callee.getFunctionType();
  return success();
}
