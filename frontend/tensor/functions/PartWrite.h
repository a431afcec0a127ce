// Replaces a part of a tensor's elements, for eager Tensor::set().
#pragma once
#include "frontend/tensor/core/TensorState.h"

namespace burin::detail {

/// Positions along one axis.
struct PartAxis {
  int64_t first, step, count;
};

/// Whether an operand of writePart() is what that takes: not traced, not on a GPU, and no tape records the call.
/// Defined with the eager calls of ops.
bool canWritePart(const Tensor &operand);

/// Replaces the elements of x at the positions of `part`, one entry per axis, by `values`, of x's element type and in
/// the order of the part. Writes into the memory of x if nothing else refers to it when the write begins, otherwise
/// into a copy. Asynchronous unless x is small.
void writePart(Tensor &x, std::span<const PartAxis> part, const Tensor &values, const Location &where);

} // namespace burin::detail
