// The main program of all Catch2 tests. It differs from Catch2's own by an exit code for skipped cases, which version 2
// lacks.
#define CATCH_CONFIG_RUNNER
#include "test/Features.h"
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace burin::test {

static constexpr int kSkipped = 77; // SKIP_RETURN_CODE in BurinTest.cmake
static bool isSkipped = false;

static bool contains(const std::string &list, char separator, const std::string &word) {
  std::istringstream words(list);
  for (std::string next; std::getline(words, next, separator);)
    if (next == word)
      return true;
  return false;
}

bool hasFeature(const std::string &flag) {
  if (const char *without = std::getenv("BURIN_TEST_WITHOUT"); without && contains(without, ',', flag))
    return false;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags") || line.starts_with("Features"))
      return contains(line, ' ', flag);
  return false;
}

void skipWithout(const std::string &flag) {
  std::cout << "skipped: needs " << flag << std::endl;
  isSkipped = true;
}

} // namespace burin::test

int main(int argc, char **argv) {
  int failed = Catch::Session().run(argc, argv);
  return failed || !burin::test::isSkipped ? failed : burin::test::kSkipped;
}
