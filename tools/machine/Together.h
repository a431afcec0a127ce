// Runs the same work on several threads at once, each pinned to its own core.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace burin::machine {

inline std::vector<int> allowedCores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  return cores.empty() ? std::vector<int>{0} : cores;
}

/// Pins this thread to one core for its lifetime. Unpinned, two threads can share a core for a whole measurement.
class Pinned {
public:
  explicit Pinned(int core) {
    isKnown = pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
  ~Pinned() {
    if (isKnown)
      pthread_setaffinity_np(pthread_self(), sizeof before, &before);
  }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;

private:
  cpu_set_t before;
  bool isKnown;
};

/// Returns the seconds from the common start until the last thread is done, the minimum of `tries`. `work` takes the
/// thread's index.
inline double bestSeconds(int threads, int tries, const std::function<void(int)> &work) {
  std::vector<int> cores = allowedCores();
  constexpr int kSpins = 10'000;
  std::atomic<int> arrived{0};
  double best = 1e30;
  auto meet = [&](int target) {
    arrived.fetch_add(1);
    for (int spins = 0; arrived.load() < target; ++spins)
      if (spins > kSpins)
        sched_yield(); // on a busy machine the other threads may not be running yet
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      Pinned here(cores[size_t(t) % cores.size()]);
      for (int i = 0; i < tries; ++i) {
        meet((2 * i + 1) * threads);
        work(t);
        meet((2 * i + 2) * threads);
      }
    });
  std::optional<Pinned> here;
  if (threads > 1)
    here.emplace(cores[0]);
  for (int i = 0; i < tries; ++i) {
    meet((2 * i + 1) * threads);
    auto start = std::chrono::steady_clock::now();
    work(0);
    meet((2 * i + 2) * threads);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  for (std::thread &other : others)
    other.join();
  return best;
}

} // namespace burin::machine
