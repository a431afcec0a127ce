// Where tensors are.
#pragma once
#include "burin/error.h"
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace burin {

/// Where the elements of a tensor are, and where ops on it run: the processor, or a GPU. As torch.device.
///
/// Operands of an op must be on one device. These go where the others are: numbers, tensors of rank 0 on the processor,
/// and what zeros, ones, full, arange, linspace, eye and random numbers make without being told a device. Everything
/// else is moved by `to`.
class BURIN_API Device {
public:
  /// The processor.
  constexpr Device() = default;
  /// "cpu", "cuda" (the first GPU), "cuda:1". Throws Error for other names; whether there is such a GPU turns out when
  /// it is used.
  Device(std::string_view name, Location where = Location::current());
  Device(const char *name, Location where = Location::current()) : Device(std::string_view(name), where) {}
  static constexpr Device gpu(int index) {
    Device device;
    device.number = int16_t(index);
    return device;
  }

  constexpr bool is_cpu() const { return number < 0; }
  constexpr bool is_cuda() const { return number >= 0; }
  /// Of the GPU; 0 for the processor.
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

/// While one lives, what this thread creates (zeros, from_vector, rand, load_npy, …) is made on a device. As
/// `with torch.device("cuda:0"):`. Has no effect in a traced function, which runs where its inputs are.
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

/// How many GPUs there are; 0 where there is no CUDA driver.
BURIN_API int cuda_device_count();

/// Bytes of a device's memory.
struct DeviceMemory {
  size_t in_use = 0, peak = 0; // of tensors, weights, states and intermediate results: now, and at most so far
  size_t reserved = 0;         // what is kept for this process, in use or free
  size_t limit = 0;            // 0: none
  size_t total = 0;            // of a GPU
};
BURIN_API DeviceMemory memory_use(Device device, Location where = Location::current());
/// From now on what would need more of the GPU's memory fails; 0: no limit.
BURIN_API void set_memory_limit(Device device, size_t bytes, Location where = Location::current());
/// Waits for all work on a device. Throws what has gone wrong in it.
BURIN_API void synchronize(Device device, Location where = Location::current());

} // namespace burin
