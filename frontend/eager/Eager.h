// Ops called outside of a trace: compiled one by one, kept, and run asynchronously.
#pragma once
#include "burin/tensor.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Null operands are absent ones.
std::vector<Tensor> callEagerly(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                std::vector<ir::Attr> attrs, const Location &where);

} // namespace burin::detail
