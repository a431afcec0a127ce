// Sizes as operands of tensor ops.
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
  TensorState number = *Access::state(sizeTensor(size));
  number.weak = true;
  return Access::make(std::move(number));
}

} // namespace burin
