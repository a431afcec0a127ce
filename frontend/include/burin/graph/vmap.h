// Functions of one example, applied to many at once, and their applications: gradients per example, Jacobians.
#pragma once
#include "burin/graph/callable.h"
#include "burin/tensor/indexing.h"
#include "burin/training/gradients.h"

namespace burin {

/// The dimension of each tensor that holds the examples: one for all tensors, or a list with one entry per tensor.
/// None: the examples share the tensor. Negative ones count from the end.
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

/// Meaning of a Generator's draw inside a function of one example: an error, the same numbers for all examples, or
/// different ones. As torch.vmap's `randomness`.
enum class Randomness { Error, Same, Different };

namespace detail {
BURIN_API std::vector<Tensor> vmap(const Function &function, const std::vector<Tensor> &inputs, const BatchAxes &inAxes,
                                   const BatchAxes &outAxes, Randomness randomness, const Location &where);
BURIN_API Tensor gradOf(const Function &function, std::vector<Tensor> inputs, int64_t argument, const Location &where);
BURIN_API Tensor jacobian(const Function &function, const std::vector<Tensor> &inputs, int64_t argument, bool forward,
                          const Location &where);

/// Arguments of functions that are made from others: tensors and numbers, followed by the caller's location if another
/// such function calls it.
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

/// The result of vmap().
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
  /// A function of a list takes a list.
  template <std::same_as<std::vector<Tensor>> List>
    requires(detail::takesList<F>)
  auto operator()(const List &inputs, Location where = Location::current()) const {
    return call<detail::kMaxArguments + 1>(inputs, where);
  }
  auto operator()(std::initializer_list<Tensor> inputs, Location where = Location::current()) const
    requires(detail::takesList<F> && !detail::takes<F, 1>)
  {
    return (*this)(std::vector<Tensor>(inputs), where);
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

/// Turns `function`, written for one example, into a function of many, which stacks the results. Each op is called once
/// for all examples, by its batching rule. As torch.vmap and jax.vmap.
///
///   auto gradients = vmap(grad(loss), {None, 0, 0})(weights, xs, ys); // one gradient per sample
///
/// `in_axes` is the dimension of each argument that holds the examples, `out_axes` that of the results. Results that
/// are the same for all examples are repeated, unless their out axis is None. Examples share tensors from outside and
/// parameters. Works eagerly, in traces and jitted functions, nested, and with grad, jvp and hvp inside and outside.
/// The function is recorded for one example, as by trace(): it must not read values.
///
/// Branches and loops on a value that differs between examples run for all of them and select (`cond` then computes
/// both branches). Errors: no argument with examples, or different numbers of them; a draw of random numbers with
/// Randomness::Error; setting a state to a value that differs between examples; sizes that depend on data (nonzero,
/// x[mask]): use masks, or map(), which processes one example at a time.
template <class F>
Vmap<std::decay_t<F>> vmap(F &&function, BatchAxes in_axes = 0, BatchAxes out_axes = 0,
                           Randomness randomness = Randomness::Error) {
  return {std::forward<F>(function), std::move(in_axes), std::move(out_axes), randomness};
}

/// The gradient of `function`, whose result is one float, with respect to argument number `argument`, as a function of
/// the same tensors. As torch.func.grad and jax.grad; see value_and_grad for all arguments at once.
template <class F>
  requires(!std::convertible_to<F, Tensor>)
auto grad(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::gradOf(detail::erase(function), given.tensors, argument, given.where);
  };
}

/// The Jacobian of `function`, which returns one float tensor, with respect to argument number `argument`, as a
/// function of the same tensors; its shape is that of the result, followed by that of the argument. Reverse mode, all
/// rows at once: for results with fewer elements than the argument, which must have static sizes. As torch.func.jacrev.
template <class F> auto jacrev(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::jacobian(detail::erase(function), given.tensors, argument, false, given.where);
  };
}
/// The same by forward mode (jvp), all columns at once: for arguments with fewer elements than the result. As
/// torch.func.jacfwd.
template <class F> auto jacfwd(F function, int64_t argument = 0) {
  return [function, argument](const detail::Operand &first, const detail::TensorOrPlace auto &...rest) -> Tensor {
    const detail::Arguments given(first, rest...);
    return detail::jacobian(detail::erase(function), given.tensors, argument, true, given.where);
  };
}
/// The Hessian of `function` with respect to argument number `argument`: the shape of the result, followed by that of
/// the argument twice. As torch.func.hessian: jacfwd of jacrev.
template <class F> auto hessian(F function, int64_t argument = 0) {
  return jacfwd(jacrev(std::move(function), argument), argument);
}

} // namespace burin
