#include "codegen/emit/Reducer.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "codegen/kernels/rowwise/RowwiseSchedule.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kColumnThreads = 128;
constexpr int64_t kMostThreads = 256, kUnknownThreads = 128; // threads per row; for rows of unknown size
constexpr int64_t kElementsOfThread = 4;                     // of a row, before more threads share it

class RowsKernel : RowwiseSchedule {
public:
  RowsKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : RowwiseSchedule(body, a, results, e.k.target), k(e.k), p(e, a) {
    full.stored = fullResults;
    points.stored = pointResults;
    for (int d : reduced)
      rowShape.push_back(space[d]);
    for (int d : parallel)
      pointShape.push_back(space[d]);
  }

  GpuLaunch emit() { return lanesReduce || parallel.empty() ? rowPerBlock() : columnPerThread(); }

private:
  GpuLaunch rowPerBlock() {
    Dim size = elements(rowShape);
    threads = kUnknownThreads;
    if (size.isStatic()) {
      threads = kWarp;
      while (threads < kMostThreads && threads * kElementsOfThread < size.value())
        threads *= 2;
    }
    Value thread = threadIndex(k);
    first = thread, step = k.constant(threads);
    place(k.lo, parallel);
    p.scoped([&] {
      reduce();
      writeFull();
      if (overwritesPoints())
        barrier(k);
      k.when(k.compare(arith::CmpIPredicate::eq, thread, k.constant(0)), [&] { p.scoped([&] { points.write(p); }); });
    });
    return {.blocks = elements(pointShape), .threads = threads};
  }

  GpuLaunch columnPerThread() {
    Dim columns = elements(pointShape);
    first = k.constant(0), step = k.constant(1);
    Value column = k.add(k.mul(k.lo, k.constant(kColumnThreads)), threadIndex(k));
    k.when(k.compare(arith::CmpIPredicate::slt, column, k.dim(columns)), [&] {
      place(column, parallel);
      p.scoped([&] {
        reduce();
        writeFull();
        p.scoped([&] { points.write(p); });
      });
    });
    return {.blocks = ceildiv(columns, kColumnThreads), .threads = kColumnThreads};
  }

  /// Sets the point to row-major position i of the dimensions `dims` of the space.
  void place(Value i, ArrayRef<int> dims) {
    for (size_t n = dims.size(); n-- > 0;) {
      Value size = k.dim(space[dims[n]]);
      p.point[dims[n]] = {n ? k.rem(i, size) : i};
      i = n ? k.div(i, size) : i;
    }
  }

  /// Loops over this thread's elements of the row: `visit(r, carried)`, r is the row-major position in the row.
  SmallVector<Value> walk(ValueRange init, llvm::function_ref<SmallVector<Value>(Value, ValueRange)> visit) {
    return k.loop(first, k.dim(elements(rowShape)), step, init, [&](Value r, ValueRange carried) {
      place(r, reduced);
      return p.scoped([&] { return visit(r, carried); });
    });
  }

  void reduce() {
    for (auto &level : levels)
      reduceLevel(level);
  }

  void reduceLevel(ArrayRef<Operation *> level) {
    SmallVector<Reducer> reducers;
    SmallVector<Value> init;
    for (Operation *op : level) {
      reducers.emplace_back(k, op);
      llvm::append_range(init, reducers.back().identity(1));
    }
    SmallVector<Value> sums = walk(init, [&](Value r, ValueRange carried) {
      SmallVector<Value> next;
      for (Reducer &reducer : reducers) {
        auto accumulator = SmallVector<Value>(carried.slice(next.size(), reducer.size()));
        llvm::append_range(next, reducer.step(accumulator, p.at(reducer.op->getOperand(0)), {r}, {}));
      }
      return next;
    });
    if (threads > 1)
      sums = joined(reducers, std::move(sums));
    size_t at = 0;
    Value count = k.dim(elements(rowShape));
    for (Reducer &reducer : reducers) {
      p.bind(reducer.op->getResult(0), reducer.finish(ArrayRef<Value>(sums).slice(at, reducer.size()), count));
      at += reducer.size();
    }
  }

  SmallVector<Value> combineAll(MutableArrayRef<Reducer> reducers, ArrayRef<Value> x, ArrayRef<Value> y) {
    SmallVector<Value> both;
    for (Reducer &reducer : reducers) {
      size_t at = both.size();
      llvm::append_range(both, reducer.combine(x.slice(at, reducer.size()), y.slice(at, reducer.size())));
    }
    return both;
  }

  /// Combines the accumulators of all threads of the row and returns the result to each of them: halves of a warp,
  /// quarters, …, then the warps in order.
  SmallVector<Value> joined(MutableArrayRef<Reducer> reducers, SmallVector<Value> sums) {
    for (int64_t distance = kWarp / 2; distance > 0; distance /= 2) {
      SmallVector<Value> others;
      for (Value v : sums)
        others.push_back(shuffleDown(k, v, distance));
      sums = combineAll(reducers, sums, others);
    }
    int64_t warps = threads / kWarp;
    if (warps == 1) {
      for (Value &v : sums)
        v = shuffleFirst(k, v);
      return sums;
    }
    Value thread = threadIndex(k), warp = k.div(thread, k.constant(kWarp));
    SmallVector<Value> arrays;
    for (Value v : sums)
      arrays.push_back(sharedArray(k, wholeBytes(v.getType()), warps));
    k.when(k.compare(arith::CmpIPredicate::eq, k.rem(thread, k.constant(kWarp)), k.constant(0)), [&] {
      for (auto [array, v] : llvm::zip(arrays, sums)) {
        Type type = wholeBytes(v.getType());
        Value stored = type == v.getType() ? v : arith::ExtUIOp::create(k.b, k.loc, type, v).getResult();
        LLVM::StoreOp::create(k.b, k.loc, stored, placeIn(array, type, warp));
      }
    });
    barrier(k);
    SmallVector<Value> all;
    for (int64_t w = 0; w < warps; ++w) {
      SmallVector<Value> part;
      for (auto [array, v] : llvm::zip(arrays, sums)) {
        Type type = wholeBytes(v.getType());
        Value loaded = LLVM::LoadOp::create(k.b, k.loc, type, placeIn(array, type, k.constant(w)));
        part.push_back(type == v.getType() ? loaded : arith::TruncIOp::create(k.b, k.loc, v.getType(), loaded));
      }
      all = w ? combineAll(reducers, all, part) : part;
    }
    return all;
  }
  Value placeIn(Value array, Type type, Value i) {
    return LLVM::GEPOp::create(k.b, k.loc, array.getType(), type, array, i);
  }
  /// Bools are stored as bytes.
  Type wholeBytes(Type type) { return type.isInteger(1) ? k.b.getI8Type() : type; }

  /// Whether a result without reduced dimensions overwrites an input that threads of the row still read for results of
  /// full size.
  bool overwritesPoints() const {
    auto kernel = cast<KernelOp>(body.getParentOp());
    if (full.stored.empty() || !kernel.getInPlace())
      return false;
    return llvm::any_of(llvm::enumerate(*kernel.getInPlace()), [&](auto entry) {
      Value yielded = body.getTerminator()->getOperand(unsigned(entry.index()));
      return entry.value() >= 0 && llvm::any_of(points.stored, [&](auto &result) { return result.first == yielded; });
    });
  }

  void writeFull() {
    if (full.stored.empty())
      return;
    walk({}, [&](Value, ValueRange) {
      full.write(p);
      return SmallVector<Value>();
    });
  }

  KernelBuilder &k;
  PointEmitter p;
  GpuResults full, points; // results with, and without, reduced dimensions
  Shape rowShape, pointShape;
  int64_t threads = 1; // per row
  Value first, step;   // elements of this thread
};

} // namespace

GpuLaunch emitGpuRows(const KernelEmission &kernel) {
  return RowsKernel(kernel.e, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
