// Describes the processor and burin's thread pool, from what the system reports.
#include "runtime/format/Target.h"
#include "runtime/threads/CpuTopology.h"
#include "runtime/threads/Pool.h"
#include "tools/machine/Machine.h"
#include "tools/machine/Together.h"
#include <algorithm>
#include <fstream>

namespace burin::machine {
namespace {

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(": ") + 2));
  return "unknown";
}

/// Returns the CPU quota of the cgroup in cores. Inside a container, the process's own group is at the mount point.
double quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string limit;
  double period = 0;
  return file >> limit >> period && limit != "max" && period > 0 ? std::stod(limit) / period : 0;
}

std::vector<Cache> reportedCaches(int core) {
  std::vector<Cache> caches;
  std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index";
  for (int i = 0;; ++i) {
    std::string index = folder + std::to_string(i) + "/", size = firstLine(index + "size");
    if (size.empty())
      return caches;
    if (firstLine(index + "type") == "Instruction")
      continue;
    uint64_t unit = size.back() == 'M' ? 1 << 20 : size.back() == 'K' ? 1 << 10 : 1;
    caches.push_back({"L" + firstLine(index + "level"), std::stoull(size) * unit, 0});
  }
}

} // namespace

std::pair<int64_t, int64_t> firstLevel() {
  int core = allowedCores().front();
  std::vector<Cache> caches = reportedCaches(core);
  std::ifstream ways("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache/index0/ways_of_associativity");
  int64_t count = 0;
  return caches.empty() || !(ways >> count) ? std::pair<int64_t, int64_t>()
                                            : std::pair(int64_t(caches[0].reportedBytes), count);
}

void describe(Machine &m) {
  m.cpu = cpuName();
  m.target = std::string(rt::hostTarget());
  m.cores = int(std::thread::hardware_concurrency());
  m.mask = allowedCores();
  m.cores = std::max(m.cores, int(m.mask.size()));
  m.threads = rt::availableCores();
  m.quota = quota();
  m.caches = reportedCaches(m.mask.front());
}

void measurePool(Machine &m) {
  rt::Pool pool(m.threads);
  if (m.threads < 2 || pool.workers() != m.threads - 1)
    return;
  using Clock = std::chrono::steady_clock;
  auto meeting = [&] {
    std::atomic<int> arrived{0};
    auto start = Clock::now();
    pool.parallelFor(m.threads, 1, [&](int64_t, int64_t, int) {
      arrived.fetch_add(1);
      while (arrived.load(std::memory_order_relaxed) < m.threads)
        ;
    });
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  };
  auto median = [](std::vector<double> times) {
    std::nth_element(times.begin(), times.begin() + ptrdiff_t(times.size() / 2), times.end());
    return times[times.size() / 2];
  };
  std::vector<double> awake, asleep;
  {
    rt::Pool::Awake scope(pool);
    // Sampled for 100 ms: on a busy machine one barrier can take a whole time slice.
    auto end = Clock::now() + std::chrono::milliseconds(100);
    while (awake.size() < 3 || (awake.size() < 2000 && Clock::now() < end))
      awake.push_back(meeting());
  }
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    asleep.push_back(meeting());
  }
  m.barrierNs = median(awake);
  m.wakeNs = median(asleep);
}

Machine measure(Care care) {
  Machine m;
  describe(m);
  for (const char *type : {"f32", "f16", "bf16 dot", "int8 dot"})
    for (int threads = 1; threads <= m.threads; threads = threads < m.threads ? m.threads : m.threads + 1)
      if (double gops = peak(type, threads, care))
        m.peaks.push_back({type, threads, gops});
  measureMemory(m, care);
  measurePool(m);
  return m;
}

} // namespace burin::machine
