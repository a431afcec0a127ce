// burin bench: measures the latency of a model.
#include "runtime/execute/ShapeBinding.h"
#include "runtime/threads/CpuTopology.h"
#include "tools/burin/Commands.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/Execute.h"
#include "tools/common/Runner.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

namespace burin::cli {
namespace {

struct Arguments {
  InputArguments inputs;
  run::Options run;
  codegen::CompileOptions compile;
  std::vector<int> threads{0};
  int64_t iterations = 0, warmup = 10; // iterations 0: as many as fit into minTime
  double minTime = 1;                  // seconds
};

/// The measurement for one number of threads.
struct Measurement {
  int threads = 0;
  int64_t iterations = 0;
  double bindUs = 0; // planning for the shapes, which only the first run with them does
  run::Times us{};
  std::vector<run::StepTimes> steps;
};

constexpr int64_t kMaxIterations = 1000000, kProfileRuns = 100;

bool measure(run::Runner &runner, const Arguments &a, int threads, Measurement &out) {
  if (!runner.openSession(threads) || !runner.bind(out.bindUs))
    return false;
  for (int64_t i = 0; i < a.warmup; ++i)
    if (!runner.runOnce())
      return false;
  std::vector<double> times;
  double end = run::nowUs() + a.minTime * 1e6;
  auto isDone = [&] {
    auto n = int64_t(times.size());
    return a.iterations ? n == a.iterations : n == kMaxIterations || (n >= 3 && run::nowUs() >= end);
  };
  while (!isDone()) {
    double start = run::nowUs();
    if (!runner.runOnce())
      return false;
    times.push_back(run::nowUs() - start);
  }
  out.threads = threads;
  out.iterations = int64_t(times.size());
  out.us = run::quantiles(std::move(times));
  if (!a.run.profile)
    return true;
  // The overall time is measured in separate runs, as reading the clock around each step costs time.
  runner.report.steps.clear();
  if (!runner.startProfile())
    return false;
  for (int64_t i = 0; i < std::min(out.iterations, kProfileRuns); ++i)
    if (!runner.runOnce())
      return false;
  out.steps = runner.report.steps;
  return true;
}

std::string threadText(int threads) {
  return threads ? std::to_string(threads) : std::to_string(rt::defaultThreads()) + " (default)";
}

std::string shapeText(const run::NamedTensor &t) {
  return run::typeText(DType(t.tensor.dtype), {t.tensor.shape, t.tensor.rank});
}

void print(const Arguments &a, const run::Report &report, const std::vector<Measurement> &measurements) {
  std::printf("%s on %s, code for %s, planned memory %llu bytes\n", a.run.model.c_str(),
              llvm::sys::getHostCPUName().str().c_str(), report.target.c_str(),
              static_cast<unsigned long long>(report.arenaBytes));
  for (const run::NamedTensor &input : report.inputs)
    std::printf("  %s %s, %s\n", input.name.c_str(), shapeText(input).c_str(), input.source.c_str());
  for (const Measurement &m : measurements) {
    std::printf(
        "threads %s: median %.2f µs, p10 %.2f, p90 %.2f; %lld iterations after %lld of warm-up; planned in %.1f "
        "µs\n",
        threadText(m.threads).c_str(), m.us.median, m.us.p10, m.us.p90, static_cast<long long>(m.iterations),
        static_cast<long long>(a.warmup), m.bindUs);
    if (!m.steps.empty())
      run::printSteps(stdout, m.steps);
  }
}

llvm::json::Object jsonOf(const Arguments &a, const Measurement &m) {
  llvm::json::Array steps;
  for (const run::StepTimes &s : m.steps) {
    steps.push_back(llvm::json::Object{{"step", int64_t(s.step.step)},
                                       {"kernel", s.step.kernel},
                                       {"source", s.step.location},
                                       {"us", s.medianUs()},
                                       {"flops", s.step.flops},
                                       {"bytes", s.step.bytes}});
  }
  return llvm::json::Object{{"threads", m.threads ? m.threads : rt::defaultThreads()},
                            {"warmup", a.warmup},
                            {"iterations", m.iterations},
                            {"bind_us", m.bindUs},
                            {"median_us", m.us.median},
                            {"p10_us", m.us.p10},
                            {"p90_us", m.us.p90},
                            {"steps", std::move(steps)}};
}

void printJson(const Arguments &a, const run::Report &report, const std::vector<Measurement> &measurements) {
  llvm::json::Array inputs, runs;
  for (const run::NamedTensor &input : report.inputs)
    inputs.push_back(llvm::json::Object{{"name", input.name}, {"type", shapeText(input)}, {"source", input.source}});
  for (const Measurement &m : measurements)
    runs.push_back(jsonOf(a, m));
  llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{{"model", a.run.model},
                                                                                {"device", llvm::sys::getHostCPUName()},
                                                                                {"target", report.target},
                                                                                {"planned_bytes", report.arenaBytes},
                                                                                {"inputs", std::move(inputs)},
                                                                                {"runs", std::move(runs)}}));
  llvm::outs().flush();
}

int bench(Arguments &a) {
  std::vector<std::byte> artifact;
  int code = a.inputs.moveTo(a.run);
  if (code || (code = artifactOf(a.run, a.compile, artifact)))
    return code;
  run::Runner runner(a.run);
  if (!runner.load(artifact) || !runner.prepareInputs())
    return runner.exitCode;
  std::vector<Measurement> measurements(a.threads.size());
  for (size_t i = 0; i < a.threads.size(); ++i)
    if (!measure(runner, a, a.threads[i], measurements[i]))
      return runner.exitCode;
  (a.run.json ? printJson : print)(a, runner.report, measurements);
  return kOk;
}

} // namespace

void addBench(CLI::App &app, int &exitCode) {
  auto a = std::make_shared<Arguments>();
  a->run.program = "burin bench";
  CLI::App *command =
      app.add_subcommand("bench", "Measure the latency of an artifact, or of a graph, which is compiled first");
  command->add_option("model", a->run.model, "model.plate, model.onnx, model.burin or model.mlir")->required();
  command->add_option("--input", a->inputs.inputs, "NAME=@FILE.npy or NAME=NUMBER; random if not given");
  command->add_option("--fix", a->run.fixed, kFixHelp);
  command->add_option("--dim", a->inputs.dims, "NAME=SIZE: a symbolic size (default 1)");
  command->add_option("--function", a->run.function, "Function of the artifact (default: the first)");
  command->add_option("--seed", a->run.seed, "Seed of the random inputs (default 0)");
  command->add_option("--threads", a->threads, "Numbers of threads, each measured: 1,2; default: the processor's")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  auto *iterations =
      command->add_option("--iterations", a->iterations, "Timed runs; default: as many as --min-time takes")
          ->check(CLI::PositiveNumber);
  command->add_option("--min-time", a->minTime, "Seconds to measure for (default 1)")
      ->check(CLI::PositiveNumber)
      ->excludes(iterations);
  command->add_option("--warmup", a->warmup, "Runs before those that are timed (default 10)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--target", a->compile.targets, "As for compile")->delimiter(',');
  command->add_flag("--profile", a->run.profile, "Median time of each kernel, from up to 100 additional runs");
  command->add_flag("--json", a->run.json, "Print JSON");
  command->callback([a, &exitCode] { exitCode = bench(*a); });
}

} // namespace burin::cli
