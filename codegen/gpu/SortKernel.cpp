// Sorting: a block per line, by a bitonic network in shared memory, or in scratch memory for lines that are too long
// for it. Keys are joined with the places they come from, so that no two are equal and equal elements keep their order.
#include "codegen/emit/Sorting.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "passes/kernels/KernelFamily.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMostShared = 2048; // elements, of up to 16 bytes with their places
constexpr int64_t kMostThreads = 512, kMostBlocks = 1024;
constexpr int64_t kPairBytes = 16; // of scratch memory

class SortKernel {
public:
  SortKernel(ElementEmitter &e, ArgsortOp op, Value result)
      : e(e), k(e.k), op(op), type(dtypeOf(op.getX())), shape(shapeOf(op.getResult())), axis(op.getAxis()),
        out{result, DType::i64, shape}, isShort(shape[axis].isStatic() && shape[axis].value() <= kMostShared) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        others.push_back(shape[d]), otherDims.push_back(d);
  }

  GpuLaunch emit() {
    const Dim &size = shape[axis];
    int64_t threads = kMostThreads;
    if (isShort)
      threads = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(size.value()))) / 2, kWarp, kMostThreads);
    Dim lines = elements(others), blocks = isShort ? lines : min(lines, kMostBlocks);
    thread = threadIndex(k), step = k.constant(threads), length = k.dim(size);
    Dim pairs = size * Dim(2); // a power of two is below
    if (isShort) {
      const int64_t room = std::max<int64_t>(int64_t(llvm::PowerOf2Ceil(uint64_t(size.value()))), 1);
      power = k.constant(room);
      keys = {sharedArray(k, k.b.getI64Type(), room), DType::i64, {}};
      places = {sharedArray(k, k.b.getI64Type(), room), DType::i64, {}};
      sortLine(k.lo);
      return {.blocks = blocks, .threads = threads};
    }
    Value start = k.mul(k.lo, k.dim(pairs * Dim(kPairBytes)));
    keys = {k.elementPointer({k.scratch, DType::i8, {}}, start), DType::i64, {}};
    places = {k.elementPointer(keys, k.dim(pairs)), DType::i64, {}};
    power = k.loopWhile(
        {k.constant(1)}, [&](ValueRange p) { return k.compare(arith::CmpIPredicate::slt, p[0], length); },
        [&](ValueRange p) { return SmallVector<Value>{k.add(p[0], p[0])}; })[0];
    k.loop(k.lo, k.dim(lines), k.dim(blocks), [&](Value line) { sortLine(line); });
    return {.blocks = blocks, .threads = threads, .scratchOfThread = ceildiv(pairs * Dim(kPairBytes), threads)};
  }

private:
  void sortLine(Value line) {
    SmallVector<Index> place = e.delinearize({line}, others);
    SmallVector<Index> at(shape.size());
    for (auto [d, index] : llvm::zip(otherDims, place))
      at[d] = index;
    k.loop(thread, power, step, [&](Value i) {
      Value last = arith::ConstantIntOp::create(k.b, k.loc, k.b.getI64Type(), -1); // behind all keys
      Value key = k.when(k.compare(arith::CmpIPredicate::slt, i, length), {last}, [&]() -> SmallVector<Value> {
        return {e.scoped([&] {
          at[axis] = {i};
          return sortKey(k, e.element(op.getX(), at), type, op.getDescending());
        })};
      })[0];
      k.store(keys, {i}, key, 1, {});
      k.store(places, {i}, i, 1, {});
    });
    barrier(k);
    // Runs of `run` elements are sorted, every other one downwards; two of them are a bitonic sequence.
    Value one = k.constant(1);
    auto isAtMost = [&](Value limit) {
      return [&k = k, limit](ValueRange v) { return k.compare(arith::CmpIPredicate::sle, v[0], limit); };
    };
    k.loopWhile({k.constant(2)}, isAtMost(power), [&](ValueRange run) {
      k.loopWhile(
          {k.div(run[0], k.constant(2))},
          [&](ValueRange distance) { return k.compare(arith::CmpIPredicate::sgt, distance[0], k.constant(0)); },
          [&](ValueRange distance) {
            compareAll(run[0], distance[0]);
            barrier(k);
            return SmallVector<Value>{k.div(distance[0], k.constant(2))};
          });
      return SmallVector<Value>{arith::ShLIOp::create(k.b, k.loc, run[0], one)};
    });
    k.loop(thread, length, step, [&](Value i) {
      at[axis] = {i};
      k.store(out, k.linear(shape, at), k.load(places, {i}, 1, {}), 1, {});
    });
    if (!isShort)
      barrier(k); // before the next line
  }

  /// Puts pairs that far from each other in order: upwards in even runs, downwards in odd ones.
  void compareAll(Value run, Value distance) {
    k.loop(thread, k.div(power, k.constant(2)), step, [&](Value i) {
      Value rest = k.rem(i, distance), low = k.add(k.mul(k.sub(i, rest), k.constant(2)), rest);
      Value high = k.add(low, distance);
      Value a = k.load(keys, {low}, 1, {}), b = k.load(keys, {high}, 1, {});
      Value x = k.load(places, {low}, 1, {}), y = k.load(places, {high}, 1, {});
      Value isAbove = k.compare(arith::CmpIPredicate::ugt, a, b), isSame = k.compare(arith::CmpIPredicate::eq, a, b);
      Value isLater = k.compare(arith::CmpIPredicate::sgt, x, y);
      isAbove = arith::OrIOp::create(k.b, k.loc, isAbove, arith::AndIOp::create(k.b, k.loc, isSame, isLater));
      Value isDown = k.compare(arith::CmpIPredicate::ne, arith::AndIOp::create(k.b, k.loc, low, run), k.constant(0));
      k.when(arith::XOrIOp::create(k.b, k.loc, isAbove, isDown), [&] {
        k.store(keys, {low}, b, 1, {});
        k.store(keys, {high}, a, 1, {});
        k.store(places, {low}, y, 1, {});
        k.store(places, {high}, x, 1, {});
      });
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  ArgsortOp op;
  DType type;
  Shape shape, others;
  SmallVector<size_t> otherDims;
  size_t axis;
  Memory out;
  bool isShort; // lines fit into shared memory
  Memory keys, places;
  Value thread, step, length, power; // the power of two that the length is filled up to
};

} // namespace

GpuLaunch emitGpuSort(const KernelEmission &kernel) {
  auto op = cast<ArgsortOp>(passes::KernelBody(kernel.body).root());
  return SortKernel(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
