// Waiting primitives of the pool, the engine and the allocator.
#pragma once
#include <atomic>
#include <cstdint>
#include <sched.h>

namespace burin::rt {

/// Hints the processor that this is a spin loop, which benefits its sibling thread and the hypervisor.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Sleeps while `word` equals `expected`. Returns at once if it does not; may return early.
void futexWait(std::atomic<uint32_t> &word, uint32_t expected);
void futexWake(std::atomic<uint32_t> &word, int threads);

/// A lock for critical sections of a few instructions. Yields the core if the holder seems to be descheduled.
class SpinLock {
  std::atomic<bool> held{false};

public:
  void lock() {
    for (int spins = 0; held.exchange(true, std::memory_order_acquire);)
      while (held.load(std::memory_order_relaxed))
        if (++spins % 64)
          relax();
        else
          sched_yield();
  }
  void unlock() { held.store(false, std::memory_order_release); }
};

} // namespace burin::rt
