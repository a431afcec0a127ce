// The primitives that the pool, the engine and the allocator wait with.
#pragma once
#include <atomic>
#include <cstdint>
#include <sched.h>

namespace burin::rt {

/// Tells the core that this is a spin loop, so that its sibling thread and the hypervisor can profit.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Sleeps while `word` holds `expected`. Returns at once if it does not; may return early.
void futexWait(std::atomic<uint32_t> &word, uint32_t expected);
void futexWake(std::atomic<uint32_t> &word, int threads);

/// For critical sections of a few instructions. Gives the core away when the holder seems to be off its own.
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
