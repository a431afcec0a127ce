// Calls of functions with any number of tensors, for trace and jit.
#pragma once
#include "burin/tensor.h"
#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace burin::detail {

using Function = std::function<std::vector<Tensor>(std::span<const Tensor> inputs, const Location &where)>;
/// Weights with their names in a module's state_dict.
using TensorNames = std::vector<std::pair<std::string, Tensor>>;

// ---- results

template <class R> std::vector<Tensor> flatten(R &&result) {
  using Plain = std::decay_t<R>;
  if constexpr (std::is_convertible_v<Plain, Tensor>) {
    return {Tensor(std::forward<R>(result))};
  } else if constexpr (std::is_same_v<Plain, std::vector<Tensor>>) {
    return std::forward<R>(result);
  } else if constexpr (std::is_same_v<Plain, std::pair<Tensor, std::vector<Tensor>>>) { // from value_and_grad
    std::vector<Tensor> list = result.second;
    list.insert(list.begin(), result.first);
    return list;
  } else {
    return std::apply([](auto &&...parts) { return std::vector<Tensor>{Tensor(parts)...}; }, result);
  }
}

template <class R> R unflatten(std::vector<Tensor> tensors) {
  if constexpr (std::is_same_v<R, Tensor>) {
    return std::move(tensors.front());
  } else if constexpr (std::is_same_v<R, std::vector<Tensor>>) {
    return tensors;
  } else if constexpr (std::is_same_v<R, std::pair<Tensor, std::vector<Tensor>>>) {
    return {tensors.front(), {tensors.begin() + 1, tensors.end()}};
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return R{std::move(tensors[I])...};
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  }
}

// ---- arguments

inline constexpr size_t kMaxArguments = 16;
template <size_t> using TensorAt = const Tensor &;

template <class F, class... Arguments>
decltype(auto) invoke(F &function, const Location &where, const Arguments &...arguments) {
  if constexpr (std::is_invocable_v<F &, const Arguments &..., Location>)
    return function(arguments..., where); // modules report the caller's line
  else
    return function(arguments...);
}

template <class F, class Sequence> struct TakesTensors;
template <class F, size_t... I>
struct TakesTensors<F, std::index_sequence<I...>>
    : std::disjunction<std::is_invocable<F &, TensorAt<I>...>, std::is_invocable<F &, TensorAt<I>..., Location>> {};
template <class F> inline constexpr bool takesList = std::is_invocable_v<F &, const std::vector<Tensor> &>;
/// Whether F takes N tensors, rather than one list.
template <class F, size_t N> inline constexpr bool takes = TakesTensors<F, std::make_index_sequence<N>>::value;

template <class F, class Sequence> struct Result;
template <class F, size_t... I> struct Result<F, std::index_sequence<I...>> {
  using type = std::decay_t<decltype(invoke(std::declval<F &>(), Location(), std::declval<TensorAt<I>>()...))>;
};
template <class F, size_t N, bool direct> struct ResultChoice {
  using type = typename Result<F, std::make_index_sequence<N>>::type;
};
template <class F, size_t N> struct ResultChoice<F, N, false> {
  static_assert(takesList<F>, "the function takes neither this number of tensors nor a std::vector<Tensor>");
  using type = std::decay_t<std::invoke_result_t<F &, const std::vector<Tensor> &>>;
};
/// The result of F for N tensors. A number becomes a Tensor.
template <class F, size_t N> struct ResultOfImpl {
  using raw = typename ResultChoice<F, N, takes<F, N>>::type;
  using type = std::conditional_t<std::is_convertible_v<raw, Tensor>, Tensor, raw>;
};
template <class F, size_t N> using ResultOf = typename ResultOfImpl<F, N>::type;

template <size_t N, class F>
std::vector<Tensor> callWith(F &function, std::span<const Tensor> inputs, const Location &where) {
  if constexpr (N > kMaxArguments) {
    throw Error(where, "",
                "the function cannot be called with " + std::to_string(inputs.size()) +
                    " tensors: give one per parameter, or let it take a std::vector<Tensor>");
  } else {
    if constexpr (takes<F, N>)
      if (inputs.size() == N)
        return [&]<size_t... I>(std::index_sequence<I...>) {
          return flatten(invoke(function, where, inputs[I]...));
        }(std::make_index_sequence<N>());
    return callWith<N + 1>(function, inputs, where);
  }
}

template <class F> Function erase(const F &function) {
  return [function = std::decay_t<F>(function)](std::span<const Tensor> inputs,
                                                const Location &where) mutable -> std::vector<Tensor> {
    if constexpr (takesList<F>)
      return flatten(function(std::vector<Tensor>(inputs.begin(), inputs.end())));
    else
      return callWith<0>(function, inputs, where);
  };
}

template <class F> TensorNames namesOf(const F &function) {
  if constexpr (requires { function.state_dict(); }) {
    auto state = function.state_dict();
    return {state.begin(), state.end()};
  } else {
    return {};
  }
}

} // namespace burin::detail
