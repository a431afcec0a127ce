// The device functions of the C API, see runtime.h.
#pragma once
#include "burin/runtime.h"
#include "runtime/support/Status.h"

struct burin_status {
  burin::rt::Status status;
};

namespace burin::rt::api {

burin_status *give(Status status);

uint32_t deviceCount(uint32_t type);
burin_status *deviceAlloc(burin_device device, size_t bytes, void *stream, void **data);
burin_status *deviceFree(burin_device device, void *data, void *stream);
burin_status *deviceCopy(burin_device toDevice, void *to, burin_device fromDevice, const void *from, size_t bytes,
                         void *stream);
burin_status *deviceSynchronize(burin_device device, void *stream);
burin_status *deviceMemory(burin_device device, burin_device_memory *memory);
burin_status *deviceSetMemoryLimit(burin_device device, uint64_t bytes);

} // namespace burin::rt::api
