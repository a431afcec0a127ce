// What the losses share: checks of their operands, and reductions.
#pragma once
#include "burin/creation.h"
#include "burin/losses.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/Creation.h"

namespace burin::detail {

/// Throws unless x has floats; `what` names it.
void requireFloat(const Tensor &x, const char *what, const char *op, const Location &where);
void requireSameShape(const Tensor &input, const Tensor &target, const char *what, const char *op,
                      const Location &where);
/// The losses of all elements as the caller wants them.
Tensor reduceLoss(const Tensor &loss, Reduction reduction, const char *op, const Location &where);

} // namespace burin::detail
