// burin: compiles graphs to artifacts, runs, measures and inspects them.
#include "tools/burin/Commands.h"

int main(int argc, char **argv) {
  using namespace burin::cli;
  CLI::App app("Compiles tensor graphs to artifacts; runs, measures and inspects them.", "burin");
  app.set_version_flag("--version", "burin " BURIN_VERSION);
  app.require_subcommand(1);
  int exitCode = kOk;
  addCompile(app, exitCode);
  addRun(app, exitCode);
  addBench(app, exitCode);
  addInspect(app, exitCode);
  addMachine(app, exitCode);
  addEnv(app, exitCode);
  addVerify(app, exitCode);
  addBisect(app, exitCode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return exitCode;
}
