// Devices of tensors.
#pragma once
#include "burin/error.h"
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace burin {

/// The memory that holds a tensor, and the processor that runs ops on it: the CPU, or a GPU. As torch.device.
///
/// Operands of an op must be on one device. These follow the other operands: numbers, tensors of rank 0 on the CPU, and
/// results of zeros, ones, full, arange, linspace, eye and random numbers without a device argument. Other tensors are
/// moved by `to`.
class BURIN_API Device {
public:
  /// The CPU.
  constexpr Device() = default;
  /// "cpu", "cuda" (the first GPU), "cuda:1". Throws Error for other names; whether the GPU exists is checked on first
  /// use.
  Device(std::string_view name, Location where = Location::current());
  Device(const char *name, Location where = Location::current()) : Device(std::string_view(name), where) {}
  static constexpr Device gpu(int index) {
    Device device;
    device.number = int16_t(index);
    return device;
  }

  constexpr bool is_cpu() const { return number < 0; }
  constexpr bool is_cuda() const { return number >= 0; }
  /// Index of the GPU; 0 for the CPU.
  constexpr int index() const { return number < 0 ? 0 : number; }
  /// "cuda:0"
  std::string str() const;
  friend constexpr bool operator==(const Device &, const Device &) = default;
  friend BURIN_API std::ostream &operator<<(std::ostream &, const Device &);

private:
  int16_t number = -1;
};

inline constexpr Device cpu;
constexpr Device cuda(int index = 0) { return Device::gpu(index); }

/// While one lives, what this thread creates (zeros, from_vector, rand, load_npy, …) is made on a device, and trace()
/// makes graphs for it. As `with torch.device("cuda:0"):`. In a traced function, what is created goes where that runs.
class BURIN_API DeviceScope {
public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

private:
  Device outer;
  bool hadOuter;
};

/// Number of GPUs; 0 without a CUDA driver.
BURIN_API int cuda_device_count();

/// Memory of a device, in bytes.
struct DeviceMemory {
  size_t in_use = 0, peak = 0; // of tensors, weights, states and intermediate results: current and maximum
  size_t reserved = 0;         // held by this process, in use or free
  size_t limit = 0;            // 0: none
  size_t total = 0;            // of a GPU
};
BURIN_API DeviceMemory memory_use(Device device, Location where = Location::current());
/// Makes allocations fail that would exceed this amount of the GPU's memory; 0: no limit.
BURIN_API void set_memory_limit(Device device, size_t bytes, Location where = Location::current());
/// Waits for all work on a device. Throws the first error of it.
BURIN_API void synchronize(Device device, Location where = Location::current());

} // namespace burin
