// Updates of single rows of a table.
#pragma once
#include "frontend/training/optim/OptimizerState.h"

namespace burin::optim {

/// Distinct indices in ascending order, with the sum of the rows of each, added in the order of the entries; see
/// Optimizer::State::Update::rows. All entries are unused if `isLeftOut`, bool[] or undefined, is true.
detail::RowGradient uniqueRows(const detail::RowGradient &given, const TensorSpec &table, const Tensor &isLeftOut);

} // namespace burin::optim
