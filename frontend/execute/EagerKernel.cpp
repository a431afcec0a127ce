#include "frontend/execute/EagerKernel.h"
#include "codegen/Compiler.h"
#include "codegen/target/Precision.h"
#include "frontend/execute/DiskCache.h"
#include "frontend/trace/GraphData.h"
#include <map>
#include <unordered_map>

namespace burin::detail {

namespace {
/// Whether an operand keeps static sizes where others become symbols: the right operand of a product or a convolution.
/// It is usually a weight, of which there are few shapes, and products of static depth and columns are up to twice as
/// fast.
bool keepsSizes(const EagerCall &call, size_t operand) {
  constexpr int64_t kFewElements = 64 * 64;
  const Shape &shape = call.operands[operand]->shape;
  const std::string_view op = call.info.name;
  if (operand != 1)
    return false;
  if (op == "conv" || op == "conv_transpose")
    return true;
  return op == "matmul" && shape.size() == 2 && elements(shape).isStatic() && elements(shape).value() >= kFewElements;
}

/// The types and attributes of a call with symbols in the place of sizes, so that new shapes do not need new
/// compilations. Each distinct size above 1 becomes a symbol; equal sizes become the same one. 0 and 1 stay, because
/// they broadcast or make tensors empty (see also keepsSizes). Sizes in attributes (of broadcast_to, slice, …) become
/// symbols likewise.
class SymbolicForm {
public:
  std::vector<std::optional<TensorSpec>> operands;
  std::vector<ir::Attr> attrs;
  Key key;
  bool any = false; // symbol

  explicit SymbolicForm(const EagerCall &call) : operands(call.operands), attrs(call.attrs) {
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i] && keepsSizes(call, i))
        for (const Dim &size : operands[i]->shape)
          symbols.emplace(size.value(), size); // in all operands, as their sizes may have to be equal
    for (auto &operand : operands)
      if (operand)
        replace(operand->shape, true);
    for (ir::Attr &attr : attrs)
      if (auto *shape = std::get_if<Shape>(&attr))
        replace(*shape, false);
    key.addCall(call.info, attrs);
    for (const auto &operand : operands)
      operand ? key.add(*operand) : key.addAbsent();
  }

  /// Whether inferred results are those of the call with sizes.
  bool gives(const std::vector<TensorSpec> &results, const std::vector<TensorSpec> &actual) const {
    return std::ranges::equal(results, actual, [this](const TensorSpec &a, const TensorSpec &b) {
      return std::ranges::equal(a.shape, b.shape, [this](const Dim &size, const Dim &actual) {
        if (!actual.isStatic())
          return size == actual;
        return size.evaluate([this](std::string_view name) { return valueOf(name); }) == actual.value();
      });
    });
  }
  /// Whether each size of the results is a symbol or a number.
  bool hasPlainSizes(const std::vector<TensorSpec> &results) const {
    return std::ranges::all_of(results, [this](const TensorSpec &result) {
      return std::ranges::all_of(result.shape,
                                 [this](const Dim &size) { return size.isStatic() || valueOf(size.str()); });
    });
  }

private:
  std::map<int64_t, Dim> symbols; // by size

  void replace(Shape &shape, bool isOperand) {
    for (Dim &size : shape) {
      if (!size.isStatic()) // defined by the op
        continue;
      int64_t value = size.value();
      auto at = symbols.find(value);
      if (value > 1 && at == symbols.end() && isOperand)
        at = symbols.emplace(value, Dim("s" + std::to_string(symbols.size()))).first;
      if (at == symbols.end())
        continue;
      any |= !at->second.isStatic();
      size = at->second;
    }
  }
  std::optional<int64_t> valueOf(std::string_view name) const {
    for (auto &[value, symbol] : symbols)
      if (symbol.str() == name)
        return value;
    return std::nullopt;
  }
};

/// A graph whose main function consists of one op.
std::shared_ptr<Graph::Data> graphOf(const EagerCall &call) {
  auto graph = std::make_shared<Graph::Data>();
  mlir::OpBuilder builder(&graph->context);
  mlir::Location location = builder.getUnknownLoc();
  graph->module = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(graph->module->getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const auto &operand : call.operands)
    if (operand)
      types.push_back(ir::tensorType(&graph->context, *operand));
  auto main = mlir::func::FuncOp::create(builder, location, "main", builder.getFunctionType(types, {}));
  builder.setInsertionPointToEnd(main.addEntryBlock());
  llvm::SmallVector<mlir::Value> operands;
  unsigned next = 0;
  for (const auto &operand : call.operands) {
    if (operand)
      main.setArgAttr(next, "burin.name", builder.getStringAttr("x" + std::to_string(next)));
    operands.push_back(operand ? main.getArgument(next++) : mlir::Value());
  }
  llvm::SmallVector<mlir::Value> results = recordCall(builder, location, call.checked, operands);
  mlir::func::ReturnOp::create(builder, location, results);
  main.setFunctionType(builder.getFunctionType(types, mlir::ValueRange(results).getTypes()));
  for (size_t i = 0; i < results.size(); ++i)
    main.setResultAttr(i, "burin.name", builder.getStringAttr("y" + std::to_string(i)));
  return graph;
}

std::atomic<uint64_t> compiledCount{0}, diskCount{0};

ExecutableRef fromBytes(std::vector<std::byte> bytes, const rt::gpu::Device::Ptr &gpu, std::string &problem) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  rt::Program::Ptr program;
  rt::Status status = rt::Program::loadMemory(std::as_bytes(std::span(*owner)), owner, {}, program);
  problem = status.message();
  return status.ok() ? std::make_shared<Executable>(std::move(program), HostFunctions(), false, gpu) : nullptr;
}

/// Code that may still be compiled: the first caller compiles, others of the same form wait.
struct Slot {
  std::mutex mutex;
  std::shared_ptr<const EagerCall> call; // null: not inferred yet, or, if there is a problem, invalid
  ExecutableRef executable;
  std::string problem; // set if inference or the compiler refused

  /// Code for `call`; null if there is a problem.
  ExecutableRef compiled(Device device, const Location &where) {
    if (!executable && problem.empty()) {
      const std::string key = std::string(call->info.name) + " " + std::string(call->key.bytes());
      executable = compileCached(key, [&] { return graphOf(*call); }, problem, device, where);
    }
    return executable;
  }
};

std::shared_ptr<Slot> slotOf(const Key &key, Device device) {
  static auto *mutex = new std::mutex;
  static auto *slots = new std::unordered_map<PlacedKey, std::shared_ptr<Slot>, PlacedKeyHash>;
  static constexpr size_t kMost = 4096; // then the table is cleared, see Plans
  std::lock_guard lock(*mutex);
  if (slots->size() >= kMost)
    slots->clear();
  std::shared_ptr<Slot> &slot = (*slots)[{key, device}];
  if (!slot)
    slot = std::make_shared<Slot>();
  return slot;
}

/// The slot of all calls of this form, inferred.
std::shared_ptr<Slot> inferredSlot(const EagerCall &call, SymbolicForm &form, Device device) {
  std::shared_ptr<Slot> slot = slotOf(form.key, device);
  std::lock_guard lock(slot->mutex);
  if (slot->call || !slot->problem.empty())
    return slot;
  ir::InferCall inferred{.info = call.info, .operands = form.operands, .attrs = form.attrs, .results = {}, .error = {}};
  if (!ir::infer(inferred)) {
    slot->problem = inferred.error;
    return slot;
  }
  CheckedCall checked{call.info, std::move(inferred.operands), std::move(inferred.attrs), std::move(inferred.results)};
  slot->call = std::make_shared<EagerCall>(call.info, std::move(form.operands), std::move(form.attrs),
                                           std::move(checked), std::move(form.key));
  return slot;
}

/// Code for all sizes. None, so that the call is compiled for its own sizes, if sizes of its results are then others,
/// or cannot be inferred (numbers that depend on sizes).
EagerCode symbolicKernel(const EagerCall &call, Device device, const Location &where) {
  SymbolicForm form(call);
  if (!form.any)
    return {};
  std::shared_ptr<Slot> slot = inferredSlot(call, form, device);
  std::lock_guard lock(slot->mutex);
  if (!slot->call || !form.gives(slot->call->checked.results, call.checked.results))
    return {};
  return {slot->compiled(device, where), true, !form.hasPlainSizes(slot->call->checked.results)};
}

} // namespace

std::shared_ptr<const EagerCall> symbolicCall(const EagerCall &call) {
  SymbolicForm form(call);
  if (!form.any)
    return nullptr;
  std::shared_ptr<Slot> slot = inferredSlot(call, form, {});
  std::lock_guard lock(slot->mutex);
  return slot->call && form.gives(slot->call->checked.results, call.checked.results) ? slot->call : nullptr;
}

ir::MoveKernel movementOf(const EagerCall &call) {
  const bool isMoved = !call.info.internal && llvm::equal(call.operands, call.checked.operands);
  return isMoved ? ir::findMoveKernel(call.info.name) : nullptr;
}

std::string str(const EagerCall &call) {
  std::string text = call.info.name;
  auto append = [&](const auto &value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>)
      text += value;
    else if constexpr (std::is_same_v<T, Shape>)
      text += burin::str(value);
    else if constexpr (std::is_same_v<T, DType>)
      text += name(value);
    else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      for (int64_t v : value)
        text += std::to_string(v) + " ";
    else
      text += std::to_string(value);
  };
  for (const ir::Attr &attr : call.attrs) {
    text += "; ";
    std::visit(append, attr);
  }
  for (const auto &operand : call.operands)
    text += operand ? "; " + burin::str(*operand) : "; -";
  return text;
}

std::string targetOf(const rt::gpu::Device &device) {
  const rt::gpu::DeviceInfo &info = device.info();
  return codegen::gpuTarget(info.major, info.minor, codegen::matmulPrecision());
}

ExecutableRef compileCached(const std::string &what, llvm::function_ref<std::shared_ptr<Graph::Data>()> make,
                            std::string &problem, Device device, const Location &where) {
  rt::gpu::Device::Ptr gpu = device.is_cuda() ? openDevice(device, "", where) : nullptr;
  codegen::CompileOptions options;
  if (gpu)
    options.targets = {targetOf(*gpu)};
  const std::string key = gpu ? options.targets[0] + ": " + what : what;
  if (auto bytes = DiskCache::shared().load(key))
    if (ExecutableRef executable = fromBytes(std::move(*bytes), gpu, problem)) {
      ++diskCount;
      return executable;
    }
  std::shared_ptr<Graph::Data> graph = make();
  auto bytes = codegen::compile(*graph->module, options);
  if (mlir::failed(bytes)) {
    problem = graph->takeDiagnostics();
    return nullptr;
  }
  ++compiledCount;
  DiskCache::shared().store(key, *bytes);
  return fromBytes(std::move(*bytes), gpu, problem);
}

ExecutableRef eagerKernelOfSizes(const EagerCall &call, Device device, const Location &where) {
  std::shared_ptr<Slot> slot = slotOf(call.key, device);
  std::lock_guard lock(slot->mutex);
  if (!slot->call)
    slot->call = std::make_shared<EagerCall>(call);
  ExecutableRef executable = slot->compiled(device, where);
  if (!executable)
    throw Error(where, call.info.name, "internal error: the compiler refused " + str(call) + ": " + slot->problem);
  return executable;
}
EagerCode eagerKernel(const EagerCall &call, Device device, const Location &where) {
  if (EagerCode code = symbolicKernel(call, device, where); code.executable)
    return code;
  return {eagerKernelOfSizes(call, device, where)};
}

} // namespace burin::detail

burin::KernelStatistics burin::kernel_statistics() { return {detail::compiledCount, detail::diskCount}; }
