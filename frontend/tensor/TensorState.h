// What a Tensor refers to.
#pragma once
#include "burin/tensor.h"
#include "runtime/support/Memory.h"
#include "runtime/threads/Engine.h"
#include <variant>

namespace burin::detail {

struct OnDevice; // see frontend/tensor/OnDevice.h

/// Row-major elements, there as soon as `task` is done. Tensors of one element order (a reshape) share them.
struct Storage {
  rt::BufferRef buffer;               // written by the task
  rt::TaskRef task;                   // null: the elements are there already, or enqueued on the GPU
  bool isRestored = false;            // the task has failed, and the elements are those that a state had before
  std::shared_ptr<OnDevice> gpu;      // null: in the memory of the process
  std::shared_ptr<Storage> elsewhere; // a copy on the device that it was last brought to: see broughtTo
};
using StorageRef = std::shared_ptr<Storage>;

/// A number written in the source. The DType of its tensor (bool, i64, f32) says which member counts.
struct ScalarValue {
  union {
    int64_t integer; // also 0 or 1 for bool
    double real;
  };
};

/// A value of the graph recorded by the trace with this number; `value`, an mlir::Value in opaque form, is valid while
/// that trace is active.
struct TracedValue {
  uint64_t trace;
  void *value;
};

class TapeNode; // see frontend/eager/Tape.h

/// Never changes, except that the storage of a pending tensor gets its buffer.
struct TensorState {
  TensorSpec spec;
  /// Takes the element type of its partners (see Tensor's constructor from a number). A weak traced value is a number
  /// handed to a jitted function; its element type in the graph is the widest of its class.
  bool weak = false;
  std::variant<StorageRef, ScalarValue, TracedValue> value;
  /// What has made it, if gradients flow through it: which of the results of the node it is.
  std::shared_ptr<TapeNode> node = nullptr;
  uint32_t result = 0;
  /// It goes where the tensors are that it is used with: nobody has said where it is to be.
  bool follows = false;
};

struct Access {
  static const std::shared_ptr<TensorState> &state(const Tensor &tensor) { return tensor.state; }
  static Tensor make(TensorSpec spec, StorageRef storage) {
    return Tensor(std::make_shared<TensorState>(TensorState{std::move(spec), false, std::move(storage)}));
  }
  static Tensor make(TensorState state) { return Tensor(std::make_shared<TensorState>(std::move(state))); }
};

/// The state of a tensor that must be there.
inline const TensorState &stateOf(const Tensor &tensor, const Location &where) {
  if (!tensor.defined())
    throw Error(where, "", "this tensor is empty: it was default-constructed and nothing has been assigned to it");
  return *Access::state(tensor);
}

/// The elements of a tensor that is not traced, ready or not; a scalar becomes an array of its element type.
StorageRef storageOf(const TensorState &state);
/// The elements of a tensor that `op` wants to read; throws if there is nothing to read because it is traced or empty.
StorageRef concreteStorage(const Tensor &tensor, const char *op, const Location &where);
/// The elements in the memory of the process, once they are there; of a GPU's, a copy. Throws what went wrong while
/// computing them.
const rt::SharedBuffer &await(const StorageRef &storage, const Location &where);
/// Waits for the task that makes them, which for a GPU's elements only enqueues. Returns true.
bool awaitTask(const StorageRef &storage, const Location &where);
/// Throws as `wait` promises: burin::Error with the line that enqueued the task.
[[noreturn]] void rethrow(const rt::Failure &failure, const Location &where);

/// Number of elements, of bytes of a static shape.
int64_t elementCount(const Shape &shape);
inline size_t byteCount(const TensorSpec &spec) { return size_t(elementCount(spec.shape)) * byteWidth(spec.dtype); }
/// Memory from the shared pool; throws Error when there is none.
rt::BufferRef allocate(size_t bytes, const Location &where);

/// A scalar as an element of `dtype`, in `bytes` (8 of them, zero-padded). Throws if it does not fit.
void scalarBytes(const TensorState &scalar, DType dtype, char *bytes, const Location &where, std::string_view op);
/// Converts elements by the rules of the `cast` op.
void convertElements(const void *from, DType fromType, void *to, DType toType, size_t count);

} // namespace burin::detail
