// burin-bench-gpu [NAME…]: times models and overheads on the first GPU; all, or those whose names begin so.
#include "tools/bench/models/Models.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

using namespace burin;
using Clock = std::chrono::steady_clock;

namespace {

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Prints milliseconds: of the first call, the median of `runs` calls that are waited for, and the mean of as many
/// calls in a row.
void time(const std::string &name, const std::function<void()> &call, int runs = 60) {
  auto timed = [&](int calls) {
    auto begin = Clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    synchronize(cuda(0));
    return since(begin);
  };
  const double first = timed(1);
  timed(5);
  std::vector<double> all;
  for (int i = 0; i < runs; ++i)
    all.push_back(timed(1));
  std::ranges::sort(all);
  std::printf("%-24s first %8.1f ms, waited for %8.4f ms, in a row %8.4f ms\n", name.c_str(), first,
              all[size_t(runs) / 2], timed(runs) / runs);
  std::fflush(stdout);
}

void timeModel(const std::string &name, const bench::Model &model) {
  std::vector<Tensor> inputs;
  for (const auto &[inputName, value] : model.inputs)
    inputs.push_back(value.to(cuda(0)));
  Graph graph = model.graph;
  time(name, [&] { graph.run(inputs); });
}

/// Microseconds until an eager call returns: the median, and the least of 20 times 200 calls.
void timeEagerCalls() {
  Tensor x = randn({1024});
  std::vector<double> all;
  for (int round = -1; round < 20; ++round) { // the first one warms up
    auto begin = Clock::now();
    for (int i = 0; i < 200; ++i)
      x + x;
    if (round >= 0)
      all.push_back(since(begin) / 200 * 1e3);
    synchronize(cuda(0));
  }
  std::ranges::sort(all);
  std::printf("eager: enqueue %.2f us (least %.2f)\n", all[10], all[0]);
}

void timeLoop() {
  auto loop = jit([](const Tensor &x) {
    return while_loop([](const Tensor &i, const Tensor &) { return i < 200; },
                      [](const Tensor &i, const Tensor &y) { return std::pair(i + 1, softmax(y * 1.01, 1)); },
                      std::pair(full({}, 0, i64), x))
        .second;
  });
  Tensor x = randn({64, 256});
  time("loop of 200", [&] { loop(x); }, 20);
}

/// 300 softmaxes over alternating axes, which are not fused: the replay of a CUDA graph, per kernel.
void timeReplay() {
  auto chain = jit([](Tensor x) {
    for (int i = 0; i < 300; ++i)
      x = softmax(x * 1.5, i % 2);
    return x;
  });
  Tensor x = randn({64, 64});
  time("300 kernels", [&] { chain(x); });
}

void timeTraining() {
  auto step = bench::resnet50Step();
  Tensor x = randn({16, 3, 224, 224}), y = (arange(16) % 1000).to(cuda(0));
  time("train-resnet50", [&] { step(x, y); }, 8);
}

struct Benchmark {
  std::string name;
  std::function<void()> run;
};
const Benchmark kBenchmarks[] = {
    {"resnet50-1", [] { timeModel("resnet50-1", bench::resnet50(1, f16)); }},
    {"resnet50-64", [] { timeModel("resnet50-64", bench::resnet50(64, f16)); }},
    {"resnet50-256", [] { timeModel("resnet50-256", bench::resnet50(256, f16)); }},
    {"bert", [] { timeModel("bert", bench::bert({12, 768}, 1, 128, f16)); }},
    {"gpt2", [] { timeModel("gpt2", bench::gpt2Decode(512, bf16)); }},
    {"eager", timeEagerCalls},
    {"loop", timeLoop},
    {"replay", timeReplay},
    {"train-resnet50", timeTraining},
};

} // namespace

int main(int argc, char **argv) try {
  const std::vector<std::string> names(argv + 1, argv + argc);
  DeviceScope scope(cuda(0));
  for (const auto &[name, run] : kBenchmarks)
    if (names.empty() || std::ranges::any_of(names, [&](const std::string &n) { return name.starts_with(n); }))
      run();
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
