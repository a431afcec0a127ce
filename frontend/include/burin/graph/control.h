// Branches and loops that depend on data.
//
// In eager code they are C++ control flow on the value of the condition. In a traced function each function argument is
// recorded once, as a function of the graph, and a run executes those that the conditions select. Functions may use
// tensors from outside, read and set parameters, and draw random numbers (docs/state.md); the condition of a loop only
// reads.
#pragma once
#include "burin/graph/callable.h"
#include "burin/graph/loops.h"
#include <optional>

namespace burin {

namespace detail {

using Branch = std::function<std::vector<Tensor>()>;
using LoopCondition = std::function<Tensor(const std::vector<Tensor> &values)>;
using LoopBody = std::function<std::vector<Tensor>(const std::vector<Tensor> &values)>;
using CountedBody = std::function<std::vector<Tensor>(const Tensor &iteration, const std::vector<Tensor> &values)>;

BURIN_API std::vector<Tensor> cond(const Tensor &condition, const Branch &then, const Branch &otherwise,
                                   const Location &where);
BURIN_API std::vector<Tensor> switchCase(const Tensor &index, std::span<const Branch> branches, const Location &where);
BURIN_API std::vector<Tensor> whileLoop(const LoopCondition &condition, const LoopBody &body,
                                        const std::vector<Tensor> &initial, std::optional<int64_t> limit,
                                        const Location &where);
BURIN_API std::vector<Tensor> countedLoop(int64_t lower, const Dim &upper, const CountedBody &body,
                                          const std::vector<Tensor> &initial, const Location &where);
BURIN_API std::vector<Tensor> countedLoop(const Tensor &lower, const Tensor &upper, const CountedBody &body,
                                          const std::vector<Tensor> &initial, std::optional<int64_t> limit,
                                          const Location &where);

/// Values that a loop carries: a Tensor, a std::vector<Tensor>, or a pair or tuple of tensors.
template <class T>
using Carried = std::conditional_t<std::is_convertible_v<T, Tensor> || Arithmetic<T>, Tensor, std::decay_t<T>>;

/// Calls f(first..., values...).
template <class Values, class F, class... First>
decltype(auto) callCarrying(F &f, const std::vector<Tensor> &values, const First &...first) {
  if constexpr (std::is_same_v<Values, std::vector<Tensor>>)
    return f(first..., values);
  else if constexpr (std::is_same_v<Values, Tensor>)
    return f(first..., values[0]);
  else
    return [&]<size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
      return f(first..., values[I]...);
    }(std::make_index_sequence<std::tuple_size_v<Values>>());
}

} // namespace detail

/// Throws an Error with the message if an element of `condition` (bool, any shape) is false. In a traced function each
/// run checks it, and fails with the message and this line. To tie the check to a value, use check(condition, x,
/// message). As torch._assert_async.
BURIN_API void check(const Tensor &condition, const std::string &message, Location where = Location::current());

/// then() if the condition, one bool (bool[]), is true, else otherwise(); both return a Tensor, or a vector, pair or
/// tuple of them, of the same shapes and element types. Has a gradient: that of the branch that was taken, which is
/// recomputed. As jax.lax.cond.
template <class Then, class Otherwise> auto cond(const detail::Operand &condition, Then &&then, Otherwise &&otherwise) {
  using Raw = std::decay_t<std::invoke_result_t<Then &>>;
  using Result = std::conditional_t<std::is_convertible_v<Raw, Tensor>, Tensor, Raw>;
  return detail::unflatten<Result>(detail::cond(
      condition.tensor, [&] { return detail::flatten(then()); }, [&] { return detail::flatten(otherwise()); },
      condition.where));
}

/// The result of branches[index](), where `index` is one integer (of any integer type, shape []), clamped to the number
/// of branches. Branches return the same as in `cond`. As jax.lax.switch.
template <class First, class... More> auto switch_case(const detail::Operand &index, First &&first, More &&...more) {
  using Raw = std::decay_t<std::invoke_result_t<First &>>;
  using Result = std::conditional_t<std::is_convertible_v<Raw, Tensor>, Tensor, Raw>;
  const detail::Branch branches[]{[&] { return detail::flatten(first()); }, [&] { return detail::flatten(more()); }...};
  return detail::unflatten<Result>(detail::switchCase(index.tensor, branches, index.where));
}

/// Replaces the values by body(values) as long as condition(values), one bool, is true; returns the last values.
/// `initial` is a Tensor, a std::vector<Tensor>, or a pair or tuple of tensors, which become the arguments of both
/// functions; the body returns the same kind, with the same shapes and element types. `limit` bounds the number of
/// iterations. In a traced function only loops with a limit have a gradient; they keep the values of each iteration. As
/// jax.lax.while_loop.
template <class Condition, class Body, class Values>
auto while_loop(Condition &&condition, Body &&body, const Values &initial, std::optional<int64_t> limit = std::nullopt,
                Location where = Location::current()) {
  using Carried = detail::Carried<Values>;
  return detail::unflatten<Carried>(detail::whileLoop(
      [&](const std::vector<Tensor> &values) -> Tensor { return detail::callCarrying<Carried>(condition, values); },
      [&](const std::vector<Tensor> &values) { return detail::flatten(detail::callCarrying<Carried>(body, values)); },
      detail::flatten(initial), limit, where));
}

/// Replaces the values by body(i, values) for i = lower … upper - 1, an i64[]; returns the last values. For values see
/// while_loop. If lower is an integer and upper a size, possibly symbolic, the loop is a scan and has a gradient. If
/// both are tensors of one i64, it is a while_loop, which has a gradient in a trace if `limit` is given: more
/// iterations than that are an error. As jax.lax.fori_loop.
template <class Lower, class Upper, class Body, class Values>
auto fori_loop(const Lower &lower, const Upper &upper, Body &&body, const Values &initial,
               std::optional<int64_t> limit = std::nullopt, Location where = Location::current()) {
  using Carried = detail::Carried<Values>;
  detail::CountedBody iteration = [&](const Tensor &i, const std::vector<Tensor> &values) {
    return detail::flatten(detail::callCarrying<Carried>(body, values, i));
  };
  std::vector<Tensor> values = detail::flatten(initial);
  if constexpr (std::is_integral_v<Lower> && std::is_convertible_v<Upper, Dim>)
    return detail::unflatten<Carried>(detail::countedLoop(int64_t(lower), Dim(upper), iteration, values, where));
  else
    return detail::unflatten<Carried>(
        detail::countedLoop(Tensor(lower), Tensor(upper), iteration, values, limit, where));
}

/// f of each slice of the tensors along dimension 0, stacked along a new dimension 0: f takes one slice of each and
/// returns a Tensor, or a vector, pair or tuple of them. A scan without states, slice by slice; ops that can process
/// all slices in one call, such as matmul and reductions along an axis, are faster. Throws Error unless the tensors
/// have a dimension 0 of equal size. Has a gradient. As jax.lax.map.
///
///   Tensor gradients = map([&](const Tensor &x, const Tensor &y) { return grad(loss(w, x, y), {w})[0]; }, xs, ys);
template <class F, class... More> auto map(F &&f, const detail::Operand &first, const More &...more) {
  using Raw = std::decay_t<std::invoke_result_t<F &, const Tensor &, const More &...>>;
  using Result = std::conditional_t<std::is_convertible_v<Raw, Tensor>, Tensor, Raw>;
  auto step = [&](const std::vector<Tensor> &, const std::vector<Tensor> &elements) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return ScanResult{.states = {}, .outputs = detail::flatten(f(elements[I]...))};
    }(std::make_index_sequence<1 + sizeof...(More)>());
  };
  return detail::unflatten<Result>(scan(step, {}, {first.tensor, Tensor(more)...}, false, first.where).outputs);
}

} // namespace burin
