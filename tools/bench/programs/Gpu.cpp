// burin-bench-gpu [NAME…]: times jitted models and overheads on the first GPU.
#include "tools/bench/models/Models.h"
#include "tools/demo/ResNet.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <functional>
#include <iostream>

using namespace burin;
using Clock = std::chrono::steady_clock;

namespace {

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

using Print = void (*)(const char *, int);
using Reset = void (*)();

/// Median milliseconds of a call that is waited for, and milliseconds per call of 50 that are not.
void time(const std::string &name, const std::function<void()> &call, int runs = 60) {
  auto begin = Clock::now();
  call();
  synchronize(cuda(0));
  const double first = since(begin);
  for (int i = 0; i < 5; ++i)
    call();
  synchronize(cuda(0));
  std::vector<double> all;
  for (int i = 0; i < runs; ++i) {
    begin = Clock::now();
    call();
    synchronize(cuda(0));
    all.push_back(since(begin));
  }
  std::nth_element(all.begin(), all.begin() + runs / 2, all.end());
  begin = Clock::now();
  for (int i = 0; i < runs; ++i)
    call();
  synchronize(cuda(0));
  std::printf("%-24s first %8.1f ms, waited for %8.4f ms, in a row %8.4f ms\n", name.c_str(), first,
              all[size_t(runs) / 2], since(begin) / runs);
  std::fflush(stdout);
  if (auto print = reinterpret_cast<Print>(dlsym(RTLD_DEFAULT, "prof_print"))) {
    reinterpret_cast<Reset>(dlsym(RTLD_DEFAULT, "prof_reset"))();
    for (int i = 0; i < 10; ++i)
      call(), synchronize(cuda(0));
    print(name.c_str(), 10);
  }
}

void timeModel(const std::string &name, const bench::Model &model) {
  std::vector<Tensor> inputs;
  for (const auto &[inputName, value] : model.inputs)
    inputs.push_back(value.to(cuda(0)));
  Graph graph = model.graph;
  time(name, [&] { graph.run(inputs); });
}

} // namespace

int main(int argc, char **argv) try {
  std::vector<std::string> names(argv + 1, argv + argc);
  auto wants = [&](const char *name) {
    return names.empty() ||
           std::ranges::any_of(names, [&](const std::string &n) { return std::string(name).starts_with(n); });
  };
  DeviceScope scope(cuda(0));
  if (wants("resnet50-1"))
    timeModel("resnet50-1", bench::resnet50(1, f16));
  if (wants("resnet50-64"))
    timeModel("resnet50-64", bench::resnet50(64, f16));
  if (wants("bert"))
    timeModel("bert", bench::bert({12, 768}, 1, 128, f16));
  if (wants("gpt2"))
    timeModel("gpt2", bench::gpt2Decode(512, bf16));
  if (wants("softmaxes")) {
    auto many = jit([](const Tensor &from) {
      Tensor x = from;
      for (int i = 0; i < 300; ++i)
        x = softmax(x * 1.01, 1);
      return x;
    });
    Tensor x = randn({64, 256});
    time("softmaxes", [&] { many(x); });
  }
  if (wants("eager")) {
    Tensor x = randn({1024});
    for (int i = 0; i < 100; ++i)
      x + x;
    synchronize(cuda(0));
    std::vector<double> all;
    for (int k = 0; k < 20; ++k) {
      auto begin = Clock::now();
      for (int i = 0; i < 200; ++i)
        x + x;
      all.push_back(since(begin) / 200 * 1e3);
      synchronize(cuda(0));
    }
    std::ranges::sort(all);
    std::printf("eager: enqueue %.2f us (least %.2f)\n", all[10], all[0]);
  }
  if (wants("loop")) {
    auto loop = jit([](const Tensor &x) {
      return while_loop([](const Tensor &i, const Tensor &) { return i < 200; },
                        [](const Tensor &i, const Tensor &y) { return std::pair(i + 1, softmax(y * 1.01, 1)); },
                        std::pair(full({}, 0, i64), x))
          .second;
    });
    Tensor x = randn({64, 256});
    time("loop of 200", [&] { loop(x); }, 20);
  }
  if (wants("train-resnet18")) {
    ResNet18 net;
    optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
    auto step = jit([net, optimizer](const Tensor &x, const Tensor &y) mutable {
      Tensor loss = cross_entropy(net(x), y);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      return loss.detach();
    });
    Tensor x = randn({64, 1, 28, 28}), y = (arange(64) % 10).to(cuda(0));
    time("train-resnet18", [&] { step(x, y); }, 30);
  }
  if (wants("train-resnet50")) {
    auto step = bench::resnet50Step();
    Tensor x = randn({16, 3, 224, 224}), y = (arange(16) % 1000).to(cuda(0));
    time("train-resnet50", [&] { step(x, y); }, 8);
  }
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
