// Gradients of tables of which only some rows have been read.
#pragma once
#include "burin/tensor.h"

namespace burin::detail {

/// To be added up: rows [n, …] of the gradient of a table, and the row of the table that each belongs to, i64[n]. Some
/// may be the same, and negative ones count from the end.
struct RowGradient {
  Tensor indices, rows;
};

/// All of several, in their order.
RowGradient joined(const std::vector<RowGradient> &parts);
/// The whole gradient of a table of this type.
Tensor wholeOf(const std::vector<RowGradient> &parts, const TensorSpec &table);

/// From now on the gradient that backward() leaves in a parameter is kept by rows, as long as it comes from lookups
/// only. A frozen parameter stays as it is.
void keepRows(const Tensor &parameter);
/// The gradient of a parameter, if it is kept by rows; in a trace, if `gradient` is one of lookups.
std::optional<RowGradient> rowGradientOf(const Tensor &parameter, const Tensor &gradient);

} // namespace burin::detail
