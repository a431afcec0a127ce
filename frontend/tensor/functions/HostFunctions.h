// C++ functions that graphs and compiled code call.
#pragma once
#include "burin/graph/callable.h"
#include "runtime/execute/RunContext.h"
#include <memory>

namespace burin::detail {

struct HostFunction {
  Function function;
  Location where; // of the host_call
};
/// The functions of a graph; ops and artifacts refer to them by index.
using HostFunctions = std::vector<std::shared_ptr<HostFunction>>;

/// Calls a function, outside of any trace. Throws Error unless the results have the given types.
std::vector<Tensor> callHost(HostFunction &function, std::span<const Tensor> inputs,
                             std::span<const TensorSpec> results);
/// The same for a session, on views. `functions` is a HostFunctions.
rt::Status callHostFromRun(void *functions, uint32_t function, std::span<const rt::TensorView> inputs,
                           std::span<const rt::TensorView> results);
/// Throws an Error that code with these functions cannot be saved; no effect if there are none.
void refuseToSave(const HostFunctions &functions, const Location &where);

/// Marks objects, for example states, that a run of this thread holds, so that a host call that needs one of them fails
/// instead of waiting for itself.
class InUse {
public:
  /// `held` is sorted and outlives the mark. Throws Error if this thread holds one of them already.
  InUse(std::span<const void *const> held, const char *op, const Location &where);
  ~InUse();
  InUse(const InUse &) = delete;
  InUse &operator=(const InUse &) = delete;

private:
  InUse *const outer;
  const std::span<const void *const> held;
};

} // namespace burin::detail
