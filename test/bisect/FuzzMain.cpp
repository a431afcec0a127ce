// Compiles random graphs of ops on images and compares results with the interpreter: `bisect-fuzz [--first N] [--seeds
// N] [--steps N]`. A failing graph is written to seed-N.mlir, as input for burin bisect.
#include "ir/dialect/Burin.h"
#include "test/passes/RandomGraph.h"
#include "tools/burin/Progress.h"
#include "tools/burin/verify/Probe.h"
#include "llvm/Support/raw_ostream.h"

using namespace burin;

namespace {

/// Returns false if the graph of this seed fails.
bool tryGraph(unsigned seed, int steps) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ir::loadDialects(context);
  test::RandomGraph graph = test::randomGraph(context, seed, steps);
  cli::Probe probe;
  probe.sizes = {{"n", 1 + seed % 5}};
  probe.threads = 1 + int(seed % 2);
  cli::Failure failure = probe.run(*graph.module);
  if (failure.kind == cli::Failure::None)
    return true;
  std::string path = "seed-" + std::to_string(seed) + ".mlir";
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << *graph.module;
  std::printf("%s: %s: %s\n", path.c_str(), failure.stage.c_str(), failure.what.c_str());
  return false;
}

} // namespace

int main(int argc, char **argv) {
  unsigned first = 1, seeds = 100, failed = 0;
  int steps = 12;
  CLI::App app("random graphs, compiled and compared");
  app.add_option("--first", first);
  app.add_option("--seeds", seeds);
  app.add_option("--steps", steps);
  CLI11_PARSE(app, argc, argv);
  cli::Progress progress;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    progress.say("seed " + std::to_string(seed) + ", " + std::to_string(failed) + " failed");
    failed += !tryGraph(seed, steps);
  }
  std::printf("%u of %u graphs failed\n", failed, seeds);
  return failed ? 1 : 0;
}
