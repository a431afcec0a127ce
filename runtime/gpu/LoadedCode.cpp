#include "runtime/gpu/LoadedCode.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <charconv>

namespace burin::rt::gpu {

namespace {

/// The compute capability in the name of a target, such as 80 in "cuda-sm_80+ptx". With the suffix "a" code supports
/// that compute capability only, otherwise also later ones.
struct Capability {
  int number = -1; // -1: the target is no GPU
  bool isExact = false;

  static Capability of(std::string_view target) {
    constexpr std::string_view prefix = "cuda-sm_";
    Capability capability;
    if (!target.starts_with(prefix))
      return capability;
    target.remove_prefix(prefix.size());
    auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), capability.number);
    capability.isExact = end != target.data() + target.size() && *end == 'a';
    return capability;
  }
};

/// Preference of a GPU for code (higher is better), or -1 if unsupported.
int rankOf(std::string_view target, const DeviceInfo &info) {
  const auto [number, isExact] = Capability::of(target);
  const int own = info.major * 10 + info.minor;
  if (number < 0)
    return -1;
  return isExact ? (own == number ? 2 * number + 1 : -1) : own >= number ? 2 * number : -1;
}

} // namespace

Status LoadedCode::open(const Program &program, const Device::Ptr &device, Ptr &out) {
  std::lock_guard lock(device->loading);
  std::weak_ptr<LoadedCode> &known = device->loaded[&program];
  out = known.lock();
  if (out)
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
  if (best >= 0) {
    constexpr int kWithDependencies = 90; // code for it and later ones waits by griddepcontrol
    startsEarly = (*device)->launchKernelEx && Capability::of(chosen->target).number >= kWithDependencies;
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
