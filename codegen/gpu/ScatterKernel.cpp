// Scatter: a thread owns a part of a slice of the result. It loops over all updates of the slice in order and applies
// those that fall into its part, so that the result equals that of a sequential loop.
#include "codegen/emit/Scattered.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kWantedThreads = 65536, kMostParts = 256; // each part reads all indices of the slice

class ScatterKernel {
public:
  ScatterKernel(ElementEmitter &e, ScatterOp op, Value result)
      : e(e), k(e.k), op(op), type(dtypeOf(op.getResult())), shape(shapeOf(op.getResult())),
        updates(shapeOf(op.getUpdates())), axis(op.getAxis()), out{result, type, shape} {
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        others.push_back(shape[d]), otherDims.push_back(d);
  }

  GpuLaunch emit() {
    Dim slices = elements(others);
    int64_t parts = kMostParts;
    if (slices.isStatic() && slices.value() > 0)
      parts = std::clamp<int64_t>(kWantedThreads / slices.value(), 1, kMostParts);
    Dim all = slices * max(min(shape[axis], parts), 1); // at least one thread reports out-of-range indices
    Value number = k.add(k.mul(k.lo, k.constant(kThreads)), threadIndex(k));
    k.when(isBelow(number, k.dim(all)), [&] {
      Value partSize = k.dim(ceildiv(shape[axis], parts)), part = k.div(number, k.dim(slices));
      SmallVector<Index> place = e.delinearize({k.rem(number, k.dim(slices))}, others);
      at.assign(shape.size(), Index());
      for (auto [d, index] : llvm::zip(otherDims, place))
        at[d] = index;
      from = k.mul(part, partSize);
      to = k.minimum(k.add(from, partSize), k.dim(shape[axis]));
      if (!updatesInPlace(op))
        k.loop(from, to, k.constant(1), [&](Value i) {
          e.scoped([&] {
            at[axis] = {i};
            k.store(out, k.linear(shape, at), e.element(op.getX(), at), 1, {});
          });
        });
      k.when(hasUpdates(), [&] { update(); });
    });
    return {.blocks = ceildiv(all, kThreads), .threads = kThreads};
  }

private:
  Value isBelow(Value x, Value y) { return k.compare(arith::CmpIPredicate::slt, x, y); }

  /// The tensor of updates may have fewer slices than the result.
  Value hasUpdates() {
    Value inside = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
    for (size_t d : otherDims)
      if (updates[d] != shape[d])
        inside = arith::AndIOp::create(k.b, k.loc, inside, isBelow(at[d].base, k.dim(updates[d])));
    return inside;
  }

  void update() {
    Value size = k.dim(shape[axis]);
    k.loop(k.constant(0), k.dim(updates[axis]), k.constant(1), [&](Value n) {
      e.scoped([&] {
        at[axis] = {n};
        Index i = e.fromStart(e.asIndex(e.element(op.getIndices(), at), dtypeOf(op.getIndices())), size);
        if (!op.getDrop())
          e.require(e.inRange(i, k.constant(0), size), updates, at, op);
        k.when(e.inRange(i, from, to), [&] {
          e.scoped([&] {
            SmallVector<Index> target(at);
            target[axis] = i;
            Index position = k.linear(shape, target);
            Value value = e.element(op.getUpdates(), at);
            if (op.getReduction() != "set")
              value = combineUpdate(k, op.getReduction(), k.load(out, position, 1, {}), value, type);
            k.store(out, position, value, 1, {});
          });
        });
      });
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  ScatterOp op;
  DType type;
  Shape shape, updates, others;
  SmallVector<size_t> otherDims;
  size_t axis;
  Memory out;
  SmallVector<Index> at;
  Value from, to; // this thread's part of the slice
};

} // namespace

GpuLaunch emitGpuScatter(const KernelEmission &kernel) {
  auto op = cast<ScatterOp>(passes::KernelBody(kernel.body).root());
  return ScatterKernel(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
