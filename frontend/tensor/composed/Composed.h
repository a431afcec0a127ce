// Helpers of composed functions.
#pragma once
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/context/LocationScope.h"

namespace burin::detail {

/// `axis` as a number >= 0; throws if x has no such dimension.
int64_t axisOf(const Tensor &x, int64_t axis, const char *op);
/// Converts integers and bools to f32.
Tensor asFloat(const Tensor &x);
/// The op of dropout in inference: x.
Tensor dropout(const Tensor &x, double p, Location where);

} // namespace burin::detail
