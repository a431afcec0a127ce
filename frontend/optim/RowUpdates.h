// Updates of some rows of a table.
#pragma once
#include "frontend/optim/OptimizerState.h"

namespace burin::optim {

/// Different indices in ascending order, with the sum of what each has got, in the order of the entries; see
/// Optimizer::State::Update::rows. None of them count if `isLeftOut`, bool[] or undefined, is true.
detail::RowGradient uniqueRows(const detail::RowGradient &given, const TensorSpec &table, const Tensor &isLeftOut);

} // namespace burin::optim
