#include "runtime/CApiDevices.h"
#include "runtime/gpu/Device.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace burin::rt::api {

using gpu::Device;

burin_status *give(Status status) { return status.ok() ? nullptr : new burin_status{std::move(status)}; }

namespace {

bool isCpu(burin_device device) { return device.type == BURIN_CPU; }

/// A live allocation of device_alloc; keeps its device open.
struct Allocation {
  Device::Ptr device;
  size_t bytes;
};
struct Allocations {
  std::mutex mutex;
  std::map<void *, Allocation> live;
};
Allocations &allocations() {
  static auto *all = new Allocations;
  return *all;
}

Status openGpu(burin_device device, Device::Ptr &out) {
  if (device.type != BURIN_CUDA)
    return {ErrorCode::InvalidArgument, text("there is no type ", int(device.type), " of devices")};
  return Device::open(device.index, out);
}

/// The caller's stream, or else the stream of the device's tensors.
Status streamOf(Device &device, void *given, gpu::Stream &out) {
  gpu::Lanes *lanes = nullptr;
  out = static_cast<gpu::Stream>(given);
  if (given)
    return {};
  Status s = device.sharedLanes(lanes);
  if (s.ok())
    out = lanes->streams[0];
  return s;
}

/// Calls `action` with a GPU and a stream, in the context of the GPU.
template <class F> Status onGpu(burin_device which, void *stream, F action) {
  Device::Ptr device;
  if (Status s = openGpu(which, device); !s.ok())
    return s;
  Device::Use use(*device);
  gpu::Stream ordered = nullptr;
  if (Status s = use.status(); !s.ok())
    return s;
  if (Status s = streamOf(*device, stream, ordered); !s.ok())
    return s;
  return action(device, ordered);
}

Status waitFor(Device &device) {
  Device::Use use(device);
  Status s = use.status();
  return s.ok() ? device.synchronize() : std::move(s);
}

gpu::DevicePointer address(const void *data) { return reinterpret_cast<gpu::DevicePointer>(data); }

Status nullPointer(const char *what) {
  return {ErrorCode::InvalidArgument, text("a null pointer was given for ", what)};
}

} // namespace

uint32_t deviceCount(uint32_t type) {
  std::vector<gpu::DeviceInfo> devices;
  if (type == BURIN_CPU)
    return 1;
  return type == BURIN_CUDA && Device::list(devices).ok() ? uint32_t(devices.size()) : 0;
}

burin_status *deviceAlloc(burin_device which, size_t bytes, void *stream, void **out) {
  if (!out)
    return give(nullPointer("data"));
  bytes = std::max<size_t>(bytes, 1);
  if (isCpu(which)) {
    void *memory = alignedMemory(bytes, 64);
    if (!memory)
      return give({ErrorCode::OutOfMemory, text("no memory for ", bytes, " bytes")});
    *out = memory;
    return nullptr;
  }
  return give(onGpu(which, stream, [&](const Device::Ptr &device, gpu::Stream ordered) {
    void *memory = nullptr;
    Status s = device->allocate(bytes, gpu::Holder::Tensors, ordered, memory);
    if (!s.ok())
      return s;
    std::lock_guard lock(allocations().mutex);
    allocations().live[memory] = {device, bytes};
    *out = memory;
    return s;
  }));
}

burin_status *deviceFree(burin_device which, void *data, void *stream) {
  if (isCpu(which) || !data) {
    std::free(data);
    return nullptr;
  }
  Allocation freed;
  {
    std::lock_guard lock(allocations().mutex);
    auto found = allocations().live.find(data);
    if (found == allocations().live.end() || found->second.device->ordinal() != which.index)
      return give({ErrorCode::InvalidArgument, text("this memory was not allocated on cuda:", int(which.index))});
    freed = std::move(found->second);
    allocations().live.erase(found);
  }
  return give(onGpu(which, stream, [&](const Device::Ptr &device, gpu::Stream ordered) {
    device->release(data, freed.bytes, gpu::Holder::Tensors, ordered);
    return Status();
  }));
}

burin_status *deviceCopy(burin_device toDevice, void *to, burin_device fromDevice, const void *from, size_t bytes,
                         void *stream) {
  if (bytes && (!to || !from))
    return give(nullPointer("memory"));
  if (isCpu(toDevice) && isCpu(fromDevice)) {
    if (bytes)
      std::memmove(to, from, bytes);
    return nullptr;
  }
  return give(onGpu(isCpu(toDevice) ? fromDevice : toDevice, stream, [&](const Device::Ptr &device, gpu::Stream s) {
    const Device &d = *device;
    gpu::Result result = gpu::kSuccess;
    if (bytes && isCpu(fromDevice)) {
      result = d->copyToDevice(address(to), from, bytes, s);
    } else if (bytes && isCpu(toDevice)) {
      result = d->copyToHost(to, address(from), bytes, s);
    } else if (bytes && fromDevice.index == toDevice.index) {
      result = d->copyWithin(address(to), address(from), bytes, s);
    } else if (bytes) {
      Device::Ptr other;
      if (Status opened = openGpu(fromDevice, other); !opened.ok())
        return opened;
      if (Status written = stream ? Status() : waitFor(*other); !written.ok())
        return written;
      result = d->copyPeer(address(to), d.context(), address(from), other->context(), bytes, s);
    }
    if (!stream) {
      gpu::Result waited = d->streamSynchronize(s); // also after a failure
      result = result == gpu::kSuccess ? waited : result;
    }
    return d.check(result, text("copying ", bytes, " bytes"));
  }));
}

burin_status *deviceSynchronize(burin_device which, void *stream) {
  if (isCpu(which))
    return nullptr;
  return give(onGpu(which, stream, [&](const Device::Ptr &device, gpu::Stream ordered) {
    return device->check((*device)->streamSynchronize(ordered), "waiting");
  }));
}

burin_status *deviceMemory(burin_device which, burin_device_memory *out) {
  if (!out)
    return give(nullPointer("memory"));
  if (isCpu(which)) {
    Memory::Stats stats = Memory::shared().stats();
    *out = {};
    out->in_use = out->tensors = stats.inUse;
    out->peak = stats.peak;
    out->reserved = stats.inUse + stats.cached;
    return nullptr;
  }
  return give(onGpu(which, nullptr, [&](const Device::Ptr &device, gpu::Stream) {
    const gpu::MemoryUse use = device->memoryUse();
    auto held = [&](gpu::Holder holder) { return uint64_t(use.held[size_t(holder)]); };
    *out = {use.inUse,
            use.peak,
            use.reserved,
            use.limit,
            use.total,
            held(gpu::Holder::Tensors),
            held(gpu::Holder::Weights),
            held(gpu::Holder::States),
            held(gpu::Holder::Intermediate)};
    return Status();
  }));
}

burin_status *deviceSetMemoryLimit(burin_device which, uint64_t bytes) {
  if (isCpu(which))
    return give({ErrorCode::Unsupported, "the memory of the process has no limit here"});
  return give(onGpu(which, nullptr, [&](const Device::Ptr &device, gpu::Stream) {
    device->setMemoryLimit(bytes);
    return Status();
  }));
}

} // namespace burin::rt::api
