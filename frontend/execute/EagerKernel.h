// The code of one op.
#pragma once
#include "burin/graph.h"
#include "frontend/execute/Executable.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Compiled code for one op on operands of these types, from memory, from disk, or made now. Absent operands are
/// nullopt. `results` are the results inferred from them.
ExecutableRef eagerKernel(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                          const std::vector<ir::Attr> &attrs, std::span<const TensorSpec> results,
                          const Location &where, Device device = {});

/// A call in words that tell it from every other one.
std::string callText(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                     std::span<const ir::Attr> attrs);

/// Compiled code of a small graph that `make` builds, or what the disk holds under `key`. Null, with a reason in
/// `problem`, if the compiler refuses.
ExecutableRef compileCached(const std::string &key, llvm::function_ref<std::shared_ptr<Graph::Data>()> make,
                            std::string &problem, Device device = {}, const Location &where = {});

/// The name of the code that fits a GPU best.
std::string targetOf(const rt::gpu::Device &device);

} // namespace burin::detail
