// Writes the current graph to a file when the compiler itself fails.
#pragma once
#include <string>

namespace burin::cli {

/// While an object exists, a crash (signal, failed assertion, fatal error of LLVM, uncaught exception) writes its text
/// to a file in the temporary folder, prints the path to stderr and ends the process with kInternal. At most one object
/// may exist at a time.
class Reproducer {
public:
  explicit Reproducer(std::string text);
  ~Reproducer();
  Reproducer(const Reproducer &) = delete;
  Reproducer &operator=(const Reproducer &) = delete;

  /// Writes the file now and returns its path.
  std::string write() const;
};

} // namespace burin::cli
