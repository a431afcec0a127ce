#include "runtime/execute/session/AsyncRunner.h"
#include "runtime/support/Format.h"
#include <cstring>

namespace burin::rt {

AsyncRunner::~AsyncRunner() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (started)
    ::pthread_join(worker, nullptr);
}

Status AsyncRunner::start() {
  auto main = [](void *self) -> void * {
    static_cast<AsyncRunner *>(self)->loop();
    return nullptr;
  };
  if (int error = ::pthread_create(&worker, nullptr, main, this))
    return {ErrorCode::OutOfMemory, text("cannot start a thread for asynchronous runs: ", std::strerror(error))};
  started = true;
  return {};
}

Status AsyncRunner::enqueue(uint32_t function, std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                            const DoneHook &hook) {
  Job job{function, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, {}, hook};
  size_t total = 0;
  for (auto *views : {&job.inputs, &job.outputs})
    for (const TensorView &view : *views)
      total += view.shape ? view.rank : 0;
  job.dims.reserve(total); // the views point into it
  for (auto *views : {&job.inputs, &job.outputs})
    for (TensorView &view : *views)
      if (view.shape) {
        job.dims.insert(job.dims.end(), view.shape, view.shape + view.rank);
        view.shape = job.dims.data() + job.dims.size() - view.rank;
      }

  std::unique_lock lock(mutex);
  if (!started)
    if (Status s = start(); !s.ok())
      return s;
  if (!::pthread_equal(::pthread_self(), worker))
    changed.wait(lock, [&] { return queue.size() < kMaxWaiting; });
  queue.push_back(std::move(job));
  lock.unlock();
  changed.notify_all();
  return {};
}

void AsyncRunner::loop() {
  for (;;) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty())
      return;
    Job job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    changed.notify_all();
    Status status = session.run(job.inputs, job.outputs, job.function);
    job.hook.done(job.hook.ctx, status, job.outputs);
  }
}

} // namespace burin::rt
