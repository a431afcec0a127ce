// Gradients, eagerly and in traces, by the same rules.
#pragma once
#include "burin/callable.h"
#include "burin/tensor.h"
#include <functional>

namespace burin {

/// The gradients of y with respect to each of `xs`. As torch.autograd.grad.
///
/// y has one element, or `grad_output` says with which weights its elements are summed (the gradient of something with
/// respect to y). `xs` are floats that y may depend on; one that it does not depend on gets zeros. Where a function has
/// no derivative (relu at 0, ties of a maximum) the result is PyTorch's. Nothing flows through integers and
/// comparisons, nor through floor, round, sign and other steps.
///
/// Eagerly, `xs` require gradients (see Tensor::requires_grad_), and what the tape has saved is freed unless the
/// options say otherwise. In a trace, `xs` are inputs, captured tensors or values on the way; the gradients become part
/// of the graph, and can always be differentiated again.
BURIN_API std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs,
                                   const std::optional<Tensor> &grad_output = std::nullopt,
                                   const BackwardOptions &options = {}, Location where = Location::current());

/// x as a constant: no gradient flows back through the result. As torch.Tensor.detach.
BURIN_API Tensor detach(const Tensor &x, Location where = Location::current());

/// While one lives, this thread's eager calls are not recorded, and their results require no gradients. As
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

/// While one lives, each eager call of this thread, forward and backward, waits for its result and throws an Error with
/// the line of the call if it holds a NaN or an infinity. As torch.autograd.detect_anomaly, and as slow.
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
/// From the inputs and results of a function and the gradients of the results to those of the inputs, each of its
/// input's shape and element type; undefined where it is zero.
using VjpFunction = std::function<std::vector<Tensor>(
    const std::vector<Tensor> &inputs, const std::vector<Tensor> &results, const std::vector<Tensor> &gradients)>;

/// `function`, with `vjp` for its gradient instead of the one that its ops have; eagerly and in traces. As
/// torch.autograd.Function and jax.custom_vjp.
BURIN_API TensorFunction custom_vjp(TensorFunction function, VjpFunction vjp);

namespace detail {
BURIN_API std::vector<Tensor> remat(const Function &function, std::vector<Tensor> inputs, const Location &where);
} // namespace detail

/// `function`, of whose calls only inputs and results are kept for gradients: what lies between is computed again on
/// the way back. Less memory for more time, eagerly and in traces. As torch.utils.checkpoint and jax.checkpoint.
///
///   for (Block &block : blocks)
///     x = remat(block)(x);
///
/// The second time draws the same random numbers and leaves alone what the first one has set, such as running
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
/// its shape. By differentiating the gradient. As torch.autograd.functional.jvp.
BURIN_API std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction &function,
                                                                  const std::vector<Tensor> &inputs,
                                                                  const std::vector<Tensor> &tangents,
                                                                  Location where = Location::current());

/// The product of the Hessian of `function`, whose result has one element, with `vectors`, one per input. As
/// torch.autograd.functional.hvp.
BURIN_API std::vector<Tensor> hvp(const TensorFunction &function, const std::vector<Tensor> &inputs,
                                  const std::vector<Tensor> &vectors, Location where = Location::current());

/// Options of gradcheck: half the distance of the points of a difference; differences up to atol + rtol · |numeric| are
/// accepted.
struct GradcheckOptions {
  double step = 1e-6, atol = 1e-5, rtol = 1e-3;
};
/// Compares the gradients of `function` at `inputs` with central differences; throws an Error that names the worst
/// element if they differ. Inputs are f64; f32 is too coarse for the steps. As torch.autograd.gradcheck.
BURIN_API void gradcheck(const TensorFunction &function, const std::vector<Tensor> &inputs,
                         const GradcheckOptions &options = {}, Location where = Location::current());

namespace detail {
BURIN_API std::pair<Tensor, std::vector<Tensor>> valueAndGrad(const Function &function, std::vector<Tensor> inputs,
                                                              const Location &where);
} // namespace detail

/// A function of the same tensors that returns its value, which has one element, and the gradients with respect to all
/// of them. As jax.value_and_grad.
template <class F> auto value_and_grad(F function) {
  return [function](const std::convertible_to<Tensor> auto &...inputs) {
    return detail::valueAndGrad(detail::erase(function), {Tensor(inputs)...}, Location());
  };
}

} // namespace burin
