// What this machine can do: described by the system where it knows, measured where it matters. Every figure is the best
// of several short tries: others on the machine can only make it slower.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

/// Thorough: some seconds. Quick: less than one, with two tries and less memory.
enum class Care { Quick, Thorough };
Machine measure(Care care = Care::Thorough);

std::string text(const Machine &);
std::string json(const Machine &);
/// Bandwidth and latency over the size of memory.
std::string svg(const Machine &);

// ---- parts of it

/// cpu, target, cores, caches as reported.
void describe(Machine &);
/// Bytes and ways of the first data cache as the system reports them; 0 where it does not.
std::pair<int64_t, int64_t> firstLevel();
/// 0 if this processor does not have the type.
double peak(const std::string &type, int threads, Care care = Care::Thorough);
void measureMemory(Machine &, Care care);
void measurePool(Machine &);

/// A cache or memory, and so many bytes that lie well inside.
struct Level {
  std::string name;
  uint64_t bytes;
};
/// The caches of a described machine, and "DRAM".
std::vector<Level> memoryLevels(const Machine &, Care care);

/// Memory for so many threads to read and to copy, in large pages where the system has them.
class Memories {
public:
  Memories(int threads, uint64_t bytesEach);
  ~Memories();
  /// GB/s of `threads` together at this moment, each in `bytes` of its own: reading every `step` bytes a vector, the
  /// first of them `offset` bytes on; backward with a negative step.
  double read(int threads, uint64_t bytes, Care care, int64_t step = 64, int64_t offset = 0) const;
  /// GB/s, of bytes read and bytes written, from one half of `bytes` to the other.
  double copy(int threads, uint64_t bytes, Care care) const;
  /// Nanoseconds per dependent load, from lines in random order.
  double latency(uint64_t bytes);

private:
  class Block;
  std::vector<std::unique_ptr<Block>> blocks;
};

} // namespace burin::machine
