// A progress line on the terminal.
#pragma once
#include <cstdio>
#include <string>
#include <unistd.h>

namespace burin::cli {

/// Writes to stderr if that is a terminal; the destructor erases the line.
class Progress {
public:
  Progress() = default;
  ~Progress() {
    if (isShown)
      std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void say(const std::string &text) {
    if (!isTerminal)
      return;
    isShown = true;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }

private:
  bool isShown = false, isTerminal = isatty(STDERR_FILENO);
};

} // namespace burin::cli
