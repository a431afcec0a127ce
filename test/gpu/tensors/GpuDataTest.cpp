// What goes in and out of tensors on a GPU: DLPack and its streams, files, text, waiting.
#include "frontend/tensor/data/DlpackAbi.h"
#include "runtime/gpu/libraries/Driver.h"
#include "test/gpu/tensors/GpuTensors.h"
#include <burin/nn/losses.h>
#include <burin/training/data.h>
#include <burin/training/optim.h>
#include <filesystem>
#include <sstream>

using namespace burin::test;
namespace gpu = burin::rt::gpu;

namespace {

/// A stream of another library, with memory that it works on.
struct Other {
  gpu::Driver driver;
  gpu::Context context = nullptr;
  gpu::Stream stream = nullptr;
  gpu::DevicePointer memory = 0;
  int64_t shape[1] = {4};
  int given = 0; // how many times it was given back

  Other() {
    REQUIRE(gpu::Driver::open(driver).ok());
    REQUIRE(driver->primaryCtxRetain(&context, 0) == gpu::kSuccess);
    REQUIRE(driver->ctxPush(context) == gpu::kSuccess);
    REQUIRE(driver->streamCreate(&stream, 1) == gpu::kSuccess);
    REQUIRE(driver->memAllocAsync(&memory, 16, stream) == gpu::kSuccess);
  }
  ~Other() {
    CHECK(driver->memFreeAsync(memory, stream) == gpu::kSuccess);
    CHECK(driver->streamDestroy(stream) == gpu::kSuccess);
    CHECK(driver->ctxPop(&context) == gpu::kSuccess);
    CHECK(driver->primaryCtxRelease(0) == gpu::kSuccess);
  }
  Other(const Other &) = delete;

  /// Has the stream write these numbers.
  void write(float first) {
    const float values[4] = {first, first + 1, first + 2, first + 3};
    REQUIRE(driver->copyToDevice(memory, values, 16, stream) == gpu::kSuccess);
  }
  /// What the stream finds at an address.
  std::vector<float> read(const void *at, gpu::Stream in) {
    std::vector<float> values(4);
    REQUIRE(driver->copyToHost(values.data(), reinterpret_cast<gpu::DevicePointer>(at), 16, in) == gpu::kSuccess);
    REQUIRE(driver->streamSynchronize(in) == gpu::kSuccess);
    return values;
  }
  DLManagedTensor tensor() {
    return {{reinterpret_cast<void *>(memory), {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0},
            this,
            [](DLManagedTensor *t) { ++static_cast<Other *>(t->manager_ctx)->given; }};
  }
};

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("burin-gpu-data-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return (path / name).string(); }
};

} // namespace

TEST_CASE("gpu data: DLPack tensors of another library, in the order of its stream", "[gpu]") {
  Other other;
  // The driver for tests does work as late as it may: without an order between the streams these read garbage.
  for (int i = 0; i < 4; ++i) {
    other.write(float(10 * i));
    DLManagedTensor foreign = other.tensor();
    {
      Tensor x = from_dlpack(&foreign, other.stream);
      CHECK(x.device() == cuda(0));
      Tensor y = x * 2;
      CHECK(other.given == i);
      CHECK(floats(y) == std::vector<float>{20.0f * i, 20.0f * i + 2, 20.0f * i + 4, 20.0f * i + 6});
    }
    CHECK(other.given == i + 1); // nothing uses the elements any more
  }
  other.write(7);
  REQUIRE(other.driver->streamSynchronize(other.stream) == gpu::kSuccess);
  for (void *stream : {static_cast<void *>(nullptr), reinterpret_cast<void *>(intptr_t(-1))}) {
    DLManagedTensor foreign = other.tensor();
    CHECK(floats(from_dlpack(&foreign, stream)) == std::vector<float>{7, 8, 9, 10});
  }
  int64_t strides[] = {2}, two[] = {2};
  DLManagedTensor sparse = other.tensor();
  sparse.dl_tensor.strides = strides;
  sparse.dl_tensor.shape = two;
  CHECK_ERROR(from_dlpack(&sparse), "not dense", "contiguous");
  DLManagedTensor far = other.tensor();
  far.dl_tensor.device.device_id = 5;
  CHECK_ERROR(from_dlpack(&far), "there is no GPU cuda:5");
  far.dl_tensor.device = {DLDeviceType(10), 0};
  CHECK_ERROR(from_dlpack(&far), "neither in the memory of the process nor on a CUDA GPU", "copy it to the CPU");
}

TEST_CASE("gpu data: DLPack tensors for another library", "[gpu]") {
  Other other;
  Tensor x = tensor({1.0, 2.0, 3.0, 4.0}).to(cuda(0));
  for (int i = 1; i <= 4; ++i) {
    Tensor y = x * i;
    void *streams[] = {other.stream, reinterpret_cast<void *>(1), reinterpret_cast<void *>(2)};
    void *stream = streams[i % 3];
    DLManagedTensor *shared = to_dlpack(y, stream); // returns while the work is enqueued
    CHECK(fake::pendingWork(0) > 0);
    CHECK((shared->dl_tensor.device.device_type == kDLCUDA && shared->dl_tensor.device.device_id == 0));
    CHECK(other.read(shared->dl_tensor.data, static_cast<gpu::Stream>(stream)) == floats(y));
    shared->deleter(shared);
  }
  DLManagedTensor *complete = to_dlpack(x + 1);
  CHECK(other.read(complete->dl_tensor.data, other.stream) == std::vector<float>{2, 3, 4, 5});
  CHECK(floats(from_dlpack(complete)) == std::vector<float>{2, 3, 4, 5});
  DLManagedTensorVersioned *versioned = to_dlpack_versioned(x * 3, other.stream);
  CHECK(floats(from_dlpack(versioned, other.stream)) == std::vector<float>{3, 6, 9, 12});
  DLManagedTensor *unordered = to_dlpack(x * 5, reinterpret_cast<void *>(intptr_t(-1)));
  synchronize(cuda(0));
  CHECK(other.read(unordered->dl_tensor.data, other.stream) == std::vector<float>{5, 10, 15, 20});
  unordered->deleter(unordered);
}

TEST_CASE("gpu data: files", "[gpu]") {
  Folder folder;
  Tensor x = tensor({{1.5, 2.0}, {3.0, 4.0}}).to(cuda(0)), twice = x * 2;
  save_npy(folder / "x.npy", twice);
  CHECK(floats(load_npy(folder / "x.npy")) == std::vector<float>{3, 4, 6, 8});
  save_npz(folder / "x.npz", {{"x", x}});
  CHECK(floats(load_npz(folder / "x.npz").at("x")) == floats(x));
  nn::Linear layer(2, 3);
  layer.to(cuda(0));
  save_safetensors(folder / "x.safetensors", layer.state_dict());
  StateDict loaded = load_safetensors(folder / "x.safetensors");
  CHECK(loaded.at("weight").device() == cpu);
  nn::Linear other(2, 3);
  other.to(cuda(0));
  other.load_state_dict(loaded); // to where the module is
  CHECK(other.weight.value().device() == cuda(0));
  CHECK(floats(other(x)) == floats(layer(x)));
  DeviceScope scope(cuda(0));
  CHECK(load_safetensors(folder / "x.safetensors").at("bias").device() == cuda(0));
  CHECK((load_npy(folder / "x.npy").device() == cuda(0) && load_npz(folder / "x.npz").at("x").device() == cuda(0)));
}

TEST_CASE("gpu data: values are waited for and shown", "[gpu]") {
  Tensor x = tensor({{1.5, -2.0}, {3.0, 4.0}}), there = x.to(cuda(0));
  std::ostringstream text;
  text << there * 2;
  CHECK(text.str() == (x * 2).str());
  CHECK((there.sum().item() == 6.5 && (there > 0).to(i64).sum().item<int64_t>() == 3));
  CHECK_ERROR(there.item(), "has 4 elements, not one");
  Tensor y = there + 1;
  CHECK(fake::pendingWork(0) > 0);
  y.wait();
  CHECK(fake::pendingWork(0) == 0);
  y = there + 2;
  CHECK(fake::pendingWork(0) > 0);
  synchronize(cuda(0));
  CHECK(fake::pendingWork(0) == 0);
  y = there + 3;
  synchronize();
  CHECK(fake::pendingWork(0) == 0);
  CHECK(floats(y) == std::vector<float>{4.5, 1, 6, 7});
  CHECK(y.bytes().size() == 16);
  CHECK(y.data<float>()[3] == 7);
  // What a tensor is made of may go before it is computed.
  {
    Tensor z = (there * 3).sum({0});
    there = Tensor();
    CHECK(floats(z) == std::vector<float>{13.5, 6});
  }
}
