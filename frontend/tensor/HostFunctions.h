// The C++ functions that graphs and compiled code call.
#pragma once
#include "burin/callable.h"
#include "runtime/execute/RunContext.h"
#include <memory>

namespace burin::detail {

struct HostFunction {
  Function function;
  Location where; // of the host_call
};
/// Those of a graph; ops and artifacts name them by their place.
using HostFunctions = std::vector<std::shared_ptr<HostFunction>>;

/// The results of a call, outside of any trace. Throws Error unless they have these types.
std::vector<Tensor> callHost(HostFunction &function, std::span<const Tensor> inputs,
                             std::span<const TensorSpec> results);
/// The same for a session, on views. `functions` is a HostFunctions.
rt::Status callHostFromRun(void *functions, uint32_t function, std::span<const rt::TensorView> inputs,
                           std::span<const rt::TensorView> results);
/// Throws the Error that says that code with these functions cannot be saved; does nothing if there are none.
void refuseToSave(const HostFunctions &functions, const Location &where);

/// Marks things that this thread's runs hold, states for instance, so that a host call that wants one is refused
/// instead of waiting for itself.
class InUse {
public:
  /// Throws Error if this thread holds it already.
  InUse(const void *held, const char *op, const Location &where);
  ~InUse();
  InUse(const InUse &) = delete;
  InUse &operator=(const InUse &) = delete;

private:
  InUse *outer;
  const void *held;
};

} // namespace burin::detail
