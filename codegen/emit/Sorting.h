// Sorting inside a kernel: keys with the places they came from, in scratch memory.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// An integer of `keyBytes(type)` bytes, extended to i64 with zeros, whose unsigned order is that of the elements: NaN
/// is larger than every number, -0 equals +0. Of a vector, the keys of its lanes.
Value sortKey(KernelBuilder &k, Value element, DType type, bool descending);
unsigned keyBytes(DType type);

class Sorter {
public:
  /// For up to `most` pairs, in scratch memory from `start` on.
  Sorter(KernelBuilder &k, Value start, const Dim &most);
  static Dim scratchBytes(const Dim &most);

  void put(Value at, Value key, Value place);
  /// Sorts the first `count` pairs by the low `keyBytes` bytes of their keys; equal ones keep their order.
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

/// Memory `bytes` behind `pointer`.
Memory memoryAt(KernelBuilder &k, Value pointer, Value bytes, DType dtype, const Dim &count);

} // namespace burin::codegen
