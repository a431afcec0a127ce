// Runs of one session, queued: they happen in order on a thread that starts with the first of them.
#pragma once
#include "runtime/execute/Session.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>

namespace burin::rt {

/// The end of an asynchronous run; the arguments are valid during the call only.
struct DoneHook {
  void *ctx = nullptr;
  void (*done)(void *ctx, const Status &status, std::span<const TensorView> outputs) = nullptr;
};

class AsyncRunner {
public:
  explicit AsyncRunner(Session &session) : session(session) {}
  /// Waits until the queue is empty. Not from inside a done hook.
  ~AsyncRunner();
  AsyncRunner(const AsyncRunner &) = delete;

  /// Copies the views, not the data. Blocks while kMaxWaiting runs are queued, except from inside a done hook. Fails
  /// only if the system does not give us a thread; the hook is not called then.
  Status enqueue(uint32_t function, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                 const DoneHook &hook);

private:
  static constexpr size_t kMaxWaiting = 64;

  struct Job {
    uint32_t function;
    std::vector<TensorView> inputs, outputs;
    std::vector<int64_t> dims; // what the shapes of the views point to
    DoneHook hook;
  };

  Session &session;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  bool stopping = false;
  pthread_t worker{}; // once `started`; not a std::thread, which reports failure by an exception
  bool started = false;

  Status start();
  void loop();
};

} // namespace burin::rt
