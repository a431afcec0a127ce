// Tensors that the host fills without a kernel.
#pragma once
#include "frontend/tensor/core/TensorState.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Whether `info` is an op without operands and with exact results, which are the same on any backend: full, iota.
bool isMadeOnHost(const ir::OpInfo &info);
Tensor createOnHost(const ir::OpInfo &info, std::vector<ir::Attr> attrs, const Location &where);

/// A tensor whose elements [lo, hi) `fill(data, lo, hi)` writes later, in pieces, on any threads.
using Fill = std::function<void(void *data, int64_t lo, int64_t hi)>;
Tensor fillLater(TensorSpec spec, Fill fill, const Location &where);
/// A tensor with a copy of these elements.
Tensor copyOf(const void *data, TensorSpec spec, const Location &where);
/// A size, symbolic or static, as an i64 tensor of rank 0.
Tensor sizeTensor(const Dim &size);
/// Throws if a size is negative, or symbolic: eager code has no values for symbols.
void requireSizes(const Shape &shape, const char *op, const Location &where);

} // namespace burin::detail
