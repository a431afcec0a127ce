#include "burin/tensor/creation.h"
#include "burin/training/data.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/data/DlpackAbi.h"
#include "frontend/tensor/functions/Creation.h"

namespace burin {

using namespace detail;

static std::optional<DType> dtypeOf(const DLDataType &type) {
  if (type.lanes == 1)
    for (const DTypeInfo &info : kDTypes)
      if (type.code == info.dlpack && type.bits == 8 * info.bytes)
        return info.dtype;
  return std::nullopt;
}

static DLDataType typeOf(DType type) { return {infoOf(type).dlpack, uint8_t(8 * byteWidth(type)), 1}; }

/// Whether elements are dense and row-major; strides of dimensions of size 1 are ignored.
static bool isDense(const DLTensor &tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor.ndim; tensor.strides && i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected)
      return false;
    expected *= tensor.shape[i];
  }
  return true;
}

static void gather(const DLTensor &tensor, const char *from, size_t width, int32_t axis, char *&to) {
  if (axis == tensor.ndim) {
    std::memcpy(to, from, width);
    to += width;
    return;
  }
  for (int64_t i = 0; i < tensor.shape[axis]; ++i)
    gather(tensor, from + i * tensor.strides[axis] * int64_t(width), width, axis + 1, to);
}

/// The stream that stands for no order.
static void *unordered() { return reinterpret_cast<void *>(intptr_t(-1)); }

/// The elements of another library on a GPU, in place.
static Tensor wrapOnGpu(const DLTensor &tensor, const TensorSpec &spec, std::function<void()> release, void *stream,
                        const Location &where) {
  auto storage = std::make_shared<Storage>();
  storage->gpu =
      std::make_shared<OnDevice>(openDevice(cuda(tensor.device.device_id), "from_dlpack", where), "from_dlpack", where);
  rt::gpu::Device &device = *storage->gpu->device;
  rt::Status status =
      stream && stream != unordered() ? device.follow(static_cast<rt::gpu::Stream>(stream)) : rt::Status();
  if (!status.ok())
    throw Error(where, "from_dlpack", status.message());
  struct Foreign { // enqueued work must end before the elements are released
    rt::gpu::Device::Ptr device;
    std::function<void()> release;
  };
  auto free = [](void *ctx) {
    std::unique_ptr<Foreign> foreign(static_cast<Foreign *>(ctx));
    rt::gpu::Device::Use use(*foreign->device);
    (void)foreign->device->synchronize();
    foreign->release();
  };
  storage->buffer = rt::Memory::wrap(static_cast<char *>(tensor.data) + tensor.byte_offset, byteCount(spec), free,
                                     new Foreign{storage->gpu->device, std::move(release)});
  if (!storage->buffer)
    throw Error(where, "from_dlpack", "out of memory");
  return Access::make(spec, std::move(storage));
}

template <class Managed>
static Tensor import(Managed *managed, const DLTensor &tensor, void *stream, const Location &where) {
  const bool isOnGpu = tensor.device.device_type == kDLCUDA;
  if (!isOnGpu && tensor.device.device_type != kDLCPU && tensor.device.device_type != kDLCUDAHost)
    throw Error(where, "from_dlpack",
                "the tensor is neither in the memory of the process nor on a CUDA GPU (device type " +
                    std::to_string(tensor.device.device_type) + "); copy it to the CPU first");
  auto dtype = dtypeOf(tensor.dtype);
  if (!dtype)
    throw Error(where, "from_dlpack",
                "elements of type code " + std::to_string(tensor.dtype.code) + " with " +
                    std::to_string(tensor.dtype.bits) + " bits and " + std::to_string(tensor.dtype.lanes) +
                    " lanes are not supported");
  TensorSpec spec{*dtype, Shape(tensor.shape, tensor.shape + tensor.ndim)};
  requireSizes(spec.shape, "from_dlpack", where);
  char *data = static_cast<char *>(tensor.data) + tensor.byte_offset;
  auto release = [managed] {
    if (managed->deleter)
      managed->deleter(managed);
  };
  bool isEmpty = elementCount(spec.shape) == 0;
  if (isOnGpu && !isEmpty) {
    if (!isDense(tensor))
      throw Error(where, "from_dlpack", "the tensor on a GPU is not dense and row-major; make it contiguous first");
    return wrapOnGpu(tensor, spec, release, stream, where);
  }
  if (isEmpty || (isDense(tensor) && reinterpret_cast<uintptr_t>(data) % byteWidth(*dtype) == 0))
    return from_blob(data, spec, release, where);
  std::vector<char> dense(byteCount(spec));
  char *to = dense.data();
  if (tensor.strides)
    gather(tensor, data, byteWidth(*dtype), 0, to);
  else
    std::memcpy(to, data, dense.size());
  Tensor result = copyOf(dense.data(), spec, where);
  release();
  return result;
}

Tensor from_dlpack(DLManagedTensor *tensor, Location where) {
  return import(tensor, tensor->dl_tensor, nullptr, inScope(where));
}
Tensor from_dlpack(DLManagedTensor *tensor, void *stream, Location where) {
  return import(tensor, tensor->dl_tensor, stream, inScope(where));
}

Tensor from_dlpack(DLManagedTensorVersioned *tensor, Location where) { return from_dlpack(tensor, nullptr, where); }
Tensor from_dlpack(DLManagedTensorVersioned *tensor, void *stream, Location where) {
  if (tensor->version.major != 1)
    throw Error(inScope(where), "from_dlpack",
                "DLPack " + std::to_string(tensor->version.major) + "." + std::to_string(tensor->version.minor) +
                    " is not supported; ask for 1.x");
  return import(tensor, tensor->dl_tensor, stream, inScope(where));
}

namespace {
/// A DLPack tensor with the memory that it refers to.
template <class Managed> struct Exported {
  Managed managed{};
  StorageRef storage;
  std::vector<int64_t> shape, strides;
};
} // namespace

/// The elements in place: complete, or on a GPU in the order of a stream.
static void *elementsFor(const Tensor &tensor, const StorageRef &storage, void *stream, const char *op,
                         const Location &where) {
  if (!storage->gpu)
    return await(storage, where).data();
  if (!stream) {
    tensor.wait(where);
    return storage->buffer->data();
  }
  awaitTask(storage, where);
  if (stream == unordered())
    return storage->buffer->data();
  if (rt::Status status = storage->gpu->device->lead(static_cast<rt::gpu::Stream>(stream)); !status.ok())
    throw Error(where, op, status.message());
  return storage->buffer->data();
}

template <class Managed>
static Managed *exportTensor(const Tensor &tensor, const char *op, const Location &where, void *stream = nullptr) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->storage = concreteStorage(tensor, op, where);
  void *data = elementsFor(tensor, exported->storage, stream, op, where);
  for (const Dim &size : tensor.shape(where))
    exported->shape.push_back(size.value());
  exported->strides.assign(exported->shape.size(), 1);
  for (size_t i = exported->shape.size(); i-- > 1;)
    exported->strides[i - 1] = exported->strides[i] * exported->shape[i];
  Managed &managed = exported->managed;
  const Device device = deviceOf(exported->storage);
  managed.dl_tensor = {data,
                       {device.is_cuda() ? kDLCUDA : kDLCPU, device.index()},
                       int32_t(exported->shape.size()),
                       typeOf(tensor.dtype(where)),
                       exported->shape.data(),
                       exported->strides.data(),
                       0};
  managed.manager_ctx = exported.get();
  managed.deleter = [](Managed *self) { delete static_cast<Exported<Managed> *>(self->manager_ctx); };
  return &exported.release()->managed;
}

DLManagedTensor *to_dlpack(const Tensor &tensor, Location where) {
  return exportTensor<DLManagedTensor>(tensor, "to_dlpack", inScope(where));
}
DLManagedTensor *to_dlpack(const Tensor &tensor, void *stream, Location where) {
  return exportTensor<DLManagedTensor>(tensor, "to_dlpack", inScope(where), stream);
}
DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &tensor, Location where) {
  return to_dlpack_versioned(tensor, nullptr, where);
}
DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &tensor, void *stream, Location where) {
  auto *managed = exportTensor<DLManagedTensorVersioned>(tensor, "to_dlpack_versioned", inScope(where), stream);
  managed->version = {1, isFloat8(tensor.dtype(where)) ? 1u : 0u};
  managed->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  return managed;
}

} // namespace burin
