// An eager call in normal form: what kernels and gradients are compiled for.
#pragma once
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/core/EagerKey.h"
#include "ir/reference/ops/ReferenceMove.h"

namespace burin::detail {

/// Inferred once, when a call with these element types, shapes and attributes is first seen; never changed.
struct EagerCall {
  const ir::OpInfo &info;
  std::vector<std::optional<TensorSpec>> operands; // before promotion and broadcasting; scalars as they are passed
  std::vector<ir::Attr> attrs;                     // as given
  CheckedCall checked;                             // as the strict op takes it, with the results
  Key key;                                         // identifies all of the above
};

/// The kernel of a call that only moves elements, and neither converts nor broadcasts its operands: slice, concat, pad,
/// … Otherwise null.
ir::MoveKernel movementOf(const EagerCall &call);

/// Text of a call for messages.
std::string str(const EagerCall &call);

} // namespace burin::detail
