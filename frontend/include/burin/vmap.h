// Functions of one example, applied to many at once; and what follows from that: gradients of each example, Jacobians.
#pragma once
#include "burin/callable.h"
#include "burin/gradients.h"
#include "burin/indexing.h"

namespace burin {

/// The dimension that holds the examples, of each tensor: one for all tensors, or a list with one entry per tensor.
/// None: the tensor is the same for all examples. Negative ones count from the end.
class BatchAxes {
public:
  struct Axis : std::optional<int64_t> {
    Axis(std::integral auto axis) : optional(int64_t(axis)) {}
    Axis(NoneType) {}
  };
  BatchAxes(std::integral auto axis) : list{Axis(axis)}, isForAll(true) {}
  BatchAxes(NoneType) : list{Axis(None)}, isForAll(true) {}
  BatchAxes(std::initializer_list<Axis> list) : list(list) {}
  BatchAxes(std::vector<Axis> list) : list(std::move(list)) {}

  std::vector<Axis> list;
  bool isForAll = false;
};

/// What a draw from a Generator inside a function of one example gives: an error, the same numbers in all examples, or
/// each its own. As torch.vmap's `randomness`.
enum class Randomness { Error, Same, Different };

namespace detail {
BURIN_API std::vector<Tensor> vmap(const Function &function, const std::vector<Tensor> &inputs, const BatchAxes &inAxes,
                                   const BatchAxes &outAxes, Randomness randomness, const Location &where);
BURIN_API Tensor gradOf(const Function &function, std::vector<Tensor> inputs, int64_t argument, const Location &where);
BURIN_API Tensor jacobian(const Function &function, const std::vector<Tensor> &inputs, int64_t argument, bool forward,
                          const Location &where);

/// What a function of tensors that is made from another one is called with: tensors and numbers, and behind them the
/// caller's place, if another such function calls it.
template <class T>
concept TensorOrPlace = std::convertible_to<T, Tensor> || std::same_as<T, Location>;
template <class... T> inline constexpr size_t tensorCount = (size_t(!std::same_as<T, Location>) + ... + 0);
struct Arguments {
  std::vector<Tensor> tensors;
  Location where;

  template <class... Rest> explicit Arguments(const Operand &first, const Rest &...rest) : where(first.where) {
    tensors.push_back(first.tensor);
    (add(rest), ...);
  }

private:
  void add(const Location &place) { where = place; }
  template <class T> void add(const T &tensor) { tensors.push_back(Tensor(tensor)); }
};
} // namespace detail

/// What vmap() returns.
template <class F> class Vmap {
public:
  Vmap(F function, BatchAxes inAxes, BatchAxes outAxes, Randomness randomness)
      : function(std::move(function)), inAxes(std::move(inAxes)), outAxes(std::move(outAxes)), randomness(randomness) {}

  /// One tensor or number per parameter of the function.
  template <detail::TensorOrPlace... Rest>
    requires(detail::takes<F, 1 + detail::tensorCount<Rest...>> || detail::takesList<F>)
  auto operator()(const detail::Operand &first, const Rest &...rest) const {
    const detail::Arguments given(first, rest...);
    return call<1 + detail::tensorCount<Rest...>>(given.tensors, given.where);
  }
  /// A function over a list takes a list.
  template <std::same_as<std::vector<Tensor>> List>
    requires(detail::takesList<F>)
  auto operator()(const List &inputs, Location where = Location::current()) const {
    return call<detail::kMaxArguments + 1>(inputs, where);
  }

private:
  template <size_t N> auto call(const std::vector<Tensor> &inputs, const Location &where) const {
    return detail::unflatten<detail::ResultOf<F, N>>(
        detail::vmap(detail::erase(function), inputs, inAxes, outAxes, randomness, where));
  }
  F function;
  BatchAxes inAxes, outAxes;
  Randomness randomness;
};

/// `function`, written for one example, as a function of many: what it would return for each of them, stacked. Each op
/// that it calls is called once for all examples, by the op's batching rule. As torch.vmap and jax.vmap.
///
///   auto gradients = vmap(grad(loss), {None, 0, 0})(weights, xs, ys); // one gradient per sample
///
/// `in_axes` says which dimension of each argument holds the examples, `out_axes` where those of the results go.
/// Results that are the same for all examples are repeated, unless their out axis is None. Tensors from outside, and
/// parameters, are the same for all. Works eagerly, in traces and jitted functions, within itself, and with grad, jvp
/// and hvp inside and outside. The function is recorded as trace() would, for one example: it must not read values.
///
/// Branches and loops on a value that differs between examples run for all of them and select (`cond` then computes
/// both branches). Errors: no argument with examples, or different numbers of them; a random number under
/// Randomness::Error; a state set to what differs between examples; sizes that depend on data (nonzero, x[mask]):
/// mask what is not wanted, or use map(), which takes one example after the other.
template <class F>
Vmap<std::decay_t<F>> vmap(F &&function, BatchAxes in_axes = 0, BatchAxes out_axes = 0,
                           Randomness randomness = Randomness::Error) {
  return {std::forward<F>(function), std::move(in_axes), std::move(out_axes), randomness};
}

/// The gradient of `function`, whose result is one float, with respect to its argument number `argument`, as a function
/// of the same tensors. As torch.func.grad and jax.grad; see value_and_grad for all arguments at once.
template <class F>
  requires(!std::convertible_to<F, Tensor>)
auto grad(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::gradOf(detail::erase(function), given.tensors, argument, given.where);
  };
}

/// The derivatives of each element of what `function` returns, one float tensor, with respect to each element of its
/// argument number `argument`: the shape of the result, then that of the argument. A function of the same tensors. By
/// reverse mode, the rows of the Jacobian at once: for results with fewer elements than the argument, which has known
/// sizes. As torch.func.jacrev.
template <class F> auto jacrev(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::jacobian(detail::erase(function), given.tensors, argument, false, given.where);
  };
}
/// The same by jvp(), the columns of the Jacobian at once: for arguments with fewer elements than the result. As
/// torch.func.jacfwd.
template <class F> auto jacfwd(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::jacobian(detail::erase(function), given.tensors, argument, true, given.where);
  };
}
/// The second derivatives of `function` with respect to its argument number `argument`: the shape of the result, then
/// that of the argument twice. As torch.func.hessian: jacfwd of jacrev.
template <class F> auto hessian(F function, int64_t argument = 0) {
  return jacfwd(jacrev(std::move(function), argument), argument);
}

} // namespace burin
