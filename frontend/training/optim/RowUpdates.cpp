#include "frontend/training/optim/RowUpdates.h"
#include "frontend/trace/Trace.h"
#include <cstring>

namespace burin::optim {

using detail::RowGradient, detail::StorageRef;

/// Broadcasts i64[n] to the elements of rows of this shape.
static Tensor overRows(const Tensor &indices, const Shape &rows) {
  Shape column(rows.size(), Dim(1));
  column[0] = rows[0];
  return broadcast_to(reshape(indices, column), rows);
}

RowGradient uniqueRows(const RowGradient &given, const TensorSpec &table, const Tensor &isLeftOut) {
  const int64_t count = table.shape[0].value();
  const Dim n = given.indices.shape()[0];
  Tensor at = given.indices.to(DType::i64), rows = given.rows.to(table.dtype);
  at = where(at < 0, at + count, at);
  // A stable sort, so that sums have the order of those of the full gradient.
  Tensor order = argsort(at, 0), sorted = take(at, order, 0), place = iota({n}, DType::i64, 0);
  Tensor isFirst = (place == 0) | (sorted != take(sorted, maximum(place - 1, 0), 0));
  Tensor slot = cumsum(isFirst.to(DType::i64), 0) - 1;
  Tensor sums = scatter(zeros_like(rows), overRows(slot, rows.shape()), take(rows, order, 0), 0, "add");
  Tensor indices = scatter(full({n}, double(count), DType::i64), slot, sorted, 0, "set");
  if (isLeftOut.defined())
    indices = where(isLeftOut, count, indices);
  return {indices, sums};
}

Tensor Optimizer::State::Update::rowsOf(const Parameter &cell) const {
  const int64_t count = cell->shape()[0].value();
  return take(cell, minimum(rows->indices, count - 1), 0); // unused entries may be any row
}

/// Whether the elements of a parameter are in host memory and only the parameter and `value` refer to them, so that a
/// change is not visible elsewhere.
static bool isOwn(const Tensor &value, const std::weak_ptr<detail::Storage> &own) {
  const auto &state = detail::Access::state(value);
  auto *storage = std::get_if<StorageRef>(&state->value);
  if (!storage || own.lock() != *storage || (*storage)->gpu || (*storage)->elsewhere)
    return false;
  return state.use_count() == 2 && storage->use_count() == 1 && (*storage)->buffer && (*storage)->buffer->unique();
}

/// Writes rows into the memory of a table.
static void write(const StorageRef &table, const TensorSpec &spec, const Tensor &indices, const Tensor &changed) {
  const std::vector<int64_t> at = indices.to_vector<int64_t>();
  const std::span<const std::byte> from = changed.bytes();
  const size_t width = spec.shape[0].value() ? detail::byteCount(spec) / size_t(spec.shape[0].value()) : 0;
  auto *to = static_cast<char *>(table->buffer->data());
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] < spec.shape[0].value())
      std::memcpy(to + size_t(at[i]) * width, from.data() + i * width, width);
}

void Optimizer::State::Update::setRows(const std::string &name, Parameter cell, const Tensor &changed) const {
  const bool isTraced = Trace::active() != nullptr;
  if (!isTraced && changed.device().is_cpu()) {
    changed.wait(); // waits for readers of the table, too
    if (const Tensor value = cell.value(); !detail::cellChanges && isOwn(value, member.own[name])) {
      const StorageRef &storage = std::get<StorageRef>(detail::Access::state(value)->value);
      detail::await(storage, detail::inScope({}));
      write(storage, value.spec(), rows->indices, changed);
      cell.set(value); // so that compiled functions notice the change
      return;
    }
  }
  Tensor table = cell.value();
  table = scatter(table, overRows(rows->indices, changed.shape()), changed, 0, "set", true);
  if (!isTraced)
    member.own[name] = std::get<StorageRef>(detail::Access::state(table)->value);
  cell.set(table);
}

} // namespace burin::optim
