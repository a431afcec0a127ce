// Host calls of compiled functions: prints, and calls of C++ functions.
//
// Both are executed in each run, in program order, even if no result is used, also in branches that are taken and in
// each iteration of a loop. Values that a gradient or remat recomputes are not printed again.
#pragma once
#include "burin/graph/callable.h"

namespace burin {

namespace detail {

/// The types of a host call's results, with the place of the call.
struct HostResults {
  std::vector<TensorSpec> specs;
  Location where;
  HostResults(TensorSpec spec, Location where = Location::current()) : specs{std::move(spec)}, where(where) {}
  HostResults(std::initializer_list<TensorSpec> specs, Location where = Location::current())
      : specs(specs), where(where) {}
  HostResults(std::vector<TensorSpec> specs, Location where = Location::current())
      : specs(std::move(specs)), where(where) {}
};

BURIN_API std::vector<Tensor> hostCall(Function function, const HostResults &results,
                                       const std::vector<Tensor> &operands);

/// The results of `f` as a list; empty if it returns void.
template <class F, class... Arguments> std::vector<Tensor> listOf(F &f, const Arguments &...arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<F &, const Arguments &...>>) {
    f(arguments...);
    return {};
  } else {
    return flatten(f(arguments...));
  }
}
template <class Raw> auto asReturned(std::vector<Tensor> tensors) {
  if constexpr (!std::is_void_v<Raw>)
    return unflatten<std::conditional_t<std::is_convertible_v<Raw, Tensor>, Tensor, Raw>>(std::move(tensors));
}

} // namespace detail

/// Writes `x`, of any shape and element type, to standard error, after the location of the call and the label:
///
///   model.cpp:12: scores: f32[3] [0.1 0.7 0.2]
///
/// In a traced function each run prints, also in artifacts. Eagerly it waits for the value and prints it now. Printing
/// a value keeps it in memory, which may change fusion. ONNX files omit prints. As jax.debug.print.
BURIN_API void debug_print(const Tensor &x, const std::string &label = "", Location where = Location::current());

/// Calls f(operands...), a C++ function of this process; in a traced function, each run calls it. `results` are the
/// element types and shapes of its results: one TensorSpec, a list of them, or {} for none; sizes may be those of
/// operands (x.shape()). `f` takes as many tensors as there are operands, or one std::vector<Tensor>, and returns a
/// Tensor, a vector, pair or tuple of them, or nothing. Its arguments have values, and its ops record no gradients.
///
/// A run that calls functions waits for its inputs and executes in the thread of its caller; if several threads run a
/// compiled function, `f` must be thread-safe. An exception in `f`, or a result of another type, ends the run with an
/// Error that names this line; states are unchanged. `f` must not run a compiled function whose states are in use by
/// the calling run: that is an Error, too.
///
/// A graph or artifact with such a call cannot be saved. It has no gradient: give it one with custom_vjp, or detach the
/// operands. As jax.pure_callback and jax.experimental.io_callback.
///
///   Tensor y = host_call([](const Tensor &x) { return legacy_filter(x); }, TensorSpec{f32, x.shape()}, x);
template <class F, std::convertible_to<Tensor>... Operands>
auto host_call(F &&f, const detail::HostResults &results, const Operands &...operands) {
  using Function = std::decay_t<F>;
  auto call = [f = Function(f)](std::span<const Tensor> given, const Location &) mutable {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return detail::listOf(f, given[I]...);
    }(std::index_sequence_for<Operands...>());
  };
  using Raw = std::invoke_result_t<Function &, std::conditional_t<true, const Tensor &, Operands>...>;
  return detail::asReturned<std::conditional_t<std::is_void_v<Raw>, void, std::decay_t<Raw>>>(
      detail::hostCall(std::move(call), results, {Tensor(operands)...}));
}
template <class F> auto host_call(F &&f, const detail::HostResults &results, const std::vector<Tensor> &operands) {
  using Function = std::decay_t<F>;
  auto call = [f = Function(f)](std::span<const Tensor> given, const Location &) mutable {
    return detail::listOf(f, std::vector<Tensor>(given.begin(), given.end()));
  };
  using Raw = std::invoke_result_t<Function &, const std::vector<Tensor> &>;
  return detail::asReturned<std::conditional_t<std::is_void_v<Raw>, void, std::decay_t<Raw>>>(
      detail::hostCall(std::move(call), results, operands));
}

} // namespace burin
