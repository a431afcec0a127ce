// Elements on a GPU.
#pragma once
#include "burin/device.h"
#include "frontend/tensor/TensorState.h"
#include "runtime/execute/PendingRun.h"

namespace burin::detail {

/// A run whose kernels may turn out to have found something wrong, and the call that it was made for.
struct CheckedRun {
  std::shared_ptr<rt::PendingRun> run;
  const char *op; // never freed
  Location where;
};

/// What a storage on a GPU has beside its buffer, which is there as soon as the task is done: the elements when the
/// shared lanes of the device have come so far.
struct OnDevice {
  OnDevice(rt::gpu::Device::Ptr device, const char *op, const Location &where)
      : device(std::move(device)), op(op), where(where) {}
  const rt::gpu::Device::Ptr device;
  const char *const op; // what has made the elements; never freed
  const Location where;
  std::vector<CheckedRun> runs; // that the elements depend on; set by the task
  std::mutex mutex;             // for what follows
  rt::BufferRef onHost;         // a copy, once somebody has asked for one
};

/// The GPU; opened once and kept until the process ends. Throws if there is none.
rt::gpu::Device::Ptr openDevice(Device device, const char *op, const Location &where);

Device deviceOf(const StorageRef &storage);
/// Of a value that is not traced.
Device deviceOf(const TensorState &state);
/// Whether a value goes where it is used, for an op on several devices.
bool follows(const TensorState &state);

/// The same elements on another device, copied later; `bytes` of them.
StorageRef movedTo(const StorageRef &storage, size_t bytes, Device device, const char *op, const Location &where);
/// The same for elements that follow what they are used with: the copy is kept with them.
StorageRef broughtTo(const StorageRef &storage, size_t bytes, Device device, const char *op, const Location &where);
/// A number on a GPU. The numbers used before are kept there.
StorageRef scalarOn(Device device, const TensorState &scalar, DType dtype, const char *op, const Location &where);
/// A tensor whose elements all are `element`, of up to 8 bytes.
StorageRef filledOn(Device device, const char *element, size_t width, size_t count, const char *op,
                    const Location &where);

/// The elements in the memory of the process. Throws what went wrong while they were computed.
const rt::SharedBuffer &copiedToHost(Storage &storage, const Location &where);
/// Waits until the elements are there. Throws the same.
void waitOnDevice(Storage &storage, const Location &where);
/// Adds the runs that something computed from `input` depends on.
void inheritRuns(const Storage &input, std::vector<CheckedRun> &runs);

/// Where the thread creates tensors: what its innermost DeviceScope says; nullopt: there is none.
std::optional<Device> scopedDevice();
/// What has been created, where the thread's DeviceScope says.
Tensor createdInScope(Tensor tensor, const char *op, const Location &where);

/// A tensor that stays where it is, whatever it is used with.
Tensor placed(const Tensor &tensor);
/// One that goes where it is used.
Tensor following(const Tensor &tensor);

} // namespace burin::detail
