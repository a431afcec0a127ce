#include "codegen/plan/BufferOrder.h"
#include "codegen/plan/PlanTables.h"
#include "ir/dialect/Carried.h"
#include "ir/dialect/SizePlaces.h"
#include "passes/Passes.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/ValueChecks.h"
#include "passes/analysis/cost/BufferReuse.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/analysis/cost/KernelCost.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Plans one function.
class PlanBuilder {
public:
  PlanBuilder(func::FuncOp function, PlanTables &tables, uint32_t index)
      : function(function), tables(tables), plan(tables.plan(index)) {}

  LogicalResult build() {
    plan.name = function.getName().str();
    plan.isPrivate = function.isPrivate();
    if (failed(signature()))
      return failure();
    Block &body = function.getBody().front();
    assignOutputs(body.getTerminator());
    if (failed(addSteps(body)))
      return failure();
    if (!unknown.empty())
      return function.emitError() << "needs the size '" << unknown
                                  << "', but no input has a dimension that is just that";
    if (failed(addOutputs()) || failed(addChecks()))
      return failure();
    updateInPlace();
    orderBuffers(plan, bufferBytes);
    return success();
  }

private:
  LogicalResult addSteps(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto kernel = dyn_cast<KernelOp>(op)) {
        addStep(kernel);
      } else if (auto scan = dyn_cast<ScanOp>(op)) {
        if (failed(addLoop(scan)))
          return failure();
      } else if (isa<IfOp, WhileOp>(op)) {
        addFunctions(&op);
      } else if (isa<DebugPrintOp, HostCallOp>(op)) {
        addHostCall(&op);
      } else if (auto prefix = dyn_cast<PrefixOp>(op)) {
        if (failed(addComputedSize(prefix)))
          return failure();
      } else if (!isa<ConstantOp>(op) && passes::skipReshapes(op.getResult(0)) == op.getResult(0)) {
        return op.emitError("neither constant, view nor kernel is left for the launch plan");
      }
    }
    return success();
  }

  // ---- sizes
  rt::ExprId expr(const Dim &size) {
    auto [it, inserted] = exprs.try_emplace(size.str(), plan.exprs.size());
    if (inserted) {
      rt::Expr e;
      for (const Dim::Postfix &step : size.toPostfix()) {
        auto op = static_cast<rt::Expr::Op>(step.op);
        if (op == rt::Expr::Op::Symbol && !isKnown(step.symbol))
          unknown = step.symbol;
        e.program.push_back({op, op == rt::Expr::Op::Symbol ? symbols.lookup(step.symbol) : step.value});
      }
      plan.exprs.push_back(std::move(e));
    }
    return it->second;
  }
  /// Private functions get all their sizes from their callers.
  bool isKnown(const std::string &name) {
    if (plan.isPrivate && symbols.try_emplace(name, plan.symbols.size()).second) {
      rt::Symbol symbol;
      symbol.name = name;
      symbol.kind = rt::Symbol::Kind::Passed;
      plan.symbols.push_back(std::move(symbol));
    }
    return symbols.count(name);
  }

  // ---- signature
  LogicalResult signature() {
    // Prefers dimensions that are a symbol alone.
    for (bool plain : {true, false})
      for (BlockArgument argument : function.getArguments())
        if (!plan.isPrivate)
          readSymbols(argument, plain);
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (failed(checkSizes(argument, "input " + llvm::Twine(i))))
        return failure();
      auto state = function.getArgAttrOfType<FlatSymbolRefAttr>(i, kStateAttr);
      plan.inputs.push_back(infoOf(argument, function.getArgAttr(i, "burin.name"), "input" + llvm::Twine(i)));
      if (state) {
        plan.stateInputs.push_back(tables.state(state));
        plan.inputs.back().name = state.getValue().str();
      }
      slots[argument] = {rt::Slot::Kind::Input, i};
    }
    return success();
  }

  /// Reads symbols from the inputs: from the first dimension that is the symbol alone, or else from the first one that
  /// is linear in it.
  void readSymbols(BlockArgument argument, bool plain) {
    for (auto [axis, size] : llvm::enumerate(shapeOf(argument))) {
      std::optional<Dim::Linear> linear = size.linear();
      if (!linear || (plain && !size.symbol()) || !symbols.try_emplace(linear->symbol.name, plan.symbols.size()).second)
        continue;
      rt::Symbol symbol;
      symbol.name = linear->symbol.name;
      symbol.min = linear->symbol.min;
      symbol.max = linear->symbol.max;
      symbol.input = argument.getArgNumber();
      symbol.axis = axis;
      symbol.scale = linear->scale;
      symbol.offset = linear->offset;
      if (auto places = function->getAttrOfType<DictionaryAttr>(kSizePlacesAttr))
        if (auto place = places.getAs<StringAttr>(symbol.name))
          symbol.location = tables.location(place.str());
      plan.symbols.push_back(symbol);
    }
  }
  // After all steps are planned, because they may define sizes.
  LogicalResult addOutputs() {
    for (auto [i, v] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
      if (failed(checkSizes(v, "output " + llvm::Twine(i))))
        return failure();
      plan.outputs.push_back(infoOf(v, function.getResultAttr(i, "burin.name"), "output" + llvm::Twine(i)));
      if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(i, kStateAttr)) {
        plan.stateOutputs.push_back({tables.state(state), rt::StateOutput::Update::Replace});
        plan.outputs.back().name = state.getValue().str() + ".new";
      }
    }
    return success();
  }

  LogicalResult checkSizes(Value v, const llvm::Twine &what) {
    for (const Dim &size : shapeOf(v))
      for (const auto &[name, min, max, where] : size.symbols())
        if (!isKnown(name))
          return function.emitError() << what << " has the size '" << size.str()
                                      << "', but no input has a dimension that tells '" << name
                                      << "'; give one input that dimension, or make the size a number";
    return success();
  }

  rt::TensorInfo infoOf(Value v, Attribute name, const llvm::Twine &fallback) {
    rt::TensorInfo tensor;
    auto text = dyn_cast_or_null<StringAttr>(name);
    tensor.name = text ? text.str() : fallback.str();
    tensor.dtype = dtypeOf(v);
    for (const Dim &size : shapeOf(v))
      tensor.dims.push_back(expr(size));
    tensor.location = tables.location(v.getLoc());
    return tensor;
  }

  // The steps planned so far compute the count; the following ones may use the size.
  LogicalResult addComputedSize(PrefixOp prefix) {
    if (loop || plan.isPrivate)
      return prefix.emitError("a size depends on data within a loop or branch, which has one plan for all its runs; "
                              "compute it before, or keep the size and mask what is not wanted");
    rt::Symbol symbol;
    symbol.name = newSizeOf(prefix)->str();
    symbol.kind = rt::Symbol::Kind::Computed;
    symbol.count = slotOf(prefix.getCount());
    symbol.step = plan.steps.size();
    symbol.limit = expr(shapeOf(prefix.getX())[0]);
    symbol.location = tables.location(prefix.getLoc());
    if (symbol.count.kind == rt::Slot::Kind::Buffer)
      plan.buffers[symbol.count.index].lastStep = symbol.step - 1;
    if (!symbols.try_emplace(symbol.name, plan.symbols.size()).second)
      return prefix.emitError() << "defines the size '" << symbol.name << "', which is known already";
    plan.symbols.push_back(std::move(symbol));
    return success();
  }

  // Assumptions made while the graph was recorded, see Trace::require.
  LogicalResult addChecks() {
    auto checks = function->getAttrOfType<ArrayAttr>(kChecksAttr);
    for (Attribute attribute : checks ? checks.getValue() : ArrayRef<Attribute>()) {
      auto check = dyn_cast<ArrayAttr>(attribute);
      if (!check || check.size() != 3 || !llvm::all_of(check, llvm::IsaPred<StringAttr>))
        return function.emitError() << kChecksAttr << " must be a list of [size, size, place]";
      auto text = [&](size_t i) { return cast<StringAttr>(check[i]).getValue(); };
      std::optional<Dim> left = Dim::parse(text(0)), right = Dim::parse(text(1));
      if (!left || !right)
        return function.emitError() << kChecksAttr << " holds what is no size: " << check;
      for (const Dim &size : {*left, *right})
        for (const auto &[name, min, max, where] : size.symbols())
          if (!isKnown(name))
            return function.emitError() << "a check needs the size '" << name << "', which no input has";
      plan.checks.push_back({expr(*left), expr(*right), tables.location(text(2).str())});
    }
    return success();
  }

  // Fusion guarantees that every result is computed by a kernel.
  void assignOutputs(Operation *terminator) {
    for (auto [i, v] : llvm::enumerate(terminator->getOperands()))
      slots[passes::skipReshapes(v)] = {rt::Slot::Kind::Output, uint32_t(i)};
  }

  // ---- storage
  rt::Slot slotOf(Value v) {
    v = passes::storedIn(v);
    if (auto it = slots.find(v); it != slots.end())
      return it->second;
    if (OpOperand *initial = passes::initialInPlace(v))
      return slots[v] = initialSlot(initial->getOwner(), initial->getOperandNumber());
    if (auto constant = v.getDefiningOp<ConstantOp>())
      return slots[v] = {rt::Slot::Kind::Constant, tables.constant(constant)};
    return slots[v] = addBuffer(passes::byteSize(v));
  }

  rt::Slot addBuffer(const Dim &bytes) {
    auto step = uint32_t(plan.steps.size());
    plan.buffers.push_back({expr(bytes), step, step, uint8_t(takesCopies(loop))});
    bufferBytes.push_back(bytes);
    return {rt::Slot::Kind::Buffer, uint32_t(plan.buffers.size() - 1)};
  }

  // ---- states of loops
  /// The initial state of a loop is stored where the first iteration reads it; it has a kernel of its own.
  rt::Slot initialSlot(Operation *loop, unsigned state) {
    const Value result = loop->getResult(state);
    auto scan = dyn_cast<ScanOp>(loop);
    if (!scan || !passes::alternates(scan, state))
      return slotOf(result);
    const Dim iterations = scan.partCount();
    if (iterations.isStatic())
      return iterations.value() % 2 == 0 ? slotOf(result) : spareSlot(result);
    return alternatingSlot(result, iterations);
  }

  /// The second buffer of a state that alternates between the loop's result and this one.
  rt::Slot spareSlot(Value result) {
    auto found = spares.find(result);
    return found != spares.end() ? found->second : spares[result] = addBuffer(passes::byteSize(result));
  }

  /// The result of the loop in iteration i if `begin` + i is even, else its second buffer.
  rt::Slot alternatingSlot(Value result, const Dim &begin) {
    plan.parts.push_back({slotOf(result), expr(begin), expr(0), rt::Part::Kind::Alternating, spareSlot(result)});
    return {rt::Slot::Kind::Part, uint32_t(plan.parts.size() - 1)};
  }

  // ---- steps
  void addStep(KernelOp kernel) {
    if (passes::isIdentity(kernel))
      return addIdentity(kernel);
    rt::Step step;
    step.kernel = tables.kernels.indexOf.lookup(kernel);
    const KernelInterface &interface = tables.kernels.kernels[step.kernel].interface;
    for (const Dim &size : interface.sizes)
      step.sizes.push_back(expr(size));
    step.tasks = expr(interface.cpu.count);
    step.scratchBytes = expr(interface.cpu.scratchBytes);
    for (const Dim &blocks : interface.gpu.counts)
      step.blocks.push_back(expr(blocks));
    step.gpuScratchBytes = expr(interface.gpu.scratchBytes);
    step.location = tables.location(kernel.getLoc());
    for (Operation *check : passes::checksOf(kernel))
      step.errorLocations.push_back(tables.location(check->getLoc()));
    Dim bytes = 0;
    for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
      addInput(step, input);
      bytes = bytes + passes::bytesRead(kernel.getBody().getArgument(unsigned(i)), input);
    }
    placeInPlace(kernel, &step);
    for (Value result : kernel.getResults()) {
      step.operands.push_back(slotOf(result));
      bytes = bytes + passes::byteSize(result);
    }
    step.bytes = expr(bytes);
    step.flops = expr(passes::flopsOf(kernel));
    stepOf[kernel] = uint32_t(plan.steps.size());
    plan.steps.push_back(std::move(step));
  }

  /// Readers wait for the step that computed the value.
  void addIdentity(KernelOp kernel) {
    placeInPlace(kernel);
    if (auto producer = stepOf.find(outside(kernel.getInputs().front()).getDefiningOp()); producer != stepOf.end())
      stepOf[kernel] = producer->second;
  }

  /// Places results that overwrite operands. The step, if there is one, waits until it may do so.
  void placeInPlace(Operation *op, rt::Step *step = nullptr) {
    for (OpResult result : op->getResults())
      if (int64_t input = passes::overwrittenInput(op, result.getResultNumber()); input >= 0) {
        const rt::Slot slot = slots[result] = slotOf(op->getOperand(unsigned(input)));
        if (step && slot.kind == rt::Slot::Kind::Input)
          waitForReaders(*step, slot);
      }
  }

  /// A step that overwrites a state waits for all readers of the old value and for all steps that can fail.
  void waitForReaders(rt::Step &step, rt::Slot state) {
    auto isState = [&](const rt::Slot &slot) { return slot.kind == state.kind && slot.index == state.index; };
    for (auto [i, earlier] : llvm::enumerate(plan.steps)) {
      bool canFail = earlier.kind != rt::Step::Kind::Kernel || !earlier.errorLocations.empty();
      if ((canFail || llvm::any_of(earlier.operands, isState)) && !llvm::is_contained(step.deps, uint32_t(i)))
        step.deps.push_back(uint32_t(i));
    }
  }

  /// Adds an operand to the next step, which then depends on the step that computes it.
  void addInput(rt::Step &step, Value input) {
    Value source = passes::storedIn(input);
    rt::Slot slot = slotOf(source);
    step.operands.push_back(slot);
    extendTo(slot, uint32_t(plan.steps.size()));
    if (auto producer = stepOf.find(outside(source).getDefiningOp()); producer != stepOf.end())
      if (!llvm::is_contained(step.deps, producer->second))
        step.deps.push_back(producer->second);
  }

  // ---- steps that run functions, which are planned already
  void addFunctions(Operation *op) {
    rt::Step step;
    step.kind = isa<IfOp>(op) ? rt::Step::Kind::Branch : rt::Step::Kind::While;
    for (Operation *applied : appliedFunctions(op))
      addPlan(step, applied);
    for (Value operand : op->getOperands())
      addInput(step, operand);
    placeInPlace(op, &step);
    for (Value result : op->getResults())
      step.operands.push_back(slotOf(result));
    if (auto loop = dyn_cast<WhileOp>(op))
      for (OpResult result : loop->getResults())
        step.operands.push_back(passes::isUpdatedInPlace(loop, result.getResultNumber())
                                    ? slotOf(result)
                                    : addBuffer(passes::byteSize(result)));
    finish(step, op);
  }

  void addHostCall(Operation *op) {
    rt::HostCall call;
    if (auto print = dyn_cast<DebugPrintOp>(op)) {
      call.label = print.getLabel().str();
    } else {
      call.kind = rt::HostCall::Kind::Function;
      call.function = uint32_t(cast<HostCallOp>(op).getFunction());
    }
    rt::Step step;
    step.kind = rt::Step::Kind::Host;
    step.hostCall = uint32_t(plan.hostCalls.size());
    for (Value operand : op->getOperands()) {
      call.inputs.push_back(infoOf(operand, {}, ""));
      addInput(step, operand);
    }
    for (Value result : op->getResults()) {
      call.results.push_back(infoOf(result, {}, ""));
      step.operands.push_back(slotOf(result));
    }
    plan.hostCalls.push_back(std::move(call));
    finish(step, op);
  }

  void addPlan(rt::Step &step, Operation *applied) {
    step.plans.push_back(tables.planOf(applied));
    for (const rt::Symbol &symbol : tables.plan(step.plans.back()).symbols)
      step.sizes.push_back(expr(Dim(symbol.name)));
  }

  void finish(rt::Step &step, Operation *op) {
    step.tasks = expr(1);
    step.scratchBytes = step.gpuScratchBytes = step.flops = step.bytes = expr(0);
    step.location = tables.location(op->getLoc());
    stepOf[op] = uint32_t(plan.steps.size());
    plan.steps.push_back(std::move(step));
  }

  // Buffers from outside that an iteration reads or writes live as long as the loop.
  LogicalResult addLoop(ScanOp scan) {
    auto callee = cast<func::FuncOp>(scan.body());
    Block &body = callee.getBody().front();
    if (!loopBodies.insert(callee).second)
      return scan.emitError("shares its body with another loop; give each one of its own");
    SmallVector<rt::Slot> outside;
    Dim parts = scan.partCount();
    // The part of iteration i begins at `begin` + i * `bytes`, or counts down.
    auto partSlot = [&](Value whole, const Dim &begin, const Dim &bytes, bool reverse) {
      outside.push_back(slotOf(whole));
      plan.parts.push_back({outside.back(), expr(reverse ? begin + (parts - 1) * bytes : begin),
                            expr(reverse ? Dim(0) - bytes : bytes)});
      return rt::Slot{rt::Slot::Kind::Part, uint32_t(plan.parts.size() - 1)};
    };
    auto stateSlot = [&](unsigned i, bool isAfter) {
      const Value result = scan.getResult(i);
      const Dim bytes = isCarried(scan, i) ? Dim(0) : passes::byteSize(body.getArgument(i));
      if (!passes::alternates(scan, i))
        return partSlot(result, isAfter ? bytes : Dim(0), bytes, false);
      outside.append({slotOf(result), spareSlot(result)});
      return alternatingSlot(result, isAfter ? parts + 1 : parts); // the last iteration writes the result
    };
    for (auto [i, operand] : llvm::enumerate(scan.getInputs())) {
      BlockArgument argument = body.getArgument(unsigned(i));
      operandOf[argument] = operand;
      if (i < scan.getStates())
        slots[argument] = stateSlot(unsigned(i), /*isAfter=*/false);
      else if (i < scan.firstWhole())
        slots[argument] = partSlot(operand, 0, passes::byteSize(argument), scan.getReverse());
      else
        outside.push_back(slots[argument] = slotOf(operand));
    }
    for (auto [i, result] : llvm::enumerate(scan.getResults())) {
      Value part = body.getTerminator()->getOperand(unsigned(i));
      slots[passes::skipReshapes(part)] = i < scan.getStates()
                                              ? stateSlot(unsigned(i), /*isAfter=*/true)
                                              : partSlot(result, 0, passes::byteSize(part), scan.getReverse());
    }
    uint32_t first = plan.steps.size();
    loop = scan;
    LogicalResult added = isInlined(scan) ? addSteps(body) : callBody(callee);
    loop = {};
    if (plan.steps.size() == first) { // every iteration leaves the states as they are
      stepOf[scan] = std::max(first, 1u) - 1;
      return added;
    }
    uint32_t last = plan.steps.size() - 1;
    plan.loops.push_back({first, last, expr(parts), uint8_t(!takesCopies(scan))});
    for (rt::Slot slot : outside)
      extendTo(slot, last);
    stepOf[scan] = last;
    return added;
  }

  /// The body of a loop as a single step, if it runs functions itself.
  LogicalResult callBody(func::FuncOp body) {
    rt::Step step;
    step.kind = rt::Step::Kind::Call;
    addPlan(step, body);
    for (BlockArgument argument : body.getArguments())
      step.operands.push_back(slotOf(argument));
    for (Value result : body.getBody().front().getTerminator()->getOperands())
      step.operands.push_back(slotOf(result));
    finish(step, body);
    return success();
  }

  /// Marks the states whose new value a kernel writes over the old one.
  void updateInPlace() {
    Operation *terminator = function.getBody().front().getTerminator();
    for (auto [i, output] : llvm::enumerate(plan.stateOutputs)) {
      rt::Slot slot = slots.lookup(passes::skipReshapes(terminator->getOperand(unsigned(plan.callerOutputs() + i))));
      if (slot.kind == rt::Slot::Kind::Input)
        output.update = rt::StateOutput::Update::InPlace;
    }
  }

  /// The value outside of the loop that an argument of its body stands for.
  Value outside(Value v) { return passes::storedIn(operandOf.lookup_or(v, v)); }

  void extendTo(rt::Slot slot, uint32_t step) {
    if (slot.kind == rt::Slot::Kind::Buffer)
      plan.buffers[slot.index].lastStep = step;
  }

  func::FuncOp function;
  PlanTables &tables;
  rt::Plan &plan;
  llvm::StringMap<uint32_t> exprs;
  llvm::StringMap<int64_t> symbols;
  std::string unknown; // a size that is not defined where it is used
  llvm::DenseMap<Value, rt::Slot> slots;
  llvm::DenseMap<Operation *, uint32_t> stepOf;
  llvm::DenseMap<Value, Value> operandOf; // of arguments of loop bodies
  llvm::DenseMap<Value, rt::Slot> spares; // of results of loops, see spareSlot
  std::vector<Dim> bufferBytes;
  ScanOp loop; // the loop whose body is being planned
  llvm::DenseSet<Operation *> loopBodies;
};

} // namespace

FailureOr<PlannedArtifact> planArtifact(ModuleOp module, const UniqueKernels &kernels) {
  PlanTables tables(module, kernels);
  for (size_t i = tables.functions.size(); i-- > 0;) // callees before callers
    if (failed(PlanBuilder(tables.functions[i], tables, uint32_t(i)).build()))
      return failure();
  if (auto report = module->getAttrOfType<StringAttr>(passes::kMemoryReport))
    tables.planned.artifact.metadata.emplace_back(rt::kMemoryReportKey, report.getValue().str());
  return std::move(tables.planned);
}

} // namespace burin::codegen
