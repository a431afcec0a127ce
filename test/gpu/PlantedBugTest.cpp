// The emulator finds what is wrong: in kernels of each family every barrier, every store to shared memory and the
// number of the block are taken away in turn.
#include "test/gpu/Emulate.h"
#include "test/gpu/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include <catch2/catch.hpp>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr unsigned kSharedSpace = 3;

bool isPlace(llvm::Instruction &i) {
  if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&i))
    return store->getPointerAddressSpace() == kSharedSpace;
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && (call->getIntrinsicID() == llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all ||
                  call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
}

/// Takes away the place of that number, if there are so many; says what it was, or "".
std::string takeAway(llvm::Module &kernels, int number) {
  for (llvm::Function &f : kernels)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      if (!isPlace(i) || number-- > 0)
        continue;
      std::string what = llvm::isa<llvm::StoreInst>(i) ? "store" : i.getType()->isVoidTy() ? "barrier" : "block";
      if (!i.getType()->isVoidTy())
        i.replaceAllUsesWith(llvm::ConstantInt::get(i.getType(), 0));
      i.eraseFromParent();
      return what + " of " + f.getName().str();
    }
  return "";
}

/// Softmax of rows of several warps, the largest of each column, a product of several tiles, and a map.
void build(Graph &g) {
  Graph::Value x = g.input({f32, {7, 700}}), w = g.input({f32, {700, 70}});
  Graph::Value y = g.apply("softmax", {x}, {{"axis", int64_t(1)}})[0];
  g.output(y);
  g.output(g.apply("reduce_max", {x}, {{"axes", std::vector<int64_t>{0}}})[0]);
  g.output(g.apply("matmul", {w, g.input({f32, {70, 90}})})[0]);
  g.output(g.apply("tanh", {w})[0]);
}

struct Outcome {
  std::string changed; // "" if there was nothing left to change
  std::string found;
  Tensors results;
};

Outcome runWithout(int place) {
  Graph g;
  build(g);
  Outcome outcome;
  auto compiled = g.compile("cuda-sm_80+ptx", [&](codegen::CompileOptions &options) {
    options.emulate = [&](llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
      if (place >= 0)
        outcome.changed = takeAway(kernels, place);
      return emulated(kernels, symbols);
    };
  });
  Random random(1);
  Tensors inputs;
  for (Graph::Value v : g.inputs()) {
    std::vector<int64_t> shape;
    for (const Dim &d : g.spec(v).shape)
      shape.push_back(d.value());
    inputs.push_back(randomTensor(f32, shape, {}, Mood::Plain, random));
  }
  simt::takeErrors();
  try {
    outcome.results = compiled->run(inputs);
  } catch (const std::runtime_error &e) {
    outcome.found = e.what();
  }
  for (const std::string &error : simt::takeErrors())
    outcome.found += error + "\n";
  return outcome;
}

} // namespace

TEST_CASE("The emulator finds every planted bug") {
  simt::Counters before = simt::counters();
  CHECK(runWithout(-1).found == "");
  simt::Counters after = simt::counters();
  CHECK(after.barriers > before.barriers);
  CHECK(after.shuffles > before.shuffles);
  CHECK(after.sharedAccesses > before.sharedAccesses);

  int planted = 0, barriers = 0;
  for (;; ++planted) {
    Outcome outcome = runWithout(planted);
    if (outcome.changed.empty())
      break;
    INFO(planted << ": without a " << outcome.changed);
    CHECK(outcome.found != "");
    barriers += outcome.changed.starts_with("barrier");
  }
  CHECK(barriers >= 4); // two of the rows, two of the product
  CHECK(planted >= 12);
}
