// The entry functions around the body of a kernel: one that the runtime calls on a CPU, one that it launches on a GPU.
#include "codegen/emit/builder/KernelBuilder.h"

using namespace mlir;

namespace burin::codegen {

// Entry points load operand pointers from memory, which cannot be marked noalias. The body is therefore an inner
// function, with noalias arguments, that is inlined into the entry.
KernelBuilder::KernelBuilder(ModuleOp module, mlir::Location loc, llvm::StringRef name, const Target &target,
                             ArrayRef<bool> shared, std::vector<Dim> knownSizes)
    : b(module.getContext()), loc(loc), target(target), sizes(std::move(knownSizes)), name(name) {
  auto *context = module.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto i64 = b.getI64Type();
  operandCount = shared.size();
  isMemoryShared = llvm::is_contained(shared, true);
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> types(operandCount, pointer);
  types.append({pointer, pointer, i64, i64});
  auto type = LLVM::LLVMFunctionType::get(i64, types);
  function = LLVM::LLVMFuncOp::create(b, loc, (name + ".body").str(), type, LLVM::Linkage::Internal);
  function.setAlwaysInline(true);
  for (int64_t i = 0; i < operandCount; ++i)
    if (!shared[i])
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  for (int64_t i = 0; i < operandCount; ++i)
    operands.push_back(block->getArgument(i));
  sizesPointer = block->getArgument(operandCount);
  scratch = block->getArgument(operandCount + 1);
  lo = block->getArgument(operandCount + 2);
  hi = block->getArgument(operandCount + 3);
}

void KernelBuilder::beginEntry(Type result, ArrayRef<Type> types) {
  Value error = lowestError ? LLVM::LoadOp::create(b, loc, b.getI64Type(), lowestError).getResult()
                            : constant(std::numeric_limits<int64_t>::max());
  LLVM::ReturnOp::create(b, loc, error);
  constants.clear();
  b.setInsertionPointAfter(function);
  auto type = LLVM::LLVMFunctionType::get(result, types);
  entry = LLVM::LLVMFuncOp::create(b, loc, name, type);
  b.setInsertionPointToStart(entry.addEntryBlock(b));
}

void KernelBuilder::finish() {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  beginEntry(i64, {pointer, pointer, pointer, i64, i64});
  SmallVector<Value> arguments;
  for (int64_t i = 0; i < operandCount; ++i) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, entry.getArgument(0), LLVM::GEPArg(int32_t(i)));
    arguments.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
  }
  llvm::append_range(arguments, entry.getArguments().drop_front());
  LLVM::ReturnOp::create(b, loc, LLVM::CallOp::create(b, loc, function, arguments).getResults());
}

Value KernelBuilder::special(llvm::StringRef reg) {
  Value n = LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(),
                                          b.getStringAttr("llvm.nvvm.read.ptx.sreg." + reg.str()), ValueRange())
                .getResult(0);
  return arith::ExtUIOp::create(b, loc, b.getI64Type(), n);
}

void KernelBuilder::addSize(const Dim &size) {
  if (!size.isStatic() && !llvm::is_contained(sizes, size))
    sizes.push_back(size);
}

Value KernelBuilder::addTensorMap(TensorMap map) {
  for (const Dim &size : llvm::concat<const Dim>(map.sizes, map.strides))
    addSize(size);
  tensorMaps.push_back(std::move(map));
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  (void)function.insertArgument(function.getNumArguments(), pointer, DictionaryAttr(), loc);
  return function.getArguments().back();
}

/// "12", or "s2" for the third of the sizes that the kernel takes.
static std::string textOf(const Dim &size, ArrayRef<Dim> sizes) {
  return size.isStatic() ? std::to_string(size.value()) : "s" + std::to_string(llvm::find(sizes, size) - sizes.begin());
}

/// For the emulator of the tests: the operand, bytes of a line, the rank, sizes, strides, and the box.
static std::string textOf(const TensorMap &map, ArrayRef<Dim> sizes) {
  std::string text =
      std::to_string(map.operand) + " " + std::to_string(map.line) + " " + std::to_string(map.sizes.size());
  for (const Dim &size : llvm::concat<const Dim>(map.sizes, map.strides))
    text += " " + textOf(size, sizes);
  for (int64_t size : map.box)
    text += " " + std::to_string(size);
  return text;
}

// Sizes are parameters, but the body reads them from an array; inlining removes the array.
void KernelBuilder::finishGpu(const GpuLaunch &launch) {
  if (launch.tasksOfThreads)
    for (const Dim &size : {launch.blocks, *launch.tasksOfThreads, launch.scratchOfThread})
      addSize(size);
  if (launch.group)
    addSize(*launch.group), addSize(launch.blocks);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  SmallVector<Type> types(operandCount, pointer);
  types.append(sizes.size(), i64);
  types.append(tensorMaps.size() + 2, pointer); // maps, scratch, error
  if (launch.group)
    types.push_back(i64);
  beginEntry(LLVM::LLVMVoidType::get(b.getContext()), types);
  entry.setCConv(LLVM::CConv::PTX_Kernel);
  // Direct branches: of a switch over parts of an epilogue, whose threads all go the same way.
  SmallVector<Attribute> attributes{b.getStrArrayAttr({"nvvm.reqntid", std::to_string(launch.threads)}),
                                    b.getStrArrayAttr({"no-jump-tables", "true"})};
  if (launch.leastBlocks)
    attributes.push_back(b.getStrArrayAttr({"nvvm.minctasm", std::to_string(launch.leastBlocks)}));
  if (launch.sharedBytes) // for the emulator of the tests
    attributes.push_back(b.getStrArrayAttr({"burin-shared-bytes", std::to_string(launch.sharedBytes)}));
  if (launch.blocksPerMultiprocessor)
    attributes.push_back(b.getStringAttr("burin-persistent"));
  if (launch.group) // for the emulator: blocks of a group, and of all
    attributes.push_back(
        b.getStrArrayAttr({"burin-groups", textOf(*launch.group, sizes) + " " + textOf(launch.blocks, sizes)}));
  const auto firstMap = unsigned(operandCount + int64_t(sizes.size()));
  constexpr int64_t kMapBytes = 128, kMapAlignment = 64;
  for (auto [i, map] : llvm::enumerate(tensorMaps)) {
    entry.setArgAttr(firstMap + unsigned(i), LLVM::LLVMDialect::getByValAttrName(),
                     TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), kMapBytes)));
    entry.setArgAttr(firstMap + unsigned(i), LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(kMapAlignment));
    attributes.push_back(b.getStrArrayAttr({"burin-tensor-map-" + std::to_string(i), textOf(map, sizes)}));
  }
  entry.setPassthroughAttr(b.getArrayAttr(attributes));
  for (int64_t i = 0; i < operandCount; ++i)
    if (Attribute noAlias = function.getArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName()))
      entry.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), noAlias);
  auto number = [&](int64_t n) -> Value { return arith::ConstantIntOp::create(b, loc, i64, n); };
  Value array = LLVM::AllocaOp::create(b, loc, pointer, i64, number(std::max<int64_t>(int64_t(sizes.size()), 1)));
  for (size_t i = 0; i < sizes.size(); ++i)
    LLVM::StoreOp::create(b, loc, entry.getArgument(unsigned(operandCount + i)),
                          LLVM::GEPOp::create(b, loc, pointer, i64, array, LLVM::GEPArg(int32_t(i))));
  SmallVector<Value> arguments(entry.getArguments().take_front(operandCount));
  const auto scratchAt = unsigned(firstMap + tensorMaps.size());
  arguments.append({array, entry.getArgument(scratchAt)});
  if (launch.tasksOfThreads) {
    runTasksOfThread(launch, std::move(arguments));
  } else {
    Value block = special("ctaid.x");
    if (launch.group)
      block = arith::AddIOp::create(b, loc, block, entry.getArguments().back());
    arguments.append({block, arith::AddIOp::create(b, loc, block, number(1))});
    llvm::append_range(arguments, entry.getArguments().slice(firstMap, tensorMaps.size()));
    callBodyOnGpu(arguments);
  }
  LLVM::ReturnOp::create(b, loc, ValueRange());
}

/// Keeps the minimum error of all threads.
void KernelBuilder::callBodyOnGpu(ValueRange arguments) {
  Value error = LLVM::CallOp::create(b, loc, function, arguments).getResult();
  if (!lowestError)
    return;
  Value none = arith::ConstantIntOp::create(b, loc, b.getI64Type(), std::numeric_limits<int64_t>::max());
  Value errorWord = entry.getArgument(unsigned(operandCount + int64_t(sizes.size() + tensorMaps.size()) + 1));
  Value isError = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, error, none);
  scf::IfOp::create(b, loc, isError, [&](OpBuilder &inner, mlir::Location) {
    LLVM::AtomicRMWOp::create(inner, loc, LLVM::AtomicBinOp::min, errorWord, error, LLVM::AtomicOrdering::monotonic);
    scf::YieldOp::create(inner, loc);
  });
}

void KernelBuilder::runTasksOfThread(const GpuLaunch &launch, SmallVector<Value> arguments) {
  auto number = [&](int64_t n) -> Value { return arith::ConstantIntOp::create(b, loc, b.getI64Type(), n); };
  auto sizeOf = [&](const Dim &size) -> Value {
    return size.isStatic() ? number(size.value())
                           : entry.getArgument(unsigned(operandCount + (llvm::find(sizes, size) - sizes.begin())));
  };
  Value threads = number(launch.threads);
  Value before = arith::MulIOp::create(b, loc, special("ctaid.x"), threads);
  Value self = arith::AddIOp::create(b, loc, before, special("tid.x"));
  Value all = arith::MulIOp::create(b, loc, sizeOf(launch.blocks), threads);
  Value &scratchOfAll = arguments[operandCount + 1];
  scratchOfAll = LLVM::GEPOp::create(b, loc, scratchOfAll.getType(), b.getI8Type(), scratchOfAll,
                                     arith::MulIOp::create(b, loc, self, sizeOf(launch.scratchOfThread)).getResult());
  auto loop = scf::ForOp::create(b, loc, self, sizeOf(*launch.tasksOfThreads), all);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value task = loop.getInductionVar();
  arguments.append({task, arith::AddIOp::create(b, loc, task, number(1))});
  callBodyOnGpu(arguments);
}

} // namespace burin::codegen
