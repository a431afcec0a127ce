// Sorting in a kernel: keys with their positions, in scratch memory.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// An integer of `keyBytes(type)` bytes, zero-extended to i64, whose unsigned order is the order of the elements: NaN
/// is larger than all numbers, -0 equals +0. Vectors yield one key per lane.
Value sortKey(KernelBuilder &k, Value element, DType type, bool descending);
unsigned keyBytes(DType type);

class Sorter {
public:
  /// Sorts up to `most` pairs in scratch memory at `start`.
  Sorter(KernelBuilder &k, Value start, const Dim &most);
  static Dim scratchBytes(const Dim &most);

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
  Pairs front, back;
  Memory buckets;
};

/// Memory at `bytes` after `pointer`.
Memory memoryAt(KernelBuilder &k, Value pointer, Value bytes, DType dtype, const Dim &count);

} // namespace burin::codegen
