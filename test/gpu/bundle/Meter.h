// Times what a GPU does.
#pragma once
#include "runtime/gpu/Device.h"
#include <algorithm>
#include <chrono>
#include <functional>

namespace burin::test::bundle {

inline rt::gpu::DevicePointer address(const rt::BufferRef &buffer) {
  return reinterpret_cast<rt::gpu::DevicePointer>(buffer->data());
}

/// Seconds that work enqueued on the device's shared streams takes. After an error, `result`, nothing is enqueued.
class Meter {
public:
  explicit Meter(rt::gpu::Device &device) : device(device) {}
  rt::Status result;

  /// Until what `enqueue` enqueues is complete.
  double seconds(const std::function<rt::Status()> &enqueue) {
    const auto start = std::chrono::steady_clock::now();
    keep(enqueue());
    keep(device.synchronize());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  /// Of one of many calls: the best of five times at least 20 ms. If a single one takes as long, its own.
  double best(const std::function<rt::Status()> &once) {
    constexpr double kEnough = 0.02;
    double least = seconds(once);
    int count = 1;
    auto many = [&] {
      rt::Status enqueued;
      for (int i = 0; i < count && enqueued.ok(); ++i)
        enqueued = once();
      return enqueued;
    };
    double taken = least;
    while (taken < kEnough && result.ok()) {
      count *= 2;
      taken = seconds(many);
    }
    for (int i = 0; i < 5 && count > 1 && result.ok(); ++i)
      least = std::min(least, seconds(many) / count);
    return least;
  }
  void keep(rt::Status status) {
    if (result.ok())
      result = std::move(status);
  }

private:
  rt::gpu::Device &device;
};

} // namespace burin::test::bundle
