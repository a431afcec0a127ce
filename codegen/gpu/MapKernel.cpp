// Kernels without reductions (family gpu-map): a block computes adjacent elements of the space, each thread whole
// vectors of 16 bytes where the innermost dimension and the addresses allow it, else single elements.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kMovedBytes = 16; // of one load or store
/// Results of this many elements fill the GPU even if each thread computes several vectors.
constexpr int64_t kManyElements = int64_t(1) << 22, kVectorsOfMany = 4;

class MapKernel {
public:
  MapKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : e(e), k(e.k), p(e, a), body(body), space(a.space), pointers(results), results(body, a, results) {}

  GpuLaunch emit() {
    Dim total = elements(space);
    int64_t lanes = vectorLanes();
    int64_t vectors = total.isStatic() && total.value() >= kManyElements ? kVectorsOfMany : 1;
    int64_t each = kThreads * vectors * lanes;   // elements of a block
    if (total.isStatic() && total.value() > 0) { // LLVM then divides positions that have 32 bits in 32 bits
      Value blocks = k.constant(llvm::divideCeil(total.value(), each));
      LLVM::AssumeOp::create(k.b, k.loc, k.compare(arith::CmpIPredicate::ult, k.lo, blocks));
    }
    Value from = k.mul(k.lo, k.constant(each)), to = k.add(from, k.constant(each)), end = k.dim(total);
    Value thread = threadIndex(k);
    auto oneByOne = [&] {
      k.loop(k.add(from, thread), k.minimum(to, end), k.constant(kThreads), [&](Value i) { compute(i, 1); });
    };
    if (lanes == 1) {
      oneByOne();
    } else {
      Value isWhole = k.compare(arith::CmpIPredicate::sle, to, end);
      Value byVectors = arith::AndIOp::create(k.b, k.loc, isWhole, operandsAligned(e, body, pointers));
      k.unless(byVectors, oneByOne);
      k.when(byVectors, [&] {
        assumeOperandsAligned(e, body, pointers);
        for (int64_t v = 0; v < vectors; ++v) {
          Value vector = k.add(thread, k.constant(v * kThreads));
          compute(k.add(from, k.mul(vector, k.constant(lanes))), lanes);
        }
      });
    }
    return {.blocks = ceildiv(total, each), .threads = kThreads};
  }

private:
  /// Number of lanes of vectors that do not cross the end of the innermost dimension; 1 if there is none.
  int64_t vectorLanes() {
    int64_t widest = 1;
    auto see = [&](Value v) { widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v))); };
    for (BlockArgument v : body.getArguments())
      see(v);
    for (Operation &op : body.without_terminator())
      llvm::for_each(op.getResults(), see);
    int64_t lanes = kMovedBytes / std::max<int64_t>(widest, 2);
    bool fits = space.size() == 1 || (!space.empty() && space.back().isStatic() && space.back().value() % lanes == 0);
    return fits ? lanes : 1;
  }

  /// Computes `lanes` elements from row-major position i of the space on.
  void compute(Value i, int64_t lanes) {
    for (size_t d = space.size(); d-- > 0;) {
      Value size = k.dim(space[d]);
      p.point[d] = {d ? k.rem(i, size) : i, d + 1 == space.size() && lanes > 1};
      i = d ? k.div(i, size) : i;
    }
    llvm::SaveAndRestore inLanes(k.width, lanes);
    p.scoped([&] { results.write(p); });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  PointEmitter p;
  Block &body;
  const Shape &space;
  ArrayRef<Value> pointers; // of the results
  GpuResults results;
};

} // namespace

GpuLaunch emitGpuMap(const KernelEmission &kernel) {
  return MapKernel(kernel.e, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
