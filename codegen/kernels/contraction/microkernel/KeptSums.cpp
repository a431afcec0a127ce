#include "codegen/kernels/contraction/microkernel/KeptSums.h"

using namespace mlir;

namespace burin::codegen {

Index KeptSums::position(Value base, Value row, int64_t number, int64_t vector) {
  Value at = k.add(k.add(base, row), k.constant(number));
  return {k.add(k.mul(at, k.constant(width)), k.constant(vector * lanes)), 1};
}

void KeptSums::clear(Value rows) {
  auto type = VectorType::get({lanes}, k.storageType(memory.dtype));
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
  k.loop(k.constant(0), k.mul(rows, k.constant(width)), k.constant(lanes),
         [&](Value at) { k.store(memory, {at, 1}, zero, lanes, {}); });
}

SmallVector<Value> KeptSums::load(Value base, Value row, int64_t rows, int64_t vectors) {
  SmallVector<Value> sums;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      sums.push_back(k.load(memory, position(base, row, r, v), lanes, {}));
  return sums;
}

void KeptSums::store(Value base, Value row, int64_t vectors, ArrayRef<Value> sums) {
  for (size_t i = 0; i < sums.size(); ++i)
    k.store(memory, position(base, row, int64_t(i) / vectors, int64_t(i) % vectors), sums[i], lanes, {});
}

} // namespace burin::codegen
