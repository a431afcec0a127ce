// Prints tensors as text.
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include "runtime/support/TensorText.h"
#include <ostream>

namespace burin {

using namespace detail;

std::string Tensor::str(Location where) const {
  if (!defined())
    return "<empty tensor>";
  const TensorState &state = *Access::state(*this);
  if (std::holds_alternative<TracedValue>(state.value))
    return "<traced " + burin::str(state.spec) + ">";
  StorageRef storage = storageOf(state);
  const rt::SharedBuffer &buffer = await(storage, inScope(where));
  std::vector<int64_t> shape;
  for (const Dim &size : state.spec.shape)
    shape.push_back(size.value());
  return rt::elementsText(state.spec.dtype, shape, buffer.data()) + "  " + burin::str(state.spec);
}

std::ostream &operator<<(std::ostream &out, DType dtype) { return out << name(dtype); }

std::ostream &operator<<(std::ostream &out, const Tensor &tensor) { return out << tensor.str(Location()); }

} // namespace burin
