// A GPU as used by one session: code and weights of an artifact, and streams. Not thread-safe.
#pragma once
#include "runtime/gpu/LoadedCode.h"
#include "runtime/gpu/TensorMaps.h"
#include "runtime/gpu/libraries/CublasLt.h"
#include <array>
#include <memory>
#include <span>
#include <utility>

namespace burin::rt::gpu {

class Gpu;

/// Recorded work (a CUDA graph), replayed by one call. It refers to memory by address.
class Recording {
public:
  Recording(Gpu &gpu, GraphExec graph, Graph source);
  ~Recording();
  Recording(const Recording &) = delete;
  /// Whether no memory of the session has been reallocated since.
  bool isCurrent() const;

private:
  friend class Gpu;
  Gpu &gpu;
  GraphExec graph;
  Graph source;               // kept where it has conditional nodes; else null
  const uint64_t allocations; // of the session, when recorded
  const bool reports;         // whether its kernels may report errors
};

/// Errors that kernels of a run report, available when it is complete. Owns its memory.
struct Report {
  Report(Device::Ptr device, uint32_t slots) : device(std::move(device)), slots(slots) {}
  ~Report();
  Report(const Report &) = delete;
  /// Allocates memory and an event. Requires the context.
  Status prepare();
  /// Waits; returns the lowest error of each slot.
  Status wait(std::span<const int64_t> &out);

  const Device::Ptr device;
  const uint32_t slots;
  int64_t *letters = nullptr; // pinned
  Event done = nullptr;
  bool isEnqueued = false;
  bool isCaptured = false; // valid after each launch of the captured graph; the caller waits
};

/// The streams of a session.
struct StreamChoice {
  enum class Kind : uint8_t {
    Own,    // private streams
    Shared, // the streams of the device's tensors
    Given,  // the caller's stream
  };
  Kind kind = Kind::Own;
  Stream given = nullptr;
};

class Gpu {
public:
  static Status open(const Program &program, int ordinal, const StreamChoice &choice, std::unique_ptr<Gpu> &out);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  /// Makes the GPU's context current for the thread, for its lifetime. Required by all functions below.
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

  // ---- memory. An error is kept until finish(), and later calls do nothing.
  /// Allocates GPU memory; null on failure.
  void *allocate(size_t bytes, Holder holder);
  void release(void *data, size_t bytes, Holder holder);
  /// Allocates pinned host memory, which the GPU accesses at full speed without the CPU; null on failure.
  void *allocatePinned(size_t bytes);
  void releasePinned(void *data, size_t bytes);

  // ---- asynchronous work, in this order. Pinned host memory must not change until finish(); other memory has been
  // read when toGpu() returns.
  void toGpu(void *to, const void *from, size_t bytes);
  void toHost(void *to, const void *from, size_t bytes);
  void copy(void *to, const void *from, size_t bytes);
  /// Copies, with several attempts, where a failed call would leave inconsistent state.
  void copySurely(void *to, const void *from, size_t bytes);
  void zero(void *to, size_t bytes);
  struct Launch {
    uint32_t kernel;
    std::span<void *const> operands;
    const int64_t *sizes;
    int64_t blocks;
    void *scratch;
    uint32_t errorSlot; // slot for errors; kNoErrors if the kernel reports none
  };
  static constexpr uint32_t kNoErrors = UINT32_MAX;
  void launch(const Launch &, const std::string &location);
  /// Whether the last launch was a product by cuBLASLt.
  bool hasUsedLibrary() const { return usedLibrary; }
  /// Bytes of scratch memory that a kernel needs because a library may run in its place.
  uint64_t workspaceBytes(uint32_t kernel) const {
    return library && productOf(program->artifact(), kernel) ? CublasLt::kWorkspaceBytes : 0;
  }
  /// Why a library is not used although the artifact asks for it, once; "": nothing new.
  std::string takeNote() { return std::exchange(note, {}); }
  /// Between fork() and join(), launches of different lanes (numbers below kLanes) may run concurrently. Work after the
  /// join waits for all of them.
  static constexpr int kLanes = Lanes::kCount, kFork = kLanes;
  void fork();
  void useLane(int lane) { current = streams()[size_t(lane)]; }
  /// Records an event after the work enqueued in this lane so far, for order().
  void mark(int lane);
  /// Lets later work of `lane` wait for the last mark() of lane `after`, or for the work before fork() (kFork).
  void order(int lane, int after);
  void join(unsigned usedLanes);
  /// Whether each launch is waited for and checked: BURIN_CUDA_CHECK.
  bool checksLaunches() const { return isChecking; }

  // ---- errors of kernels: one slot per step that can report, in order
  /// Whether errors may have been reported since they were last taken.
  bool mayHaveErrors() const { return hasErrors; }
  /// Starts copying errors to the host.
  void fetchErrors();
  /// The lowest error of each slot, as fetched, or INT64_MAX.
  std::span<const int64_t> takeErrors();
  /// Copies errors to a report, for runs that return early.
  std::unique_ptr<Report> reportErrors();
  /// Called before a run: clears errors of the previous one.
  void begin();

  // ---- recording
  /// Whether the caller captures the stream; waiting and allocation are impossible then.
  bool isCaptured() const { return capturing; }
  /// Starts recording work instead of running it. Must be followed by endRecording().
  void beginRecording();
  /// Null after a failure.
  std::unique_ptr<Recording> endRecording();
  void replay(const Recording &);
  /// Whether work goes to a graph, of this session or of the caller.
  bool isInGraph() const { return recorder || capturing; }

  // ---- branches and loops in a graph (Conditions.cpp). Work between beginBody() and endBody() goes to the body of a
  // conditional node. Conditions are set by a kernel; 0 stands for none, and is what these return after a failure.
  bool hasConditions() const { return conditionKernel; }
  Condition makeCondition();
  /// Sets `met` to whether the byte at `flag` is not 0, and `unmet` to the opposite; both to false if a kernel of the
  /// run has reported an error, because its results may not be used.
  void setConditions(Condition met, Condition unmet, const void *flag);
  /// The body runs once if the condition holds, or, if `repeats`, as long as it holds.
  void beginBody(Condition condition, bool repeats);
  void endBody();

  // ---- waiting
  /// Waits for all earlier work and reads GPU memory; up to 8 bytes are fast. Returns false on failure.
  bool read(void *to, const void *from, size_t bytes);
  /// Waits for all earlier work. Returns false on failure.
  bool wait();
  /// Waits for all earlier work; returns the first error since the last call.
  Status finish();
  /// Returns without waiting, unless an error has occurred.
  Status leave();
  /// finish() for a run that updates states in place, as a single recorded graph: once launched, the graph has
  /// completed if any wait succeeds; after an error of its kernels none does.
  Status finishAtomic();

  std::byte *weights() const { return loaded->weights(); }
  uint32_t codeIndex() const { return loaded->index(); }
  /// A byte of GPU memory for a value that is read immediately.
  void *flag() const { return static_cast<int64_t *>(mailbox) + 2 * slots; }

private:
  friend class Recording;
  Gpu() = default;
  Device::Ptr target;
  const Program *program = nullptr;
  LoadedCode::Ptr loaded;
  StreamChoice::Kind kind = StreamChoice::Kind::Own;
  Lanes own;
  Lanes *lanes = nullptr;    // `own`, or the device's
  Lanes *recorder = nullptr; // streams of the innermost graph or body that is being recorded
  std::unique_lock<std::mutex> recordingLock;
  struct Body {
    Lanes *outer;
    bool began;
    uint64_t before; // value of `enqueued`
  };
  std::vector<Body> bodies; // outermost first
  uint64_t enqueued = 0;    // pieces of work so far
  bool hasBodies = false;   // in the graph that is being recorded
  Function conditionKernel = nullptr;
  Stream current = nullptr;
  Stream lastKernels = nullptr; // the stream to which this run has launched a kernel last; null: other work is last
  void *mailbox = nullptr;      // on the GPU: error slots, their values without errors, the flag
  int64_t *letters = nullptr;   // pinned: fetched slots, then read values
  uint32_t slots = 0;
  bool hasErrors = false, isChecking = false, capturing = false;
  uint64_t allocations = 0;
  std::vector<void *> arguments;
  std::vector<EncodedMap> maps;
  std::unique_ptr<CublasLt> library; // null: not asked for, or not there
  bool usedLibrary = false;
  std::string note;
  Status failure;

  const Device &driver() const { return *target; }
  std::array<Stream, kLanes> &streams() { return (recorder ? recorder : lanes)->streams; }
  std::array<Event, kLanes + 1> &events() { return (recorder ? recorder : lanes)->events; }
  Stream stream() { return streams()[0]; }
  Status start(const StreamChoice &choice);
  void *clean() const { return static_cast<int64_t *>(mailbox) + slots; }
  size_t mailboxBytes() const { return (2 * slots + 1) * sizeof(int64_t); }
  size_t letterBytes() const { return (slots + 1) * sizeof(int64_t); }
  Result launchBlocks(uint32_t kernel, unsigned blocks);
  void openLibrary();
  bool multiply(const Product &, const Launch &, const std::string &what);
  bool works(Result result, const char *what);
  void enqueues(Result result, const char *what);
  bool keep(Status status);
  Graph addConditional(Condition condition, bool repeats);
  static constexpr int kTries = 8;
};

} // namespace burin::rt::gpu
