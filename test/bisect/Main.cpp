// burin-planted BUG verify|bisect …: runs the command with a compiler into which a bug is planted.
// burin-planted nets FOLDER: writes the graphs in which the bugs show.
#include "test/bisect/Nets.h"
#include "test/bisect/PlantedBugs.h"
#include "tools/burin/Commands.h"
#include <cstdio>

using namespace burin;

int main(int argc, char **argv) {
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "nets" && argc == 3)
    return test::writeNets(argv[2]), 0;
  auto compiler = test::compilerWithBug(what);
  if (!compiler)
    return std::fprintf(stderr, "no bug '%s'\n", what.c_str()), 2;
  CLI::App app("burin with a bug", "burin-planted");
  app.require_subcommand(1);
  int exitCode = 0;
  cli::addVerify(app, exitCode, *compiler);
  cli::addBisect(app, exitCode, *compiler);
  CLI11_PARSE(app, argc - 1, argv + 1);
  return exitCode;
}
