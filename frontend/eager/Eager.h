// Eager calls: each op is compiled alone, cached, and run asynchronously.
#pragma once
#include "burin/tensor.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Null operands are absent.
std::vector<Tensor> callEagerly(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                std::vector<ir::Attr> attrs, const Location &where);

} // namespace burin::detail
