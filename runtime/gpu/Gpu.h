// A GPU as one session uses it: the code and the weights of an artifact on it, and streams that work goes through. One
// thread at a time.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/gpu/Driver.h"
#include <array>
#include <memory>

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

class Gpu {
public:
  /// Loads the best code that the artifact has for this GPU, and copies the weights. Unsupported where there is no
  /// driver, no such GPU, or no code for it.
  static Status open(const Program &program, int ordinal, std::unique_ptr<Gpu> &out);
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

  // ---- memory. What fails is kept until finish(), and nothing is done from there on.
  /// Memory of the GPU; null: there is none.
  void *allocate(size_t bytes);
  void release(void *data);
  /// Memory of the process that the GPU reads and writes at its full speed, without the processor; null: there is none.
  void *allocatePinned(size_t bytes);
  void releasePinned(void *data);

  // ---- work, done later and in this order. Memory of the process is pinned, and stays as it is until finish().
  void toGpu(void *to, const void *from, size_t bytes);
  void toHost(void *to, const void *from, size_t bytes);
  void copy(void *to, const void *from, size_t bytes);
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
  static constexpr int kLanes = 4;
  void fork(int lanes);
  void useLane(int lane) { current = streams[size_t(lane)]; }
  void join(int lanes);

  // ---- what kernels report: one slot for each step of a plan that can, in order
  /// Whether something may have been reported since errors were last taken.
  bool mayHaveErrors() const { return hasErrors; }
  /// Fetches what has been reported. To be waited for.
  void fetchErrors();
  /// The least error in each slot as fetched, or INT64_MAX.
  std::span<const int64_t> takeErrors();
  /// Before a run: forgets errors of the one before.
  void begin();

  // ---- recording
  /// From here on work is recorded, not done. Always followed by endRecording().
  void beginRecording();
  /// Null after a failure.
  std::unique_ptr<Recording> endRecording();
  void replay(const Recording &);

  // ---- waiting
  /// Waits for all before, and reads at most 8 bytes of the GPU's memory. False: something has failed.
  bool read(void *to, const void *from, size_t bytes);
  /// Waits for all before. False: something has failed.
  bool wait();
  /// The same. The first failure since the last call.
  Status finish();

  std::byte *weights() const { return weightMemory; }
  /// A byte of the GPU's memory for whoever reads it at once.
  void *flag() const { return mailbox + slots * sizeof(int64_t); }

private:
  friend class Recording;
  Gpu() = default;
  Driver driver;
  std::string name; // "cuda:0"
  const Program *program = nullptr;
  const Code *code = nullptr;
  Device device = 0;
  Context context = nullptr;
  Module module = nullptr;
  std::array<Stream, kLanes> streams = {}; // the first one is what everything starts from and ends in
  std::array<Event, kLanes> events = {};   // the first one: a fork; others: the end of their lane
  Stream current = nullptr;
  std::vector<Function> functions;
  std::byte *weightMemory = nullptr;
  std::byte *mailbox = nullptr; // on the GPU: the slots for errors, the flag
  int64_t *letters = nullptr;   // pinned: the slots as fetched, then as they are without errors, then what is read
  uint32_t slots = 0;
  bool hasErrors = false;
  uint64_t allocations = 0;
  std::vector<void *> arguments;
  Status failure;

  Stream stream() const { return streams[0]; }
  Status chooseCode(const DeviceInfo &info, int ordinal);
  Status load();
  bool makeStreams();
  void makeMailbox();
  bool works(Result result, const char *what);
};

} // namespace burin::rt::gpu
