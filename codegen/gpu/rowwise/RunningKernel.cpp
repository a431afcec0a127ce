// cumsum and cumprod along the innermost dimension: a block per slice, chunk by chunk. Threads accumulate
// adjacent elements, warps the totals of their threads, the block the totals of its warps, always in the same order.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/scalar/Elementwise.h"
#include "codegen/scalar/base/Scalar.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256, kWarps = kThreads / kWarp;
constexpr int64_t kOwn = 4; // elements of a thread

template <class Op> class RunningKernel {
public:
  RunningKernel(ElementEmitter &e, Op op, Value result)
      : e(e), k(e.k), op(op), shape(shapeOf(op.getResult())), axis(op.getAxis()), type(dtypeOf(op.getResult())),
        wide(type == DType::f16 || type == DType::bf16 ? DType::f32 : type), out{result, type, shape},
        totals{sharedArray(k, k.storageType(wide), kWarps), wide, {}} {}

  GpuLaunch emit() {
    Shape others(shape.begin(), shape.end() - 1);
    at = e.delinearize({k.lo}, others);
    at.push_back({});
    length = k.dim(shape[axis]), thread = threadIndex(k);
    lane = k.rem(thread, k.constant(kWarp)), warp = k.div(thread, k.constant(kWarp));
    none = kIsSum ? e.zeroOf(wide) : Scalar(k.b, k.loc, e.zeroOf(wide), wide).constant(1).value();
    k.loop(k.constant(0), length, k.constant(kThreads * kOwn), none,
           [&](Value from, ValueRange before) { return SmallVector<Value>{chunk(from, before[0])}; });
    return {.blocks = elements(others), .threads = kThreads};
  }

private:
  static constexpr bool kIsSum = std::is_same_v<Op, CumsumOp>;

  Value join(Value x, Value y) {
    Scalar a(k.b, k.loc, x, wide), b = a.with(y);
    return (kIsSum ? a + b : a * b).value();
  }
  Value joinIf(Value condition, Value x, Value y) {
    return arith::SelectOp::create(k.b, k.loc, condition, join(x, y), y);
  }
  Value isAtLeast(Value x, int64_t n) { return k.compare(arith::CmpIPredicate::sge, x, k.constant(n)); }
  void goTo(Value i) { at[axis] = {op.getReverse() ? k.sub(k.sub(length, k.constant(1)), i) : i}; }

  Value elementAt(Value i) {
    return k.when(k.compare(arith::CmpIPredicate::slt, i, length), {none}, [&]() -> SmallVector<Value> {
      return {e.scoped([&] {
        goTo(i);
        return castLanes(k.b, k.loc, e.element(op.getX(), at), dtypeOf(op.getX()), wide);
      })};
    })[0];
  }

  /// Computes the results of a chunk; returns the total so far.
  Value chunk(Value from, Value before) {
    Value first = k.add(from, k.mul(thread, k.constant(kOwn)));
    SmallVector<Value> own; // prefixes of this thread's elements
    for (int64_t i = 0; i < kOwn; ++i) {
      Value x = elementAt(k.add(first, k.constant(i)));
      own.push_back(own.empty() ? x : join(own.back(), x));
    }
    Value upTo = own.back(); // inclusive prefix over the threads of the warp
    for (int64_t distance = 1; distance < kWarp; distance *= 2)
      upTo = joinIf(isAtLeast(lane, distance), shuffleUp(k, upTo, distance), upTo);
    Value prior = arith::SelectOp::create(k.b, k.loc, isAtLeast(lane, 1), shuffleUp(k, upTo, 1), none);
    k.when(k.compare(arith::CmpIPredicate::eq, lane, k.constant(kWarp - 1)),
           [&] { k.store(totals, {warp}, upTo, 1, {}); });
    barrier(k);
    Value ofWarps = before, all = before; // total before this warp; total of all warps
    for (int64_t w = 0; w < kWarps; ++w) {
      all = join(all, k.load(totals, {k.constant(w)}, 1, {}));
      ofWarps = arith::SelectOp::create(k.b, k.loc, isAtLeast(warp, w + 1), all, ofWarps);
    }
    barrier(k);
    prior = join(ofWarps, prior);
    for (int64_t i = 0; i < kOwn; ++i) {
      Value place = k.add(first, k.constant(i)), total = prior;
      if (!op.getExclusive() || i > 0)
        total = join(prior, own[size_t(op.getExclusive() ? i - 1 : i)]);
      k.when(k.compare(arith::CmpIPredicate::slt, place, length), [&] {
        goTo(place);
        k.store(out, k.linear(shape, at), castLanes(k.b, k.loc, total, wide, type), 1, {});
      });
    }
    return all;
  }

  ElementEmitter &e;
  KernelBuilder &k;
  Op op;
  Shape shape;
  size_t axis;
  DType type, wide; // of the results; of the accumulators
  Memory out, totals;
  SmallVector<Index> at;
  Value length, thread, lane, warp, none;
};

} // namespace

GpuLaunch emitGpuRunning(const KernelEmission &kernel) {
  Operation *root = passes::KernelBody(kernel.body).root();
  if (auto sums = dyn_cast<CumsumOp>(root))
    return RunningKernel<CumsumOp>(kernel.e, sums, kernel.results[0]).emit();
  return RunningKernel<CumprodOp>(kernel.e, cast<CumprodOp>(root), kernel.results[0]).emit();
}

} // namespace burin::codegen
