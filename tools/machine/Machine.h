// What this machine can do: described by the system where it knows, measured where it matters. Every figure is the best
// of several short tries: others on the machine can only make it slower.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace burin::machine {

/// One instruction in a loop, from registers.
struct Peak {
  std::string type; // "f32", "f16", "bf16 dot", "int8 dot"
  int threads;
  double gops; // a multiplication and an addition are two
};

struct Cache {
  std::string name; // "L1"
  /// By the system, and where latency says that it ends; 0: what lies beyond is hardly slower.
  uint64_t reportedBytes, measuredBytes;
};

/// GB/s from memory of one level.
struct Bandwidth {
  std::string level; // "L1", …, "DRAM"
  uint64_t bytes;    // of memory used, per thread
  int threads;
  double sequential, strided, backward, unaligned, copy; // strided: every fourth line; copy: bytes read and written
};

/// Walking through so many bytes.
struct Point {
  uint64_t bytes;
  double latencyNs, gigabytesPerSecond;
};

struct Machine {
  std::string cpu;
  std::string target;    // of burin's code
  int cores = 0;         // of the machine
  std::vector<int> mask; // those this process may use
  int threads = 0;       // that burin uses: cores by mask and cgroup quota
  double quota = 0;      // of the cgroup, in cores; 0: none
  std::vector<Cache> caches;
  std::vector<Peak> peaks;
  std::vector<Bandwidth> bandwidths;
  std::vector<Point> curve;
  /// Of burin's pool: until all threads have met, and the same when they have slept. 0 with one thread.
  double barrierNs = 0, wakeNs = 0;
};

/// Thorough: some seconds. Quick: less than one, with fewer tries and less memory.
enum class Care { Quick, Thorough };
Machine measure(Care care = Care::Thorough);

std::string text(const Machine &);
std::string json(const Machine &);
/// Bandwidth and latency over the size of memory.
std::string svg(const Machine &);

// ---- parts of it

/// cpu, target, cores, caches as reported.
void describe(Machine &);
/// 0 if this processor does not have the type.
double peak(const std::string &type, int threads, Care care = Care::Thorough);
void measureMemory(Machine &, Care care);
void measurePool(Machine &);

} // namespace burin::machine
