// Runs one loaded artifact, one run at a time. The first run with a set of shapes binds and allocates; later runs with
// the same shapes allocate nothing and take no lock.
#pragma once
#include "runtime/execute/ShapeBinding.h"
#include "runtime/format/ErrorList.h"
#include "runtime/threads/Pool.h"
#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace burin::rt {

/// Where a session gets its memory. Null functions: the C library. `allocate` may return null.
struct Allocator {
  void *ctx = nullptr;
  void *(*allocate)(void *ctx, size_t bytes, size_t align) = nullptr;
  void (*release)(void *ctx, void *data, size_t bytes) = nullptr;
};

/// Somebody else's thread pool, with the contract of Pool: worker indices below `threads`, no two running bodies of
/// one call with the same index.
struct ParallelFor {
  void *ctx = nullptr;
  void (*run)(void *ctx, int64_t n, int64_t grain, Pool::Body body, void *bodyCtx) = nullptr;
  int threads = 0;
};

/// Receives messages for whoever watches; level 0: debug, 1: info, 2: warning.
struct Logger {
  void *ctx = nullptr;
  void (*log)(void *ctx, int level, const char *message) = nullptr;
};

struct SessionOptions {
  int threads = 0; // 0: the shared pool; 1: only the caller; more: a pool of its own
  Allocator allocator = {};
  ParallelFor parallelFor = {}; // when set, used instead of a pool
  Logger logger = {};
};

/// What one step of a run did; steps of a loop report once per turn. The pointers live as long as the program.
struct StepProfile {
  uint32_t step = 0;
  const char *kernel = nullptr, *location = nullptr; // location: "file:line", or ""
  int64_t startNs = 0, endNs = 0;                    // of CLOCK_MONOTONIC
  int64_t tasks = 0, flops = 0, bytes = 0;
  bool parallel = false;
  int64_t turn = 0, turns = 1; // of the loop that the step is in
};
struct ProfileHook {
  void *ctx = nullptr;
  void (*step)(void *ctx, const StepProfile &profile) = nullptr;
};

/// Memory that only grows.
class GrowingMemory {
public:
  explicit GrowingMemory(const Allocator &allocator) : allocator(allocator) {}
  GrowingMemory(GrowingMemory &&other) noexcept
      : allocator(other.allocator), memory(std::exchange(other.memory, nullptr)),
        capacity(std::exchange(other.capacity, 0)) {}
  GrowingMemory &operator=(GrowingMemory &&) = delete;
  ~GrowingMemory() { release(); }

  /// Makes room for `bytes`, losing the contents when it has to move. False when there is no memory.
  bool reserve(uint64_t bytes);
  void release();
  std::byte *data() const { return memory; }
  uint64_t size() const { return capacity; }

private:
  Allocator allocator;
  std::byte *memory = nullptr;
  uint64_t capacity = 0;
};

class Session {
public:
  static Status create(Program::Ptr program, const SessionOptions &options, std::unique_ptr<Session> &out);
  Session(Program::Ptr program, const SessionOptions &options);
  ~Session();

  const Program &program() const { return *loaded; }

  /// Prepares for these input shapes (data may be null) and makes them current: outputShape answers for them.
  Status bind(std::span<const TensorView> inputs);
  /// Whether there was a successful bind or run; the next three need one.
  bool isBound() const { return reached > 0; }
  /// After a bind, or a run that failed, a size that only a run can tell is -1.
  std::span<const int64_t> outputShape(uint32_t i) const { return current(reached - 1).outputShape(i); }
  uint64_t outputBytes(uint32_t i) const { return current(reached - 1).outputBytes(i); }
  /// Bytes planned for intermediate results of the current shapes.
  uint64_t arenaBytes() const;
  int threads() const { return parallel.threads; }

  /// Runs. An output with data must have the right dtype and shape, and must overlap neither inputs nor other
  /// outputs; one without is given memory of the session, valid until the next run, and all its fields are set. Whether
  /// a shape that depends on what is computed is the right one turns out, and may be refused, on the way.
  Status run(std::span<const TensorView> inputs, std::span<TensorView> outputs);

  /// Called after each step of later runs; a null function turns it off.
  Status setProfile(const ProfileHook &hook);

private:
  static constexpr size_t kMaxBindings = 8;

  Program::Ptr loaded;
  Allocator allocator;
  ParallelFor parallel;
  Logger logger;
  std::unique_ptr<Pool> ownPool;
  Pool *pool = nullptr; // ours or the shared one; null when `parallel` is somebody else's, or serial
  GrowingMemory scratch;
  std::vector<GrowingMemory> outputMemory;
  struct Stage {
    GrowingMemory arena;
    std::vector<std::unique_ptr<ShapeBinding>> bindings; // most recent first
  };
  std::vector<Stage> stages;
  size_t reached = 0;         // stages whose first binding is that of the latest bind or run
  std::vector<int64_t> sizes; // the symbols of the next stage
  ProfileHook profile;
  std::atomic<bool> busy = false;

  ShapeBinding &current(size_t stage) const { return *stages[stage].bindings.front(); }
  Status runBound(std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status runStage(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status bindFirst(std::span<const TensorView> inputs);
  Status bindNext(std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  Status readSizes(const ShapeBinding &before, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  void keep(size_t stage, std::unique_ptr<ShapeBinding> binding);
  Status prepareMemory(size_t stage);
  Status setOperands(size_t stage, std::span<const TensorView> inputs, std::span<TensorView> outputs);
  Status checkInputs(std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  /// Memory that a run gave.
  bool isOurs(uint32_t output, const TensorView &view) const {
    return view.data && view.data == outputMemory[output].data();
  }
  void checkOutput(uint32_t output, const ShapeBinding &binding, const TensorView &given, ErrorList &problems) const;
  void runStep(const ShapeBinding &binding, const BoundStep &step, void *const *operands);
  void runSideBySide(const ShapeBinding &binding, std::span<const BoundStep> steps);
  void runLoop(ShapeBinding &binding, const BoundLoop &loop);
  template <class F> void runTurn(ShapeBinding &binding, const BoundLoop &loop, int64_t turn, F run);
  void runSteps(ShapeBinding &binding);
  void runProfiled(ShapeBinding &binding);
};

} // namespace burin::rt
