// Gradients, by the same rules eagerly and in traces.
#pragma once
#include "burin/graph/callable.h"
#include "burin/tensor.h"
#include <functional>

namespace burin {

/// The gradients of y with respect to each of `xs`. As torch.autograd.grad.
///
/// y has one element, or `grad_output` gives the weights of its elements (the gradient of some value with respect to
/// y). `xs` are floats; the gradient is zero for those that y does not depend on. At points without a derivative (relu
/// at 0, ties of a maximum) the result is PyTorch's. No gradient flows through integers, comparisons, floor, round,
/// sign and other step functions.
///
/// Eagerly, `xs` must require gradients (see Tensor::requires_grad_), and values saved on the tape are freed unless the
/// options say otherwise. In a trace, `xs` are inputs, captured tensors or intermediate values; the gradients become
/// part of the graph, and can be differentiated again.
BURIN_API std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs,
                                   const std::optional<Tensor> &grad_output = std::nullopt,
                                   const BackwardOptions &options = {}, Location where = Location::current());
/// The same for y of one element: grad(y, xs, {.create_graph = true}).
inline std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs, const BackwardOptions &options,
                                Location where = Location::current()) {
  return grad(y, xs, std::nullopt, options, where);
}

/// x as a constant: no gradient flows back through the result. As torch.Tensor.detach.
BURIN_API Tensor detach(const Tensor &x, Location where = Location::current());

/// During its lifetime, eager calls of this thread are not recorded, and their results require no gradients. As
/// torch.no_grad.
class BURIN_API NoGrad {
public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad &) = delete;
  NoGrad &operator=(const NoGrad &) = delete;

private:
  bool before;
};
/// Records again within a NoGrad. As torch.enable_grad.
class BURIN_API EnableGrad {
public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad &) = delete;
  EnableGrad &operator=(const EnableGrad &) = delete;

private:
  bool before;
};
BURIN_API bool is_grad_enabled();

/// During its lifetime, each eager call of this thread, forward and backward, waits for its result and throws an Error
/// with the line of the call if it has a NaN or an infinity. Jitted functions are not compiled: their calls are eager.
/// Slow. As torch.autograd.detect_anomaly.
class BURIN_API DetectAnomaly {
public:
  DetectAnomaly();
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly &) = delete;
  DetectAnomaly &operator=(const DetectAnomaly &) = delete;

private:
  bool before;
};
BURIN_API bool is_anomaly_detected();

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor> &)>;
/// Computes the gradients of a function's inputs, each of the shape and element type of the input, from its inputs and
/// results and the gradients of the results; undefined if zero.
using VjpFunction = std::function<std::vector<Tensor>(
    const std::vector<Tensor> &inputs, const std::vector<Tensor> &results, const std::vector<Tensor> &gradients)>;

/// `function` with the gradient `vjp` instead of that of its ops, eagerly and in traces. As torch.autograd.Function and
/// jax.custom_vjp.
BURIN_API TensorFunction custom_vjp(TensorFunction function, VjpFunction vjp);

namespace detail {
BURIN_API std::vector<Tensor> remat(const Function &function, std::vector<Tensor> inputs, const Location &where);
} // namespace detail

/// `function`, with only its inputs and results kept for gradients: intermediate values are recomputed in the backward
/// pass. Saves memory at the cost of time, eagerly and in traces. As torch.utils.checkpoint and jax.checkpoint.
///
///   for (Block &block : blocks)
///     x = remat(block)(x);
///
/// The recomputation draws the same random numbers, and does not set what the first call has set, such as running
/// statistics.
template <class F> auto remat(F function) {
  return [function]<std::convertible_to<Tensor>... T>(const T &...inputs)
    requires(detail::takes<F, sizeof...(T)> || detail::takesList<F>)
  {
    return detail::unflatten<detail::ResultOf<F, sizeof...(inputs)>>(
        detail::remat(detail::erase(function), {Tensor(inputs)...}, Location()));
  };
}

/// The results of `function` at `inputs`, and the directional derivative of each along `tangents`, one per input, of
/// its shape. Differentiates the gradient. As torch.autograd.functional.jvp.
BURIN_API std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction &function,
                                                                  const std::vector<Tensor> &inputs,
                                                                  const std::vector<Tensor> &tangents,
                                                                  Location where = Location::current());

/// The product of the Hessian of `function`, whose result has one element, with `vectors`, one per input. As
/// torch.autograd.functional.hvp.
BURIN_API std::vector<Tensor> hvp(const TensorFunction &function, const std::vector<Tensor> &inputs,
                                  const std::vector<Tensor> &vectors, Location where = Location::current());

/// Options of gradcheck: half the distance of the two points of a difference; errors up to atol + rtol · |numeric| are
/// accepted.
struct GradcheckOptions {
  double step = 1e-6, atol = 1e-5, rtol = 1e-3;
};
/// Compares the gradients of `function` at `inputs` with central differences; throws an Error for the worst element if
/// they differ. Inputs must be f64, as f32 is not precise enough. As torch.autograd.gradcheck.
BURIN_API void gradcheck(const TensorFunction &function, const std::vector<Tensor> &inputs,
                         const GradcheckOptions &options = {}, Location where = Location::current());

namespace detail {
BURIN_API std::pair<Tensor, std::vector<Tensor>> valueAndGrad(const Function &function, std::vector<Tensor> inputs,
                                                              const Location &where);
} // namespace detail

/// Returns a function of the same tensors that returns the value of `function`, one element, and its gradients with
/// respect to all of them. As jax.value_and_grad.
template <class F> auto value_and_grad(F function) {
  return [function](const std::convertible_to<Tensor> auto &...inputs) {
    return detail::valueAndGrad(detail::erase(function), {Tensor(inputs)...}, Location());
  };
}

} // namespace burin
