// burin-bench-parallel [--small]: measures asynchronous and concurrent execution. Prints rows of a table to stdout,
// "section,series,x,value", with times in seconds; tools/bench/pages/parallel.py makes docs/parallel.md from them. All
// results are compared with known ones; --small does only that, with few repetitions. BURIN_NUM_THREADS sets the number
// of threads.
#include "tools/bench/models/TrainingStep.h"
#include <algorithm>
#include <burin/burin.h>
#include <chrono>
#include <fstream>
#include <iostream>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace burin;

namespace {

using Clock = std::chrono::steady_clock;
using Step = std::function<Tensor(const Tensor &, const Tensor &)>;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <class F> double timeOf(F &&run) {
  Clock::time_point begin = Clock::now();
  run();
  return since(begin);
}

template <class F> double median(int times, F &&run) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i)
    all.push_back(timeOf(run));
  std::ranges::sort(all);
  return all[all.size() / 2];
}

template <class X> void row(const std::string &section, const std::string &series, X x, double value) {
  std::cout << section << "," << series << "," << x << "," << value << "\n" << std::flush;
}

void check(bool isRight, const std::string &what) {
  if (!isRight)
    throw std::runtime_error("wrong result: " + what);
}

struct Scale {
  bool isSmall;
  /// Returns `full`, or `few` with --small.
  int64_t operator()(int64_t full, int64_t few) const { return isSmall ? few : full; }
};

// ---- T(N) = t1 + N * t2 + t3

/// Chains of products. Measures the time until the last call returns (submission), the time until the result is ready,
/// and the time with a wait after each product. `kernel` is the time of one product in a compiled chain, the t2 of
/// docs/parallel.md.
void chains(Scale scale) {
  constexpr int64_t kCompiled = 32;
  const std::vector<int64_t> sizes =
      scale.isSmall ? std::vector<int64_t>{8} : std::vector<int64_t>{16, 64, 96, 128, 256};
  for (int64_t size : sizes) {
    const Tensor identity = eye(size).wait();
    auto chain = [&](int64_t length, bool waits) {
      Tensor y = identity;
      for (int64_t i = 0; i < length; ++i) {
        y = matmul(y, y);
        if (waits)
          y.wait();
      }
      return y;
    };
    auto compiled = jit([](Tensor y) {
      for (int64_t i = 0; i < kCompiled; ++i)
        y = matmul(y, y);
      return y;
    });
    check(all(compiled(identity) == identity).item<bool>(), "a compiled chain");
    check(all(chain(10, false) == identity).item<bool>(), "a chain");
    const std::string name = std::to_string(size);
    const int times = int(scale(15, 1));
    row("chain-kernel", name, kCompiled, median(times, [&] { compiled(identity).wait(); }) / double(kCompiled));
    for (int64_t length = 1; length <= scale(1000, 10); length *= 10) {
      std::vector<double> enqueue, total;
      for (int i = 0; i < times; ++i) {
        Clock::time_point begin = Clock::now();
        Tensor y = chain(length, false);
        enqueue.push_back(since(begin));
        y.wait();
        total.push_back(since(begin));
      }
      std::ranges::sort(enqueue);
      std::ranges::sort(total);
      row("chain-enqueue", name, length, enqueue[enqueue.size() / 2]);
      row("chain", name, length, total[total.size() / 2]);
      row("chain-waiting", name, length, median(times, [&] { chain(length, true); }));
    }
  }
}

// ---- a producer that runs ahead

double residentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * double(sysconf(_SC_PAGESIZE)) / 1e6;
}

/// Measures the memory of the process while calls are submitted faster than they run: small ops in a dependent chain,
/// and large ones whose results are dropped at once.
void producer(Scale scale) {
  auto submit = [&](const std::string &name, int64_t count, auto &&call) {
    for (int64_t i = 0; i < count; ++i) {
      call();
      if (i % std::max<int64_t>(count / 50, 1) == 0)
        row("producer", name, i, residentMegabytes());
    }
    synchronize();
    row("producer", name, count, residentMegabytes());
  };
  const int64_t few = scale(1000000, 10000);
  Tensor counter = zeros({64}, f64);
  submit("a chain on 64 numbers", few, [&] { counter = counter + 1.0; });
  check(all(counter == double(few)).item<bool>(), "a long chain");
  Tensor image = ones({1024, 1024}), sum;
  submit("results of 4 MB", scale(4000, 200), [&] { sum = image + image; });
  check(all(sum == 2.0).item<bool>(), "a large sum");
}

// ---- independent work

/// Independent chains of 512×512 products, run one after the other and all at once.
void independent(Scale scale) {
  const int64_t size = scale(512, 64), length = scale(8, 2);
  const Tensor identity = eye(size).wait();
  auto step = [&](Tensor &y) { y = matmul(y, y); };
  for (int64_t count : {2, 4, 8}) {
    const int times = int(scale(9, 1));
    std::vector<Tensor> ys(size_t(count), identity);
    row("independent", "one after the other", count, median(times, [&] {
          for (Tensor &y : ys) {
            for (int64_t i = 0; i < length; ++i)
              step(y);
            y.wait();
          }
        }));
    row("independent", "all at once", count, median(times, [&] {
          for (int64_t i = 0; i < length; ++i)
            for (Tensor &y : ys)
              step(y);
          synchronize();
        }));
    for (const Tensor &y : ys)
      check(all(y == identity).item<bool>(), "independent chains");
  }
}

/// GoogLeNet's first Inception block, and ResNet's block with a convolution as shortcut.
struct Inception : nn::Module {
  nn::Sequential a = register_module("a", nn::Sequential(nn::Conv2d(192, 64, 1), nn::ReLU()));
  nn::Sequential b = register_module(
      "b", nn::Sequential(nn::Conv2d(192, 96, 1), nn::ReLU(), nn::Conv2d(96, 128, 3, {.padding = 1}), nn::ReLU()));
  nn::Sequential c = register_module(
      "c", nn::Sequential(nn::Conv2d(192, 16, 1), nn::ReLU(), nn::Conv2d(16, 32, 5, {.padding = 2}), nn::ReLU()));
  nn::Sequential d = register_module(
      "d", nn::Sequential(nn::MaxPool2d(3, {.stride = 1, .padding = 1}), nn::Conv2d(192, 32, 1), nn::ReLU()));
  Tensor operator()(const Tensor &x) { return concat({a(x), b(x), c(x), d(x)}, 1); }
};

struct Shortcut : nn::Module {
  nn::Sequential body = register_module("body", nn::Sequential(nn::Conv2d(128, 256, 3, {.stride = 2, .padding = 1}),
                                                               nn::ReLU(), nn::Conv2d(256, 256, 3, {.padding = 1})));
  nn::Conv2d shortcut = register_module("shortcut", nn::Conv2d(128, 256, 1, {.stride = 2}));
  Tensor operator()(const Tensor &x) { return relu(body(x) + shortcut(x)); }
};

template <class Net> void branch(const std::string &name, Net net, const Tensor &x, Scale scale) {
  NoGrad scope;
  net.eval();
  auto compiled = jit(net);
  Tensor expected = net(x);
  check((compiled(x) - expected).abs().max().template item<float>() < 1e-4f, name);
  const int times = int(scale(15, 1));
  row("branches", name + " (eager)", 1, median(times, [&] { net(x).wait(); }));
  row("branches", name + " (jit)", 1, median(times, [&] { compiled(x).wait(); }));
}

/// A grouped convolution, as one op and as one convolution per group, with and without a wait after each.
void convolutions(Scale scale) {
  const int64_t groups = 8, width = scale(32, 8), images = scale(8, 2);
  const Tensor x = randn({images, groups * width, 28, 28}).wait(), w = randn({groups * width, width, 3, 3}).wait();
  std::vector<Tensor> xs, ws;
  for (int64_t g = 0; g < groups; ++g) {
    xs.push_back(x(Slice(), Slice(g * width, (g + 1) * width)).wait());
    ws.push_back(w(Slice(g * width, (g + 1) * width)).wait());
  }
  std::vector<Tensor> ys(groups);
  auto each = [&](bool waits) {
    for (size_t g = 0; g < size_t(groups); ++g) {
      ys[g] = conv(xs[g], ws[g], std::nullopt, {1}, {1});
      if (waits)
        ys[g].wait();
    }
    synchronize();
  };
  const int times = int(scale(15, 1));
  Tensor whole;
  auto grouped = [&] { whole = conv(x, w, std::nullopt, {1}, {1}, {1}, groups).wait(); };
  each(false);
  grouped();
  check((concat(ys, 1) - whole).abs().max().item<float>() < 1e-3f, "convolutions in groups");
  row("convolutions", "one after the other", groups, median(times, [&] { each(true); }));
  row("convolutions", "all at once", groups, median(times, [&] { each(false); }));
  row("convolutions", "one op with groups", groups, median(times, grouped));
}

// ---- loading beside training

/// Records start and end of each activity per thread, for the timeline.
class Trace {
public:
  void add(const std::string &what, Clock::time_point from) {
    std::lock_guard guard(lock);
    const double end = since(begin), start = std::chrono::duration<double>(from - begin).count();
    auto [place, isNew] = threads.try_emplace(std::this_thread::get_id(), threads.size());
    events.push_back({what, place->second, start, end});
  }
  void print(const std::string &section) const {
    for (const Event &event : events) {
      row(section, event.what + " begin", event.thread, event.from);
      row(section, event.what + " end", event.thread, event.to);
    }
  }

private:
  struct Event {
    std::string what;
    size_t thread;
    double from, to;
  };
  Clock::time_point begin = Clock::now();
  std::mutex lock;
  std::map<std::thread::id, size_t> threads{{std::this_thread::get_id(), 0}};
  std::vector<Event> events;
};

/// The time at which this thread began its current batch.
thread_local Clock::time_point firstExample;
thread_local bool isLoading = false;

/// A jitted training step of LeNet.
auto leNetStep() {
  manual_seed(2);
  auto net = nn::Sequential(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(6, 16, 5),
                            nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120), nn::ReLU(),
                            nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, 10));
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  return jit(bench::trainingStep(net, optimizer));
}

/// Steps per second with a loader over those on one resident batch, in alternation: the median of the rounds.
void keepingUp(Scale scale, data::DatasetRef images) {
  constexpr int64_t kBatch = 64;
  const int64_t steps = scale(200, 4), rounds = scale(9, 1);
  for (int workers : {0, 1}) {
    auto step = leNetStep();
    data::DataLoader loader(
        images,
        {.batch_size = std::min(kBatch, images->size()), .shuffle = true, .drop_last = true, .workers = workers});
    auto batch = [&] {
      std::optional<data::Example> next = loader.next();
      return next ? *next : *loader.next(); // the first one of the next epoch
    };
    const data::Example resident = batch();
    auto timeOfSteps = [&](auto source) {
      return timeOf([&] {
        Tensor loss;
        for (int64_t i = 0; i < steps; ++i) {
          const data::Example example = source();
          loss = step(example[0], example[1]);
        }
        loss.item();
      });
    };
    auto onResident = [&] { return data::Example(resident); };
    timeOfSteps(onResident);
    std::vector<double> ratios;
    for (int64_t i = 0; i < rounds; ++i) {
      const double without = timeOfSteps(onResident);
      ratios.push_back(without / timeOfSteps(batch));
    }
    std::ranges::sort(ratios);
    row("keeping up", "ratio", workers, ratios[ratios.size() / 2]);
  }
}

void loading(Scale scale) {
  const int64_t batch = scale(64, 8), batches = scale(40, 4);
  manual_seed(1);
  data::DatasetRef images =
      data::tensor_dataset({rand({batch * batches, 1, 28, 28}).wait(), (arange(batch * batches) % 10).wait()});
  keepingUp(scale, images);
  auto run = [&](int workers, bool trains, Trace *trace) {
    auto step = leNetStep();
    data::LoaderOptions options{.batch_size = batch, .shuffle = true, .seed = 3, .workers = workers};
    options.transform = data::compose({data::random_crop(28, {.padding = 4}), data::random_horizontal_flip()});
    if (trace) {
      options.transform = [inner = options.transform](data::Example example, data::Random &random) {
        if (!isLoading)
          firstExample = Clock::now();
        isLoading = true;
        return inner(std::move(example), random);
      };
      options.batch_transform = [trace](data::Example example, data::Random &) {
        trace->add("load", firstExample);
        isLoading = false;
        return example;
      };
    }
    data::DataLoader loader(images, options);
    auto epoch = [&] {
      double last = 0;
      for (const data::Example &each : loader) {
        Clock::time_point begin = Clock::now();
        if (trains)
          last = step(each[0], each[1]).item();
        if (trace)
          trace->add("step", begin);
      }
      return last;
    };
    if (trains) // the first call compiles
      epoch();
    double loss = 0;
    std::vector<double> times;
    for (int64_t i = 0; i < scale(5, 1); ++i)
      times.push_back(timeOf([&] { loss = epoch(); }));
    std::ranges::sort(times);
    return std::pair(times[times.size() / 2] / double(batches), loss);
  };
  auto [alone, none] = run(0, false, nullptr);
  row("loading", "loading alone", 0, alone);
  double expected = 0;
  for (int workers : {0, 1, 2}) {
    auto [seconds, loss] = run(workers, true, nullptr);
    row("loading", "loading and training", workers, seconds);
    if (workers == 0)
      expected = loss;
    check(loss == expected, "training with " + std::to_string(workers) + " workers");
  }
  for (int workers : {0, 1}) {
    Trace trace;
    run(workers, true, &trace);
    trace.print("trace-" + std::to_string(workers));
  }
}

} // namespace

int main(int argc, char **argv) try {
  if (argc > 2 || (argc == 2 && std::string(argv[1]) != "--small")) {
    std::cerr << "usage: burin-bench-parallel [--small]\n";
    return 2;
  }
  const Scale scale{argc == 2};
  row("threads", "", 0, num_threads());
  chains(scale);
  producer(scale);
  independent(scale);
  branch("Inception block", Inception(), randn({scale(4, 1), 192, 28, 28}), scale);
  branch("ResNet block", Shortcut(), randn({scale(4, 1), 128, 28, 28}), scale);
  convolutions(scale);
  loading(scale);
} catch (const std::exception &error) {
  std::cerr << error.what() << "\n";
  return 1;
}
