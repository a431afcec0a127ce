// The scale of the benchmark: for each line of stdin the f32 peak of so many cores at this moment, in operations per
// ns. Processors change their clock all the time, so it is measured between the turns of the contestants.
// burin-bench-peak THREADS
#include "tools/machine/Machine.h"
#include <cstdio>
#include <cstdlib>
#include <iostream>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: burin-bench-peak THREADS\n", stderr);
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);)
    std::cout << burin::machine::peak("f32", std::atoi(argv[1]), burin::machine::Care::Quick) << std::endl;
}
