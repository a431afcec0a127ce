// Sorting in a kernel: keys with their positions, in scratch memory.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// An integer of `keyBytes(type)` bytes, zero-extended to i64, whose unsigned order is the order of the elements: NaN
/// is larger than all numbers, -0 equals +0. If `descending`, the key is complemented, so that an ascending sort yields
/// NaN first and the largest numbers next. Vectors yield one key per lane.
Value sortKey(KernelBuilder &k, Value element, DType type, bool descending);
unsigned keyBytes(DType type);

/// Emits a stable sort of pairs (key, place), where `place` is the position of the element that the key is made from:
/// insertion sort for few pairs, else a radix sort by bytes, least significant first. Runs on one thread.
class Sorter {
public:
  /// Sorts up to `most` pairs in scratch memory at `start`, which needs scratchBytes(most).
  Sorter(KernelBuilder &k, Value start, const Dim &most);
  static Dim scratchBytes(const Dim &most);

  /// Sets pair number `at`.
  void put(Value at, Value key, Value place);
  /// Stable sort of the first `count` pairs by the low `keyBytes` bytes of their keys.
  void sort(Value count, unsigned keyBytes);
  Value key(Value at);
  Value place(Value at);

private:
  struct Pairs {
    Memory keys, places;
  };
  void insertionSort(Value count);
  void radixPass(const Pairs &from, const Pairs &to, Value count, unsigned shift);
  void move(const Pairs &from, Value at, const Pairs &to, Value target);

  KernelBuilder &k;
  Pairs front, back; // the pairs; radix passes alternate between the two copies
  Memory buckets;    // per value of a byte: the number of keys, then the position of the next one
};

/// Memory at `bytes` after `pointer`.
Memory memoryAt(KernelBuilder &k, Value pointer, Value bytes, DType dtype, const Dim &count);

} // namespace burin::codegen
