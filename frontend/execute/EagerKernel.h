// Compiled code of single ops.
#pragma once
#include "burin/graph.h"
#include "frontend/execute/Executable.h"
#include "ir/infer/OpInfo.h"

namespace burin::detail {

/// Returns code for one op with operands of these types, from memory or disk, or compiles it. Absent operands are
/// nullopt; `results` are the inferred results.
ExecutableRef eagerKernel(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                          const std::vector<ir::Attr> &attrs, std::span<const TensorSpec> results,
                          const Location &where, Device device = {});

/// A text that identifies a call uniquely.
std::string callText(const ir::OpInfo &info, std::span<const std::optional<TensorSpec>> operands,
                     std::span<const ir::Attr> attrs);

/// Returns code of a small graph, from disk by `key`, or compiles the graph that `make` builds. Null, with a reason in
/// `problem`, if that fails.
ExecutableRef compileCached(const std::string &key, llvm::function_ref<std::shared_ptr<Graph::Data>()> make,
                            std::string &problem, Device device = {}, const Location &where = {});

/// The code target that fits a GPU best.
std::string targetOf(const rt::gpu::Device &device);

} // namespace burin::detail
