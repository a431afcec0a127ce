// A GPU as one session uses it: the code and the weights of an artifact on it, and streams that work goes through. One
// thread at a time.
#pragma once
#include "runtime/gpu/LoadedCode.h"
#include <array>
#include <memory>
#include <span>

namespace burin::rt::gpu {

class Gpu;

/// Work that has been recorded, to be done again by one call. It refers to memory by address.
class Recording {
public:
  Recording(Gpu &gpu, GraphExec graph);
  ~Recording();
  Recording(const Recording &) = delete;
  /// Whether no memory of the session has moved since.
  bool isCurrent() const;

private:
  friend class Gpu;
  Gpu &gpu;
  GraphExec graph;
  const uint64_t allocations; // of the session until then
  const bool reports;         // whether kernels in it may report errors
};

/// What kernels of a run have reported, when it is done. Keeps what it needs.
struct Report {
  Report(Device::Ptr device, uint32_t slots) : device(std::move(device)), slots(slots) {}
  ~Report();
  Report(const Report &) = delete;
  /// Memory for it, and an event that is recorded behind it. Needs the context.
  Status prepare();
  /// Waits. The least error of each slot.
  Status wait(std::span<const int64_t> &out);

  const Device::Ptr device;
  const uint32_t slots;
  int64_t *letters = nullptr; // pinned
  Event done = nullptr;
  bool isEnqueued = false;
  bool isCaptured = false; // each time the caller launches what it has captured; it waits, too
};

/// Which streams a session works on.
struct StreamChoice {
  enum class Kind : uint8_t {
    Own,    // its own
    Shared, // those of the device's tensors
    Given,  // the caller's
  };
  Kind kind = Kind::Own;
  Stream given = nullptr;
};

class Gpu {
public:
  static Status open(const Program &program, int ordinal, const StreamChoice &choice, std::unique_ptr<Gpu> &out);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  /// Makes the GPU's context the thread's own while it lives. All functions below need one.
  class Use {
  public:
    explicit Use(Gpu &gpu);
    ~Use();
    Use(const Use &) = delete;

  private:
    Gpu &gpu;
    bool pushed;
  };

  int ordinal() const { return target->ordinal(); }
  const Device::Ptr &device() const { return target; }

  // ---- memory. What fails is kept until finish(), and nothing is done from there on.
  /// Memory of the GPU; null: there is none.
  void *allocate(size_t bytes, Holder holder);
  void release(void *data, size_t bytes, Holder holder);
  /// Memory of the process that the GPU reads and writes at its full speed, without the processor; null: there is none.
  void *allocatePinned(size_t bytes);
  void releasePinned(void *data, size_t bytes);

  // ---- work, done later and in this order. Pinned memory of the process stays as it is until finish(); other memory
  // has been read when toGpu() returns.
  void toGpu(void *to, const void *from, size_t bytes);
  void toHost(void *to, const void *from, size_t bytes);
  void copy(void *to, const void *from, size_t bytes);
  /// The same for what must not fail because a call does: it is tried several times.
  void copySurely(void *to, const void *from, size_t bytes);
  void zero(void *to, size_t bytes);
  struct Launch {
    uint32_t kernel;
    std::span<void *const> operands;
    const int64_t *sizes;
    int64_t blocks;
    void *scratch;
    uint32_t errorSlot; // where it reports what is not allowed; kNoErrors: it reports nothing
  };
  static constexpr uint32_t kNoErrors = UINT32_MAX;
  void launch(const Launch &, const std::string &location);
  /// Until joined, launches of different lanes, below kLanes, may run side by side, after all before the fork. What
  /// follows the join comes after all of them.
  static constexpr int kLanes = Lanes::kCount;
  void fork(int lanes);
  void useLane(int lane) { current = streams()[size_t(lane)]; }
  void join(int lanes);
  /// Whether each launch is waited for and checked: BURIN_CUDA_CHECK.
  bool checksLaunches() const { return isChecking; }

  // ---- what kernels report: one slot for each step of a plan that can, in order
  /// Whether something may have been reported since errors were last taken.
  bool mayHaveErrors() const { return hasErrors; }
  /// Fetches what has been reported. To be waited for.
  void fetchErrors();
  /// The least error in each slot as fetched, or INT64_MAX.
  std::span<const int64_t> takeErrors();
  /// The same for later, when nobody waits here.
  std::unique_ptr<Report> reportErrors();
  /// Before a run: forgets errors of the one before.
  void begin();

  // ---- recording
  /// Whether the caller records what goes through the stream; nothing can be waited for or allocated then.
  bool isCaptured() const { return capturing; }
  /// From here on work is recorded, not done. Always followed by endRecording().
  void beginRecording();
  /// Null after a failure.
  std::unique_ptr<Recording> endRecording();
  void replay(const Recording &);

  // ---- waiting
  /// Waits for all before, and reads the GPU's memory, up to 8 bytes fast. False: something has failed.
  bool read(void *to, const void *from, size_t bytes);
  /// Waits for all before. False: something has failed.
  bool wait();
  /// The same. The first failure since the last call.
  Status finish();
  /// Without waiting, unless something has failed.
  Status leave();
  /// Waits as finish() does for a run that changes states where they are, all of it in one recording: once that is
  /// launched it has been done if any wait for it succeeds. After an error of its kernels none does.
  Status finishAtomic();

  std::byte *weights() const { return loaded->weights(); }
  /// A byte of the GPU's memory for whoever reads it at once.
  void *flag() const { return static_cast<int64_t *>(mailbox) + 2 * slots; }

private:
  friend class Recording;
  Gpu() = default;
  Device::Ptr target;
  const Program *program = nullptr;
  LoadedCode::Ptr loaded;
  StreamChoice::Kind kind = StreamChoice::Kind::Own;
  Lanes own;
  Lanes *lanes = nullptr; // own, or the device's
  Lanes *recorder = nullptr;
  std::unique_lock<std::mutex> recordingLock;
  Stream current = nullptr;
  void *mailbox = nullptr;    // on the GPU: the slots for errors, as they are without errors, the flag
  int64_t *letters = nullptr; // pinned: the slots as fetched, then what is read
  uint32_t slots = 0;
  bool hasErrors = false, isChecking = false, capturing = false;
  uint64_t allocations = 0;
  std::vector<void *> arguments;
  Status failure;

  const Device &driver() const { return *target; }
  std::array<Stream, kLanes> &streams() { return (recorder ? recorder : lanes)->streams; }
  std::array<Event, kLanes> &events() { return (recorder ? recorder : lanes)->events; }
  Stream stream() { return streams()[0]; }
  Status start(const StreamChoice &choice);
  void *clean() const { return static_cast<int64_t *>(mailbox) + slots; }
  size_t mailboxBytes() const { return (2 * slots + 1) * sizeof(int64_t); }
  size_t letterBytes() const { return (slots + 1) * sizeof(int64_t); }
  bool works(Result result, const char *what);
  bool keep(Status status);
  static constexpr int kTries = 8;
};

} // namespace burin::rt::gpu
