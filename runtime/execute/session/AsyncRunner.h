// A queue of runs of one session: they run in order on one thread, which starts with the first run.
#pragma once
#include "runtime/execute/session/Session.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>

namespace burin::rt {

/// Callback at the end of an asynchronous run; its arguments are valid during the call only.
struct DoneHook {
  void *ctx = nullptr;
  void (*done)(void *ctx, const Status &status, std::span<const TensorView> outputs) = nullptr;
};

class AsyncRunner {
public:
  explicit AsyncRunner(Session &session) : session(session) {}
  /// Waits until the queue is empty. Must not be called from a done hook.
  ~AsyncRunner();
  AsyncRunner(const AsyncRunner &) = delete;

  /// Copies the views but not the data. Blocks while kMaxWaiting runs are queued, unless called from a done hook. Fails
  /// only if no thread can be created; the hook is not called then.
  Status enqueue(uint32_t function, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                 const DoneHook &hook);

private:
  static constexpr size_t kMaxWaiting = 64;

  struct Job {
    uint32_t function;
    std::vector<TensorView> inputs, outputs;
    std::vector<int64_t> dims; // storage of the shapes of the views
    DoneHook hook;
  };

  Session &session;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  bool stopping = false;
  pthread_t worker{}; // valid once `started`; not a std::thread, which reports failure by an exception
  bool started = false;

  Status start();
  void loop();
};

} // namespace burin::rt
