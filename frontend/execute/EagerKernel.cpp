#include "frontend/execute/EagerKernel.h"
#include "codegen/Compiler.h"
#include "frontend/execute/DiskCache.h"
#include "frontend/tensor/EagerKey.h"
#include "frontend/tensor/Normalize.h"
#include "frontend/trace/GraphData.h"
#include <map>
#include <unordered_map>

namespace burin::detail {

namespace {
/// An op and its operand types: the unit of compilation.
struct Form {
  const ir::OpInfo &info;
  std::vector<std::optional<TensorSpec>> operands;
  std::vector<ir::Attr> attrs;
  std::vector<TensorSpec> results;

  Key key() const {
    Key key;
    key.add(uint64_t(&info - ir::opTable().data()));
    for (const ir::Attr &attr : attrs)
      key.add(attr);
    for (const auto &operand : operands)
      operand ? key.add(*operand, false) : key.add(uint64_t(-1));
    return key;
  }
};

/// Whether an operand keeps static sizes where others become symbols: the right operand of a product. It is usually a
/// weight, of which there are few shapes, and products of static depth and columns are up to twice as fast.
bool keepsSizes(const Form &form, size_t operand) {
  constexpr int64_t kFewElements = 64 * 64;
  const Shape &shape = form.operands[operand]->shape;
  return form.info.name == std::string_view("matmul") && operand == 1 && shape.size() == 2 &&
         elements(shape).isStatic() && elements(shape).value() >= kFewElements;
}

/// Makes sizes symbolic, so that new shapes do not need new compilations. Each distinct size above 1 becomes a symbol;
/// equal sizes become the same one. 0 and 1 stay, because they broadcast or make tensors empty (see also keepsSizes).
/// Sizes in attributes (of broadcast_to, slice, …) become symbols likewise. Returns nullopt, so that the op is compiled
/// for static sizes, if sizes of the results are then not plain symbols or numbers, or cannot be inferred (windows,
/// concatenation, numbers that depend on sizes).
std::optional<Form> symbolicForm(const Form &form) {
  std::map<int64_t, Dim> symbols;
  bool any = false;
  auto replace = [&](Shape &shape, bool isOperand) {
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
  };
  Form symbolic = form;
  for (size_t i = 0; i < form.operands.size(); ++i)
    if (form.operands[i] && keepsSizes(form, i))
      for (const Dim &size : form.operands[i]->shape)
        symbols.emplace(size.value(), size); // in all operands, as their sizes may have to be equal
  for (auto &operand : symbolic.operands)
    if (operand)
      replace(operand->shape, true);
  for (ir::Attr &attr : symbolic.attrs)
    if (auto *shape = std::get_if<Shape>(&attr))
      replace(*shape, false);
  if (!any)
    return std::nullopt;
  ir::InferCall call{
      .info = form.info, .operands = symbolic.operands, .attrs = symbolic.attrs, .results = {}, .error = {}};
  if (!ir::infer(call) || call.results.size() != form.results.size())
    return std::nullopt;
  auto valueOf = [&](std::string_view name) -> std::optional<int64_t> {
    for (auto &[value, symbol] : symbols)
      if (symbol.str() == name)
        return value;
    return std::nullopt;
  };
  for (size_t i = 0; i < form.results.size(); ++i) {
    const Shape &shape = call.results[i].shape, &actual = form.results[i].shape;
    if (shape.size() != actual.size())
      return std::nullopt;
    for (size_t d = 0; d < shape.size(); ++d) {
      bool isSame = actual[d].isStatic() ? shape[d].evaluate(valueOf) == actual[d].value() &&
                                               (shape[d].isStatic() || valueOf(shape[d].str()))
                                         : shape[d] == actual[d];
      if (!isSame)
        return std::nullopt;
    }
  }
  symbolic.results = std::move(call.results);
  return symbolic;
}

/// A graph whose main function consists of one op.
std::shared_ptr<Graph::Data> graphOf(const Form &form) {
  auto graph = std::make_shared<Graph::Data>();
  mlir::OpBuilder builder(&graph->context);
  mlir::Location location = builder.getUnknownLoc();
  graph->module = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(graph->module->getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const auto &operand : form.operands)
    if (operand)
      types.push_back(ir::tensorType(&graph->context, *operand));
  auto main = mlir::func::FuncOp::create(builder, location, "main", builder.getFunctionType(types, {}));
  builder.setInsertionPointToEnd(main.addEntryBlock());
  llvm::SmallVector<mlir::Value> operands;
  unsigned next = 0;
  for (const auto &operand : form.operands) {
    if (operand)
      main.setArgAttr(next, "burin.name", builder.getStringAttr("x" + std::to_string(next)));
    operands.push_back(operand ? main.getArgument(next++) : mlir::Value());
  }
  llvm::SmallVector<bool> weak(form.operands.size(), false);
  CheckedCall call = checkCall(form.info, form.operands, weak, form.attrs, {});
  llvm::SmallVector<mlir::Value> results = recordCall(builder, location, call, operands);
  mlir::func::ReturnOp::create(builder, location, results);
  main.setFunctionType(builder.getFunctionType(types, mlir::ValueRange(results).getTypes()));
  for (size_t i = 0; i < results.size(); ++i)
    main.setResultAttr(i, "burin.name", builder.getStringAttr("y" + std::to_string(i)));
  return graph;
}

std::string textOf(const Form &form) { return callText(form.info, form.operands, form.attrs); }

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
  ExecutableRef executable;
  std::string problem; // set if the compiler refused
};

std::shared_ptr<Slot> slotOf(const Form &form, Device device) {
  static auto *mutex = new std::mutex;
  static auto *slots = new std::unordered_map<Key, std::shared_ptr<Slot>, KeyHash, std::equal_to<>>;
  static constexpr size_t kMost = 4096; // then the table is cleared, see Plans
  std::lock_guard lock(*mutex);
  if (slots->size() >= kMost)
    slots->clear();
  Key key = form.key();
  key.add(uint64_t(device.is_cuda() ? device.index() + 1 : 0));
  std::shared_ptr<Slot> &slot = (*slots)[key];
  if (!slot)
    slot = std::make_shared<Slot>();
  return slot;
}

ExecutableRef executableOf(const Form &form, Device device, const Location &where, std::string &problem) {
  std::shared_ptr<Slot> slot = slotOf(form, device);
  std::lock_guard lock(slot->mutex);
  if (!slot->executable && slot->problem.empty())
    slot->executable = compileCached(textOf(form), [&] { return graphOf(form); }, slot->problem, device, where);
  problem = slot->problem;
  return slot->executable;
}
} // namespace

std::string callText(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                     std::span<const ir::Attr> attrs) {
  std::string text = info.name;
  auto append = [&](const auto &value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>)
      text += value;
    else if constexpr (std::is_same_v<T, Shape>)
      text += str(value);
    else if constexpr (std::is_same_v<T, DType>)
      text += name(value);
    else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      for (int64_t v : value)
        text += std::to_string(v) + " ";
    else if constexpr (std::is_same_v<T, double>)
      text += std::to_string(std::bit_cast<uint64_t>(value));
    else
      text += std::to_string(value);
  };
  for (const ir::Attr &attr : attrs) {
    text += "; ";
    std::visit(append, attr);
  }
  for (const auto &operand : operands)
    text += operand ? "; " + str(*operand) : "; -";
  return text;
}

std::string targetOf(const rt::gpu::Device &device) {
  const rt::gpu::DeviceInfo &info = device.info();
  return info.major == 9 && info.minor == 0 ? "cuda-sm_90a+ptx" : "cuda-sm_80+ptx";
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

ExecutableRef eagerKernel(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                          const std::vector<ir::Attr> &attrs, std::span<const TensorSpec> results,
                          const Location &where, Device device) {
  Form form{info, {operands.begin(), operands.end()}, attrs, {results.begin(), results.end()}};
  std::string problem;
  if (auto symbolic = symbolicForm(form))
    if (ExecutableRef executable = executableOf(*symbolic, device, where, problem))
      return executable;
  ExecutableRef executable = executableOf(form, device, where, problem);
  if (!executable)
    throw Error(where, info.name, "internal error: the compiler refused " + textOf(form) + ": " + problem);
  return executable;
}

} // namespace burin::detail

burin::KernelStatistics burin::kernel_statistics() { return {detail::compiledCount, detail::diskCount}; }
