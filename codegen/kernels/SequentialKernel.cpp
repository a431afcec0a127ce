// Ops that run along an axis in order: running sums, sorts, and scatters whose last update wins.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/Scattered.h"
#include "codegen/emit/Sorting.h"
#include "codegen/scalar/base/Scalar.h"
#include "passes/Passes.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class SequentialKernel {
public:
  SequentialKernel(ElementEmitter &e, ArrayRef<Value> results) : e(e), k(e.k), results(results) {}

  /// Running sums and products.
  template <class Op> LaunchShape emitRunning(Op op) {
    constexpr bool isSum = std::is_same_v<Op, CumsumOp>;
    Shape shape = shapeOf(op.getResult());
    size_t axis = op.getAxis();
    DType from = dtypeOf(op.getX()), type = dtypeOf(op.getResult());
    DType wide = type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
    Memory out{results[0], type, shape};
    return slices(shape, axis, [&](SmallVector<Index> &at) {
      Value length = k.dim(shape[axis]);
      Value first = isSum ? e.zeroOf(wide) : Scalar(k.b, k.loc, e.zeroOf(wide), wide).constant(1).value();
      k.loop(k.constant(0), length, k.constant(1), first, [&](Value i, ValueRange carried) {
        return e.scoped([&] {
          Value position = op.getReverse() ? k.sub(k.sub(length, k.constant(1)), i) : i;
          at[axis] = {position};
          Value x = castLanes(k.b, k.loc, e.element(op.getX(), at), from, wide);
          Scalar total(k.b, k.loc, carried[0], wide), term = total.with(x);
          Value next = (isSum ? total + term : total * term).value();
          Value written = castLanes(k.b, k.loc, op.getExclusive() ? Value(carried[0]) : next, wide, type);
          k.store(out, k.linear(shape, at), written, 1, {});
          return SmallVector<Value>{next};
        });
      });
    });
  }

  LaunchShape emit(ArgsortOp op) {
    if (auto first = op->getAttrOfType<IntegerAttr>(passes::kFirstOfSorted); first)
      return emitFirst(op, first.getInt());
    Shape shape = shapeOf(op.getResult());
    size_t axis = op.getAxis();
    DType type = dtypeOf(op.getX());
    Memory out{results[0], DType::i64, shape};
    LaunchShape launch = slices(shape, axis, [&](SmallVector<Index> &at) {
      Value length = k.dim(shape[axis]);
      Sorter sorter(k, k.scratch, shape[axis]);
      k.loop(k.constant(0), length, k.constant(1), [&](Value i) {
        e.scoped([&] {
          at[axis] = {i};
          sorter.put(i, sortKey(k, e.element(op.getX(), at), type, op.getDescending()), i);
        });
      });
      sorter.sort(length, keyBytes(type));
      k.loop(k.constant(0), length, k.constant(1), [&](Value i) {
        at[axis] = {i};
        k.store(out, k.linear(shape, at), sorter.place(i), 1, {});
      });
    });
    launch.scratchBytes = Sorter::scratchBytes(shape[axis]);
    return launch;
  }

  /// The first results of a sort. Elements that do not precede the last selected one are skipped, a vector at a time;
  /// others are collected. Before the buffer is full it is sorted and all but the first elements are dropped.
  LaunchShape emitFirst(ArgsortOp op, int64_t first) {
    constexpr int64_t kChunk = 4096; // elements between two checks of the free space
    const int64_t room = first + 4 * kChunk;
    Shape shape = shapeOf(op.getResult());
    size_t axis = op.getAxis();
    DType type = dtypeOf(op.getX());
    Memory out{results[0], DType::i64, shape};
    LaunchShape launch = slices(shape, axis, [&](SmallVector<Index> &at) {
      Value length = k.dim(shape[axis]), zero = k.constant(0);
      Sorter sorter(k, k.scratch, room);
      // Number of collected elements, key of the last selected one, whether fewer than `first` are selected.
      SmallVector<Value> init{zero, zero, arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true))};
      k.loop(zero, length, k.constant(kChunk), init, [&](Value begin, ValueRange carried) {
        Value end = k.minimum(k.add(begin, k.constant(kChunk)), length);
        Value count = collect(op, at, sorter, begin, end, carried);
        Value isFull = k.compare(arith::CmpIPredicate::sgt, count, k.constant(room - kChunk));
        Value isLast = k.compare(arith::CmpIPredicate::eq, end, length);
        Value isDue = arith::OrIOp::create(k.b, k.loc, isFull, isLast);
        return k.when(isDue, {count, carried[1], carried[2]}, [&]() -> SmallVector<Value> {
          sorter.sort(count, keyBytes(type));
          Value chosen = k.minimum(count, k.constant(first));
          Value key = sorter.key(k.sub(chosen, k.constant(1)));
          return {chosen, key, k.compare(arith::CmpIPredicate::slt, count, k.constant(first))};
        });
      });
      k.loop(zero, k.minimum(length, k.constant(first)), k.constant(1), [&](Value i) {
        at[axis] = {i};
        k.store(out, k.linear(shape, at), sorter.place(i), 1, {});
      });
    });
    launch.scratchBytes = Sorter::scratchBytes(room);
    return launch;
  }

  // A single task: copies x, then applies the updates in order.
  LaunchShape emit(ScatterOp op) {
    Shape shape = shapeOf(op.getResult()), updates = shapeOf(op.getUpdates());
    DType type = dtypeOf(op.getResult());
    Memory out{results[0], type, shape};
    Value size = k.dim(shape[op.getAxis()]);
    k.loop(k.lo, k.hi, k.constant(1), [&](Value) {
      if (!updatesInPlace(op))
        each(shape, [&](ArrayRef<Index> at) { k.store(out, k.linear(shape, at), e.element(op.getX(), at), 1, {}); });
      each(updates, [&](ArrayRef<Index> at) {
        Index i = e.asIndex(e.element(op.getIndices(), at), dtypeOf(op.getIndices()));
        i = e.fromStart(i, size);
        Value isInside = e.inRange(i, k.constant(0), size);
        if (!op.getDrop())
          e.require(isInside, updates, at, op);
        k.when(isInside, [&] {
          e.scoped([&] {
            SmallVector<Index> target(at);
            target[op.getAxis()] = i;
            Index position = k.linear(shape, target);
            Value value = e.element(op.getUpdates(), at);
            if (op.getReduction() != "set")
              value = combineUpdate(k, op.getReduction(), k.load(out, position, 1, {}), value, type);
            k.store(out, position, value, 1, {});
          });
        });
      });
    });
    return {1, 0};
  }

private:
  /// Collects the elements of [begin, end) that precede the last selected one, or all of them; returns the new count.
  Value collect(ArgsortOp op, SmallVector<Index> &at, Sorter &sorter, Value begin, Value end, ValueRange chosen) {
    DType type = dtypeOf(op.getX());
    size_t axis = op.getAxis();
    int64_t lanes = k.target.lanes(std::max<int64_t>(byteWidth(type), 4));
    auto isBefore = [&](Value key) -> Value {
      Value last = k.broadcast(chosen[1], k.laneCount(key));
      Value any = k.compare(arith::CmpIPredicate::ult, key, last);
      if (isa<VectorType>(any.getType()))
        any = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::OR, any);
      return arith::OrIOp::create(k.b, k.loc, any, chosen[2]);
    };
    auto keyAt = [&](const Index &i) {
      at[axis] = i;
      Value element = k.broadcast(e.element(op.getX(), at), k.width);
      return sortKey(k, element, type, op.getDescending());
    };
    auto each = [&](Value from, Value to, ValueRange count) {
      return k.loop(from, to, k.constant(1), count, [&](Value i, ValueRange before) {
        return e.scoped([&] {
          Value key = keyAt({i});
          return k.when(isBefore(key), before, [&]() -> SmallVector<Value> {
            sorter.put(before[0], key, i);
            return {k.add(before[0], k.constant(1))};
          });
        });
      });
    };
    Value step = k.constant(lanes), whole = k.add(begin, k.mul(k.div(k.sub(end, begin), step), step));
    SmallVector<Value> count = k.loop(begin, whole, step, chosen[0], [&](Value i, ValueRange before) {
      return e.scoped([&] {
        Value isNeeded = [&] {
          llvm::SaveAndRestore inLanes(k.width, lanes);
          return isBefore(keyAt({i, 1}));
        }();
        return k.when(isNeeded, before, [&] { return each(i, k.add(i, step), before); });
      });
    });
    return each(whole, end, count)[0];
  }

  /// One task per slice along the axis. `body` gets the position of the slice and sets the coordinate along the axis.
  LaunchShape slices(const Shape &shape, size_t axis, llvm::function_ref<void(SmallVector<Index> &)> body) {
    Dim count = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        count = count * shape[d];
    k.loop(k.lo, k.hi, k.constant(1), [&](Value slice) {
      SmallVector<Index> at(shape.size());
      Value rest = slice;
      for (size_t d = shape.size(); d-- > 0;) {
        if (d == axis)
          continue;
        Value size = k.dim(shape[d]);
        at[d] = {k.rem(rest, size)};
        rest = k.div(rest, size);
      }
      e.scoped([&] { body(at); });
    });
    return {count, 0};
  }

  void each(const Shape &shape, llvm::function_ref<void(ArrayRef<Index>)> body) {
    Value count = k.constant(1);
    for (const Dim &d : shape)
      count = k.mul(count, k.dim(d));
    k.loop(k.constant(0), count, k.constant(1), [&](Value i) { e.scoped([&] { body(e.delinearize({i}, shape)); }); });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  ArrayRef<Value> results;
};

} // namespace

static Operation *rootOf(const KernelEmission &kernel) {
  return passes::skipReshapes(kernel.body.getTerminator()->getOperand(0)).getDefiningOp();
}

LaunchShape emitRunning(const KernelEmission &kernel) {
  SequentialKernel emitter(kernel.e, kernel.results);
  Operation *root = rootOf(kernel);
  if (auto cumsum = dyn_cast<CumsumOp>(root))
    return emitter.emitRunning(cumsum);
  return emitter.emitRunning(cast<CumprodOp>(root));
}

LaunchShape emitSort(const KernelEmission &kernel) {
  return SequentialKernel(kernel.e, kernel.results).emit(cast<ArgsortOp>(rootOf(kernel)));
}

LaunchShape emitScatter(const KernelEmission &kernel) {
  return SequentialKernel(kernel.e, kernel.results).emit(cast<ScatterOp>(rootOf(kernel)));
}

} // namespace burin::codegen
