// The emulator finds what is wrong: in kernels of each family every barrier, every store to shared memory and the
// number of the block are taken away in turn; on tensor cores all that waits for others, or is waited for.
#include "test/Features.h"
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr unsigned kSharedSpace = 3;

/// What waits for others, or is waited for, and the rounding and splitting of operands.
bool isWaiting(llvm::Instruction &i) {
  if (auto *call = llvm::dyn_cast<llvm::CallBase>(&i); call && call->isInlineAsm()) // products, and the wait for them
    return true;
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  switch (call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic) {
  case llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all:
  case llvm::Intrinsic::nvvm_bar_warp_sync:
  case llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
  case llvm::Intrinsic::nvvm_f2tf32_rna:
  case llvm::Intrinsic::nvvm_ff2bf16x2_rn:
  case llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16:
  case llvm::Intrinsic::nvvm_cp_async_commit_group:
  case llvm::Intrinsic::nvvm_cp_async_wait_group:
  case llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared:
  case llvm::Intrinsic::nvvm_mbarrier_init_shared:
  case llvm::Intrinsic::nvvm_mbarrier_arrive_shared:
  case llvm::Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta:
  case llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_2d:
  case llvm::Intrinsic::nvvm_cp_async_bulk_tensor_g2s_tile_3d:
  case llvm::Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cta_space_cta:
  case llvm::Intrinsic::nvvm_fence_proxy_async_shared_cta:
  case llvm::Intrinsic::nvvm_wgmma_fence_sync_aligned:
  case llvm::Intrinsic::nvvm_wgmma_commit_group_sync_aligned:
  case llvm::Intrinsic::nvvm_wgmma_wait_group_sync_aligned:
  case llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32:
    return true;
  default:
    return false;
  }
}

bool isPlace(llvm::Instruction &i) {
  if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&i))
    return store->getPointerAddressSpace() == kSharedSpace;
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
  return call && (call->getIntrinsicID() == llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all ||
                  call->getIntrinsicID() == llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
}

/// What is done to a place in this run: it is taken away, or marked, so that the emulator reports that a thread comes
/// there. Compiled code reads it: places are many, and compiling takes longer than running.
enum class Change : int32_t { TakeAway, Mark };
int32_t changedPlace = -1;

constexpr int32_t codeOf(int32_t place, Change how) { return 2 * place + int32_t(how); }

/// Whether a place is changed in this way; not an access of the kernel.
llvm::Value *isChanged(llvm::IRBuilder<> &b, int32_t place, Change how) {
  auto *where = llvm::ConstantExpr::getIntToPtr(b.getInt64(reinterpret_cast<uint64_t>(&changedPlace)), b.getPtrTy());
  llvm::LoadInst *now = b.CreateLoad(b.getInt32Ty(), where, /*isVolatile=*/true);
  now->setMetadata(llvm::LLVMContext::MD_nosanitize, llvm::MDNode::get(b.getContext(), {}));
  return b.CreateICmpEQ(now, b.getInt32(uint32_t(codeOf(place, how))));
}

/// A write outside of all variables.
void addMark(llvm::Instruction &i, int32_t place) {
  llvm::IRBuilder<> b(&i);
  b.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(isChanged(b, place, Change::Mark), &i, /*Unreachable=*/false));
  auto outside = reinterpret_cast<uint64_t>(simt::sharedMemory() + simt::kSharedBytes - 1);
  b.CreateStore(b.getInt8(0), llvm::ConstantExpr::getIntToPtr(b.getInt64(outside), b.getPtrTy(kSharedSpace)));
}

/// What a place gives that is taken away: registers as they were; a number that is not rounded; a phase has ended; else
/// 0, also for terms of bf16.
llvm::Value *valueWithout(llvm::Instruction &i) {
  auto *call = llvm::dyn_cast<llvm::CallBase>(&i);
  if (call && call->getIntrinsicID() == llvm::Intrinsic::nvvm_f2tf32_rna)
    return llvm::IRBuilder<>(&i).CreateBitCast(call->getArgOperand(0), i.getType());
  if (call && call->isInlineAsm()) {
    llvm::IRBuilder<> b(&i);
    llvm::Value *same = llvm::PoisonValue::get(i.getType());
    llvm::Type *type = i.getType()->getStructElementType(0);
    const bool hasEarlier = call->getArgOperand(0)->getType() == type; // a product without earlier sums: zeros
    for (unsigned n = 0; n < i.getType()->getStructNumElements(); ++n)
      same = b.CreateInsertValue(same, hasEarlier ? call->getArgOperand(n) : llvm::Constant::getNullValue(type), n);
    return same;
  }
  if (call && call->getIntrinsicID() == llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16) {
    llvm::IRBuilder<> b(&i);
    llvm::Value *same = llvm::PoisonValue::get(i.getType());
    const unsigned fields = i.getType()->getStructNumElements(), first = call->arg_size() - fields; // the sums
    for (unsigned n = 0; n < fields; ++n)
      same = b.CreateInsertValue(same, call->getArgOperand(first + n), n);
    return same;
  }
  if (i.getType()->isVectorTy())
    return llvm::Constant::getNullValue(i.getType());
  return llvm::ConstantInt::get(i.getType(), i.getType()->isIntegerTy(1));
}

std::string nameOf(const llvm::Instruction &i) {
  if (auto *call = llvm::dyn_cast<llvm::CallBase>(&i))
    return call->isInlineAsm() ? "assembly" : call->getCalledFunction()->getName().str();
  return "store";
}

/// Makes a place one that can be changed.
void makeChangeable(llvm::Instruction &i, int32_t place) {
  addMark(i, place);
  llvm::IRBuilder<> b(&i);
  llvm::Value *without = i.getType()->isVoidTy() ? nullptr : valueWithout(i);
  llvm::BasicBlock *before = i.getParent();
  llvm::Value *isThere = b.CreateNot(isChanged(b, place, Change::TakeAway));
  llvm::Instruction *end = llvm::SplitBlockAndInsertIfThen(isThere, &i, /*Unreachable=*/false);
  llvm::Instruction *next = i.getNextNode();
  i.moveBefore(end->getIterator());
  if (!without)
    return;
  b.SetInsertPoint(next);
  llvm::PHINode *either = b.CreatePHI(i.getType(), 2);
  i.replaceAllUsesWith(either);
  either->addIncoming(without, before);
  either->addIncoming(&i, i.getParent());
}

/// Makes all places changeable; returns what they are.
std::vector<std::string> makeAllChangeable(llvm::Module &kernels, bool (*isPlace)(llvm::Instruction &)) {
  std::vector<llvm::Instruction *> places;
  for (llvm::Function &f : kernels)
    for (llvm::Instruction &i : llvm::instructions(f))
      if (isPlace(i))
        places.push_back(&i);
  std::vector<std::string> names;
  for (llvm::Instruction *i : places) {
    names.push_back(nameOf(*i));
    makeChangeable(*i, int32_t(names.size()) - 1);
  }
  return names;
}

/// Softmax of rows of several warps, and the largest of each column.
void buildRows(Graph &g) {
  Graph::Value x = g.input({f32, {7, 700}});
  g.output(g.apply("softmax", {x}, {{"axis", int64_t(1)}})[0]);
  g.output(g.apply("reduce_max", {x}, {{"axes", std::vector<int64_t>{0}}})[0]);
}
/// Sums of a line and of columns that are cut into parts.
void buildLongSums(Graph &g) {
  for (const Shape &shape : {Shape{9000}, Shape{700, 12}})
    g.output(g.apply("reduce_sum", {g.input({f32, shape})}, {{"axes", std::vector<int64_t>{0}}})[0]);
}
/// Distances to the mean of columns, which are cut into two parts, or not.
void buildDistances(Graph &g) {
  for (const char *rows : {"rows", "images"}) {
    const Shape shape{Dim(rows), 132};
    Graph::Value z = g.input({f32, shape});
    Graph::Value mean = g.apply("reduce_mean", {z}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", true}})[0];
    g.output(g.apply("sub", {z, g.apply("broadcast_to", {mean}, {{"shape", shape}})[0]})[0]);
  }
}
/// A product of several tiles, and a map.
void buildProductOfF32(Graph &g) {
  Graph::Value w = g.input({f32, {700, 70}});
  g.output(g.apply("matmul", {w, g.input({f32, {70, 90}})})[0]);
  g.output(g.apply("tanh", {w})[0]);
}

struct Outcome {
  std::string found;
  Tensors results;
};

constexpr int64_t kUnknown = 260, kImages = 132; // sizes that only a run knows

void buildTf32Product(Graph &g) {
  g.output(g.apply("matmul", {g.input({f32, {70, 148}}), g.input({f32, {148, 72}})})[0]);
}
/// In terms of bf16.
void buildSplitProduct(Graph &g) { buildTf32Product(g); }

const char *targetOf(void (*build)(Graph &)) {
  return build == buildTf32Product    ? "cuda-sm_80+ptx+tf32"
         : build == buildSplitProduct ? "cuda-sm_90a+ptx+bf16x3"
                                      : "cuda-sm_90a+ptx";
}

/// A graph whose kernels can be changed in each of their places.
class Subject {
public:
  Subject(void (*build)(Graph &), bool (*isPlace)(llvm::Instruction &)) {
    Graph g;
    build(g);
    compiled = g.compile(targetOf(build), [&](codegen::CompileOptions &options) {
      options.emulate = [&](llvm::Module &kernels, llvm::ArrayRef<std::string> symbols) {
        names = makeAllChangeable(kernels, isPlace);
        return emulated(kernels, symbols);
      };
    });
    Random random(1);
    for (Graph::Value v : g.inputs()) {
      std::vector<int64_t> shape;
      for (const Dim &d : g.spec(v).shape)
        shape.push_back(d.isStatic() ? d.value() : d == Dim("images") ? kImages : kUnknown);
      inputs.push_back(randomTensor(g.spec(v).dtype, shape, {}, Mood::Plain, random));
    }
  }

  /// What the places are.
  const std::vector<std::string> &places() const { return names; }

  Outcome run(int32_t place = -1, Change how = Change::TakeAway) {
    changedPlace = place < 0 ? -1 : codeOf(place, how);
    Outcome outcome;
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

private:
  std::shared_ptr<Compiled> compiled;
  std::vector<std::string> names;
  Tensors inputs;
};

bool areSame(const Tensors &x, const Tensors &y) {
  auto same = [](const ir::RefTensor &a, const ir::RefTensor &b) { return a.toBytes() == b.toBytes(); };
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
}

constexpr int kManyPlaces = 8, kTakenOfMany = 4;

/// Takes away one place after the other; returns how many there are, by what they are. Each is reported, or changes
/// results, unless no thread comes there: LLVM copies code to paths that these sizes do not take. Of many places that
/// are the same instruction, some are taken away without --long.
std::map<std::string, int> plantAll(Subject &subject) {
  std::map<std::string, int> planted, all, seen;
  for (const std::string &what : subject.places())
    ++all[what];
  const Outcome expected = subject.run();
  CHECK(expected.found == "");
  for (int32_t place = 0; place < int32_t(subject.places().size()); ++place) {
    const std::string &what = subject.places()[size_t(place)];
    if (all[what] > kManyPlaces && !isSampled(size_t(seen[what]++), size_t(all[what] / kTakenOfMany))) {
      ++planted[what];
      continue;
    }
    const Outcome outcome = subject.run(place);
    bool isFound = outcome.found != "" || !areSame(outcome.results, expected.results);
    if (!isFound && subject.run(place, Change::Mark).found == "")
      continue;
    INFO(place << ": without " << what);
    CHECK(isFound);
    ++planted[what];
  }
  return planted;
}

/// A product of ten slices, the last of which lies where the epilogue stores sums, and an attention over several tiles
/// of keys, on tensor cores.
void buildProduct(Graph &g) {
  g.output(g.apply("matmul", {g.input({bf16, {70, 296}}), g.input({bf16, {296, 72}})})[0]);
}
/// By tiles of 128 by 128 without tensor cores, as sizes that only a run knows count as large. The last of four slices
/// lies where the epilogue stores sums.
void buildLargeProduct(Graph &g) {
  g.output(g.apply("matmul", {g.input({f32, {Dim("rows"), 52}}), g.input({f32, {52, 72}})})[0]);
}
/// By warpgroups, for the same reason: a product, whose slices are bulk copies, and a
/// convolution. The only block computes three tiles, of several slices each, so that each stage is used again.
void buildWarpgroupProduct(Graph &g) {
  g.output(g.apply("matmul", {g.input({bf16, {Dim("rows"), 136}}), g.input({bf16, {136, 72}})})[0]);
}
/// The same of 8-bit floats, whose sums of a slice are added to others, and of bytes.
void buildFloat8Product(Graph &g) {
  g.output(g.apply("matmul", {g.input({f8e4m3fn, {Dim("rows"), 272}}), g.input({f8e5m2, {272, 136}})})[0]);
}
void buildByteProduct(Graph &g) {
  auto wide = [&](Graph::Value v) { return g.apply("cast", {v}, {{"dtype", i32}})[0]; };
  g.output(g.apply("matmul", {wide(g.input({u8, {Dim("rows"), 272}})), wide(g.input({i8, {272, 72}}))})[0]);
}
void buildWarpgroupConvolution(Graph &g) {
  Graph::Value x = g.input({bf16, {Dim("images"), 1, 2, 48}}), w = g.input({bf16, {3, 3, 48, 72}});
  g.output(g.apply("conv", {x, w}, {{"padding", std::vector<int64_t>{1}}, {"layout", std::string("nhwc")}})[0]);
}
/// By warpgroups, over four tiles of keys.
void buildWarpgroupAttention(Graph &g) {
  Graph::Value q = g.input({f16, {70, 24}}), k = g.input({f16, {512, 24}}), v = g.input({f16, {512, 16}});
  g.output(g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0]);
}
void buildAttention(Graph &g) {
  Graph::Value q = g.input({f16, {60, 40}}), k = g.input({f16, {188, 40}}), v = g.input({f16, {188, 72}});
  g.output(g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0]);
}

/// Two tiles of queries, and of keys.
void buildAttentionGradient(Graph &g) {
  Graph::Value q = g.input({f16, {70, 24}}), k = g.input({f16, {80, 24}}), v = g.input({f16, {80, 24}});
  g.output(g.apply("attention_gradient", {q, k, v, g.input({f16, {70, 24}}), Graph::none}, {{"scale", .25}})[0]);
}

} // namespace

TEST_CASE("The emulator finds every planted bug") {
  simt::Counters before = simt::counters();
  std::map<std::string, int> planted;
  for (auto *build : {buildRows, buildLongSums, buildDistances, buildProductOfF32}) {
    Subject subject(build, isPlace);
    CHECK(subject.run().found == "");
    for (const auto &[what, count] : plantAll(subject))
      planted[what] += count;
  }
  simt::Counters after = simt::counters();
  CHECK(after.barriers > before.barriers);
  CHECK(after.shuffles > before.shuffles);
  CHECK(after.sharedAccesses > before.sharedAccesses);
  CHECK(planted["llvm.nvvm.barrier.cta.sync.aligned.all"] >= 4); // two of the rows, two of the product
  CHECK(planted["store"] >= 4);
}

TEST_CASE("The emulator finds missing copies, groups, waits and barriers") {
  for (auto *build : {buildProduct, buildTf32Product, buildSplitProduct, buildAttention, buildAttentionGradient}) {
    Subject subject(build, isWaiting);
    simt::Counters before = simt::counters();
    CHECK(subject.run().found == "");
    simt::Counters after = simt::counters();
    CHECK(after.products > before.products);
    CHECK(after.copies > before.copies);
    auto planted = plantAll(subject);
    CHECK(planted["llvm.nvvm.cp.async.cg.shared.global.16.s"] >= 4);
    CHECK(planted["llvm.nvvm.cp.async.commit.group"] >= 2);
    CHECK(planted["llvm.nvvm.cp.async.wait.group"] >= 1);
    CHECK(planted["llvm.nvvm.barrier.cta.sync.aligned.all"] >= 3);
    CHECK(planted["llvm.nvvm.f2tf32.rna"] >=
          (build == buildTf32Product ? 64 : 0)); // 4 steps of 2 * 4 + 4 * 2 registers
    if (build == buildSplitProduct) {            // two slices of 16 steps
      CHECK(planted["llvm.nvvm.ff2bf16x2.rn"] >= 2 * 2 * (2 * 4 + 4 * 2));
      CHECK(planted["llvm.nvvm.mma.m16n8k16.row.col.bf16"] >= 2 * 3 * 2 * 4);
    }
  }
}

TEST_CASE("The emulator finds missing copies, groups, waits and barriers of large products of f32") {
  Subject subject(buildLargeProduct, isWaiting);
  auto planted = plantAll(subject);
  CHECK(planted["llvm.nvvm.cp.async.cg.shared.global.16.s"] >= 4); // two of each side
  CHECK(planted["llvm.nvvm.cp.async.commit.group"] >= 2);
  CHECK(planted["llvm.nvvm.cp.async.wait.group"] == 1);
  CHECK(planted["llvm.nvvm.barrier.cta.sync.aligned.all"] >= 2);
}

TEST_CASE("The emulator finds what is missing where warpgroups multiply") {
  simt::setMultiprocessors(1);
  Subject subject(buildWarpgroupProduct, isWaiting);
  simt::Counters before = simt::counters();
  CHECK(subject.run().found == "");
  simt::Counters after = simt::counters();
  CHECK(after.groupProducts > before.groupProducts);
  CHECK(after.phases > before.phases);
  CHECK((after.bulkCopies - before.bulkCopies) % (2 * 3 * 3) == 0); // both sides of three slices, of three tiles
  CHECK(after.copies == before.copies);
  auto planted = plantAll(subject);
  CHECK(planted["llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"] == 1);
  CHECK(planted["llvm.nvvm.cp.async.bulk.tensor.g2s.tile.3d"] == 4); // of 32 columns each
  CHECK(planted["llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"] == 1);
  CHECK(planted["llvm.nvvm.mbarrier.init.shared"] == 8);
  CHECK(planted["llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"] == 2);
  CHECK(planted["llvm.nvvm.mbarrier.arrive.shared"] == 2);
  CHECK(planted["llvm.nvvm.fence.proxy.async.shared_cta"] == 1);
  CHECK(planted["llvm.nvvm.wgmma.fence.sync.aligned"] == 1);
  CHECK(planted["llvm.nvvm.wgmma.commit_group.sync.aligned"] == 1);
  CHECK(planted["llvm.nvvm.wgmma.wait_group.sync.aligned"] == 1);
  CHECK(planted["llvm.nvvm.barrier.cta.sync.aligned.all"] == 1);
  CHECK(planted["llvm.nvvm.bar.warp.sync"] == 2);
  CHECK(planted["llvm.nvvm.setmaxnreg.dec.sync.aligned.u32"] == 1);
  CHECK(planted["assembly"] == 5); // four products, and the wait for them
  simt::setMultiprocessors(3);
}

TEST_CASE("The emulator finds what is missing where warpgroups multiply bytes") {
  simt::setMultiprocessors(1);
  for (auto *build : {buildFloat8Product, buildByteProduct}) {
    const bool isFloat8 = build == buildFloat8Product;
    Subject subject(build, isWaiting);
    simt::Counters before = simt::counters();
    CHECK(subject.run().found == "");
    simt::Counters after = simt::counters();
    CHECK(after.groupProducts > before.groupProducts);
    CHECK((after.bulkCopies - before.bulkCopies) % (2 * 3 * 3) == 0); // both sides of three slices, of three tiles
    auto planted = plantAll(subject);
    CHECK(planted["llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"] == 1);
    CHECK(planted["llvm.nvvm.cp.async.bulk.tensor.g2s.tile.3d"] == 1);
    CHECK(planted["llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"] == 2);
    CHECK(planted["llvm.nvvm.mbarrier.arrive.shared"] == 2);
    CHECK(planted["llvm.nvvm.wgmma.fence.sync.aligned"] == (isFloat8 ? 2 : 1)); // of both halves of the columns
    CHECK(planted["llvm.nvvm.wgmma.commit_group.sync.aligned"] == (isFloat8 ? 2 : 1));
    CHECK(planted["llvm.nvvm.wgmma.wait_group.sync.aligned"] == (isFloat8 ? 0 : 1));
    CHECK(planted["assembly"] == (isFloat8 ? 10 : 5)); // four products, and the wait for them
  }
  simt::setMultiprocessors(3);
}

TEST_CASE("The emulator finds what is missing where warpgroups convolve") {
  simt::setMultiprocessors(1);
  Subject subject(buildWarpgroupConvolution, isWaiting);
  simt::Counters before = simt::counters();
  CHECK(subject.run().found == "");
  simt::Counters after = simt::counters();
  CHECK(after.groupProducts > before.groupProducts);
  CHECK(after.bulkCopies > before.bulkCopies); // of panels
  CHECK(after.copies > before.copies);         // of the images
  auto planted = plantAll(subject);
  CHECK(planted["llvm.nvvm.cp.async.bulk.tensor.g2s.tile.3d"] >= 1); // a box for each 32 columns
  CHECK(planted["llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"] == 1);
  CHECK(planted["llvm.nvvm.cp.async.cg.shared.global.16.s"] == 8);
  CHECK(planted["llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared"] == 1);
  CHECK(planted["llvm.nvvm.fence.proxy.async.shared_cta"] == 2); // of the barriers, and of the images
  CHECK(planted["llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"] == 2);
  CHECK(planted["llvm.nvvm.barrier.cta.sync.aligned.all"] == 2);
  simt::setMultiprocessors(3);
}

TEST_CASE("The emulator finds what is missing where warpgroups attend") {
  Subject subject(buildWarpgroupAttention, isWaiting);
  simt::Counters before = simt::counters();
  CHECK(subject.run().found == "");
  simt::Counters after = simt::counters();
  CHECK(after.groupProducts > before.groupProducts);
  auto planted = plantAll(subject);
  std::string all;
  for (const auto &[what, count] : planted)
    all += what + " " + std::to_string(count) + "\n";
  INFO(all);
  CHECK(planted["llvm.nvvm.cp.async.cg.shared.global.16.s"] == 16);
  CHECK(planted["llvm.nvvm.mbarrier.init.shared"] == 9);
  CHECK(planted["llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"] >= 7);
  CHECK(planted["llvm.nvvm.mbarrier.arrive.shared"] >= 5);
  CHECK(planted["llvm.nvvm.fence.proxy.async.shared_cta"] >= 3);
  CHECK(planted["llvm.nvvm.wgmma.commit_group.sync.aligned"] >= 3);
  CHECK(planted["assembly"] >= 20);
}
