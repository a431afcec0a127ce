// Sizes as operands of tensor ops, and comparisons of sizes in traced functions.
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/Trace.h"

namespace burin {

using namespace detail;

Tensor Tensor::fromSize(const Dim &size, const Location &where) {
  if (size.isStatic())
    return scalarInt(size.value());
  if (!Trace::active())
    throw Error(inScope(where), "",
                "the symbolic size " + size.str() + " has a value in a trace only; there it is x.size(axis)");
  LocationScope scope(inScope(where));
  TensorState number = *Access::state(sizeTensor(size));
  number.weak = true;
  return Access::make(std::move(number));
}

bool detail::areEqual(const Dim &a, const Dim &b) {
  if (isIdentical(a, b) || !mayEqual(a, b) || !Trace::active())
    return isIdentical(a, b);
  return Size(a, lastSizes()) == b;
}

Dim Trace::sizeFrom(const Tensor &count, const Location &where) {
  if (!count.isTraced())
    return count.item<int64_t>(where);
  // The first rows of a matrix without columns, which takes no memory: only their number is used.
  const Tensor rows = zeros({INT32_MAX, 0}, DType::u8, where), wide = count.to(DType::i64, where);
  const Tensor *operands[] = {&rows, &wide};
  return call(*ir::findOp("prefix"), operands, {Shape{newSize("size", where)}}, where)[0].shape(where)[0];
}

} // namespace burin
