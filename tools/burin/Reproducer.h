// What is left behind when the compiler itself goes wrong: the graph that did it, as a file.
#pragma once
#include <string>

namespace burin::cli {

/// While one is alive, a crash (signal, failed assertion, fatal error of LLVM, uncaught exception) writes its text to a
/// file in the folder for temporary files, says so on stderr and ends the process with kInternal. One at a time.
class Reproducer {
public:
  explicit Reproducer(std::string text);
  ~Reproducer();
  Reproducer(const Reproducer &) = delete;
  Reproducer &operator=(const Reproducer &) = delete;

  /// Writes the file now. Returns its path.
  std::string write() const;
};

} // namespace burin::cli
