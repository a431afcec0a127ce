// Compiled code of single ops.
#pragma once
#include "burin/graph/graph.h"
#include "frontend/execute/EagerCall.h"
#include "frontend/execute/Executable.h"

namespace burin::detail {

/// Returns code for a call, from memory or disk, or compiles it.
ExecutableRef eagerKernel(const EagerCall &call, Device device, const Location &where);

/// Returns code of a small graph, from disk by `key`, or compiles the graph that `make` builds. Null, with a reason in
/// `problem`, if that fails.
ExecutableRef compileCached(const std::string &key, llvm::function_ref<std::shared_ptr<Graph::Data>()> make,
                            std::string &problem, Device device = {}, const Location &where = {});

/// The code target that fits a GPU best.
std::string targetOf(const rt::gpu::Device &device);

} // namespace burin::detail
