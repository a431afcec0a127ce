#include "runtime/gpu/libraries/Driver.h"
#include "runtime/support/Format.h"
#include <dlfcn.h>

namespace burin::rt::gpu {

namespace {

// CUdevice_attribute
constexpr int kMultiprocessors = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;

Status unsupported(std::string message) { return {ErrorCode::Unsupported, std::move(message)}; }

} // namespace

Status Driver::open(Driver &out, const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return unsupported(text("no CUDA driver: ", dlerror()));
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (!function && !missing)
      missing = symbol;
  };
#define BURIN_CUDA_FUNCTION(name, symbol, parameters) find(out.table.name, symbol);
  BURIN_CUDA_FUNCTIONS(BURIN_CUDA_FUNCTION)
#undef BURIN_CUDA_FUNCTION
  const char *firstMissing = missing;
#define BURIN_CUDA_FUNCTION(name, symbol, parameters) find(out.table.name, symbol);
  BURIN_CUDA_OPTIONAL_FUNCTIONS(BURIN_CUDA_FUNCTION)
#undef BURIN_CUDA_FUNCTION
  if (firstMissing)
    return unsupported(text(library, " has no ", firstMissing, ": burin needs a driver for CUDA 11.4 or later"));
  if (Result result = out->init(0); result != kSuccess)
    return unsupported(out.check(result, "starting the CUDA driver").message());
  return {};
}

bool DriverFunctions::hasConditionalNodes() const {
  constexpr int kLeast = 12040; // 12.3 has them without nesting
  int version = 0;
  return streamCaptureInfo && streamSetDependencies && streamBeginCaptureTo && graphAddNode && conditionCreate &&
         driverGetVersion(&version) == kSuccess && version >= kLeast;
}

Status Driver::devices(std::vector<DeviceInfo> &out) const {
  int count = 0;
  if (Status status = check(table.deviceGetCount(&count), "counting GPUs"); !status.ok())
    return status;
  out.assign(size_t(count), {});
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceInfo &info = out[size_t(ordinal)];
    DeviceNumber device = 0;
    char name[256] = {};
    Result result = table.deviceGet(&device, ordinal);
    if (result == kSuccess)
      result = table.deviceGetName(name, sizeof name - 1, device);
    if (result == kSuccess)
      result = table.deviceTotalMem(&info.memoryBytes, device);
    for (auto [attribute, value] : {std::pair{kCapabilityMajor, &info.major},
                                    {kCapabilityMinor, &info.minor},
                                    {kMultiprocessors, &info.multiprocessors}})
      if (result == kSuccess)
        result = table.deviceGetAttribute(value, attribute, device);
    if (Status status = check(result, text("cuda:", ordinal, ": asking for its properties")); !status.ok())
      return status;
    info.name = name;
  }
  return {};
}

Status Driver::check(Result result, const std::string &what) const {
  if (result == kSuccess)
    return {};
  const char *name = nullptr;
  if (table.getErrorName(result, &name) != kSuccess || !name)
    name = "an error unknown to the driver";
  return {result == kOutOfMemory ? ErrorCode::OutOfMemory : ErrorCode::Internal,
          text(what, ": ", name, " (", result, ")")};
}

} // namespace burin::rt::gpu
