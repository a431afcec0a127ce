// A GPU as all of the process uses it: its context, its memory, its streams, and copies to and from it. Functions may
// be called on any thread; those that reach the driver need the device's context: see Use.
#pragma once
#include "runtime/gpu/Driver.h"
#include "runtime/support/Memory.h"
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace burin::rt {
class Program;
}

namespace burin::rt::gpu {

class LoadedCode;

/// What holds memory of a device.
enum class Holder : uint8_t { Tensors, Weights, States, Intermediate };
inline constexpr size_t kHolders = 4;

struct MemoryUse {
  size_t inUse = 0, peak = 0; // bytes handed out: now, and at most so far
  size_t reserved = 0;        // bytes that the driver's pool keeps for this process, in use or free
  size_t limit = 0, total = 0;
  std::array<size_t, kHolders> held = {}; // bytes in use, by Holder
};

/// Streams that work goes through: the first one is what everything starts from and ends in.
struct Lanes {
  static constexpr int kCount = 4;
  std::array<Stream, kCount> streams = {};
  std::array<Event, kCount> events = {}; // the first one: a fork; others: the end of their lane
  bool ownsFirst = true;
};

class Device : public std::enable_shared_from_this<Device> {
public:
  using Ptr = std::shared_ptr<Device>;

  /// The properties of all GPUs. Unsupported where there is no driver.
  static Status list(std::vector<DeviceInfo> &out);
  /// The same object as long as somebody holds it. Unsupported where there is no driver, or no such GPU.
  static Status open(int ordinal, Ptr &out);
  ~Device();
  Device(const Device &) = delete;

  /// Makes the device's context the thread's own while it lives.
  class Use {
  public:
    explicit Use(Device &device) : device(device), result(device->ctxPush(device.context())) {}
    ~Use();
    Use(const Use &) = delete;
    Status status() const { return device.check(result, "entering its context"); }

  private:
    Device &device;
    const Result result;
  };

  const DriverFunctions *operator->() const { return driver.operator->(); }
  Status check(Result result, const std::string &what) const;
  const std::string &name() const { return label; } // "cuda:0"
  int ordinal() const { return index; }
  Context context() const { return primary; }
  const DeviceInfo &info() const { return properties; }

  // ---- memory of the device, in the order of a stream
  Status allocate(size_t bytes, Holder holder, Stream stream, void *&out);
  void release(void *data, size_t bytes, Holder holder, Stream stream);
  MemoryUse memoryUse() const;
  /// allocate() refuses what would exceed it; 0: no limit.
  void setMemoryLimit(size_t bytes) { limit.store(bytes ? bytes : SIZE_MAX); }
  /// Memory of the process that the GPU reads and writes at its full speed, without the processor. Small pieces are
  /// kept for the next one who asks.
  Status allocatePinned(size_t bytes, void *&out);
  void releasePinned(void *data, size_t bytes);

  // ---- streams
  Status makeLanes(Lanes &lanes);
  void freeLanes(Lanes &lanes);
  /// What tensors are computed on, in the order of the calls.
  Status sharedLanes(Lanes *&out);
  /// Lanes to record on, one recording at a time.
  Status recordingLanes(Lanes *&out);
  std::mutex recording;

  // ---- copies of tensors, on streams of their own beside what computes. Memory of the process need not be pinned: it
  // goes through a few pinned pieces.
  /// A buffer for what the shared lanes write from here on.
  Status allocateBuffer(size_t bytes, BufferRef &out);
  /// A buffer with these bytes: shared lanes wait for them. Returns when `from` has been read.
  Status upload(const void *from, size_t bytes, BufferRef &out);
  /// Returns when the bytes, which the shared lanes have written, are there.
  Status download(void *to, const void *from, size_t bytes);
  /// A buffer with what the shared lanes of another device have written.
  Status copyFrom(Device &other, const void *from, size_t bytes, BufferRef &out);
  /// Has the shared lanes write `count` elements that are all the same, of `width` 1, 2, 4 or 8 bytes.
  Status fill(void *to, const void *element, size_t width, size_t count);
  /// A buffer with a copy of what the shared lanes have written.
  Status copyOf(const void *from, size_t bytes, BufferRef &out);
  /// The shared lanes go on when a stream of somebody else has come as far as now, or it when they have.
  Status follow(Stream other);
  Status lead(Stream other);
  /// Waits for the shared lanes.
  Status synchronize();

  /// What sessions of one program share on this device, guarded by `loading`.
  std::mutex loading;
  std::map<const Program *, std::weak_ptr<LoadedCode>> loaded;

private:
  Device() = default;
  Driver driver;
  std::string label;
  int index = 0;
  DeviceNumber number = 0;
  Context primary = nullptr;
  MemoryPool pool = nullptr;
  DeviceInfo properties;
  std::atomic<size_t> inUse{0}, peak{0}, limit{SIZE_MAX};
  std::array<std::atomic<size_t>, kHolders> held = {};

  static constexpr size_t kSlabBytes = size_t(64) << 10, kLeastPiece = 64;
  std::mutex pinnedMutex;
  std::vector<void *> slabs;
  std::map<size_t, std::vector<void *>> freePieces; // by size

  std::mutex lanesMutex; // guards the creation of both
  std::unique_ptr<Lanes> shared, recorder;

  /// One direction of copies: a stream, pinned pieces in a ring, and for each the end of the last copy through it.
  struct CopyLane {
    static constexpr size_t kPieces = 4, kPieceBytes = size_t(2) << 20;
    std::mutex mutex;
    Stream stream = nullptr;
    Event ordered = nullptr; // of the shared lanes
    std::array<std::byte *, kPieces> pieces = {};
    std::array<Event, kPieces> done = {};
    size_t next = 0;
  };
  CopyLane toDevice, toHost;

  Status start();
  Status exhausted(size_t bytes, const std::string &why) const;
  Status prepare(CopyLane &lane);
  void close(CopyLane &lane);
  Status sendThrough(CopyLane &lane, void *to, const void *from, size_t bytes);
  Status fetchThrough(CopyLane &lane, void *to, const void *from, size_t bytes);
  Status order(bool isFollowing, Stream other);
  Status fillIn(Stream stream, void *to, const void *element, size_t width, size_t count);
  Status allocateOn(Stream stream, size_t bytes, BufferRef &out);
};

} // namespace burin::rt::gpu
