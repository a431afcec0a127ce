// Tests random graphs: `ops-fuzz --seeds 1000 --first 1`, or one of them: `ops-fuzz --seed 17 [--print]`. With
// --symbols most sizes are symbolic, and results are compared with those of the same graph with fixed sizes. A failing
// graph is reduced to the fewest steps that fail.
#include "test/ops/RandomGraph.h"
#include <cstdio>
#include <cstring>

using namespace burin::test;

/// Prints the difference; returns false if there is one.
static bool tryShortest(uint64_t seed, bool symbols) {
  auto attempt = [&](size_t steps) { return symbols ? trySymbols(seed, steps) : tryGraph(seed, steps); };
  std::string whole = attempt(SIZE_MAX);
  if (whole.empty())
    return true;
  for (size_t steps = 1; steps < 32; ++steps)
    if (std::string different = attempt(steps); !different.empty()) {
      std::printf("with %zu steps, %s\n", steps, different.c_str());
      return false;
    }
  std::printf("%s\n", whole.c_str());
  return false;
}

int main(int argc, char **argv) {
  uint64_t first = 1, count = 100;
  bool print = false, symbols = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--print"))
      print = true;
    else if (!std::strcmp(argv[i], "--symbols"))
      symbols = true;
    else if (!std::strcmp(argv[i], "--seeds") && i + 1 < argc)
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (!std::strcmp(argv[i], "--first") && i + 1 < argc)
      first = std::strtoull(argv[++i], nullptr, 10);
    else if (!std::strcmp(argv[i], "--seed") && i + 1 < argc)
      first = std::strtoull(argv[++i], nullptr, 10), count = 1;
    else
      return std::fprintf(stderr, "usage: ops-fuzz [--first N] [--seeds N] [--seed N] [--symbols] [--print]\n"), 2;
  }
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (print)
      std::printf("%s\n", graphText(seed, SIZE_MAX, symbols).c_str());
    std::fprintf(stderr, "\rseed %llu, %llu failed", (unsigned long long)seed, (unsigned long long)failed);
    failed += !tryShortest(seed, symbols);
  }
  std::fprintf(stderr, "\n");
  return failed ? 1 : 0;
}
