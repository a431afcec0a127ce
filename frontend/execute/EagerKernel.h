// Compiled code of single ops.
#pragma once
#include "burin/graph/graph.h"
#include "frontend/execute/EagerCall.h"
#include "frontend/execute/Executable.h"

namespace burin::detail {

struct EagerCode {
  ExecutableRef executable;
  bool isForAnySize = false;  // of the call's operands, or for its own sizes
  bool hasOtherSizes = false; // sizes of results are neither sizes of operands nor numbers
};

/// Returns code for a call, from memory or disk, or compiles it: where possible for any size, so that new shapes do not
/// need new code.
EagerCode eagerKernel(const EagerCall &call, Device device, const Location &where);
/// The call with symbols in the place of sizes, of which calls with other sizes have the same; null if its results do
/// not follow from them.
std::shared_ptr<const EagerCall> symbolicCall(const EagerCall &call);
/// Code for the call's own sizes.
ExecutableRef eagerKernelOfSizes(const EagerCall &call, Device device, const Location &where);

/// Returns code of a small graph, from disk by `key`, or compiles the graph that `make` builds. Null, with a reason in
/// `problem`, if that fails.
ExecutableRef compileCached(const std::string &key, llvm::function_ref<std::shared_ptr<Graph::Data>()> make,
                            std::string &problem, Device device = {}, const Location &where = {});

/// The code target that fits a GPU best, with the precision of BURIN_MATMUL_PRECISION.
std::string targetOf(const rt::gpu::Device &device);

} // namespace burin::detail
