#include "tools/burin/Commands.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace burin::cli {

int fail(int code, const std::string &message) {
  std::fflush(stdout); // keeps stdout and stderr in order where both go to one terminal
  const char *noColor = std::getenv("NO_COLOR");
  bool colour = isatty(STDERR_FILENO) && !(noColor && *noColor);
  std::fprintf(stderr, "burin: %serror:%s %s\n", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "", message.c_str());
  return code;
}

} // namespace burin::cli
