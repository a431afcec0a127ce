#include "codegen/gpu/rowwise/BlockSort.h"
#include "codegen/emit/Sorting.h"
#include "codegen/gpu/Block.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kPlaceBits = 32;                              // of a joined item
constexpr int64_t kMostPlaces = (int64_t(1) << kPlaceBits) - 1; // so that no item is equal to last()
constexpr int64_t kWordBytes = 8;
constexpr int64_t kMerged = 8; // items that a thread merges at once

ItemForm::ItemForm(KernelBuilder &k, DType type, const Dim &length) : k(k) {
  std::optional<int64_t> most = upperBound(length);
  isJoined = keyBytes(type) <= 4 && most && *most <= kMostPlaces;
}

Item ItemForm::make(Value key, Value place) {
  if (!isJoined)
    return {key, place};
  Value high = arith::ShLIOp::create(k.b, k.loc, key, k.constant(kPlaceBits));
  return {arith::OrIOp::create(k.b, k.loc, high, place)};
}

Item ItemForm::last() { return Item(size_t(words()), k.constant(-1)); }

Value ItemForm::place(const Item &item) {
  return isJoined ? arith::AndIOp::create(k.b, k.loc, item[0], k.constant(kMostPlaces)).getResult() : item[1];
}

Value ItemForm::isBefore(const Item &x, const Item &y) {
  Value first = k.compare(arith::CmpIPredicate::ult, x[0], y[0]);
  if (isJoined)
    return first;
  Value areEqual = k.compare(arith::CmpIPredicate::eq, x[0], y[0]);
  Value second = arith::AndIOp::create(k.b, k.loc, areEqual, k.compare(arith::CmpIPredicate::ult, x[1], y[1]));
  return arith::OrIOp::create(k.b, k.loc, first, second);
}

Item ItemForm::select(Value condition, const Item &x, const Item &y) {
  Item result;
  for (auto [a, b] : llvm::zip(x, y))
    result.push_back(arith::SelectOp::create(k.b, k.loc, condition, a, b));
  return result;
}

ItemMemory ItemMemory::shared(const ItemForm &form, int64_t items) {
  ItemMemory memory;
  for (int64_t w = 0; w < form.words(); ++w)
    memory.words.push_back({sharedArray(form.k, form.k.b.getI64Type(), items), DType::i64, {}});
  return memory;
}

ItemMemory ItemMemory::at(const ItemForm &form, Value pointer, const Dim &items) {
  ItemMemory memory;
  for (int64_t w = 0; w < form.words(); ++w)
    memory.words.push_back(memoryAt(form.k, pointer, form.k.dim(items * Dim(w * kWordBytes)), DType::i64, items));
  return memory;
}

Item ItemMemory::load(KernelBuilder &k, Value at) const {
  Item item;
  for (const Memory &memory : words)
    item.push_back(k.load(memory, {at}, 1, {}));
  return item;
}

void ItemMemory::store(KernelBuilder &k, Value at, const Item &item) const {
  for (auto [memory, word] : llvm::zip(words, item))
    k.store(memory, {at}, word, 1, {});
}

BlockSort::BlockSort(ItemForm &form, int64_t threads, int64_t itemsOfThread, std::optional<ItemMemory> memory)
    : form(form), k(form.k), threads(threads), own(itemsOfThread), memory(std::move(memory)) {
  Value thread = threadIndex(k);
  for (int64_t i = 0; i < own; ++i)
    numbers.push_back(k.add(thread, k.constant(i * threads)));
}

// In round `run`, sequences of `run` items, of which one half is ascending and the other descending, become sorted
// runs, every other one descending. Rounds end when the first run holds all items that are not last ones.
SmallVector<Item> BlockSort::sort(SmallVector<Item> items, Value count) {
  Value two = k.constant(2), end = k.mul(count, two);
  auto isNeeded = [&](Value run) { return k.compare(arith::CmpIPredicate::slt, run, end); };
  auto isInWarps = [&](ValueRange v) -> Value {
    return arith::AndIOp::create(k.b, k.loc, isNeeded(v[0]),
                                 k.compare(arith::CmpIPredicate::sle, v[0], k.constant(threads)));
  };
  items = unflat(k.loopWhile(flat(two, items), isInWarps, [&](ValueRange v) {
    return flat(k.mul(v[0], two), mergeRuns(v[0], k.div(v[0], two), unflat(v)));
  }));
  for (int64_t run = 2; run <= own; run *= 2) {
    Value inItems = k.constant(run * threads);
    items = unflat(k.when(isNeeded(inItems), flat(two, items), [&] {
      SmallVector<Item> next = items;
      for (int64_t distance = run / 2; distance > 0; distance /= 2)
        compareOwn(run, distance, next);
      return flat(two, mergeRuns(inItems, k.constant(threads / 2), std::move(next)));
    }));
  }
  return items;
}

/// The steps of a round from `distance` down to 1, which is below the number of threads.
SmallVector<Item> BlockSort::mergeRuns(Value run, Value distance, SmallVector<Item> items) {
  auto loop = [&](int64_t least, llvm::function_ref<SmallVector<Item>(Value, ArrayRef<Item>)> step) {
    SmallVector<Value> next = k.loopWhile(
        flat(distance, items),
        [&](ValueRange v) { return k.compare(arith::CmpIPredicate::sge, v[0], k.constant(least)); },
        [&](ValueRange v) { return flat(k.div(v[0], k.constant(2)), step(v[0], unflat(v))); });
    distance = next[0], items = unflat(next);
  };
  if (threads > kWarp)
    loop(kWarp, [&](Value at, ArrayRef<Item> mine) {
      for (auto [number, item] : llvm::zip(numbers, mine))
        memory->store(k, number, item);
      barrier(k);
      auto result = exchange(run, at, mine, [&](const Item &, int64_t i, Value mask) {
        return memory->load(k, arith::XOrIOp::create(k.b, k.loc, numbers[size_t(i)], mask));
      });
      barrier(k);
      return result;
    });
  loop(1, [&](Value at, ArrayRef<Item> mine) {
    return exchange(run, at, mine, [&](const Item &item, int64_t, Value mask) {
      Item other;
      for (Value word : item)
        other.push_back(shuffleAcross(k, word, mask));
      return other;
    });
  });
  return items;
}

Value BlockSort::hasBit(Value number, Value bit) {
  return k.compare(arith::CmpIPredicate::ne, arith::AndIOp::create(k.b, k.loc, number, bit), k.constant(0));
}

/// Of each pair of items that far apart, the lower one keeps the smaller one, or, in a descending run, the larger one.
SmallVector<Item> BlockSort::exchange(Value run, Value distance, ArrayRef<Item> items, Exchange other) {
  SmallVector<Item> result;
  for (auto [i, mine] : llvm::enumerate(items)) {
    Value number = numbers[i];
    Value keepsLarger = arith::XOrIOp::create(k.b, k.loc, hasBit(number, run), hasBit(number, distance));
    Item theirs = other(mine, int64_t(i), distance);
    Value takes = arith::XOrIOp::create(k.b, k.loc, form.isBefore(theirs, mine), keepsLarger);
    result.push_back(form.select(takes, theirs, mine));
  }
  return result;
}

/// A step among the items of one thread. Both numbers are in items of the thread.
void BlockSort::compareOwn(int64_t run, int64_t distance, SmallVector<Item> &items) {
  for (int64_t i = 0; i < own; ++i) {
    if (i & distance)
      continue;
    Item &low = items[size_t(i)], &high = items[size_t(i + distance)];
    Value swaps = i & run ? form.isBefore(low, high) : form.isBefore(high, low);
    Item smaller = form.select(swaps, high, low);
    high = form.select(swaps, low, high);
    low = smaller;
  }
}

SmallVector<Value> BlockSort::flat(Value first, ArrayRef<Item> items) {
  SmallVector<Value> values{first};
  for (const Item &item : items)
    llvm::append_range(values, item);
  return values;
}

SmallVector<Item> BlockSort::unflat(ValueRange values) {
  SmallVector<Item> items;
  for (size_t at = 1; at < values.size(); at += size_t(form.words()))
    items.emplace_back(values.slice(at, size_t(form.words())));
  return items;
}

SliceSort::SliceSort(ItemForm &form, const Dim &length)
    : form(form), k(form.k), length(length), block(form, kThreads, kOwn, ItemMemory::shared(form, kPiece)),
      end(k.dim(length)) {}

ItemMemory SliceSort::memory(Value scratch, Value block) const {
  Value start = memoryAt(k, scratch, k.mul(block, k.dim(bytes())), DType::i8, bytes()).pointer;
  return ItemMemory::at(form, start, length * Dim(2));
}

Value SliceSort::sort(const ItemMemory &memory, llvm::function_ref<Item(Value)> itemAt) {
  k.loop(k.constant(0), end, k.constant(kPiece), [&](Value from) { sortPiece(memory, from, itemAt); });
  barrier(k);
  return mergeRuns(memory);
}

void SliceSort::sortPiece(const ItemMemory &memory, Value from, llvm::function_ref<Item(Value)> itemAt) {
  SmallVector<Item> items;
  for (int64_t i = 0; i < kOwn; ++i) {
    Value at = k.add(from, block.number(i));
    items.push_back(k.when(isBelow(at, end), form.last(), [&] { return itemAt(at); }));
  }
  items = block.sort(std::move(items), k.minimum(k.sub(end, from), k.constant(kPiece)));
  for (int64_t i = 0; i < kOwn; ++i) {
    Value place = k.add(from, block.number(i));
    k.when(isBelow(place, end), [&] { memory.store(k, place, items[size_t(i)]); });
  }
}

/// Merges pairs of runs, from one copy to the other, until there is one; returns its position.
Value SliceSort::mergeRuns(const ItemMemory &memory) {
  return k.loopWhile(
      {k.constant(kPiece), k.constant(0), end}, [&](ValueRange v) { return isBelow(v[0], end); },
      [&](ValueRange v) -> SmallVector<Value> {
        k.loop(k.mul(threadIndex(k), k.constant(kMerged)), end, k.constant(kThreads * kMerged),
               [&](Value begin) { mergeItems(memory, v[0], v[1], v[2], begin); });
        barrier(k);
        return {k.mul(v[0], k.constant(2)), v[2], v[1]};
      })[1];
}

/// Merges items [begin, begin + kMerged) of a pair of runs of `run` items, at `from`, to the same place at `to`.
void SliceSort::mergeItems(const ItemMemory &memory, Value run, Value from, Value to, Value begin) {
  Value two = k.constant(2), zero = k.constant(0), one = k.constant(1);
  Value offset = k.rem(begin, k.mul(run, two)), pair = k.sub(begin, offset), middle = k.add(pair, run);
  Value leftSize = k.minimum(run, k.sub(end, pair));
  Value rightSize = k.maximum(k.minimum(run, k.sub(end, middle)), zero);
  Value left = k.add(from, pair), right = k.add(from, middle);
  // How many of the first `offset` merged items are from the left run.
  SmallVector<Value> bounds{k.maximum(k.sub(offset, rightSize), zero), k.minimum(offset, leftSize)};
  Value taken = k.loopWhile(
      bounds, [&](ValueRange v) { return isBelow(v[0], v[1]); },
      [&](ValueRange v) -> SmallVector<Value> {
        Value half = k.div(k.add(v[0], v[1]), two);
        Item x = memory.load(k, k.add(left, half));
        Item y = memory.load(k, k.add(right, k.sub(k.sub(offset, half), one)));
        Value isFirst = form.isBefore(x, y);
        return {arith::SelectOp::create(k.b, k.loc, isFirst, k.add(half, one), v[0]),
                arith::SelectOp::create(k.b, k.loc, isFirst, v[1], half)};
      })[0];
  auto itemOf = [&](Value place, Value size, Value start) {
    return k.when(isBelow(place, size), form.last(), [&] { return memory.load(k, k.add(start, place)); });
  };
  Value i = taken, j = k.sub(offset, taken);
  Item x = itemOf(i, leftSize, left), y = itemOf(j, rightSize, right);
  for (int64_t n = 0; n < kMerged; ++n) {
    Value isLeft = form.isBefore(x, y), place = k.add(begin, k.constant(n));
    k.when(isBelow(place, end), [&] { memory.store(k, k.add(to, place), form.select(isLeft, x, y)); });
    if (n + 1 == kMerged)
      return;
    Value step = arith::ExtUIOp::create(k.b, k.loc, k.b.getI64Type(), isLeft);
    i = k.add(i, step), j = k.add(j, k.sub(one, step));
    auto pick = [&](Value a, Value b) { return arith::SelectOp::create(k.b, k.loc, isLeft, a, b).getResult(); };
    Item next = itemOf(pick(i, j), pick(leftSize, rightSize), pick(left, right));
    x = form.select(isLeft, next, x), y = form.select(isLeft, y, next);
  }
}

} // namespace burin::codegen
