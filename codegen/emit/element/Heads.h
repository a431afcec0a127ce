// Heads: the matrices in the last two dimensions of a value, one for each position in its leading dimensions.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"

namespace burin::codegen {

/// Sets the first positions of `at` to those of a head, which is counted row-major over the leading dimensions.
inline void placeHead(KernelBuilder &k, ArrayRef<Dim> leading, Value head, llvm::MutableArrayRef<Index> at) {
  for (size_t d = leading.size(); d-- > 0;) {
    at[d] = {d ? k.rem(head, k.dim(leading[d])) : head};
    head = d ? k.div(head, k.dim(leading[d])) : head;
  }
}

/// Position of element [row, 0] of the head at these leading positions.
inline Value rowStartOf(KernelBuilder &k, const StridedMemory &s, ArrayRef<Index> leading, Value row) {
  Value start = k.mul(row, k.dim(s.strides[leading.size()]));
  for (size_t d = 0; d < leading.size(); ++d)
    start = k.add(start, k.mul(leading[d].base, k.dim(s.strides[d])));
  return start;
}

} // namespace burin::codegen
