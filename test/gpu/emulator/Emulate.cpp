#include "test/gpu/emulator/Emulate.h"
#include "codegen/object/ObjectCode.h"
#include "test/gpu/driver/TensorMap.h"
#include "test/gpu/emulator/PairsOfBf16.h"
#include "test/gpu/emulator/Simt.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include <deque>
#include <stdexcept>

using namespace llvm;

namespace burin::test {
namespace {

constexpr const char *kTarget = "x86-64-v3"; // what code for the emulator is made for
constexpr size_t kGap = 64;                  // between shared variables, so that an access beyond one is outside of all
constexpr unsigned kSharedSpace = 3;

/// Kernels live as long as the process: code refers to them by address.
simt::Kernel &newKernel() {
  static std::deque<simt::Kernel> all;
  return all.emplace_back();
}

class Emulation {
public:
  Emulation(Module &module, ArrayRef<std::string> symbols, bool byGroups)
      : module(module), symbols(symbols), byGroups(byGroups), b(module.getContext()) {}

  void run() {
    const codegen::Target &cpu = *codegen::findTarget(kTarget);
    for (Function &f : module)
      if (!f.isDeclaration()) {
        f.addFnAttr("target-cpu", cpu.cpu);
        f.addFnAttr("target-features", cpu.features);
      }
    for (const std::string &symbol : symbols)
      convert(*module.getFunction(symbol));
    for (GlobalVariable &g : make_early_inc_range(module.globals()))
      if (g.getAddressSpace() == kSharedSpace) {
        if (g.isDeclaration()) // the pool of all kernels
          g.replaceAllUsesWith(addressOf(simt::sharedMemory(), g));
        g.eraseFromParent();
      }
  }

private:
  template <class T> Constant *address(T *p) {
    return ConstantExpr::getIntToPtr(b.getInt64(reinterpret_cast<uint64_t>(p)), b.getPtrTy());
  }
  static Constant *addressOf(std::byte *p, GlobalVariable &g) {
    return ConstantExpr::getIntToPtr(ConstantInt::get(Type::getInt64Ty(g.getContext()), reinterpret_cast<uint64_t>(p)),
                                     g.getType());
  }
  /// A call of a function of this process.
  template <class R, class... A> Value *call(R (*function)(A...), Type *result, ArrayRef<Value *> arguments) {
    SmallVector<Type *> types(map_range(arguments, [](Value *v) { return v->getType(); }));
    return b.CreateCall(FunctionType::get(result, types, false), address(reinterpret_cast<void *>(function)),
                        arguments);
  }
  Value *siteOf(Instruction &i) {
    std::string text = i.getOpcodeName();
    if (auto *called = dyn_cast<CallBase>(&i); called && called->getCalledFunction())
      text = called->getCalledFunction()->getName().str();
    return b.getInt32(
        uint32_t(simt::addSite(text + " " + std::to_string(++places) + " of " + i.getFunction()->getName().str())));
  }

  void convert(Function &kernel) {
    simt::Kernel &info = newKernel();
    info.name = kernel.getName().str();
    info.usesPhases = false;
    info.isPersistent = kernel.hasFnAttribute("burin-persistent");
    if (kernel.hasFnAttribute("burin-groups"))
      info.groups = kernel.getFnAttribute("burin-groups").getValueAsString().str();
    info.isLaunchedByGroup = byGroups;
    info.threads = std::stoi(kernel.getFnAttribute("nvvm.reqntid").getValueAsString().str());
    std::string name = info.name;
    kernel.setName(name + ".kernel");
    kernel.setCallingConv(CallingConv::C);
    kernel.setLinkage(GlobalValue::InternalLinkage);
    placeShared(kernel, info);
    places = 0;
    for (Instruction &i : make_early_inc_range(instructions(kernel)))
      instrument(i, info);
    carryPairsAsBits(kernel);
    makeEntry(kernel, info, name);
  }

  static bool isUsedIn(const Value &v, const Function &kernel) {
    return any_of(v.users(), [&](const User *user) {
      auto *i = dyn_cast<Instruction>(user);
      return i ? i->getFunction() == &kernel : isUsedIn(*user, kernel);
    });
  }

  /// Shared variables become places in the emulator's memory, behind what the launch gives.
  void placeShared(Function &kernel, simt::Kernel &info) {
    size_t end = 0;
    if (kernel.hasFnAttribute("burin-shared-bytes")) {
      const size_t bytes = std::stoul(kernel.getFnAttribute("burin-shared-bytes").getValueAsString().str());
      info.shared.push_back({"pool", 0, bytes});
      end = bytes + kGap;
    }
    for (GlobalVariable &g : module.globals()) {
      bool isUsed = g.getAddressSpace() == kSharedSpace && !g.isDeclaration() && isUsedIn(g, kernel);
      if (!isUsed)
        continue;
      size_t bytes = module.getDataLayout().getTypeAllocSize(g.getValueType());
      end = (end + 127) / 128 * 128;
      info.shared.push_back({g.getName().str(), end, bytes});
      g.replaceAllUsesWith(addressOf(simt::sharedMemory() + end, g));
      end += bytes + kGap;
    }
    if (end > simt::kSharedBytes)
      throw std::runtime_error(info.name + " has more shared memory than a block can have");
  }

  static bool isPrivate(Value *pointer) { return isa<AllocaInst>(getUnderlyingObject(pointer)); }

  void reportAccess(Instruction &i, Value *pointer, Type *type, int32_t kind) {
    if (isPrivate(pointer) || i.hasMetadata(LLVMContext::MD_nosanitize)) // not of the kernel itself
      return;
    b.SetInsertPoint(&i);
    Value *generic = b.CreateAddrSpaceCast(pointer, b.getPtrTy());
    uint64_t bytes = module.getDataLayout().getTypeStoreSize(type);
    call(&simt::access, b.getVoidTy(), {generic, b.getInt64(bytes), b.getInt32(uint32_t(kind)), siteOf(i)});
  }

  /// Lane by lane, those that the mask lets pass.
  void reportLanes(Instruction &i, Value *pointers, Type *vector, Value *mask, int32_t kind) {
    if (!pointers->getType()->isVectorTy() && isPrivate(pointers))
      return;
    auto *type = cast<FixedVectorType>(vector);
    for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
      b.SetInsertPoint(&i);
      Value *pointer = pointers->getType()->isVectorTy() ? b.CreateExtractElement(pointers, lane)
                                                         : b.CreateConstGEP1_64(type->getElementType(), pointers, lane);
      uint64_t bytes = module.getDataLayout().getTypeStoreSize(type->getElementType());
      Value *some = b.CreateSelect(b.CreateExtractElement(mask, lane), b.getInt64(bytes), b.getInt64(0));
      call(&simt::access, b.getVoidTy(),
           {b.CreateAddrSpaceCast(pointer, b.getPtrTy()), some, b.getInt32(uint32_t(kind)), siteOf(i)});
    }
  }

  void instrument(Instruction &i, simt::Kernel &info) {
    if (auto *load = dyn_cast<LoadInst>(&i))
      return reportAccess(i, load->getPointerOperand(), load->getType(), simt::Read);
    if (auto *store = dyn_cast<StoreInst>(&i))
      return reportAccess(i, store->getPointerOperand(), store->getValueOperand()->getType(), simt::Write);
    if (auto *atomic = dyn_cast<AtomicRMWInst>(&i))
      return reportAccess(i, atomic->getPointerOperand(), atomic->getType(), simt::Atomic);
    if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&i))
      return reportAccess(i, exchange->getPointerOperand(), exchange->getNewValOperand()->getType(), simt::Atomic);
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&i))
      return convertIntrinsic(*intrinsic, info);
    auto *other = dyn_cast<CallBase>(&i);
    if (other && other->isInlineAsm())
      return convertAssembly(*other, info);
    bool isKnown = other && other->getCalledFunction() && !other->getCalledFunction()->isDeclaration();
    if (other && !isKnown) // functions of the module touch no memory but their own
      throw std::runtime_error(info.name + " calls something that the emulator does not know" +
                               (other->getCalledFunction() ? ": " + other->getCalledFunction()->getName().str() : ""));
  }

  void convertIntrinsic(IntrinsicInst &i, simt::Kernel &info) {
    b.SetInsertPoint(&i);
    switch (i.getIntrinsicID()) {
    case Intrinsic::masked_load:
      return reportLanes(i, i.getArgOperand(0), i.getType(), i.getArgOperand(1), simt::Read);
    case Intrinsic::masked_gather:
      return reportLanes(i, i.getArgOperand(0), i.getType(), i.getArgOperand(1), simt::Read);
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
      return reportLanes(i, i.getArgOperand(1), i.getArgOperand(0)->getType(), i.getArgOperand(2), simt::Write);
    case Intrinsic::memset:
      return reportBytes(i, i.getArgOperand(0), i.getArgOperand(2), simt::Write);
    case Intrinsic::memcpy:
    case Intrinsic::memmove:
      reportBytes(i, i.getArgOperand(1), i.getArgOperand(2), simt::Read);
      return reportBytes(i, i.getArgOperand(0), i.getArgOperand(2), simt::Write);
    case Intrinsic::nvvm_read_ptx_sreg_tid_x:
      return replace(i, call(&simt::threadIndex, b.getInt32Ty(), {}));
    case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
      return replace(i, call(&simt::blockIndex, b.getInt32Ty(), {}));
    case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
      return replace(i, call(&simt::blockCount, b.getInt32Ty(), {}));
    case Intrinsic::nvvm_griddepcontrol_wait: // launches follow each other here
      i.eraseFromParent();
      return;
    case Intrinsic::nvvm_bar_warp_sync:
      info.synchronises = info.usesPhases = true;
      return replace(i, call(&simt::warpBarrier, b.getVoidTy(), {siteOf(i)}));
    case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
      info.synchronises = true;
      return replace(i, call(&simt::barrier, b.getVoidTy(), {siteOf(i)}));
    case Intrinsic::nvvm_shfl_sync_down_i32:
    case Intrinsic::nvvm_shfl_sync_down_f32:
      return convertShuffle(i, simt::Shuffle::Down, info);
    case Intrinsic::nvvm_shfl_sync_up_i32:
    case Intrinsic::nvvm_shfl_sync_up_f32:
      return convertShuffle(i, simt::Shuffle::Up, info);
    case Intrinsic::nvvm_shfl_sync_bfly_i32:
    case Intrinsic::nvvm_shfl_sync_bfly_f32:
      return convertShuffle(i, simt::Shuffle::Butterfly, info);
    case Intrinsic::nvvm_shfl_sync_idx_i32:
    case Intrinsic::nvvm_shfl_sync_idx_f32:
      return convertShuffle(i, simt::Shuffle::Index, info);
    case Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32:
      return convertProduct(i, fragments::Element::F16, info);
    case Intrinsic::nvvm_mma_m16n8k16_row_col_bf16:
      return convertProduct(i, fragments::Element::BF16, info);
    case Intrinsic::nvvm_mma_m16n8k8_row_col_tf32:
      return convertProduct(i, fragments::Element::TF32, info);
    case Intrinsic::nvvm_mma_m16n8k32_row_col_s8:
      return convertProduct(i, fragments::Element::S8S8, info);
    case Intrinsic::nvvm_mma_m16n8k32_row_col_s8_u8:
      return convertProduct(i, fragments::Element::S8U8, info);
    case Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8:
      return convertProduct(i, fragments::Element::U8S8, info);
    case Intrinsic::nvvm_mma_m16n8k32_row_col_u8:
      return convertProduct(i, fragments::Element::U8U8, info);
    case Intrinsic::nvvm_prmt:
      return replace(
          i, call(&simt::permuteBytes, b.getInt32Ty(), {i.getArgOperand(0), i.getArgOperand(1), i.getArgOperand(2)}));
    case Intrinsic::nvvm_f2tf32_rna:
      return replace(i, call(&simt::roundToTf32, b.getInt32Ty(), {i.getArgOperand(0)}));
    case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16:
      return convertMatrices(i, /*transposed=*/false, info);
    case Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16:
      return convertMatrices(i, /*transposed=*/true, info);
    case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
      return replace(i,
                     call(&simt::copyAsync, b.getVoidTy(),
                          {generic(i.getArgOperand(0)), generic(i.getArgOperand(1)), i.getArgOperand(2), siteOf(i)}));
    case Intrinsic::nvvm_ff2f16x2_rn:
    case Intrinsic::nvvm_ff2bf16x2_rn:
      return convertPair(i);
    case Intrinsic::nvvm_ex2_approx_ftz:
      return replace(i, call(&simt::exp2Approximately, b.getFloatTy(), {i.getArgOperand(0)}));
    case Intrinsic::nvvm_rcp_approx_ftz_f:
      return replace(i, call(&simt::reciprocalApproximately, b.getFloatTy(), {i.getArgOperand(0)}));
    case Intrinsic::nvvm_mbarrier_init_shared:
      info.synchronises = info.usesPhases = true;
      return replace(
          i, call(&simt::initBarrier, b.getVoidTy(), {generic(i.getArgOperand(0)), i.getArgOperand(1), siteOf(i)}));
    case Intrinsic::nvvm_mbarrier_arrive_shared: // nobody reads what it returns
      call(&simt::arrive, b.getVoidTy(), {generic(i.getArgOperand(0)), siteOf(i)});
      return replace(i, PoisonValue::get(i.getType()));
    case Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta: // nobody reads what it returns
      call(&simt::arriveExpecting, b.getVoidTy(), {generic(i.getArgOperand(0)), i.getArgOperand(1), siteOf(i)});
      return replace(i, PoisonValue::get(i.getType()));
    case Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_2d:
    case Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_3d:
      return convertBulkCopy(i);
    case Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared:
      return replace(i, call(&simt::arriveWithCopies, b.getVoidTy(), {generic(i.getArgOperand(0)), siteOf(i)}));
    case Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta:
      return replace(
          i, call(&simt::waitForPhase, b.getInt1Ty(), {generic(i.getArgOperand(0)), i.getArgOperand(1), siteOf(i)}));
    case Intrinsic::nvvm_fence_proxy_async_shared_cta:
      return replace(i, call(&simt::showToProducts, b.getVoidTy(), {}));
    case Intrinsic::nvvm_wgmma_fence_sync_aligned:
      return replace(i, call(&simt::beginProducts, b.getVoidTy(), {}));
    case Intrinsic::nvvm_wgmma_commit_group_sync_aligned:
      return replace(i, call(&simt::commitProducts, b.getVoidTy(), {}));
    case Intrinsic::nvvm_wgmma_wait_group_sync_aligned:
      return replace(i, call(&simt::waitForProducts, b.getVoidTy(), {i.getArgOperand(0)}));
    case Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32:
    case Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32:
      return replace(i, call(&simt::setRegisters, b.getVoidTy(), {i.getArgOperand(0), siteOf(i)}));
    case Intrinsic::nvvm_cp_async_commit_group:
      return replace(i, call(&simt::commitCopies, b.getVoidTy(), {}));
    case Intrinsic::nvvm_cp_async_wait_group:
      return replace(i, call(&simt::waitForCopies, b.getVoidTy(), {i.getArgOperand(0)}));
    default:
      if (StringRef called = i.getCalledFunction()->getName();
          called.starts_with("llvm.nvvm.") || called.starts_with("llvm.x86."))
        throw std::runtime_error("the emulator does not know " + called.str());
    }
  }

  void reportBytes(IntrinsicInst &i, Value *pointer, Value *bytes, int32_t kind) {
    if (isPrivate(pointer))
      return;
    call(&simt::access, b.getVoidTy(),
         {b.CreateAddrSpaceCast(pointer, b.getPtrTy()), b.CreateZExt(bytes, b.getInt64Ty()), b.getInt32(uint32_t(kind)),
          siteOf(i)});
  }

  void replace(Instruction &i, Value *by) {
    if (!i.getType()->isVoidTy())
      i.replaceAllUsesWith(by);
    i.eraseFromParent();
  }

  void convertShuffle(IntrinsicInst &i, simt::Shuffle kind, simt::Kernel &info) {
    info.synchronises = true;
    Value *value = b.CreateBitCast(i.getArgOperand(1), b.getInt32Ty());
    Value *result = call(
        &simt::shuffle, b.getInt32Ty(),
        {b.getInt32(uint32_t(kind)), i.getArgOperand(0), value, i.getArgOperand(2), i.getArgOperand(3), siteOf(i)});
    replace(i, b.CreateBitCast(result, i.getType()));
  }

  Value *generic(Value *pointer) { return b.CreateAddrSpaceCast(pointer, b.getPtrTy()); }

  /// Memory of the thread for what a function of the emulator takes or gives.
  Value *room(IntrinsicInst &i, unsigned words) {
    IRBuilder<> entry(&*i.getFunction()->getEntryBlock().getFirstInsertionPt());
    return entry.CreateAlloca(ArrayType::get(b.getInt32Ty(), words));
  }
  /// The words of the room, from that one on, as the result of the intrinsic.
  void takeResult(IntrinsicInst &i, Value *room, unsigned from) {
    Value *result = PoisonValue::get(i.getType());
    for (unsigned n = 0; n < i.getType()->getStructNumElements(); ++n)
      result = b.CreateInsertValue(
          result,
          b.CreateLoad(i.getType()->getStructElementType(n), b.CreateConstGEP1_64(b.getInt32Ty(), room, from + n)), n);
    replace(i, result);
  }

  void convertProduct(IntrinsicInst &i, fragments::Element type, simt::Kernel &info) {
    info.synchronises = true;
    const unsigned words = sizeof(fragments::Multiplied) / 4, sums = offsetof(fragments::Multiplied, sum) / 4;
    Value *parts = room(i, words);
    for (unsigned n = 0; n < words; ++n)
      b.CreateStore(i.getArgOperand(n), b.CreateConstGEP1_64(b.getInt32Ty(), parts, n));
    call(&simt::multiply, b.getVoidTy(), {b.getInt32(uint32_t(type)), parts, siteOf(i)});
    takeResult(i, parts, sums);
  }

  void convertPair(IntrinsicInst &i) {
    const bool isHalf = i.getIntrinsicID() == Intrinsic::nvvm_ff2f16x2_rn;
    Value *type = b.getInt32(uint32_t(isHalf ? fragments::Element::F16 : fragments::Element::BF16));
    Value *pair = call(&simt::packPair, b.getInt32Ty(), {type, i.getArgOperand(1), i.getArgOperand(0)});
    replace(i, b.CreateBitCast(pair, i.getType()));
  }

  void convertBulkCopy(IntrinsicInst &i) {
    constexpr unsigned kFirst = 3, kOthers = 8; // coordinates come behind the destination, the barrier and the map
    const unsigned rank = i.arg_size() - kOthers;
    Value *at = room(i, rank);
    for (unsigned n = 0; n < rank; ++n)
      b.CreateStore(i.getArgOperand(kFirst + n), b.CreateConstGEP1_64(b.getInt32Ty(), at, n));
    replace(i, call(&simt::copyBulk, b.getVoidTy(),
                    {generic(i.getArgOperand(0)), generic(i.getArgOperand(1)), generic(i.getArgOperand(2)), at,
                     b.getInt32(rank), siteOf(i)}));
  }

  void convertMatrices(IntrinsicInst &i, bool transposed, simt::Kernel &info) {
    info.synchronises = true;
    Value *result = room(i, 4);
    call(&simt::loadMatrices, b.getVoidTy(), {generic(i.getArgOperand(0)), b.getInt32(transposed), result, siteOf(i)});
    takeResult(i, result, 0);
  }

  /// `first`: the operand behind the sums.
  void convertGroupProduct(CallBase &i, StringRef text, Value *sums, unsigned count, unsigned first) {
    const bool isInRegisters = i.arg_size() - first == 5;
    const auto type = fragments::elementOf(text, 2 * count);
    const bool isOf16Bits = type && fragments::bytesOf(*type) == 2;
    const bool hasColumns = !isOf16Bits || text.contains(isInRegisters ? "%adds, 1, 1, 0;" : "%adds, 1, 1, 0, 0;");
    const bool hasSteps = isOf16Bits && text.contains(isInRegisters ? "%adds, 1, 1, 1;" : "%adds, 1, 1, 0, 1;");
    const bool hasFlags =
        isOf16Bits || text.contains(type && fragments::isOfIntegers(*type) ? "%adds;" : "%adds, 1, 1;");
    if (!type || !hasFlags || (!hasColumns && !hasSteps) || (isInRegisters && !isOf16Bits))
      throw std::runtime_error("the emulator does not know " + text.str());
    Value *left = b.getInt64(0), *fragment = ConstantPointerNull::get(b.getPtrTy());
    if (isInRegisters) {
      IRBuilder<> entry(&*i.getFunction()->getEntryBlock().getFirstInsertionPt());
      fragment = entry.CreateAlloca(ArrayType::get(b.getInt32Ty(), 4));
      for (unsigned n = 0; n < 4; ++n)
        b.CreateStore(i.getArgOperand(first + n), b.CreateConstGEP1_64(b.getInt32Ty(), fragment, n));
    } else {
      left = i.getArgOperand(first);
    }
    const int sides = (isInRegisters ? simt::LeftInRegisters : 0) | (hasColumns ? simt::RightHasColumns : 0);
    call(&simt::multiplyGroup, b.getVoidTy(),
         {b.getInt32(uint32_t(*type)), b.getInt32(uint32_t(sides)), left, fragment, i.getArgOperand(i.arg_size() - 1),
          sums, b.getInt32(count), siteOf(i)});
  }

  /// Products of warpgroups, and the wait for them, are text that changes registers of f32 or i32: the first operands.
  void convertAssembly(CallBase &i, simt::Kernel &info) {
    b.SetInsertPoint(&i);
    info.synchronises = true;
    const StringRef text = cast<InlineAsm>(i.getCalledOperand())->getAsmString();
    const unsigned count = i.getType()->getStructNumElements();
    const bool isWait = text.starts_with("wgmma.wait_group.sync.aligned "),
               adds = isWait || text.contains("%adds, 1, 0;");
    IRBuilder<> entry(&*i.getFunction()->getEntryBlock().getFirstInsertionPt());
    Type *type = i.getType()->getStructElementType(0);
    Value *sums = entry.CreateAlloca(ArrayType::get(type, count));
    for (unsigned n = 0; n < count; ++n)
      b.CreateStore(adds ? i.getArgOperand(n) : Constant::getNullValue(type), b.CreateConstGEP1_64(type, sums, n));
    if (isWait)
      call(&simt::finishProducts, b.getVoidTy(),
           {sums, b.getInt32(count), b.getInt64(uint64_t(std::stoul(text.substr(text.find(' ') + 1).str())))});
    else
      convertGroupProduct(i, text, sums, count, adds ? count : 0);
    Value *result = PoisonValue::get(i.getType());
    for (unsigned n = 0; n < count; ++n)
      result = b.CreateInsertValue(result, b.CreateLoad(type, b.CreateConstGEP1_64(type, sums, n)), n);
    replace(i, result);
  }

  /// A tensor map of the kernel, as the runtime would encode it for the launch.
  Value *makeMap(Function &kernel, unsigned number, Function &thread) {
    const std::string name = "burin-tensor-map-" + std::to_string(number);
    Value *text = b.CreateGlobalString(kernel.getFnAttribute(name).getValueAsString());
    AllocaInst *map = b.CreateAlloca(ArrayType::get(b.getInt8Ty(), simt::TensorMap::kBytes));
    map->setAlignment(Align(64));
    call(&simt::makeMap, b.getVoidTy(), {text, thread.getArg(0), thread.getArg(1), map});
    return map;
  }

  /// `name.thread(operands, sizes, scratch, error)` unpacks the parameters of the kernel; `name` is what the runtime
  /// calls.
  void makeEntry(Function &kernel, simt::Kernel &info, const std::string &name) {
    Type *pointer = b.getPtrTy(), *i64 = b.getInt64Ty();
    auto *thread = Function::Create(FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, pointer}, false),
                                    GlobalValue::InternalLinkage, name + ".thread", module);
    b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", thread));
    SmallVector<Value *> arguments;
    unsigned operands = 0, sizes = 0, maps = 0;
    const unsigned others = info.groups.empty() ? 2 : 3; // scratch, error, number of the first block
    for (Argument &a : drop_end(kernel.args(), others))
      if (a.hasByValAttr()) {
        a.removeAttr(Attribute::ByVal);
        arguments.push_back(makeMap(kernel, maps++, *thread));
      } else {
        arguments.push_back(a.getType()->isPointerTy()
                                ? b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, thread->getArg(0), operands++))
                                : b.CreateLoad(i64, b.CreateConstGEP1_64(i64, thread->getArg(1), sizes++)));
      }
    arguments.append({thread->getArg(2), thread->getArg(3)});
    if (!info.groups.empty())
      arguments.push_back(b.getInt64(0)); // the number of a block counts all
    b.CreateCall(&kernel, arguments);
    b.CreateRetVoid();
    auto *entry = Function::Create(FunctionType::get(i64, {pointer, pointer, pointer, i64, i64}, false),
                                   GlobalValue::ExternalLinkage, name, module);
    b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", entry));
    b.CreateRet(call(&simt::launch, i64,
                     {address(&info), thread, entry->getArg(0), entry->getArg(1), entry->getArg(2), entry->getArg(3),
                      entry->getArg(4)}));
  }

  Module &module;
  ArrayRef<std::string> symbols;
  bool byGroups;
  IRBuilder<> b;
  int places = 0;
};

codegen::CompileOptions::GpuImage imageOf(Module &kernels, ArrayRef<std::string> symbols, bool byGroups) {
  Emulation(kernels, symbols, byGroups).run();
  std::string error;
  auto image = codegen::compileImage(kernels, *codegen::findTarget(kTarget), symbols, error);
  if (!image)
    throw std::runtime_error(error);
  return {kTarget, std::move(image->bytes), std::move(image->entries)};
}

} // namespace

codegen::CompileOptions::GpuImage emulated(Module &kernels, ArrayRef<std::string> symbols) {
  return imageOf(kernels, symbols, /*byGroups=*/false);
}
codegen::CompileOptions::GpuImage emulatedByGroups(Module &kernels, ArrayRef<std::string> symbols) {
  return imageOf(kernels, symbols, /*byGroups=*/true);
}

} // namespace burin::test
