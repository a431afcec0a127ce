// burin-bench-scale THREADS: measures the peak arithmetic rate and memory bandwidth of this machine at the moment.
// Clock frequencies and other processes change both, so compare.py asks for them between the turns of the contestants.
// Reads commands from stdin: "peak" prints f32 operations per ns; "read LEVEL" and "copy LEVEL" (L1, …, DRAM) print
// bytes per ns.
#include "tools/machine/Machine.h"
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

using namespace burin::machine;

namespace {

/// Returns bytes per ns, or 0 if the machine has no such level.
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
