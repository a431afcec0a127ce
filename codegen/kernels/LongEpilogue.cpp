#include "codegen/kernels/LongEpilogue.h"

using namespace mlir;

namespace burin::codegen {

int64_t opsOf(KernelBuilder &k, llvm::function_ref<void()> emit) {
  Block *block = k.b.getInsertionBlock();
  const Block::iterator end = k.b.getInsertionPoint();
  Operation *before = end == block->begin() ? nullptr : &*std::prev(end);
  emit();
  int64_t count = 0;
  for (Operation &op : llvm::make_range(before ? std::next(before->getIterator()) : block->begin(), end))
    op.walk([&](Operation *) { ++count; });
  return count;
}

Value stackMemory(KernelBuilder &k, int64_t bytes) {
  OpBuilder::InsertionGuard guard(k.b);
  Operation *around = k.b.getInsertionBlock()->getParentOp();
  auto function = dyn_cast<LLVM::LLVMFuncOp>(around);
  if (!function)
    function = around->getParentOfType<LLVM::LLVMFuncOp>();
  k.b.setInsertionPointToStart(&function.front());
  Value size = LLVM::ConstantOp::create(k.b, k.loc, k.b.getI64IntegerAttr(bytes));
  return LLVM::AllocaOp::create(k.b, k.loc, LLVM::LLVMPointerType::get(k.b.getContext()), k.b.getI8Type(), size,
                                /*alignment=*/64);
}

} // namespace burin::codegen
