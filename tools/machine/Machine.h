// Describes this machine: identification from the system, performance from measurements. Every figure is the best of
// several short measurements, as other processes can only slow them down.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace burin::machine {

/// The peak rate of one instruction type in a loop over registers.
struct Peak {
  std::string type; // "f32", "f16", "bf16 dot", "int8 dot"
  int threads;
  double gops; // 1e9 operations per second; a multiply-add counts as two
};

struct Cache {
  std::string name; // "L1"
  /// The size that the system reports, and the size at which latency rises; 0 if latency rises too little beyond this
  /// cache.
  uint64_t reportedBytes, measuredBytes;
};

/// Memory bandwidth of one level, in GB/s.
struct Bandwidth {
  std::string level; // "L1", …, "DRAM"
  uint64_t bytes;    // memory used per thread
  int threads;
  // strided: every fourth cache line; copy: bytes read and written
  double sequential, strided, backward, unaligned, copy;
};

/// Latency and bandwidth for a working set of so many bytes.
struct Point {
  uint64_t bytes;
  double latencyNs, gigabytesPerSecond;
};

struct Machine {
  std::string cpu;
  std::string target;    // for which burin compiles here
  int cores = 0;         // of the machine
  std::vector<int> mask; // processors that this process may use
  int threads = 0;       // number of threads that burin uses: limited by mask and cgroup quota
  double quota = 0;      // cgroup quota in cores; 0: none
  std::vector<Cache> caches;
  std::vector<Peak> peaks;
  std::vector<Bandwidth> bandwidths;
  std::vector<Point> curve;
  /// Time of a barrier of burin's thread pool, and of a barrier after all threads have slept. 0 with one thread.
  double barrierNs = 0, wakeNs = 0;
};

/// Thorough takes some seconds; Quick takes less than one, with two repetitions and less memory.
enum class Care { Quick, Thorough };
Machine measure(Care care = Care::Thorough);

std::string text(const Machine &);
std::string json(const Machine &);
/// Plots bandwidth and latency over the size of the working set.
std::string svg(const Machine &);

/// Sets cpu, target, cores and the reported caches.
void describe(Machine &);
/// Returns bytes and ways of the L1 data cache as the system reports them, or 0.
std::pair<int64_t, int64_t> firstLevel();
/// Returns 1e9 operations per second, or 0 if this processor does not support the type.
double peak(const std::string &type, int threads, Care care = Care::Thorough);
void measureMemory(Machine &, Care care);
void measurePool(Machine &);

/// A cache or DRAM, with a working set that fits well inside.
struct Level {
  std::string name;
  uint64_t bytes;
};
/// Returns the caches of a described machine, and "DRAM".
std::vector<Level> memoryLevels(const Machine &, Care care);

/// Buffers for `threads` threads to read and copy, in huge pages where the system has them.
class Memories {
public:
  Memories(int threads, uint64_t bytesEach);
  ~Memories();
  /// Returns the combined read bandwidth of `threads` threads in GB/s, each reading `bytes` of its own: one vector
  /// every `step` bytes, starting at `offset`. A negative step reads backwards.
  double read(int threads, uint64_t bytes, Care care, int64_t step = 64, int64_t offset = 0) const;
  /// Returns the combined copy bandwidth in GB/s, counting bytes read and written, from one half of `bytes` to the
  /// other.
  double copy(int threads, uint64_t bytes, Care care) const;
  /// Returns the nanoseconds per dependent load, from cache lines in random order.
  double latency(uint64_t bytes);

private:
  class Block;
  std::vector<std::unique_ptr<Block>> blocks;
};

} // namespace burin::machine
