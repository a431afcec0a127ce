#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "ir/sizes/ErrorContext.h"
#include "runtime/execute/session/Session.h"
#include <map>
#include <ostream>

namespace burin {

using namespace detail;

// ---- devices

Device::Device(std::string_view name, Location where) {
  int ordinal = -1;
  const std::string_view full = name == "cuda" ? "cuda:0" : name;
  if (rt::Status status = rt::parseDevice(full, ordinal); !status.ok() || name.empty())
    throw Error(where, "Device",
                "there is no device \"" + std::string(name) + "\": devices are cpu, cuda, cuda:0, cuda:1, …");
  number = int16_t(ordinal);
}

std::string Device::str() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(number); }
std::ostream &operator<<(std::ostream &out, const Device &device) { return out << device.str(); }

static thread_local std::optional<Device> scoped;

DeviceScope::DeviceScope(Device device) : outer(scoped.value_or(burin::cpu)), hadOuter(scoped.has_value()) {
  scoped = device;
}
DeviceScope::~DeviceScope() { scoped = hadOuter ? std::optional(outer) : std::nullopt; }

int cuda_device_count() {
  std::vector<rt::gpu::DeviceInfo> devices;
  return rt::gpu::Device::list(devices).ok() ? int(devices.size()) : 0;
}

/// Runs an action in the context of a GPU.
template <class F> static void onDevice(Device device, const char *op, const Location &where, F action) {
  rt::gpu::Device::Ptr opened = openDevice(device, op, where);
  rt::gpu::Device::Use use(*opened);
  rt::Status status = use.status();
  if (status.ok())
    status = action(*opened);
  if (!status.ok())
    throw Error(where, op, status.message());
}

DeviceMemory memory_use(Device device, Location where) {
  if (device.is_cpu()) {
    rt::Memory::Stats stats = rt::Memory::shared().stats();
    return {stats.inUse, stats.peak, stats.inUse + stats.cached, 0, 0};
  }
  DeviceMemory result;
  onDevice(device, "memory_use", inScope(where), [&](rt::gpu::Device &opened) {
    rt::gpu::MemoryUse use = opened.memoryUse();
    result = {use.inUse, use.peak, use.reserved, use.limit, use.total};
    return rt::Status();
  });
  return result;
}

void set_memory_limit(Device device, size_t bytes, Location where) {
  const Location place = inScope(where);
  if (device.is_cpu())
    throw Error(place, "set_memory_limit", "the memory of the process has no limit here; ulimit sets one");
  openDevice(device, "set_memory_limit", place)->setMemoryLimit(bytes);
}

void synchronize(Device device, Location where) {
  const Location place = inScope(where);
  if (rt::FailureRef failure = rt::Engine::shared().synchronize()) // it may have pending work for the device
    rethrow(*failure, place);
  if (device.is_cuda())
    onDevice(device, "synchronize", place, [](rt::gpu::Device &opened) { return opened.synchronize(); });
}

namespace detail {

namespace {
struct OpenDevices {
  std::mutex mutex;
  std::map<int, rt::gpu::Device::Ptr> byNumber;
};
OpenDevices &openDevices() {
  static auto *all = new OpenDevices; // tasks may use them until the process ends
  return *all;
}
} // namespace

rt::gpu::Device::Ptr openDevice(Device device, const char *op, const Location &where) {
  std::lock_guard lock(openDevices().mutex);
  rt::gpu::Device::Ptr &known = openDevices().byNumber[device.index()];
  if (!known)
    if (rt::Status status = rt::gpu::Device::open(device.index(), known); !status.ok())
      throw Error(where, op, status.message());
  return known;
}

void synchronizeDevices(const Location &where) {
  std::map<int, rt::gpu::Device::Ptr> open;
  {
    std::lock_guard lock(openDevices().mutex);
    open = openDevices().byNumber;
  }
  for (const auto &[number, device] : open)
    if (device)
      onDevice(cuda(number), "synchronize", where, [](rt::gpu::Device &opened) { return opened.synchronize(); });
}

static rt::gpu::Device::Ptr anyOpenDevice() {
  std::lock_guard lock(openDevices().mutex);
  for (const auto &[number, device] : openDevices().byNumber)
    if (device)
      return device;
  return nullptr;
}

Tensor pinned(const Tensor &tensor, const Location &where) {
  constexpr size_t kSmall = size_t(64) << 10; // smaller ones are uploaded at once
  const TensorState &state = stateOf(tensor, where);
  auto *storage = std::get_if<StorageRef>(&state.value);
  const size_t bytes = storage ? byteCount(state.spec) : 0;
  if (bytes <= kSmall || (*storage)->gpu)
    return tensor;
  rt::gpu::Device::Ptr device = anyOpenDevice();
  rt::BufferRef buffer;
  if (!device || !device->pinnedBuffer(bytes, buffer).ok())
    return tensor;
  std::memcpy(buffer->data(), await(*storage, where).data(), bytes);
  auto made = std::make_shared<Storage>();
  made->buffer = std::move(buffer);
  TensorState copy = state;
  copy.value = std::move(made);
  return Access::make(std::move(copy));
}

std::string inSource(Device device) {
  return device.is_cuda() ? "cuda(" + std::to_string(device.index()) + ")" : "cpu";
}

Device deviceOf(const StorageRef &storage) { return storage->gpu ? cuda(storage->gpu->device->ordinal()) : cpu; }
Device deviceOf(const TensorState &state) {
  auto *storage = std::get_if<StorageRef>(&state.value);
  return storage ? deviceOf(*storage) : cpu;
}

bool follows(const TensorState &state) {
  auto *storage = std::get_if<StorageRef>(&state.value);
  return !storage || state.follows || (!(*storage)->gpu && state.spec.shape.empty());
}

std::optional<Device> scopedDevice() { return scoped; }

Tensor placed(const Tensor &tensor) {
  const TensorState &state = *Access::state(tensor);
  if (!state.follows)
    return tensor;
  TensorState copy = state;
  copy.follows = false;
  return Access::make(std::move(copy));
}

Tensor following(const Tensor &tensor) {
  TensorState copy = *Access::state(tensor);
  copy.follows = true;
  return Access::make(std::move(copy));
}

Tensor createdInScope(Tensor tensor, const char *op, const Location &where) {
  auto *storage = std::get_if<StorageRef>(&Access::state(tensor)->value);
  if (storage && isTracing())
    return following(tensor);
  if (!scoped || !storage)
    return tensor;
  TensorState state = *Access::state(tensor);
  state.value = movedTo(*storage, byteCount(state.spec), *scoped, op, where);
  state.follows = false;
  return Access::make(std::move(state));
}

Beside::Beside(const Tensor &x, const Location &where) {
  const TensorState &state = stateOf(x, where);
  auto *storage = std::get_if<StorageRef>(&state.value);
  if (storage && ((*storage)->gpu || !follows(state)))
    scope.emplace(deviceOf(*storage));
}

// ---- copies

[[noreturn]] static void fail(const OnDevice &place, const rt::Status &status) {
  throw errorIn(place.module ? *place.module : "", place.where, place.op,
                status.message() + (status.code() == rt::ErrorCode::Internal
                                        ? "\n  an error of a GPU shows where a value is waited for; with "
                                          "BURIN_CUDA_CHECK=1 it shows at the kernel"
                                        : ""));
}

void fail(const CheckedRun &run, const rt::Status &status) {
  throw errorIn(run.module ? *run.module : "", run.where, run.op, status.message());
}

static void requireGood(const std::vector<CheckedRun> &runs) {
  for (const CheckedRun &checked : runs)
    if (rt::Status status = checked.run->wait(); !status.ok())
      fail(checked, status);
}

const rt::SharedBuffer &copiedToHost(Storage &storage, const Location &where) {
  OnDevice &place = *storage.gpu;
  std::lock_guard lock(place.mutex);
  if (!place.onHost) {
    requireGood(place.runs);
    rt::BufferRef copy = allocate(storage.buffer->size(), where);
    if (rt::Status status = place.device->download(copy->data(), storage.buffer->data(), storage.buffer->size());
        !status.ok())
      fail(place, status);
    place.onHost = std::move(copy);
  }
  return *place.onHost;
}

void waitOnDevice(Storage &storage) {
  OnDevice &place = *storage.gpu;
  requireGood(place.runs);
  rt::gpu::Device::Use use(*place.device);
  rt::Status status = use.status();
  if (status.ok())
    status = place.device->synchronize();
  if (!status.ok())
    fail(place, status);
}

void inheritRuns(const Storage &input, std::vector<CheckedRun> &runs) {
  if (!input.gpu)
    return;
  for (const CheckedRun &checked : input.gpu->runs)
    if (!checked.run->isKnownGood() &&
        std::ranges::none_of(runs, [&](const CheckedRun &known) { return known.run == checked.run; }))
      runs.push_back(checked);
}

/// Copies, once the elements are complete.
static void copyNow(const StorageRef &from, const StorageRef &to, size_t bytes, const Location &where) {
  rt::Status status;
  if (!to->gpu)
    to->buffer = rt::BufferRef(&const_cast<rt::SharedBuffer &>(await(from, where)));
  else if (!from->gpu)
    status = to->gpu->device->upload(from->buffer->data(), bytes, to->buffer);
  else
    status = to->gpu->device->copyFrom(*from->gpu->device, from->buffer->data(), bytes, to->buffer);
  if (!status.ok())
    throw Error(where, to->gpu->op, status.message());
  if (to->gpu)
    inheritRuns(*from, to->gpu->runs);
}

StorageRef movedTo(const StorageRef &from, size_t bytes, Device device, const char *op, const Location &where) {
  if (deviceOf(from) == device)
    return from;
  auto to = std::make_shared<Storage>();
  if (device.is_cuda())
    to->gpu = std::make_shared<OnDevice>(openDevice(device, op, where), op, where);
  const bool isReady = isComplete(*from);
  constexpr size_t kSmall = size_t(64) << 10; // copying these is faster than waking a thread
  if (isReady && device.is_cuda() && (from->gpu || bytes <= kSmall)) {
    copyNow(from, to, bytes, where);
    return to;
  }
  rt::Task *dependency = isReady ? nullptr : from->task.get();
  std::span<rt::Task *const> one(&dependency, 1), none;
  auto copy = [from, to, bytes, where] {
    requireElements(*from, where);
    copyNow(from, to, bytes, where);
  };
  to->task = rt::Engine::shared().enqueue({from->isState ? none : one, from->isState ? one : none}, bytes,
                                          std::move(copy), false);
  return to;
}

StorageRef broughtTo(const StorageRef &storage, size_t bytes, Device device, const char *op, const Location &where) {
  static auto *mutex = new std::mutex;
  if (deviceOf(storage) == device)
    return storage;
  std::lock_guard lock(*mutex);
  if (storage->elsewhere && deviceOf(storage->elsewhere) == device)
    return storage->elsewhere;
  const size_t width = storage->elementWidth;
  storage->elsewhere = width && device.is_cuda()
                           ? filledOn(device, storage->element.data(), width, bytes / width, op, where)
                           : movedTo(storage, bytes, device, op, where);
  return storage->elsewhere;
}

StorageRef scalarOn(Device device, const TensorState &scalar, DType dtype, const char *op, const Location &where) {
  constexpr size_t kMost = 1024;
  static auto *mutex = new std::mutex;
  static auto *known = new std::map<std::tuple<int, DType, uint64_t>, StorageRef>;
  uint64_t bits = 0;
  scalarBytes(scalar, dtype, reinterpret_cast<char *>(&bits), where, op);
  std::lock_guard lock(*mutex);
  if (known->size() >= kMost)
    known->clear();
  StorageRef &storage = (*known)[{device.index(), dtype, bits}];
  if (!storage) {
    auto made = std::make_shared<Storage>();
    made->gpu = std::make_shared<OnDevice>(openDevice(device, op, where), op, where);
    if (rt::Status status = made->gpu->device->upload(&bits, byteWidth(dtype), made->buffer); !status.ok())
      throw Error(where, op, status.message());
    storage = std::move(made);
  }
  return storage;
}

StorageRef filledOn(Device device, const char *element, size_t width, size_t count, const char *op,
                    const Location &where) {
  auto made = std::make_shared<Storage>();
  made->gpu = std::make_shared<OnDevice>(openDevice(device, op, where), op, where);
  rt::gpu::Device &opened = *made->gpu->device;
  rt::Status status = opened.allocateBuffer(width * count, made->buffer);
  if (status.ok())
    status = opened.fill(made->buffer->data(), element, width, count);
  if (!status.ok())
    throw Error(where, op, status.message());
  return made;
}

} // namespace detail

} // namespace burin
