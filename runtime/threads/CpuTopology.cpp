#include "runtime/threads/CpuTopology.h"
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <sched.h>
#include <string>

namespace burin::rt {

namespace {
/// The affinity mask of the calling thread, for any number of cores.
class Affinity {
public:
  Affinity() {
    for (int limit = 1024; limit <= 1 << 20; limit *= 2) {
      set.reset(CPU_ALLOC(limit));
      bytes = CPU_ALLOC_SIZE(limit);
      if (!set || !sched_getaffinity(0, bytes, set.get()))
        return;
      bool tooSmall = errno == EINVAL;
      set.reset();
      if (!tooSmall)
        return;
    }
  }
  int count() const { return set ? CPU_COUNT_S(bytes, set.get()) : 0; }
  bool has(int core) const { return set && core >= 0 && CPU_ISSET_S(core, bytes, set.get()); }
  void add(int core) { CPU_SET_S(core, bytes, set.get()); }
  void remove(int core) { CPU_CLR_S(core, bytes, set.get()); }
  bool apply() const { return !sched_setaffinity(0, bytes, set.get()); }
  friend bool operator==(const Affinity &x, const Affinity &y) {
    return x.set && y.set && x.bytes == y.bytes && CPU_EQUAL_S(x.bytes, x.set.get(), y.set.get());
  }

private:
  struct Free {
    void operator()(cpu_set_t *set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set;
  size_t bytes = 0;
};
} // namespace

int currentCore() { return sched_getcpu(); }

void leaveCore(int core) {
  static thread_local Affinity kept; // the mask as set last, without `left`
  static thread_local int left = -1;
  Affinity mask;
  if (!mask.has(core))
    return;
  if (left >= 0 && mask == kept)
    mask.add(left);
  mask.remove(core);
  if (!mask.count() || !mask.apply())
    return;
  left = core;
  kept = std::move(mask);
}

static int affinityCores() { return std::max(Affinity().count(), 1); }

/// Number of cores that a quota per period pays for; rounded up, so that a quota of 1.5 gives a second thread half a
/// core.
static int quotaCores(double quota, double period) {
  if (quota <= 0 || period <= 0)
    return INT_MAX;
  double cores = quota / period;
  int whole = static_cast<int>(std::min(cores, 1e6));
  return std::max(1, whole + (whole < cores));
}

static int quotaOf(const std::string &group, bool unified) {
  if (unified) {
    std::ifstream file(group + "/cpu.max"); // "max 100000" or "150000 100000"
    std::string quota;
    double period = 0;
    return file >> quota >> period && quota != "max" ? quotaCores(std::atof(quota.c_str()), period) : INT_MAX;
  }
  double quota = -1, period = 0;
  std::ifstream(group + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(group + "/cpu.cfs_period_us") >> period;
  return quotaCores(quota, period);
}

/// The smallest quota of a cgroup and its ancestors. In a container the path may be that of the host: the walk then
/// finds no files on the way and ends at the mount point, which is the container's cgroup.
static int quotaAbove(const std::string &mount, std::string path, bool unified) {
  int cores = INT_MAX;
  while (!path.empty() && path.back() == '/')
    path.pop_back();
  for (;;) {
    cores = std::min(cores, quotaOf(mount + path, unified));
    if (path.empty())
      return cores;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

static int cgroupCores() {
  int cores = INT_MAX;
  std::ifstream file("/proc/self/cgroup"); // lines of "id:controllers:path"
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (controllers == ",,")
      cores = std::min(cores, quotaAbove("/sys/fs/cgroup", path, true));
    else if (controllers.find(",cpu,") != std::string::npos)
      cores = std::min(cores, quotaAbove("/sys/fs/cgroup/cpu", path, false));
  }
  return cores;
}

int availableCores() { return std::min(affinityCores(), cgroupCores()); }

static std::mutex defaultMutex;
static int requestedThreads = 0;    // by setDefaultThreads(); 0: none
static bool isDefaultFixed = false; // defaultThreads() has been called

bool setDefaultThreads(int threads) {
  std::lock_guard lock(defaultMutex);
  if (isDefaultFixed)
    return false;
  requestedThreads = threads;
  return true;
}

int defaultThreads() {
  {
    std::lock_guard lock(defaultMutex);
    isDefaultFixed = true;
    if (requestedThreads)
      return requestedThreads;
  }
  int cores = availableCores();
  const char *wanted = std::getenv("BURIN_NUM_THREADS");
  if (!wanted || !*wanted)
    return cores;
  char *end = nullptr;
  long threads = std::strtol(wanted, &end, 10);
  if (*end == 0 && threads >= 1 && threads <= 1024)
    return static_cast<int>(threads);
  std::fprintf(stderr, "burin: BURIN_NUM_THREADS=%s is not a number from 1 to 1024; using %d threads\n", wanted, cores);
  return cores;
}

} // namespace burin::rt
