// Gradients of tables of which only some rows were read.
#pragma once
#include "burin/tensor.h"

namespace burin::detail {

/// Rows [n, …] to be added to the gradient of a table, and their positions in the table, i64[n]. Positions may repeat,
/// and negative ones count from the end.
struct RowGradient {
  Tensor indices, rows;
};

/// The concatenation of several parts.
RowGradient joined(const std::vector<RowGradient> &parts);
/// The whole gradient of a table of this type.
Tensor wholeOf(const std::vector<RowGradient> &parts, const TensorSpec &table);

/// Makes backward() store the gradient of a parameter by rows, as long as it comes from lookups only. No effect on a
/// frozen parameter.
void keepRows(const Tensor &parameter);
/// The gradient of a parameter if it is stored by rows; in a trace, if `gradient` is one of lookups.
std::optional<RowGradient> rowGradientOf(const Tensor &parameter, const Tensor &gradient);

} // namespace burin::detail
