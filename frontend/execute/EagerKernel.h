// The code of one op.
#pragma once
#include "frontend/execute/Executable.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Compiled code for one op on operands of these types, from memory, from disk, or made now. Absent operands are
/// nullopt. `results` are the results inferred from them.
ExecutableRef eagerKernel(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                          const std::vector<ir::Attr> &attrs, std::span<const TensorSpec> results,
                          const Location &where);

} // namespace burin::detail
