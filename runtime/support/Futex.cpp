#include "runtime/support/Futex.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace burin::rt {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain 32-bit word");

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWake(std::atomic<uint32_t> &word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

} // namespace burin::rt
