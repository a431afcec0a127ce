// What the composed functions share.
#pragma once
#include "burin/composed.h"
#include "burin/creation.h"
#include "frontend/tensor/LocationScope.h"

namespace burin::detail {

/// `axis` counted from the front; throws if x has no such dimension.
int64_t axisOf(const Tensor &x, int64_t axis, const char *op);
/// Integers and bools as f32, floats as they are.
Tensor asFloat(const Tensor &x);

} // namespace burin::detail
