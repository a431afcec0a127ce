// Gradients of what is traced.
#pragma once
#include "burin/tensor.h"

namespace burin {

/// The gradients of y with respect to each of `xs`, recorded behind what leads from them to y: in a trace only, of
/// which the gradients become part like anything else that is computed. They can be differentiated again. As
/// torch.autograd.grad.
///
/// y has one element, or `grad_output` says with which weights its elements are summed (the gradient of something with
/// respect to y). `xs` are floats: inputs, captured tensors such as parameters, or values on the way; one that y does
/// not depend on gets zeros. Where a function has no derivative (relu at 0, ties of a maximum) the result is PyTorch's.
/// Nothing flows through integers and comparisons, nor through floor, round, sign and other steps.
BURIN_API std::vector<Tensor> grad(const Tensor &y, const std::vector<Tensor> &xs,
                                   const std::optional<Tensor> &grad_output = std::nullopt,
                                   Location where = Location::current());

/// x as a constant: no gradient flows back through the result. As torch.Tensor.detach.
BURIN_API Tensor detach(const Tensor &x, Location where = Location::current());

} // namespace burin
