// argsort: a block per slice. Short slices are sorted in registers and shared memory. Of longer ones pieces are sorted
// so and merged in scratch memory. If only the first results are read, a block selects them in one pass over the slice.
#include "codegen/emit/Sorting.h"
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/rowwise/BlockSort.h"
#include "passes/Passes.h"
#include "passes/kernels/families/KernelFamily.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kMostThreads = SliceSort::kThreads, kMostOwn = SliceSort::kOwn, kMostItems = SliceSort::kPiece;
constexpr int64_t kMostBlocks = 256; // that merge: bounds scratch memory
constexpr int64_t kRead = 4;         // elements that a thread looks at between two barriers of a selection
constexpr int64_t kMostFirst = kMostItems - kMostThreads * kRead; // results of a selection

class SortKernel {
public:
  SortKernel(ElementEmitter &e, ArgsortOp op, Value result)
      : e(e), k(e.k), op(op), type(dtypeOf(op.getX())), shape(shapeOf(op.getResult())), axis(size_t(op.getAxis())),
        out{result, DType::i64, shape}, form(k, type, shape[axis]), at(shape.size()), first(shape[axis]) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        others.push_back(shape[d]), otherDims.push_back(d);
    if (auto read = op->getAttrOfType<IntegerAttr>(passes::kFirstOfSorted))
      first = min(first, read.getInt());
  }

  GpuLaunch emit() {
    thread = threadIndex(k), length = k.dim(shape[axis]);
    if (shape[axis].isStatic() && shape[axis].value() <= kMostItems)
      return sortShortSlice();
    auto most = upperBound(first);
    return most && *most <= kMostFirst ? selectFirst() : sortLongSlices();
  }

private:
  Value isBelow(Value x, Value y) { return k.compare(arith::CmpIPredicate::slt, x, y); }

  void goToSlice(Value slice) {
    for (auto [d, index] : llvm::zip(otherDims, e.delinearize({slice}, others)))
      at[d] = index;
  }

  Item itemAt(Value i) {
    return e.scoped([&] {
      at[axis] = {i};
      return form.make(sortKey(k, e.element(op.getX(), at), type, op.getDescending()), i);
    });
  }
  /// The same, or the last one beyond the slice.
  Item itemIfAt(Value i) {
    return k.when(isBelow(i, length), form.last(), [&] { return itemAt(i); });
  }

  /// Stores result `i`, if it is read.
  void storeResult(Value i, llvm::function_ref<Item()> item) {
    k.when(isBelow(i, k.dim(first)), [&] {
      at[axis] = {i};
      k.store(out, k.linear(shape, at), form.place(item()), 1, {});
    });
  }

  GpuLaunch sortShortSlice() {
    const int64_t items =
        std::max<int64_t>(kWarp, int64_t(llvm::PowerOf2Ceil(uint64_t(std::max<int64_t>(shape[axis].value(), 1)))));
    const int64_t own = std::min(items / kWarp, kMostOwn), threads = items / own;
    goToSlice(k.lo);
    std::optional<ItemMemory> memory;
    if (threads > kWarp)
      memory = ItemMemory::shared(form, items);
    BlockSort block(form, threads, own, memory);
    SmallVector<Item> sorted;
    for (int64_t i = 0; i < own; ++i)
      sorted.push_back(itemIfAt(block.number(i)));
    sorted = block.sort(std::move(sorted), length);
    for (int64_t i = 0; i < own; ++i)
      storeResult(block.number(i), [&] { return sorted[size_t(i)]; });
    return {.blocks = elements(others), .threads = threads};
  }

  GpuLaunch sortLongSlices() {
    const Dim slices = elements(others), blocks = min(slices, kMostBlocks);
    SliceSort sort(form, shape[axis]);
    ItemMemory scratch = sort.memory(k.scratch, k.lo);
    k.loop(k.lo, k.dim(slices), k.dim(blocks), [&](Value slice) {
      e.scoped([&] {
        goToSlice(slice);
        Value sorted = sort.sort(scratch, [&](Value i) { return itemAt(i); });
        k.loop(thread, k.dim(first), k.constant(kMostThreads),
               [&](Value i) { storeResult(i, [&] { return scratch.load(k, k.add(sorted, i)); }); });
        barrier(k); // before the next slice overwrites the items
      });
    });
    // The assembler would keep to 80 registers, for three blocks, and spill items of two words.
    return {.blocks = blocks,
            .threads = kMostThreads,
            .scratchOfThread = ceildiv(sort.bytes(), kMostThreads),
            .leastBlocks = 2};
  }

  // Items that precede the last selected one are collected in shared memory. Before it is full they are sorted, and the
  // first ones are kept.
  GpuLaunch selectFirst() {
    constexpr int64_t kRound = kMostThreads * kRead;
    goToSlice(k.lo);
    ItemMemory kept = ItemMemory::shared(form, kMostItems);
    totals = {sharedArray(k, k.b.getI64Type(), kMostThreads / kWarp), DType::i64, {}};
    BlockSort block(form, kMostThreads, kMostOwn, kept);
    SmallVector<Value> state{k.constant(0)}; // number of items, last selected item
    llvm::append_range(state, form.last());
    k.loop(k.constant(0), length, k.constant(kRound), state, [&](Value from, ValueRange v) {
      Value count = collect(kept, from, v[0], Item(v.drop_front()));
      Value isFull = k.compare(arith::CmpIPredicate::sgt, count, k.constant(kMostItems - kRound));
      Value isLast = k.compare(arith::CmpIPredicate::sge, k.add(from, k.constant(kRound)), length);
      SmallVector<Value> more{count};
      llvm::append_range(more, v.drop_front());
      return k.when(arith::OrIOp::create(k.b, k.loc, isFull, isLast), more, [&]() -> SmallVector<Value> {
        keepFirst(kept, block, count);
        SmallVector<Value> next{k.minimum(count, k.dim(first))};
        llvm::append_range(next, kept.load(k, k.sub(k.dim(first), k.constant(1))));
        barrier(k); // before the next items are collected
        return next;
      });
    });
    k.loop(thread, k.dim(first), k.constant(kMostThreads),
           [&](Value i) { storeResult(i, [&] { return kept.load(k, i); }); });
    return {.blocks = elements(others), .threads = kMostThreads};
  }

  /// Appends those of the next elements that precede `bound`; returns the new count.
  Value collect(const ItemMemory &kept, Value from, Value count, const Item &bound) {
    SmallVector<std::pair<Item, Value>> read; // item, whether it is collected
    Value mine = k.constant(0);
    auto number = [&](Value condition) -> Value {
      return arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), condition);
    };
    for (int64_t i = 0; i < kRead; ++i) {
      Item item = itemIfAt(k.add(from, k.add(thread, k.constant(i * kMostThreads))));
      read.push_back({item, form.isBefore(item, bound)});
      mine = k.add(mine, number(read.back().second));
    }
    auto [before, all] = addUp(mine);
    Value place = k.add(count, before);
    for (auto &[item, isCollected] : read) {
      k.when(isCollected, [&, &item = item] { kept.store(k, place, item); });
      place = k.add(place, number(isCollected));
    }
    barrier(k); // totals have been read, items are stored
    return k.add(count, all);
  }

  /// The sum of a number over the threads before this one, and over all.
  std::pair<Value, Value> addUp(Value mine) {
    Value lane = k.rem(thread, k.constant(kWarp)), warp = k.div(thread, k.constant(kWarp)), upTo = mine;
    for (int64_t distance = 1; distance < kWarp; distance *= 2) {
      Value isInside = k.compare(arith::CmpIPredicate::sge, lane, k.constant(distance));
      Value other = shuffleUp(k, upTo, distance);
      upTo = k.add(upTo, arith::SelectOp::create(k.b, k.loc, isInside, other, k.constant(0)));
    }
    k.when(k.compare(arith::CmpIPredicate::eq, lane, k.constant(kWarp - 1)),
           [&] { k.store(totals, {warp}, upTo, 1, {}); });
    barrier(k);
    Value before = k.sub(upTo, mine), all = k.constant(0);
    for (int64_t w = 0; w < kMostThreads / kWarp; ++w) {
      Value total = k.load(totals, {k.constant(w)}, 1, {});
      before = k.add(before, arith::SelectOp::create(k.b, k.loc, isBelow(k.constant(w), warp), total, k.constant(0)));
      all = k.add(all, total);
    }
    return {before, all};
  }

  /// Sorts the first `count` items and stores the first of them back.
  void keepFirst(const ItemMemory &kept, BlockSort &block, Value count) {
    SmallVector<Item> items;
    for (int64_t i = 0; i < kMostOwn; ++i)
      items.push_back(
          k.when(isBelow(block.number(i), count), form.last(), [&] { return kept.load(k, block.number(i)); }));
    barrier(k); // all items are in registers
    items = block.sort(std::move(items), count);
    for (int64_t i = 0; i < kMostOwn; ++i)
      k.when(isBelow(block.number(i), k.dim(first)), [&] { kept.store(k, block.number(i), items[size_t(i)]); });
    barrier(k);
  }

  ElementEmitter &e;
  KernelBuilder &k;
  ArgsortOp op;
  DType type;
  Shape shape, others;
  SmallVector<size_t> otherDims;
  size_t axis;
  Memory out, totals; // totals: per warp
  ItemForm form;
  SmallVector<Index> at;
  Dim first; // number of results that are read
  Value thread, length;
};

} // namespace

GpuLaunch emitGpuSort(const KernelEmission &kernel) {
  auto op = cast<ArgsortOp>(passes::KernelBody(kernel.body).root());
  return SortKernel(kernel.e, op, kernel.results[0]).emit();
}

} // namespace burin::codegen
