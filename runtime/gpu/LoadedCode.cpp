#include "runtime/gpu/LoadedCode.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <charconv>

namespace burin::rt::gpu {

/// The compute capability in the name of a target for GPUs, such as 80 in "cuda-sm_80+ptx", or -1. With the suffix "a"
/// code supports that compute capability only, otherwise also later ones.
static int capabilityOf(std::string_view target, bool &isExact) {
  constexpr std::string_view prefix = "cuda-sm_";
  int number = 0;
  if (!target.starts_with(prefix))
    return -1;
  target.remove_prefix(prefix.size());
  auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  isExact = end != target.data() + target.size() && *end == 'a';
  return error == std::errc() ? number : -1;
}

/// Preference of a GPU for code (higher is better), or -1 if unsupported.
static int rankOf(std::string_view target, const DeviceInfo &info) {
  bool isExact = false;
  const int number = capabilityOf(target, isExact), own = info.major * 10 + info.minor;
  if (number < 0)
    return -1;
  return isExact ? (own == number ? 2 * number + 1 : -1) : own >= number ? 2 * number : -1;
}

Status LoadedCode::open(const Program &program, const Device::Ptr &device, Ptr &out) {
  std::lock_guard lock(device->loading);
  std::weak_ptr<LoadedCode> &known = device->loaded[&program];
  if ((out = known.lock()))
    return {};
  Ptr made(new LoadedCode);
  made->device = device;
  if (Status s = made->choose(program); !s.ok())
    return s;
  if (Status s = made->load(program); !s.ok())
    return s;
  known = made;
  out = std::move(made);
  std::erase_if(device->loaded, [](const auto &entry) { return entry.second.expired(); });
  return {};
}

Status LoadedCode::choose(const Program &program) {
  int best = -1;
  uint32_t index = 0; // among those for GPUs
  std::string all;
  const DeviceInfo &info = device->info();
  for (const Code &candidate : program.artifact().codes) {
    all += (all.empty() ? "" : ", ") + candidate.target;
    if (int rank = rankOf(candidate.target, info); rank > best)
      best = rank, chosen = &candidate, chosenIndex = index;
    index += candidate.isForGpu();
  }
  if (bool isExact = false; best >= 0) {
    constexpr int kWithDependencies = 90; // compute capability of griddepcontrol
    startsEarly = (*device)->launchKernelEx && capabilityOf(chosen->target, isExact) >= kWithDependencies;
    return {};
  }
  return {ErrorCode::Unsupported,
          text("the artifact has no code for ", device->name(), " (", info.name, ", compute capability ", info.major,
               ".", info.minor, "): it has ", all, "\n  compile it again with --target cuda-sm_80+ptx")};
}

Status LoadedCode::load(const Program &program) {
  const Device &d = *device;
  if (Result r = d->moduleLoadData(&module, program.gpuCode(*chosen)); r != kSuccess)
    return d.check(r, "loading the code");
  for (const GpuKernel &kernel : chosen->gpuKernels) {
    if (Result r = d->moduleGetFunction(&functions.emplace_back(), module, kernel.entry.c_str()); r != kSuccess)
      return d.check(r, "finding a kernel");
    constexpr int kMostDynamicShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    // A block may have 48 KiB without asking, together with the variables of its code, whose size only the driver
    // knows.
    if (kernel.sharedBytes)
      if (Result r = d->functionSetAttribute(functions.back(), kMostDynamicShared, int(kernel.sharedBytes));
          r != kSuccess)
        return d.check(r, "asking for shared memory");
  }
  if (Result r = d->streamCreate(&stream, /*CU_STREAM_NON_BLOCKING*/ 1); r != kSuccess)
    return d.check(r, "making a stream");
  const size_t size = std::max<size_t>(program.weightBytes(), 1);
  if (Status s = device->allocate(size, Holder::Weights, stream, memory); !s.ok())
    return s;
  bytes = size;
  if (program.weightBytes())
    if (Result r = d->copyToDevice(reinterpret_cast<DevicePointer>(memory), program.weightData(), program.weightBytes(),
                                   stream);
        r != kSuccess)
      return d.check(r, "copying the weights");
  return d.check(d->streamSynchronize(stream), "copying the weights");
}

// Frees resources even if the driver reports an error, which may come from earlier work.
LoadedCode::~LoadedCode() {
  Device::Use use(*device);
  const Device &d = *device;
  if (memory)
    device->release(memory, bytes, Holder::Weights, stream);
  if (stream) {
    d->streamSynchronize(stream);
    d->streamDestroy(stream);
  }
  if (module)
    d->moduleUnload(module);
}

} // namespace burin::rt::gpu
