#include "frontend/autodiff/tape/RowGradient.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/trace/Trace.h"

namespace burin::detail {

RowGradient joined(const std::vector<RowGradient> &parts) {
  if (parts.size() == 1)
    return parts[0];
  std::vector<Tensor> indices, rows;
  for (const RowGradient &part : parts) {
    indices.push_back(part.indices);
    rows.push_back(part.rows);
  }
  return {concat(indices), concat(rows)};
}

Tensor wholeOf(const std::vector<RowGradient> &parts, const TensorSpec &table) {
  const RowGradient all = joined(parts);
  Shape column(table.shape.size(), Dim(1));
  column[0] = all.indices.shape()[0];
  Tensor index = broadcast_to(reshape(all.indices, column), all.rows.shape());
  return scatter(zeros(table.shape, table.dtype), index, all.rows, 0, "add");
}

static TapeLeaf *leafOf(const Tensor &parameter) { return dynamic_cast<TapeLeaf *>(edgeOf(parameter).node.get()); }

void keepRows(const Tensor &parameter) {
  if (TapeLeaf *leaf = leafOf(parameter))
    leaf->keepsRows = true;
}

/// Matches the gradient of take() along dimension 0, and sums of such gradients.
static std::optional<RowGradient> tracedRows(mlir::Value value, uint64_t trace) {
  auto wrap = [&](mlir::Value x) {
    return Access::make(TensorState{ir::specOf(x), false, TracedValue{trace, x.getAsOpaquePointer()}});
  };
  if (auto sum = value.getDefiningOp<ir::AddOp>()) {
    auto left = tracedRows(sum.getX(), trace), right = tracedRows(sum.getY(), trace);
    return left && right ? std::optional(joined({*left, *right})) : std::nullopt;
  }
  auto scatter = value.getDefiningOp<ir::ScatterOp>();
  if (!scatter || scatter.getAxis() != 0 || scatter.getReduction() != "add" || scatter.getDrop() ||
      ir::uniformValue(scatter.getX()) != 0.0)
    return std::nullopt;
  mlir::Value column = scatter.getIndices();
  if (auto repeated = column.getDefiningOp<ir::BroadcastToOp>())
    column = repeated.getX();
  const Shape shape = ir::shapeOf(column), rows = ir::shapeOf(scatter.getUpdates());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != (i == 0 ? rows[0] : Dim(1)))
      return std::nullopt;
  return RowGradient{reshape(wrap(column), {rows[0]}), wrap(scatter.getUpdates())};
}

std::optional<RowGradient> rowGradientOf(const Tensor &parameter, const Tensor &gradient) {
  TapeLeaf *leaf = leafOf(parameter);
  if (!leaf || !leaf->keepsRows)
    return std::nullopt;
  if (!Trace::active())
    return leaf->rowGradient();
  auto *traced = gradient.defined() ? std::get_if<TracedValue>(&Access::state(gradient)->value) : nullptr;
  return traced ? tracedRows(mlir::Value::getFromOpaquePointer(traced->value), traced->trace) : std::nullopt;
}

} // namespace burin::detail
