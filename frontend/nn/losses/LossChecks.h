// Helpers of the losses: checks of operands, and reductions.
#pragma once
#include "burin/nn/losses.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/functions/Creation.h"

namespace burin::detail {

/// Throws unless x is a float tensor; `what` names it in the error.
void requireFloat(const Tensor &x, const char *what, const char *op, const Location &where);
void requireSameShape(const Tensor &input, const Tensor &target, const char *what, const char *op,
                      const Location &where);
/// Reduces the losses of all elements.
Tensor reduceLoss(const Tensor &loss, Reduction reduction, const char *op, const Location &where);

} // namespace burin::detail
