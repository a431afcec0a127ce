// The runtime's table of driver functions, on the driver for tests.
#include "runtime/gpu/libraries/Driver.h"
#include "runtime/gpu/libraries/Ranges.h"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <dlfcn.h>
#include <numeric>

using namespace burin::rt;

namespace {

/// Makes a function of the driver fail while this lives.
struct Fail {
  explicit Fail(const char *what) { setenv("FAKE_CUDA_FAIL", what, 1); }
  ~Fail() { unsetenv("FAKE_CUDA_FAIL"); }
};

gpu::Driver opened() {
  gpu::Driver driver;
  Status status = gpu::Driver::open(driver, BURIN_FAKE_CUDA);
  INFO(status.message());
  REQUIRE(status.ok());
  return driver;
}

} // namespace

TEST_CASE("driver: a machine without one", "[gpu]") {
  gpu::Driver driver;
  Status status = gpu::Driver::open(driver, "libcuda-that-is-not-there.so");
  CHECK(status.code() == ErrorCode::Unsupported);
  CHECK(status.message().find("no CUDA driver: libcuda-that-is-not-there.so") == 0);
}

TEST_CASE("driver: a library that lacks its functions", "[gpu]") {
  gpu::Driver driver;
  Status status = gpu::Driver::open(driver, "libc.so.6");
  CHECK(status.code() == ErrorCode::Unsupported);
  CHECK(status.message() == "libc.so.6 has no cuInit: burin needs a driver for CUDA 11.4 or later");
}

TEST_CASE("driver: it finds no device", "[gpu]") {
  Fail fail("cuInit:100");
  gpu::Driver driver;
  Status status = gpu::Driver::open(driver, BURIN_FAKE_CUDA);
  CHECK(status.code() == ErrorCode::Unsupported);
  CHECK(status.message() == "starting the CUDA driver: CUDA_ERROR_NO_DEVICE (100)");
}

TEST_CASE("driver: lists devices", "[gpu]") {
  gpu::Driver driver = opened();
  std::vector<gpu::DeviceInfo> devices;
  REQUIRE(driver.devices(devices).ok());
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "Fake H200");
  CHECK((devices[0].major == 9 && devices[0].minor == 0 && devices[0].multiprocessors == 132));
  CHECK(devices[0].memoryBytes == size_t(1) << 30);

  Fail fail("cuDeviceGetName:101");
  CHECK(driver.devices(devices).message() == "cuda:0: asking for its properties: CUDA_ERROR_INVALID_DEVICE (101)");
}

TEST_CASE("driver: a profiler receives ranges", "[gpu]") {
  setenv("NVTX_INJECTION64_PATH", BURIN_FAKE_CUDA, 1); // before the first range of the process
  CHECK(gpu::Range::isUsed());
  {
    gpu::Range outer("main");
    gpu::Range inner("softmax at model.cpp:12");
  }
  gpu::Range another("next");
  void *library = dlopen(BURIN_FAKE_CUDA, RTLD_NOW);
  REQUIRE(library);
  auto ranges = reinterpret_cast<const char *(*)()>(dlsym(library, "fakeRanges"));
  REQUIRE(ranges);
  CHECK(std::string(ranges()) == "[main[softmax at model.cpp:12]][next");
}

TEST_CASE("driver: copies there and back, and errors keep their kind", "[gpu]") {
  gpu::Driver driver = opened();
  std::vector<int> sent(1001), received(1001);
  std::iota(sent.begin(), sent.end(), 7);
  size_t bytes = sent.size() * sizeof(int);
  gpu::DevicePointer memory = 0;
  REQUIRE(driver->memAllocAsync(&memory, bytes, nullptr) == gpu::kSuccess);
  CHECK(driver->copyToDevice(memory, sent.data(), bytes + 1, nullptr) != gpu::kSuccess);
  REQUIRE(driver->copyToDevice(memory, sent.data(), bytes, nullptr) == gpu::kSuccess);
  REQUIRE(driver->copyToHost(received.data(), memory, bytes, nullptr) == gpu::kSuccess);
  REQUIRE(driver->streamSynchronize(nullptr) == gpu::kSuccess); // until then nothing needs to have happened
  CHECK(received == sent);
  CHECK(driver->memFreeAsync(memory, nullptr) == gpu::kSuccess);
  REQUIRE(driver->streamSynchronize(nullptr) == gpu::kSuccess);
  CHECK(driver->memFreeAsync(memory, nullptr) != gpu::kSuccess);

  Status tooMuch = driver.check(driver->memAllocAsync(&memory, size_t(1) << 31, nullptr), "cuda:0: 2 GiB");
  CHECK(tooMuch.code() == ErrorCode::OutOfMemory);
  CHECK(tooMuch.message() == "cuda:0: 2 GiB: CUDA_ERROR_OUT_OF_MEMORY (2)");

  Fail fail("cuStreamSynchronize:700");
  Status illegal = driver.check(driver->streamSynchronize(nullptr), "cuda:0: 'softmax' (model.cpp:12)");
  CHECK(illegal.code() == ErrorCode::Internal);
  CHECK(illegal.message() == "cuda:0: 'softmax' (model.cpp:12): CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  CHECK(driver.check(12345, "x").message() == "x: an error unknown to the driver (12345)");
}
