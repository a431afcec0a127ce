// Code and weights of an artifact on a device, shared by its sessions.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/gpu/Device.h"

namespace burin::rt::gpu {

class LoadedCode {
public:
  using Ptr = std::shared_ptr<LoadedCode>;
  /// Loads the best code of the artifact for this device and copies the weights, unless a session has done so.
  /// Unsupported if there is no code for it. Requires the device's context.
  static Status open(const Program &program, const Device::Ptr &device, Ptr &out);
  ~LoadedCode();
  LoadedCode(const LoadedCode &) = delete;

  const Code &code() const { return *chosen; }
  /// Which of the artifact's codes for GPUs it is.
  uint32_t index() const { return chosenIndex; }
  Function function(uint32_t kernel) const { return functions[kernel]; }
  /// Whether kernels wait for those before them in their stream, so that the driver may begin them earlier.
  bool canStartEarly() const { return startsEarly; }
  std::byte *weights() const { return static_cast<std::byte *>(memory); }

private:
  LoadedCode() = default;
  Device::Ptr device;
  const Code *chosen = nullptr;
  uint32_t chosenIndex = 0;
  bool startsEarly = false;
  Module module = nullptr;
  Stream stream = nullptr;
  std::vector<Function> functions;
  void *memory = nullptr;
  size_t bytes = 0;

  Status choose(const Program &program);
  Status load(const Program &program);
};

} // namespace burin::rt::gpu
