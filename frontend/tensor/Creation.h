// Tensors whose elements are made on the host: no kernel is worth compiling for them.
#pragma once
#include "frontend/tensor/TensorState.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Whether `info` is an op without operands whose elements are exact, so that any backend makes the same: full, iota.
bool isMadeOnHost(const ir::OpInfo &info);
Tensor createOnHost(const ir::OpInfo &info, std::vector<ir::Attr> attrs, const Location &where);

/// A tensor whose elements [lo, hi) are written by `fill(data, lo, hi)`: later, in pieces, on any threads.
using Fill = std::function<void(void *data, int64_t lo, int64_t hi)>;
Tensor fillLater(TensorSpec spec, Fill fill, const Location &where);
/// A tensor with a copy of these elements.
Tensor copyOf(const void *data, TensorSpec spec, const Location &where);
/// A tensor with one symbolic or known size, i64 and of rank 0.
Tensor sizeTensor(const Dim &size);
/// Throws if a size is symbolic or negative: outside of a trace there is nothing to take it from.
void requireSizes(const Shape &shape, const char *op, const Location &where);

} // namespace burin::detail
