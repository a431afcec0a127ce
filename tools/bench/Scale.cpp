// The scale of the benchmark: what so many cores can do at this moment. Clocks change all the time, and so does what
// others leave of the memory, so both are measured between the turns of the contestants.
// Lines of stdin: "peak", answered by f32 operations per ns; "read LEVEL" and "copy LEVEL" (L1, …, DRAM), by bytes per
// ns. burin-bench-scale THREADS
#include "tools/machine/Machine.h"
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

using namespace burin::machine;

namespace {

/// 0: there is no such level.
double bandwidth(const std::string &how, const std::string &name, int threads) {
  static const std::vector<Level> levels = [] {
    Machine m;
    describe(m);
    return memoryLevels(m, Care::Thorough);
  }();
  static const Memories memory(threads, levels.back().bytes + 64);
  for (const Level &level : levels)
    if (level.name == name)
      return how == "copy" ? memory.copy(threads, level.bytes, Care::Quick)
                           : memory.read(threads, level.bytes, Care::Quick);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: burin-bench-scale THREADS\n", stderr);
    return 2;
  }
  int threads = std::atoi(argv[1]);
  for (std::string line, what, level; std::getline(std::cin, line);) {
    std::istringstream(line) >> what >> level;
    std::cout << (what == "peak" ? peak("f32", threads, Care::Quick) : bandwidth(what, level, threads)) << std::endl;
  }
}
