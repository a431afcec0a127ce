// The state behind a Tensor.
#pragma once
#include "burin/tensor.h"
#include "runtime/support/Memory.h"
#include "runtime/threads/Engine.h"
#include <array>
#include <variant>

namespace burin::detail {

struct OnDevice; // see frontend/tensor/OnDevice.h

/// Row-major elements, complete when `task` is done. Tensors with the same order of elements (reshapes) share them.
struct Storage {
  rt::BufferRef buffer;          // written by the task
  rt::TaskRef task;              // null: complete, or enqueued on the GPU
  bool isState = false;          // the new value of a state: if the task fails, the elements are the previous ones,
  bool isRestored = false;       // then set, unless there are none
  std::shared_ptr<OnDevice> gpu; // null: in host memory
  std::shared_ptr<Storage> elsewhere; // a copy on the device that it was last brought to: see broughtTo
  std::array<char, 8> element = {};   // all elements are this one, of `elementWidth` bytes; 0: they may differ
  uint8_t elementWidth = 0;
};
using StorageRef = std::shared_ptr<Storage>;

/// A C++ number. The DType of its tensor (bool, i64, f32) selects the member.
struct ScalarValue {
  union {
    int64_t integer; // also 0 or 1 for bool
    double real;
  };
};

/// A value in the graph of the trace with this number; `value`, an opaque mlir::Value, is valid while that trace is
/// active. `reference` is shared by the tensors that refer to the value: see Escapes.
struct TracedValue {
  uint64_t trace;
  void *value;
  std::shared_ptr<const void> reference = nullptr;
};

class TapeNode; // see frontend/autodiff/tape/Tape.h

/// Immutable, except that the storage of a pending tensor gets its buffer.
struct TensorState {
  TensorSpec spec;
  /// Takes the element type of the other operands (see Tensor's constructor from a number). A weak traced value is a
  /// number passed to a jitted function; its element type in the graph is the widest of its class.
  bool weak = false;
  std::variant<StorageRef, ScalarValue, TracedValue> value;
  /// The node of the tape that made it, if gradients flow through it, and the index of the result.
  std::shared_ptr<TapeNode> node = nullptr;
  uint32_t result = 0;
  /// It follows the operands with which it is used, because it was created without a device.
  bool follows = false;
};

struct Access {
  static const std::shared_ptr<TensorState> &state(const Tensor &tensor) { return tensor.state; }
  static Tensor make(TensorSpec spec, StorageRef storage) {
    return Tensor(std::make_shared<TensorState>(TensorState{std::move(spec), false, std::move(storage)}));
  }
  static Tensor make(TensorState state) { return Tensor(std::make_shared<TensorState>(std::move(state))); }
};

/// The state of a tensor that must be defined.
inline const TensorState &stateOf(const Tensor &tensor, const Location &where) {
  if (!tensor.defined())
    throw Error(where, "", "this tensor is empty: it was default-constructed and nothing has been assigned to it");
  return *Access::state(tensor);
}

/// The elements of a tensor that is not traced, complete or not; a scalar becomes an array of its element type.
StorageRef storageOf(const TensorState &state);
/// The elements of a tensor that `op` reads; throws if it is traced or undefined.
StorageRef concreteStorage(const Tensor &tensor, const char *op, const Location &where);
/// Waits for the elements and returns them in host memory, for a GPU's a copy. Throws the error of their computation.
const rt::SharedBuffer &await(const StorageRef &storage, const Location &where);
/// Whether the elements are complete: their task is done, and has not failed or has left those of a state.
inline bool isComplete(const Storage &storage) {
  return !storage.task || (storage.task->done() && (!storage.task->failed() || storage.isRestored));
}
/// Whether only the caller, by this reference, refers to the elements, so that it may overwrite them.
inline bool isUnseen(const StorageRef &storage) {
  if (!storage || storage.use_count() != 1)
    return false;
  std::atomic_thread_fence(std::memory_order_acquire); // synchronises with threads that have dropped their references
  return storage->buffer && storage->buffer->unique() && !storage->buffer->isForeign();
}
/// Throws if the task, which is done, has failed and left no elements.
void requireElements(const Storage &storage, const Location &where);
/// Waits for the task of the elements, which only enqueues work if they are on a GPU. Returns true.
bool awaitTask(const StorageRef &storage, const Location &where);
/// Throws the failure as burin::Error with the line that enqueued the task, as `wait` documents.
[[noreturn]] void rethrow(const rt::Failure &failure, const Location &where);

/// Number of elements, of bytes of a static shape.
int64_t elementCount(const Shape &shape);
inline size_t byteCount(const TensorSpec &spec) { return size_t(elementCount(spec.shape)) * byteWidth(spec.dtype); }
/// Allocates from the shared pool; throws Error on failure.
rt::BufferRef allocate(size_t bytes, const Location &where);

/// Converts a scalar to an element of `dtype` in `bytes` (8 of them, zero-padded). Throws if it is out of range.
void scalarBytes(const TensorState &scalar, DType dtype, char *bytes, const Location &where, std::string_view op);
/// Converts elements by the rules of the `cast` op.
void convertElements(const void *from, DType fromType, void *to, DType toType, size_t count);

} // namespace burin::detail
