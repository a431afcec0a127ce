#include "ir/reference/Reference.h"
#include "ir/dialect/Carried.h"
#include "ir/reference/ReferenceOp.h"
#include "ir/reference/ReferenceUtil.h"
#include <map>

namespace burin::ir {

using namespace mlir;

namespace {

using Results = std::vector<RefTensor>;
/// Values of the symbolic sizes.
using Symbols = std::map<std::string, int64_t, std::less<>>;

std::optional<int64_t> evaluateDim(const Dim &dim, const Symbols &symbols) {
  if (dim.isStatic())
    return dim.value();
  return dim.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    auto found = symbols.find(name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  });
}

/// If one symbol of `dim` is unknown, gives it the value for which `dim` equals `size`. Only linear expressions are
/// solved.
void solve(const Dim &dim, int64_t size, Symbols &symbols) {
  std::vector<std::string> unknown;
  for (const Dim::Symbol &symbol : dim.symbols())
    if (!symbols.count(symbol.name))
      unknown.push_back(symbol.name);
  if (unknown.size() != 1)
    return;
  Symbols trial = symbols;
  auto at = [&](int64_t value) {
    trial[unknown[0]] = value;
    return evaluateDim(dim, trial);
  };
  auto zero = at(0), one = at(1);
  if (!zero || !one || *one == *zero)
    return;
  __int128 value = (__int128(size) - *zero) / (__int128(*one) - *zero);
  if (value >= 0 && value <= INT64_MAX && at(int64_t(value)) == size)
    symbols = std::move(trial);
}

std::vector<const RefTensor *> pointersTo(ArrayRef<RefTensor> tensors) {
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &t : tensors)
    pointers.push_back(&t);
  return pointers;
}

bool isTrue(const RefTensor &condition) {
  return std::visit([](const auto &elements) { return elements.front() != 0; }, condition.data);
}

/// Runs ops in one environment of symbolic sizes.
class Interpreter {
public:
  Interpreter(RefObserver onOp, const RefOptions &options, int depth = 0)
      : onOp(onOp), options(options), depth(depth) {}

  /// Binds the symbols of `types` and checks that the tensors have these types.
  LogicalResult bind(Operation *op, TypeRange types, ArrayRef<const RefTensor *> tensors, StringRef what);
  FailureOr<Results> run(Operation *op, ArrayRef<const RefTensor *> operands);
  FailureOr<Results> runBlock(Block &block, ArrayRef<const RefTensor *> arguments);

private:
  LogicalResult check(Operation *op, Type type, const RefTensor &tensor, const Twine &what);
  FailureOr<RefTensor> allocate(Operation *op, const TensorSpec &spec);
  FailureOr<Results> runConstant(ConstantOp op);
  FailureOr<Results> runCall(func::CallOp op, ArrayRef<const RefTensor *> operands);
  FailureOr<RefTensor> join(Operation *op, TensorSpec spec, ArrayRef<RefTensor> parts);
  FailureOr<Results> runScan(ScanOp op, ArrayRef<const RefTensor *> operands);
  FailureOr<Results> apply(Operation *op, Operation *function, ArrayRef<const RefTensor *> arguments);
  FailureOr<Results> runWhile(WhileOp op, ArrayRef<const RefTensor *> operands);
  FailureOr<Results> runTableOp(Operation *op, const OpInfo &info, ArrayRef<const RefTensor *> operands);

  RefObserver onOp;
  const RefOptions &options;
  int depth; // of calls
  Symbols symbols;
};

LogicalResult Interpreter::bind(Operation *op, TypeRange types, ArrayRef<const RefTensor *> tensors, StringRef what) {
  if (types.size() != tensors.size())
    return op->emitError() << what << "s: expected " << types.size() << ", got " << tensors.size();
  // Plain symbols first: with them, compound expressions may become solvable.
  for (bool plain : {true, false})
    for (auto [type, tensor] : llvm::zip_equal(types, tensors)) {
      if (!isa<RankedTensorType>(type))
        return op->emitError() << what << " of type " << type << " is no tensor";
      Shape shape = specOf(type).shape;
      if (shape.size() == tensor->shape.size())
        for (auto [dim, size] : llvm::zip_equal(shape, tensor->shape))
          if (!dim.isStatic() && (!plain || dim.symbol()))
            solve(dim, size, symbols);
    }
  for (auto [i, type, tensor] : llvm::enumerate(types, tensors))
    if (failed(check(op, type, *tensor, what + " " + Twine(i))))
      return failure();
  return success();
}

LogicalResult Interpreter::check(Operation *op, Type type, const RefTensor &tensor, const Twine &what) {
  TensorSpec spec = specOf(type);
  bool fits = spec.dtype == tensor.dtype && spec.shape.size() == tensor.shape.size();
  for (size_t i = 0; fits && i < spec.shape.size(); ++i) {
    fits = evaluateDim(spec.shape[i], symbols) == tensor.shape[i];
    for (const Dim::Symbol &symbol : spec.shape[i].symbols())
      if (int64_t value = symbols[symbol.name]; value < symbol.min || value > symbol.max)
        fits = false;
  }
  auto count = elementCount(tensor.shape, options.maxElements);
  size_t stored = std::visit([](auto &v) { return v.size(); }, tensor.data);
  fits = fits && count && stored == size_t(*count) && (tensor.data.index() == 0) == isFloat(tensor.dtype);
  if (fits)
    return success();
  InFlightDiagnostic diagnostic = op->emitError() << what << " is " << std::string(name(tensor.dtype))
                                                  << ref::str(tensor.shape) << ", expected " << str(spec);
  if (!symbols.empty()) {
    std::string values;
    for (auto &[symbol, value] : symbols)
      values += (values.empty() ? "" : ", ") + symbol + " = " + std::to_string(value);
    diagnostic << " with " << values;
  }
  return diagnostic;
}

FailureOr<RefTensor> Interpreter::allocate(Operation *op, const TensorSpec &spec) {
  std::vector<int64_t> shape;
  for (const Dim &dim : spec.shape) {
    auto size = evaluateDim(dim, symbols);
    if (!size)
      return op->emitError() << "the size " << dim.str() << " of the result " << str(spec)
                             << " is not known from the inputs";
    if (*size < 0)
      return op->emitError() << "the size " << dim.str() << " of the result " << str(spec) << " becomes " << *size;
    shape.push_back(*size);
  }
  if (!elementCount(shape, options.maxElements))
    return op->emitError() << "the result " << ref::str(shape) << " has more than " << options.maxElements
                           << " elements, the interpreter's limit";
  return RefTensor::zeros(spec.dtype, std::move(shape));
}

FailureOr<Results> Interpreter::runConstant(ConstantOp op) {
  auto tensor = allocate(op, specOf(op.getType()));
  if (failed(tensor))
    return failure();
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(op.getValue(), storage);
  if (bytes.size() != size_t(tensor->size()) * byteWidth(tensor->dtype))
    return op->emitError() << "the constant has " << bytes.size() << " bytes, not those of " << op.getType();
  Results results;
  results.push_back(RefTensor::fromBytes(tensor->dtype, tensor->shape, {bytes.data(), bytes.size()}));
  return results;
}

FailureOr<Results> Interpreter::runCall(func::CallOp op, ArrayRef<const RefTensor *> operands) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee || callee.isExternal())
    return op->emitError() << "calls @" << op.getCallee() << ", which has no body here";
  if (depth >= 64)
    return op->emitError() << "calls nest more than 64 deep";
  Interpreter inner(onOp, options, depth + 1);
  if (failed(inner.bind(op, callee.getArgumentTypes(), operands, "argument")))
    return failure();
  return inner.runBlock(callee.getBody().front(), operands);
}

/// Part `index` of `parts` along dimension 0.
RefTensor partOf(const RefTensor &whole, int64_t index, int64_t parts) {
  RefTensor part{whole.dtype, whole.shape, {}};
  part.shape[0] /= parts;
  std::visit(
      [&](const auto &all) {
        auto begin = all.begin() + index * part.size();
        part.data = std::decay_t<decltype(all)>(begin, begin + part.size());
      },
      whole.data);
  return part;
}

void append(RefTensor &whole, const RefTensor &part) {
  whole.shape[0] += part.shape[0];
  std::visit(
      [&](auto &all) {
        auto &more = std::get<std::decay_t<decltype(all)>>(part.data);
        all.insert(all.end(), more.begin(), more.end());
      },
      whole.data);
}

/// Concatenates the parts; without any, `spec` has the shape.
FailureOr<RefTensor> Interpreter::join(Operation *op, TensorSpec spec, ArrayRef<RefTensor> parts) {
  spec.shape[0] = 0;
  auto whole = allocate(op, spec);
  if (succeeded(whole))
    for (const RefTensor &part : parts)
      append(*whole, part);
  return whole;
}

/// Runs a function of the module that shares the symbolic sizes of its caller.
FailureOr<Results> Interpreter::apply(Operation *op, Operation *function, ArrayRef<const RefTensor *> arguments) {
  auto callee = cast_or_null<func::FuncOp>(function);
  if (!callee || callee.isExternal())
    return op->emitError() << "applies a function that has no body here";
  if (depth >= 64)
    return op->emitError() << "calls nest more than 64 deep";
  Interpreter inner(onOp, options, depth + 1);
  inner.symbols = symbols;
  if (failed(inner.bind(op, callee.getArgumentTypes(), arguments, "argument")))
    return failure();
  return inner.runBlock(callee.getBody().front(), arguments);
}

FailureOr<Results> Interpreter::runWhile(WhileOp op, ArrayRef<const RefTensor *> operands) {
  auto carried = size_t(op.getCarried());
  Results values;
  for (const RefTensor *operand : operands.take_front(carried))
    values.push_back(*operand);
  for (;;) {
    std::vector<const RefTensor *> arguments = pointersTo(values);
    arguments.insert(arguments.end(), operands.begin() + carried, operands.end());
    auto condition = apply(op, op.conditionFunction(), arguments);
    if (failed(condition) || !isTrue(condition->front()))
      return failed(condition) ? condition : FailureOr<Results>(std::move(values));
    auto next = apply(op, op.bodyFunction(), arguments);
    if (failed(next))
      return failure();
    values = std::move(*next);
  }
}

FailureOr<Results> Interpreter::runScan(ScanOp op, ArrayRef<const RefTensor *> operands) {
  auto parts = evaluateDim(op.partCount(), symbols);
  if (!parts || *parts < 0)
    return op->emitError() << "cannot be interpreted";
  auto states = size_t(op.getStates());
  std::vector<Results> given(op.getNumResults()); // results of each iteration, in the order of the op's results
  for (size_t i = 0; i < states; ++i)
    given[i].push_back(*operands[i]);
  for (int64_t iteration = 0; iteration < *parts; ++iteration) {
    Results slices;
    for (size_t i = 0; i < states; ++i)
      slices.push_back(given[i].back());
    for (const RefTensor *operand : operands.slice(states, op.getSliced()))
      slices.push_back(partOf(*operand, op.getReverse() ? *parts - 1 - iteration : iteration, *parts));
    std::vector<const RefTensor *> arguments = pointersTo(slices);
    arguments.insert(arguments.end(), operands.begin() + op.firstWhole(), operands.end());
    auto results = apply(op, op.body(), arguments);
    if (failed(results))
      return failure();
    for (auto [list, result] : llvm::zip_equal(given, *results))
      list.push_back(std::move(result));
  }
  Results results;
  for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
    if (op.getReverse() && i >= states)
      std::reverse(given[i].begin(), given[i].end());
    if (isCarried(op, int64_t(i)))
      given[i].erase(given[i].begin(), given[i].end() - 1);
    auto whole = join(op, specOf(type), given[i]);
    if (failed(whole))
      return failure();
    results.push_back(std::move(*whole));
  }
  return results;
}

/// The operands in table order; nullptr for an absent optional one.
std::vector<const RefTensor *> tableOperands(Operation *op, ArrayRef<const RefTensor *> present) {
  std::vector<const RefTensor *> all;
  for (Value value : operandsOf(op)) {
    all.push_back(value ? present.front() : nullptr);
    present = present.drop_front(value ? 1 : 0);
  }
  return all;
}

FailureOr<Results> Interpreter::runTableOp(Operation *op, const OpInfo &info, ArrayRef<const RefTensor *> operands) {
  RefKernel kernel = findReferenceKernel(info.name);
  if (!kernel)
    return op->emitError() << "the reference interpreter does not know this op";
  if (failed(verifyInferredTypes(op)))
    return failure();
  std::vector<Attr> attrs = attrsOf(op);
  std::optional<Dim> newSize = newSizeOf(op);
  if (newSize)
    symbols[newSize->str()] = 0; // the kernel sets the number of rows
  for (Attr &attr : attrs)
    if (auto *shape = std::get_if<Shape>(&attr))
      for (Dim &dim : *shape) {
        auto size = evaluateDim(dim, symbols);
        if (!size)
          return op->emitError() << "the size " << dim.str() << " is not known from the inputs";
        dim = Dim(*size);
      }
  RefCall call{info, tableOperands(op, operands), attrs, {}, {}};
  for (Type type : op->getResultTypes()) {
    auto result = allocate(op, specOf(type));
    if (failed(result))
      return failure();
    call.results.push_back(std::move(*result));
  }
  if (!runGuarded(kernel, call))
    return op->emitError() << call.error;
  if (newSize)
    symbols[newSize->str()] = call.results[0].shape[0];
  for (RefTensor &result : call.results)
    result.round(options);
  return std::move(call.results);
}

FailureOr<Results> Interpreter::run(Operation *op, ArrayRef<const RefTensor *> operands) {
  if (auto constant = dyn_cast<ConstantOp>(op))
    return runConstant(constant);
  if (auto kernel = dyn_cast<KernelOp>(op))
    return runBlock(kernel.getBody().front(), operands);
  if (auto call = dyn_cast<func::CallOp>(op))
    return runCall(call, operands);
  if (auto scan = dyn_cast<ScanOp>(op))
    return runScan(scan, operands);
  if (auto loop = dyn_cast<WhileOp>(op))
    return runWhile(loop, operands);
  if (auto branches = dyn_cast<IfOp>(op))
    return apply(op, branches.branch(isTrue(*operands.front())), operands.drop_front());
  if (const OpInfo *info = opInfo(op))
    return runTableOp(op, *info, operands);
  if (isa<DebugPrintOp>(op)) // only results matter here
    return Results();
  return op->emitError() << "the reference interpreter does not know this op";
}

FailureOr<Results> Interpreter::runBlock(Block &block, ArrayRef<const RefTensor *> arguments) {
  if (arguments.size() != block.getNumArguments())
    return block.getParentOp()->emitError()
           << "takes " << block.getNumArguments() << " operands, got " << arguments.size();
  llvm::DenseMap<Value, const RefTensor *> values;
  llvm::DenseMap<Value, std::unique_ptr<RefTensor>> owned;
  for (auto [value, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[value] = tensor;
  // Number of remaining uses of a value; its elements are freed after the last one.
  llvm::DenseMap<Value, unsigned> uses;
  for (Operation &op : block) {
    std::vector<const RefTensor *> operands;
    for (Value v : op.getOperands()) {
      const RefTensor *tensor = values.lookup(v);
      if (!tensor)
        return op.emitError() << "uses a value from outside its region";
      operands.push_back(tensor);
    }
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      Results results;
      for (const RefTensor *t : operands)
        results.push_back(*t);
      return results;
    }
    auto results = run(&op, operands);
    if (failed(results))
      return failure();
    if (results->size() != op.getNumResults())
      return op.emitError() << "gives " << results->size() << " results, not " << op.getNumResults();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
      if (failed(check(&op, value.getType(), tensor, "result " + Twine(value.getResultNumber()))))
        return failure();
    if (onOp)
      onOp(&op, *results);
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results)) {
      if (value.use_empty())
        continue;
      values[value] = (owned[value] = std::make_unique<RefTensor>(std::move(tensor))).get();
      uses[value] = unsigned(std::distance(value.use_begin(), value.use_end()));
    }
    for (Value v : op.getOperands())
      if (auto left = uses.find(v); left != uses.end() && --left->second == 0)
        owned.erase(v);
  }
  return block.getParentOp()->emitError() << "the body has no terminator";
}

/// Turns exceptions, such as failed allocations, into diagnostics.
FailureOr<Results> guarded(Operation *op, llvm::function_ref<FailureOr<Results>()> run) try {
  return run();
} catch (const std::exception &e) {
  return op->emitError() << "the reference interpreter cannot run this: " << e.what();
}

} // namespace

FailureOr<Results> evaluate(Operation *op, ArrayRef<RefTensor> operands, const RefOptions &options) {
  return guarded(op, [&]() -> FailureOr<Results> {
    Interpreter interpreter({}, options);
    auto pointers = pointersTo(operands);
    if (failed(interpreter.bind(op, op->getOperandTypes(), pointers, "operand")))
      return failure();
    return interpreter.run(op, pointers);
  });
}

FailureOr<Results> interpret(func::FuncOp func, ArrayRef<RefTensor> inputs, RefObserver onOp,
                             const RefOptions &options) {
  if (func.isExternal())
    return func.emitError() << "has no body to interpret";
  return guarded(func, [&]() -> FailureOr<Results> {
    Interpreter interpreter(onOp, options);
    auto pointers = pointersTo(inputs);
    if (failed(interpreter.bind(func, func.getArgumentTypes(), pointers, "input")))
      return failure();
    return interpreter.runBlock(func.getBody().front(), pointers);
  });
}

FailureOr<Results> interpret(ModuleOp module, ArrayRef<RefTensor> inputs, RefObserver onOp, const RefOptions &options) {
  func::FuncOp func = mainFunction(module);
  if (!func)
    return module.emitError() << "has no public function";
  return interpret(func, inputs, onOp, options);
}

} // namespace burin::ir
