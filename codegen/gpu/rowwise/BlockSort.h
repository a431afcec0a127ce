// Sorting by the threads of a block.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// An item of a sort in registers, as i64 words: the key of an element (see sortKey) and the element's place, joined in
/// one word or in two. Places differ, so all items differ, and sorted items are in the order of a stable sort.
using Item = SmallVector<Value>;

/// The form of the items of a sort.
class ItemForm {
public:
  /// For the elements of a slice of this type and length.
  ItemForm(KernelBuilder &k, DType type, const Dim &length);

  int64_t words() const { return isJoined ? 1 : 2; }
  int64_t bytes() const { return 8 * words(); }
  Item make(Value key, Value place);
  /// An item behind those of all elements.
  Item last();
  Value place(const Item &);
  Value isBefore(const Item &x, const Item &y);
  Item select(Value condition, const Item &x, const Item &y);

  KernelBuilder &k;

private:
  bool isJoined; // key << 32 | place
};

/// Items in memory, an array per word.
class ItemMemory {
public:
  /// Shared memory for so many items, not initialised.
  static ItemMemory shared(const ItemForm &, int64_t items);
  /// Memory for so many items at `pointer`.
  static ItemMemory at(const ItemForm &, Value pointer, const Dim &items);

  Item load(KernelBuilder &, Value at) const;
  void store(KernelBuilder &, Value at, const Item &) const;

private:
  SmallVector<Memory, 2> words;
};

/// A bitonic sorting network over the items of a block. Item i of thread t has the number t + i * threads. Items of one
/// thread are compared in registers, those of one warp by shuffles, others through shared memory.
class BlockSort {
public:
  /// Both are powers of two, with at least one warp. `memory` is of all items; a single warp does not use it.
  BlockSort(ItemForm &, int64_t threads, int64_t itemsOfThread, std::optional<ItemMemory> memory);

  int64_t items() const { return threads * own; }
  /// The number of item i of this thread.
  Value number(int64_t i) const { return numbers[size_t(i)]; }
  /// Sorts all items, of which those from number `count` on are last ones. No thread may still use the memory for
  /// something else, and none does after the sort.
  SmallVector<Item> sort(SmallVector<Item> itemsOfThread, Value count);

private:
  using Exchange = llvm::function_ref<Item(const Item &, int64_t i, Value distance)>;
  SmallVector<Item> mergeRuns(Value run, Value distance, SmallVector<Item> items);
  SmallVector<Item> exchange(Value run, Value distance, ArrayRef<Item> items, Exchange other);
  void compareOwn(int64_t run, int64_t distance, SmallVector<Item> &items);
  SmallVector<Value> flat(Value first, ArrayRef<Item> items);
  SmallVector<Item> unflat(ValueRange values);
  Value hasBit(Value number, Value bit);

  ItemForm &form;
  KernelBuilder &k;
  int64_t threads, own;
  std::optional<ItemMemory> memory;
  SmallVector<Value> numbers;
};

/// Sorts slices of any length: pieces by a BlockSort, which are merged in global memory.
class SliceSort {
public:
  static constexpr int64_t kThreads = 256, kOwn = 8; // of a block; items of a thread
  static constexpr int64_t kPiece = kThreads * kOwn; // items
  SliceSort(ItemForm &, const Dim &length);

  /// Scratch memory of a block.
  Dim bytes() const { return length * Dim(2 * form.bytes()); }
  /// Two copies of the items of a slice, for the block with this number.
  ItemMemory memory(Value scratch, Value block) const;
  /// Sorts itemAt(i) for all i below the length. Returns the position of the first one in `memory`, of the others
  /// behind it, which all threads see.
  Value sort(const ItemMemory &memory, llvm::function_ref<Item(Value)> itemAt);

private:
  void sortPiece(const ItemMemory &, Value from, llvm::function_ref<Item(Value)> itemAt);
  Value mergeRuns(const ItemMemory &);
  void mergeItems(const ItemMemory &, Value run, Value from, Value to, Value begin);
  Value isBelow(Value x, Value y) { return k.compare(mlir::arith::CmpIPredicate::slt, x, y); }

  ItemForm &form;
  KernelBuilder &k;
  Dim length;
  BlockSort block;
  Value end; // the length
};

} // namespace burin::codegen
