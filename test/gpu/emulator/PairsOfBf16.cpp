#include "test/gpu/emulator/PairsOfBf16.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace burin::test {
namespace {

bool isPairOfBf16(Type *type) {
  auto *pair = dyn_cast<FixedVectorType>(type);
  return pair && pair->getElementType()->isBFloatTy() && pair->getNumElements() == 2;
}
/// Pairs of bf16 go from block to block as integers: to carry them, code for this processor would convert them by a
/// library.
void carryBits(PHINode &phi) {
  if (!isPairOfBf16(phi.getType()))
    return;
  IRBuilder<> b(phi.getContext());
  b.SetInsertPoint(&phi);
  PHINode *bits = b.CreatePHI(b.getInt32Ty(), phi.getNumIncomingValues());
  for (unsigned n = 0; n < phi.getNumIncomingValues(); ++n) {
    BasicBlock *from = phi.getIncomingBlock(n);
    const int known = bits->getBasicBlockIndex(from);
    b.SetInsertPoint(from->getTerminator());
    bits->addIncoming(known < 0 ? b.CreateBitCast(phi.getIncomingValue(n), b.getInt32Ty())
                                : bits->getIncomingValue(unsigned(known)),
                      from);
  }
  b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  phi.replaceAllUsesWith(b.CreateBitCast(bits, phi.getType()));
  phi.eraseFromParent();
}
/// Users of the pair take its bits.
void useBits(Instruction &pair) {
  Value *bits = pair.getOperand(0);
  for (User *user : make_early_inc_range(pair.users()))
    if (auto *back = dyn_cast<BitCastInst>(user); back && back->getType() == bits->getType())
      back->replaceAllUsesWith(bits);
    else if (auto *store = dyn_cast<StoreInst>(user))
      store->setOperand(0, bits);
}

} // namespace

void carryPairsAsBits(Function &kernel) {
  for (Instruction &i : make_early_inc_range(instructions(kernel)))
    if (auto *phi = dyn_cast<PHINode>(&i))
      carryBits(*phi);
  for (Instruction &i : make_early_inc_range(instructions(kernel)))
    if (isPairOfBf16(i.getType()) && isa<BitCastInst>(i) && i.getOperand(0)->getType()->isIntegerTy(32))
      useBits(i);
}

} // namespace burin::test
