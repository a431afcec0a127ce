#include "tools/burin/model/Reproducer.h"
#include "tools/burin/Commands.h"
#include "llvm/Support/ErrorHandling.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace burin::cli {
namespace {

// Allocated before a crash: a signal handler may only call async-signal-safe functions.
std::string reproducerText, reproducerPath, advice;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

void writeFd(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n <= 0)
      return;
    bytes.remove_prefix(size_t(n));
  }
}

void writeReproducer() {
  int fd = ::open(reproducerPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return;
  writeFd(fd, reproducerText);
  ::close(fd);
}

[[noreturn]] void end() {
  writeReproducer();
  writeFd(STDERR_FILENO, advice);
  ::_exit(kInternal);
}

void onSignal(int) {
  writeFd(STDERR_FILENO, "burin: error: internal error: the compiler crashed\n");
  end();
}
void onFatalError(void *, const char *reason, bool) {
  writeFd(STDERR_FILENO, "burin: error: internal error: ");
  writeFd(STDERR_FILENO, reason);
  writeFd(STDERR_FILENO, "\n");
  end();
}

/// Handlers run on an alternate stack, as the crash may be a stack overflow.
void useOwnStack() {
  static char memory[1 << 16];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  ::sigaltstack(&stack, nullptr);
}

} // namespace

Reproducer::Reproducer(std::string text) {
  const char *folder = std::getenv("TMPDIR");
  reproducerText = std::move(text);
  reproducerPath =
      std::string(folder && *folder ? folder : "/tmp") + "/burin-reproducer-" + std::to_string(::getpid()) + ".mlir";
  advice = "  please report it with this graph (its weights are left out): " + reproducerPath + "\n";
  useOwnStack();
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (int signal : kSignals)
    ::sigaction(signal, &action, nullptr);
  llvm::install_fatal_error_handler(onFatalError);
}

Reproducer::~Reproducer() {
  llvm::remove_fatal_error_handler();
  for (int signal : kSignals)
    ::signal(signal, SIG_DFL);
}

std::string Reproducer::write() const {
  writeReproducer();
  return reproducerPath;
}

} // namespace burin::cli
