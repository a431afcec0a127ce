#include "frontend/tensor/functions/PartWrite.h"
#include "llvm/ADT/SmallVector.h"
#include <cstring>

namespace burin::detail {

namespace {
/// One call of writePart(), until it has run.
struct PartWrite {
  StorageRef x, values, to;
  size_t bytes, width; // of x, of one element
  llvm::SmallVector<PartAxis, 6> part;
  llvm::SmallVector<int64_t, 6> strides; // of x, in elements
  Location where;

  void operator()() {
    requireElements(*x, where);
    requireElements(*values, where);
    if (isUnseen(x)) {
      to->buffer = x->buffer;
    } else {
      to->buffer = allocate(bytes, where);
      if (bytes)
        std::memcpy(to->buffer->data(), x->buffer->data(), bytes);
    }
    auto *out = static_cast<char *>(to->buffer->data());
    const auto *from = static_cast<const char *>(values->buffer->data());
    if (part.empty())
      std::memcpy(out, from, width);
    else
      copyAxis(0, out, from);
  }

private:
  /// Copies the part from this axis on. `from` moves past the values that it has copied.
  void copyAxis(size_t axis, char *out, const char *&from) const {
    const auto [first, step, count] = part[axis];
    const int64_t stride = step * strides[axis] * int64_t(width);
    out += first * strides[axis] * int64_t(width);
    if (axis + 1 < part.size()) {
      for (int64_t i = 0; i < count; ++i)
        copyAxis(axis + 1, out + i * stride, from);
    } else if (step == 1) {
      std::memcpy(out, from, size_t(count) * width);
      from += size_t(count) * width;
    } else {
      for (int64_t i = 0; i < count; ++i, from += width)
        std::memcpy(out + i * stride, from, width);
    }
  }
};
} // namespace

void writePart(Tensor &x, std::span<const PartAxis> part, const Tensor &values, const Location &where) {
  const TensorState &state = *Access::state(x), &given = *Access::state(values);
  PartWrite write{storageOf(state),
                  storageOf(given),
                  std::make_shared<Storage>(),
                  byteCount(state.spec),
                  byteWidth(state.spec.dtype),
                  {part.begin(), part.end()},
                  llvm::SmallVector<int64_t, 6>(part.size(), 1),
                  where};
  for (size_t i = part.size(); i-- > 1;)
    write.strides[i - 1] = write.strides[i] * state.spec.shape[i].value();
  if (elementCount(given.spec.shape) == 0)
    return;
  llvm::SmallVector<rt::Task *, 2> needed, before;
  for (const StorageRef &operand : {write.x, write.values})
    if (!isComplete(*operand))
      (operand->isState ? before : needed).push_back(operand->task.get());
  TensorState result{state.spec, false, write.to};
  result.follows = state.follows && (given.follows || !std::holds_alternative<StorageRef>(given.value));
  const StorageRef to = write.to;
  const size_t bytes = write.bytes;
  TensorState former{state.spec, state.weak, StorageRef()};
  former.follows = state.follows;
  x = Access::make(std::move(result));        // the write may find the former elements unseen
  constexpr size_t kSmall = size_t(64) << 10; // copying these is faster than waking a thread
  if (needed.empty() && before.empty() && bytes <= kSmall)
    try {
      write();
    } catch (...) {
      former.value = write.x;
      x = Access::make(std::move(former));
      throw;
    }
  else
    to->task = rt::Engine::shared().enqueue({needed, before}, bytes, std::move(write), false);
}

} // namespace burin::detail
