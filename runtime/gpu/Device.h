// A GPU shared by the whole process: its context, memory, streams, and copies. Thread-safe. Functions that call the
// driver need the device's context, see Use.
#pragma once
#include "runtime/gpu/libraries/Driver.h"
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

/// Kinds of owners of device memory.
enum class Holder : uint8_t { Tensors, Weights, States, Intermediate };
inline constexpr size_t kHolders = 4;

struct MemoryUse {
  size_t inUse = 0, peak = 0; // allocated bytes: now, and the maximum so far
  size_t reserved = 0;        // bytes that the driver's pool keeps for this process, used or free
  size_t limit = 0, total = 0;
  std::array<size_t, kHolders> held = {}; // allocated bytes by Holder
};

/// Streams for concurrent work; all work starts from and ends in the first one.
struct Lanes {
  static constexpr int kCount = 4;
  std::array<Stream, kCount> streams = {};
  std::array<Event, kCount + 1> events = {}; // the end of each lane, then the fork
  bool ownsFirst = true;
};

/// PTX of the kernel that sets conditions of graphs.
extern const char *const kConditionPtx;

class Device : public std::enable_shared_from_this<Device> {
public:
  using Ptr = std::shared_ptr<Device>;

  /// The properties of all GPUs. Unsupported if there is no driver.
  static Status list(std::vector<DeviceInfo> &out);
  /// Returns the same object as long as it is referenced. Unsupported if there is no driver or no such GPU.
  static Status open(int ordinal, Ptr &out);
  ~Device();
  Device(const Device &) = delete;

  /// Makes the device's context current for the thread, for its lifetime.
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

  // ---- device memory, in stream order
  Status allocate(size_t bytes, Holder holder, Stream stream, void *&out);
  void release(void *data, size_t bytes, Holder holder, Stream stream);
  MemoryUse memoryUse() const;
  /// allocate() fails if it would exceed the limit; 0: no limit.
  void setMemoryLimit(size_t bytes) { limit.store(bytes ? bytes : SIZE_MAX); }
  /// Pinned host memory, which the GPU accesses at full speed without the CPU. Small pieces are pooled.
  Status allocatePinned(size_t bytes, void *&out);
  void releasePinned(void *data, size_t bytes);
  /// Pinned memory for the elements of a tensor in host memory, of 64 KiB or more. It is kept for later ones when the
  /// last reference is dropped, once copies from it are complete.
  Status pinnedBuffer(size_t bytes, BufferRef &out);

  // ---- streams
  Status makeLanes(Lanes &lanes);
  void freeLanes(Lanes &lanes);
  /// The streams on which tensors are computed, in the order of the calls.
  Status sharedLanes(Lanes *&out);
  /// Streams for recording, one recording at a time: of a graph (depth 0) and of the bodies nested in it.
  Status recordingLanes(size_t depth, Lanes *&out);
  std::mutex recording;
  /// The kernel that sets the conditions of a graph (Conditions.cpp); null if the driver has no conditional nodes.
  /// Requires the context.
  Function conditionKernel();

  // ---- copies of tensors on separate streams, concurrent with computation. Host memory need not be pinned: it is
  // copied through a few pinned pieces, unless it is a pinnedBuffer().
  /// Allocates a buffer for later writes of the shared lanes.
  Status allocateBuffer(size_t bytes, BufferRef &out);
  /// A buffer with a copy of host memory; the shared lanes wait for it. Returns when `from` has been read, or, if it is
  /// in a pinnedBuffer(), before: then it must not change until the buffer is released.
  Status upload(const void *from, size_t bytes, BufferRef &out);
  /// Copies bytes written by the shared lanes to host memory; returns when they are complete.
  Status download(void *to, const void *from, size_t bytes);
  /// A copy of bytes that the shared lanes of another device have written.
  Status copyFrom(Device &other, const void *from, size_t bytes, BufferRef &out);
  /// Fills memory with `count` equal elements of `width` 1, 2, 4 or 8 bytes, on the shared lanes.
  Status fill(void *to, const void *element, size_t width, size_t count);
  /// A copy of bytes that the shared lanes have written.
  Status copyOf(const void *from, size_t bytes, BufferRef &out);
  /// Makes the shared lanes wait for the current work of another stream (follow), or that stream for theirs (lead).
  Status follow(Stream other);
  Status lead(Stream other);
  /// Waits for the shared lanes.
  Status synchronize();

  /// Loaded code that sessions of one program share on this device, guarded by `loading`.
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

  std::mutex lanesMutex; // guards the creation of these
  std::unique_ptr<Lanes> shared;
  std::vector<std::unique_ptr<Lanes>> recorders; // by depth
  bool hasAskedForConditions = false;
  Module conditionModule = nullptr;
  Function conditionFunction = nullptr;

  /// The memory of a pinnedBuffer().
  struct PinnedBlock {
    size_t bytes = 0;
    Event copied = nullptr; // recorded behind the last copy from it; null: there was none
  };
  std::mutex blocksMutex;
  std::map<const std::byte *, PinnedBlock> blocks;     // used and free
  std::multimap<size_t, const std::byte *> freeBlocks; // by size
  size_t freeBytes = 0;

  /// One direction of copies: a stream, a ring of pinned pieces, and for each the end of its last copy.
  struct CopyLane {
    static constexpr size_t kPieces = 4, kPieceBytes = size_t(2) << 20;
    std::mutex mutex;
    Stream stream = nullptr;
    Event ordered = nullptr; // recorded on the shared lanes
    std::array<std::byte *, kPieces> pieces = {};
    std::array<Event, kPieces> done = {};
    size_t next = 0;
  };
  CopyLane toDevice, toHost;

  Status start();
  Status openLanes(std::unique_ptr<Lanes> &lanes);
  Status exhausted(size_t bytes, const std::string &why) const;
  Status prepare(CopyLane &lane);
  void close(CopyLane &lane);
  Status takeBlock(size_t bytes, const std::byte *&out);
  void returnBlock(const std::byte *data);
  void freeBlock(const std::byte *data);
  PinnedBlock *blockOf(const void *from, size_t bytes);
  Status sendPinned(CopyLane &lane, void *to, const void *from, size_t bytes, PinnedBlock &block);
  Status sendThrough(CopyLane &lane, void *to, const void *from, size_t bytes);
  Status fetchThrough(CopyLane &lane, void *to, const void *from, size_t bytes);
  Status order(bool isFollowing, Stream other);
  Status fillIn(Stream stream, void *to, const void *element, size_t width, size_t count);
  Status allocateOn(Stream stream, size_t bytes, BufferRef &out);
};

} // namespace burin::rt::gpu
