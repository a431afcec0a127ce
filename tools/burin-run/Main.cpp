// burin-run: runs an artifact with the standalone runtime, through its C interface.
#include "tools/common/Runner.h"

int main(int argc, char **argv) {
  burin::run::Parsed parsed = burin::run::parseOptions("burin-run", "model.plate", {argv + 1, argv + argc});
  return parsed.options ? burin::run::Runner(*parsed.options).runAll() : parsed.exitCode;
}
