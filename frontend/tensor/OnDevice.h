// Tensor elements on a GPU.
#pragma once
#include "burin/tensor/device.h"
#include "frontend/tensor/context/ModuleContext.h"
#include "frontend/tensor/core/TensorState.h"
#include "runtime/execute/session/PendingRun.h"

namespace burin::detail {

/// A run whose kernels may report errors later, and the call that started it.
struct CheckedRun {
  std::shared_ptr<rt::PendingRun> run;
  const char *op; // never freed
  Location where;
  std::shared_ptr<const std::string> module; // text of the module of that call; may be null
};

/// State of a storage on a GPU in addition to its buffer, which is valid when the task is done. The elements are
/// complete when the shared lanes of the device have executed the work.
struct OnDevice {
  OnDevice(rt::gpu::Device::Ptr device, const char *op, const Location &where)
      : device(std::move(device)), op(op), where(where) {}
  const rt::gpu::Device::Ptr device;
  const char *const op; // the call that computed the elements; never freed
  const Location where;
  const std::shared_ptr<const std::string> module = moduleText(); // of that call; may be null
  std::vector<CheckedRun> runs;                                   // runs that the elements depend on; set by the task
  std::mutex mutex;                                               // guards the members below
  rt::BufferRef onHost;                                           // a copy, once requested
};

/// Opens the GPU, once until the process ends. Throws if it does not exist.
rt::gpu::Device::Ptr openDevice(Device device, const char *op, const Location &where);

/// Waits for all work on the GPUs that are open. Throws what has gone wrong in it.
void synchronizeDevices(const Location &where);

/// As in source code: "cuda(1)".
std::string inSource(Device device);
Device deviceOf(const StorageRef &storage);
/// The device of a value that is not traced.
Device deviceOf(const TensorState &state);
/// Whether a value follows the other operands of an op to their device.
bool follows(const TensorState &state);

/// A copy of `bytes` bytes on another device, made asynchronously.
StorageRef movedTo(const StorageRef &storage, size_t bytes, Device device, const char *op, const Location &where);
/// The same for values that follow their uses: the copy is cached.
StorageRef broughtTo(const StorageRef &storage, size_t bytes, Device device, const char *op, const Location &where);
/// A number on a GPU, from a cache of numbers.
StorageRef scalarOn(Device device, const TensorState &scalar, DType dtype, const char *op, const Location &where);
/// A tensor with all elements equal to `element`, of up to 8 bytes.
StorageRef filledOn(Device device, const char *element, size_t width, size_t count, const char *op,
                    const Location &where);

/// The elements in host memory. Throws the error of their computation.
const rt::SharedBuffer &copiedToHost(Storage &storage, const Location &where);
/// Waits until the elements are complete. Throws the error of their computation.
void waitOnDevice(Storage &storage);
/// The error of a run, which names the call that started it.
[[noreturn]] void fail(const CheckedRun &run, const rt::Status &status);
/// Appends the runs that a value computed from `input` depends on.
void inheritRuns(const Storage &input, std::vector<CheckedRun> &runs);

/// A copy of a tensor in host memory, in memory that is pinned for a GPU that is open, so that its upload needs no CPU.
/// Returns the tensor itself if there is no such GPU, or no pinned memory, or if it is small or on a GPU.
Tensor pinned(const Tensor &tensor, const Location &where);

/// The device on which the thread creates tensors, by its innermost DeviceScope; nullopt without one.
std::optional<Device> scopedDevice();
/// Moves a newly created tensor to the device of the thread's DeviceScope. In a traced function, which runs on the
/// device of its inputs, the tensor is created on the device of its use.
Tensor createdInScope(Tensor tensor, const char *op, const Location &where);
/// Whether this thread is tracing a function; see Trace.
bool isTracing();
/// Where the trace of this thread began; unknown without one.
Location placeOfTrace();
/// Makes the trace of this thread fail with `error`, also if its function catches it.
void noteRefused(const Error &error);

/// For its lifetime, this thread creates tensors on the device of x, unless x is traced or has no fixed device itself.
class Beside {
public:
  Beside(const Tensor &x, const Location &where);

private:
  std::optional<DeviceScope> scope;
};

/// A tensor that does not follow its uses.
Tensor placed(const Tensor &tensor);
/// A tensor that follows its uses.
Tensor following(const Tensor &tensor);

} // namespace burin::detail
