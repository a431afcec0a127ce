#include "codegen/PlanBuilder.h"
#include "passes/analysis/DataDependentSizes.h"
#include "passes/analysis/IterationSpace.h"
#include "runtime/format/ArenaPlacement.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr uint64_t kWeightAlign = 64;
constexpr int64_t kTypicalSize = 8; // a symbolic size is taken to be about this when places in the arena are chosen

class PlanBuilder {
public:
  PlanBuilder(func::FuncOp function, const UniqueKernels &kernels)
      : function(function), kernels(kernels), artifact(plan.artifact) {}

  FailureOr<Plan> build() {
    artifact.producer = "burin " BURIN_VERSION;
    artifact.locations.push_back("");
    if (failed(signature()))
      return failure();
    for (const UniqueKernels::Entry &kernel : kernels.kernels) {
      KernelOp op = kernel.op;
      artifact.kernels.push_back({op.getName().value_or("kernel").str(), location(op.getLoc())});
    }
    Block &body = function.getBody().front();
    assignOutputs(body.getTerminator());
    if (failed(addSteps(body)))
      return failure();
    if (!unknown.empty())
      return function.emitError() << "needs the size '" << unknown
                                  << "', but no input has a dimension that is just that";
    if (failed(addOutputs()) || failed(addChecks()))
      return failure();
    orderBuffers();
    return std::move(plan);
  }

private:
  LogicalResult addSteps(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto kernel = dyn_cast<KernelOp>(op)) {
        addStep(kernel);
      } else if (auto scan = dyn_cast<ScanOp>(op)) {
        if (failed(addLoop(scan)))
          return failure();
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
    auto [it, inserted] = exprs.try_emplace(size.str(), artifact.exprs.size());
    if (inserted) {
      rt::Expr e;
      for (const Dim::Postfix &step : size.toPostfix()) {
        auto op = static_cast<rt::Expr::Op>(step.op);
        if (op == rt::Expr::Op::Symbol && !symbols.count(step.symbol))
          unknown = step.symbol;
        e.program.push_back({op, op == rt::Expr::Op::Symbol ? symbols.lookup(step.symbol) : step.value});
      }
      artifact.exprs.push_back(std::move(e));
    }
    return it->second;
  }
  uint32_t location(mlir::Location loc) { return location(fileLine(loc)); }
  uint32_t location(const std::string &text) {
    if (text.empty())
      return 0;
    auto [it, inserted] = locations.try_emplace(text, artifact.locations.size());
    if (inserted)
      artifact.locations.push_back(text);
    return it->second;
  }

  static Dim byteSize(Value v) { return elements(shapeOf(v)) * Dim(int64_t(byteWidth(dtypeOf(v)))); }

  // ---- signature
  LogicalResult signature() {
    // A symbol is read off the first input dimension that is this symbol and nothing else.
    for (BlockArgument argument : function.getArguments())
      for (auto [axis, size] : llvm::enumerate(shapeOf(argument))) {
        if (size.isStatic() || size.symbols().size() != 1 || size.str() != size.symbols()[0])
          continue;
        std::string name = size.str();
        if (!symbols.try_emplace(name, artifact.symbols.size()).second)
          continue;
        rt::Symbol symbol;
        symbol.name = name;
        symbol.input = argument.getArgNumber();
        symbol.axis = axis;
        artifact.symbols.push_back(symbol);
      }
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      if (failed(checkSizes(argument, "input " + llvm::Twine(i))))
        return failure();
      artifact.inputs.push_back(infoOf(argument, function.getArgAttr(i, "burin.name"), "input" + llvm::Twine(i)));
      slots[argument] = {rt::Slot::Kind::Input, i};
    }
    return success();
  }

  // When all steps are planned: they may compute sizes.
  LogicalResult addOutputs() {
    for (auto [i, v] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
      if (failed(checkSizes(v, "output " + llvm::Twine(i))))
        return failure();
      artifact.outputs.push_back(infoOf(v, function.getResultAttr(i, "burin.name"), "output" + llvm::Twine(i)));
    }
    return success();
  }

  LogicalResult checkSizes(Value v, const llvm::Twine &what) {
    for (const Dim &size : shapeOf(v))
      for (const std::string &name : size.symbols())
        if (!symbols.count(name))
          return function.emitError() << what << " has the size '" << size.str()
                                      << "', but no input has a dimension that is just '" << name
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
    tensor.location = location(v.getLoc());
    return tensor;
  }

  // The steps planned so far compute the count; those that follow may use the size.
  LogicalResult addComputedSize(PrefixOp prefix) {
    if (loop)
      return prefix.emitError("a size depends on data within a loop, whose turns share one plan; compute it before the "
                              "loop, or keep the size and mask what is not wanted");
    rt::Symbol symbol;
    symbol.name = newSizeOf(prefix)->str();
    symbol.kind = rt::Symbol::Kind::Computed;
    symbol.count = slotOf(prefix.getCount());
    symbol.step = artifact.steps.size();
    symbol.limit = expr(shapeOf(prefix.getX())[0]);
    symbol.location = location(prefix.getLoc());
    if (symbol.count.kind == rt::Slot::Kind::Buffer)
      artifact.buffers[symbol.count.index].lastStep = symbol.step - 1;
    if (!symbols.try_emplace(symbol.name, artifact.symbols.size()).second)
      return prefix.emitError() << "defines the size '" << symbol.name << "', which is known already";
    artifact.symbols.push_back(std::move(symbol));
    return success();
  }

  // What was taken for granted while the graph was recorded: see Trace::require.
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
        for (const std::string &name : size.symbols())
          if (!symbols.count(name))
            return function.emitError() << "a check needs the size '" << name << "', which no input has";
      artifact.checks.push_back({expr(*left), expr(*right), location(text(2).str())});
    }
    return success();
  }

  // Fusion sees to it that every result is a kernel's own.
  void assignOutputs(Operation *terminator) {
    for (auto [i, v] : llvm::enumerate(terminator->getOperands()))
      slots[passes::skipReshapes(v)] = {rt::Slot::Kind::Output, uint32_t(i)};
  }

  // ---- storage
  rt::Slot slotOf(Value v) {
    v = passes::storedIn(v);
    if (auto it = slots.find(v); it != slots.end())
      return it->second;
    if (Value states = statesBehind(v))
      return slots[v] = slotOf(states);
    if (auto constant = v.getDefiningOp<ConstantOp>())
      return slots[v] = addConstant(constant);
    artifact.buffers.push_back(
        {expr(byteSize(v)), uint32_t(artifact.steps.size()), uint32_t(artifact.steps.size()), uint8_t(takesCopies())});
    bufferBytes.push_back(byteSize(v));
    return slots[v] = {rt::Slot::Kind::Buffer, uint32_t(artifact.buffers.size() - 1)};
  }

  /// Each worker that runs turns has its own buffers; if turns follow each other there is only one.
  bool takesCopies() { return loop && loop.getStates() == 0; }

  /// A state that a loop begins with lies before those that its turns leave: fusion has made a kernel for it alone.
  static Value statesBehind(Value v) {
    if (!v.getDefiningOp<KernelOp>() || !v.hasOneUse())
      return {};
    OpOperand &use = *v.use_begin();
    auto scan = dyn_cast<ScanOp>(use.getOwner());
    return scan && use.getOperandNumber() < scan.getStates() ? scan.getResult(use.getOperandNumber()) : Value();
  }

  rt::Slot addConstant(ConstantOp op) {
    auto [it, inserted] = constants.try_emplace(op.getValue(), artifact.constants.size());
    if (inserted) {
      rt::Constant constant;
      constant.name = op.getName().value_or("").str();
      constant.dtype = dtypeOf(op.getResult());
      for (const Dim &size : shapeOf(op.getResult()))
        constant.shape.push_back(size.value());
      plan.weights.push_back(op.getValue());
      constant.offset = llvm::alignTo(plan.weightBytes, kWeightAlign);
      constant.bytes = uint64_t(elements(shapeOf(op.getResult())).value()) * byteWidth(constant.dtype);
      plan.weightBytes = constant.offset + constant.bytes;
      artifact.constants.push_back(std::move(constant));
    }
    return {rt::Slot::Kind::Constant, it->second};
  }

  // ---- steps
  void addStep(KernelOp kernel) {
    rt::Step step;
    step.kernel = kernels.indexOf.lookup(kernel);
    const KernelInterface &interface = kernels.kernels[step.kernel].interface;
    for (const Dim &size : interface.sizes)
      step.sizes.push_back(expr(size));
    step.tasks = expr(interface.tasks);
    step.scratchBytes = expr(interface.scratchBytes);
    step.location = location(kernel.getLoc());
    uint32_t self = artifact.steps.size();
    Dim bytes = 0;
    for (auto [i, input] : llvm::enumerate(kernel.getInputs())) {
      Value source = passes::storedIn(input);
      rt::Slot slot = slotOf(source);
      step.operands.push_back(slot);
      bytes = bytes + bytesRead(kernel.getBody().getArgument(unsigned(i)), input);
      extendTo(slot, self);
      if (auto producer = stepOf.find(outside(source).getDefiningOp()); producer != stepOf.end())
        if (!llvm::is_contained(step.deps, producer->second))
          step.deps.push_back(producer->second);
    }
    if (auto inPlace = kernel.getInPlace())
      for (auto [result, input] : llvm::zip(kernel.getResults(), *inPlace))
        if (input >= 0)
          slots[result] = slotOf(kernel.getInputs()[input]);
    for (Value result : kernel.getResults()) {
      step.operands.push_back(slotOf(result));
      bytes = bytes + byteSize(result);
    }
    step.bytes = expr(bytes);
    step.flops = expr(flops(kernel));
    stepOf[kernel] = self;
    artifact.steps.push_back(std::move(step));
  }

  // Everything that a turn reads or writes from outside lives as long as the loop.
  LogicalResult addLoop(ScanOp scan) {
    if (loop)
      return scan.emitError("a loop in a loop has no place in a launch plan; unroll the inner one");
    auto callee = cast<func::FuncOp>(scan.body());
    Block &body = callee.getBody().front();
    if (!loopBodies.insert(callee).second)
      return scan.emitError("shares its body with another loop; give each one of its own");
    SmallVector<rt::Slot> outside;
    Dim parts = scan.partCount();
    // Turn i has the part that begins i * `bytes` behind `begin`, or before it.
    auto partSlot = [&](Value whole, const Dim &begin, const Dim &bytes, bool reverse) {
      outside.push_back(slotOf(whole));
      artifact.parts.push_back({outside.back(), expr(reverse ? begin + (parts - 1) * bytes : begin),
                                expr(reverse ? Dim(0) - bytes : bytes)});
      return rt::Slot{rt::Slot::Kind::Part, uint32_t(artifact.parts.size() - 1)};
    };
    Operation *terminator = body.getTerminator();
    for (auto [i, operand] : llvm::enumerate(scan.getInputs())) {
      BlockArgument argument = body.getArgument(unsigned(i));
      operandOf[argument] = operand;
      if (i < scan.getStates())
        slots[argument] = partSlot(scan.getResult(unsigned(i)), 0, byteSize(argument), false);
      else if (i < scan.firstWhole())
        slots[argument] = partSlot(operand, 0, byteSize(argument), scan.getReverse());
      else
        outside.push_back(slots[argument] = slotOf(operand));
    }
    for (auto [i, result] : llvm::enumerate(scan.getResults())) {
      Value part = terminator->getOperand(unsigned(i));
      bool isState = i < scan.getStates();
      slots[passes::skipReshapes(part)] =
          partSlot(result, isState ? byteSize(part) : 0, byteSize(part), !isState && scan.getReverse());
    }
    uint32_t first = artifact.steps.size();
    loop = scan;
    LogicalResult added = addSteps(body);
    loop = {};
    if (artifact.steps.size() == first)
      return failed(added) ? failure() : LogicalResult(scan.emitError("has no steps"));
    uint32_t last = artifact.steps.size() - 1;
    artifact.loops.push_back({first, last, expr(parts), uint8_t(scan.getStates() > 0)});
    for (rt::Slot slot : outside)
      extendTo(slot, last);
    stepOf[scan] = last;
    return added;
  }

  /// What an argument of a loop's body stands for.
  Value outside(Value v) { return passes::storedIn(operandOf.lookup_or(v, v)); }

  void extendTo(rt::Slot slot, uint32_t step) {
    if (slot.kind == rt::Slot::Kind::Buffer)
      artifact.buffers[slot.index].lastStep = step;
  }

  /// All of an operand, but of a table only the rows that are taken.
  static Dim bytesRead(BlockArgument operand, Value source) {
    Dim bytes = 0;
    for (OpOperand &use : operand.getUses()) {
      if (!isa<TakeOp, GatherOp>(use.getOwner()) || use.getOperandNumber() != 0)
        return byteSize(source);
      bytes = bytes + byteSize(use.getOwner()->getResult(0));
    }
    return min(bytes, byteSize(source));
  }

  static Dim flops(KernelOp kernel) {
    Dim total = 0;
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      Dim work = elements(shapeOf(op.getResult(0)));
      if (auto contract = dyn_cast<ContractOp>(op)) {
        Shape packed = shapeOf(contract.getRhs());
        Dim depth = contract.getTerms() ? shapeOf(contract.getLhs()).back() : packed[packed.size() - 2];
        work = work * depth * Dim(2);
      } else if (auto attention = dyn_cast<ScaledDotProductAttentionOp>(op)) {
        Shape scores = shapeOf(attention.getQuery()), value = shapeOf(attention.getValue());
        work = elements(Shape(scores.begin(), scores.end() - 1)) * value[value.size() - 2] *
               (scores.back() + value.back()) * Dim(2);
      } else if (auto conv = dyn_cast<ConvOp>(op)) {
        Shape taps = shapeOf(conv.getWeight()); // [kernel…, C/groups, O]
        for (size_t i = 0; i + 1 < taps.size(); ++i)
          work = work * taps[i];
        work = work * Dim(2);
      } else if (isa<TakeOp, GatherOp>(op)) { // moves what it takes
      } else if (op.getNumOperands() && !op.hasTrait<ir::Elementwise>()) {
        work = max(work, elements(shapeOf(op.getOperand(0))));
      }
      total = total + work;
    }
    return total;
  }

  // First fit does best when large buffers, or those that live long, come first: take the order that packs best.
  void orderBuffers() {
    std::vector<rt::LiveRange> ranges;
    for (auto [buffer, bytes] : llvm::zip(artifact.buffers, bufferBytes)) {
      auto typical = bytes.evaluate([](std::string_view) { return std::optional<int64_t>(kTypicalSize); });
      ranges.push_back({uint64_t(typical.value_or(0)), buffer.firstStep, buffer.lastStep});
    }
    std::vector<std::vector<uint32_t>> orders(3);
    for (uint32_t i = 0; i < ranges.size(); ++i)
      for (auto &order : orders)
        order.push_back(i);
    auto by = [&](std::vector<uint32_t> &order, auto key) {
      llvm::stable_sort(order, [&](uint32_t x, uint32_t y) { return key(ranges[x]) > key(ranges[y]); });
    };
    by(orders[1], [](const rt::LiveRange &r) { return r.bytes; });
    by(orders[2], [](const rt::LiveRange &r) { return r.bytes * (r.lastStep - r.firstStep + 1); });
    uint64_t best = UINT64_MAX;
    std::vector<uint32_t> chosen;
    for (auto &order : orders) {
      std::vector<rt::LiveRange> sorted;
      for (uint32_t i : order)
        sorted.push_back(ranges[i]);
      uint64_t size = rt::placeBuffers(sorted).arenaBytes;
      if (size < best || chosen.empty()) {
        best = size;
        chosen = order;
      }
    }
    std::vector<uint32_t> newIndex(chosen.size());
    std::vector<rt::ArenaBuffer> buffers;
    for (uint32_t i = 0; i < chosen.size(); ++i) {
      newIndex[chosen[i]] = i;
      buffers.push_back(artifact.buffers[chosen[i]]);
    }
    artifact.buffers = std::move(buffers);
    auto renumber = [&](rt::Slot &slot) {
      if (slot.kind == rt::Slot::Kind::Buffer)
        slot.index = newIndex[slot.index];
    };
    for (rt::Step &step : artifact.steps)
      llvm::for_each(step.operands, renumber);
    for (rt::Part &part : artifact.parts)
      renumber(part.whole);
    for (rt::Symbol &symbol : artifact.symbols)
      if (symbol.kind == rt::Symbol::Kind::Computed)
        renumber(symbol.count);
  }

  func::FuncOp function;
  const UniqueKernels &kernels;
  Plan plan;
  rt::Artifact &artifact;
  llvm::StringMap<uint32_t> exprs, locations;
  llvm::StringMap<int64_t> symbols;
  std::string unknown; // a size that was asked for too early
  llvm::DenseMap<Value, rt::Slot> slots;
  llvm::DenseMap<Attribute, uint32_t> constants;
  llvm::DenseMap<Operation *, uint32_t> stepOf;
  llvm::DenseMap<Value, Value> operandOf; // of arguments of loops
  std::vector<Dim> bufferBytes;
  ScanOp loop; // the steps that are added belong to its turns
  llvm::DenseSet<Operation *> loopBodies;
};

} // namespace

void Plan::writeWeights(std::span<std::byte> to) const {
  for (auto [constant, value] : llvm::zip_equal(artifact.constants, weights)) {
    std::vector<char> storage;
    ArrayRef<char> bytes = constantBytes(value, storage);
    assert(bytes.size() == constant.bytes);
    std::memcpy(to.data() + constant.offset, bytes.data(), bytes.size());
  }
}

FailureOr<Plan> buildPlan(func::FuncOp function, const UniqueKernels &kernels) {
  return PlanBuilder(function, kernels).build();
}

} // namespace burin::codegen
