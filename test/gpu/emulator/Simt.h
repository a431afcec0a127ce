// Executes the threads of GPU kernels on the CPU: what a kernel's code calls, see Emulate.h, and what is found wrong.
#pragma once
#include "test/gpu/emulator/Fragments.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace burin::test::simt {

inline constexpr int kWarp = 32;

/// A variable in the shared memory of a block: at `offset` of what sharedMemory() returns.
struct SharedVariable {
  std::string name;
  size_t offset, bytes;
};

/// What the emulator has to know about a kernel.
struct Kernel {
  std::string name;
  int threads;       // per block
  bool synchronises; // its threads wait for each other; else they run one after the other
  bool usesPhases;   // it has barriers in shared memory
  bool isPersistent; // its blocks share the work of all: there are no more than multiprocessors
  std::vector<SharedVariable> shared;
  std::string groups; // if blocks are launched in groups: blocks of a group and of all, "12" or "s2", the third size
  bool isLaunchedByGroup = true; // otherwise launch(0, 1) runs all groups
};

using ThreadFunction = void (*)(void *const *operands, const int64_t *sizes, void *scratch, int64_t *error);

/// Runs blocks [lo, hi) one after the other, of a persistent kernel those below the number of multiprocessors. One
/// launch at a time: others wait. Returns the least error of the threads, or INT64_MAX, as a kernel for the CPU does.
int64_t launch(const Kernel &, ThreadFunction, void *const *operands, const int64_t *sizes, void *scratch, int64_t lo,
               int64_t hi);

/// From now on there are so many; 3 at first.
void setMultiprocessors(int64_t count);

std::byte *sharedMemory();
inline constexpr size_t kSharedBytes = 227 << 10; // what a block of an H100 can have

/// What the emulator has found wrong since the last call, at most a few of each launch.
std::vector<std::string> takeErrors();

/// Names a place in a kernel for messages. Returns its number.
int32_t addSite(std::string description);

// ---- called by the code of threads
int32_t threadIndex();
int32_t blockIndex();
int32_t blockCount();
/// All threads of the block arrive at this place, then all go on.
void barrier(int32_t site);
/// All threads of the warp arrive at this place, then all go on.
void warpBarrier(int32_t site);
/// The value of another thread of the warp.
enum class Shuffle : int32_t { Down, Up, Butterfly, Index };
int32_t shuffle(Shuffle, int32_t mask, int32_t value, int32_t lane, int32_t clamp, int32_t site);
/// The warp multiplies small matrices: each thread has its part of them, and of the sum, which is replaced.
void multiply(fragments::Element, fragments::Multiplied *, int32_t site);
/// The warp reads four matrices of 8 x 8; this thread points to a row of 16 bytes, and gets four registers.
void loadMatrices(const std::byte *row, int32_t transposed, uint32_t *result, int32_t site);
/// Starts a copy to shared memory of 16 bytes, or of zeros if `bytes` is 0. It arrives as late as it may: when the
/// thread waits for its group.
void copyAsync(std::byte *to, const std::byte *from, int32_t bytes, int32_t site);
void commitCopies();
void waitForCopies(int32_t groups);
// ---- see Asynchronous.h
void initBarrier(const std::byte *barrier, int32_t arrivals, int32_t site);
void arrive(const std::byte *barrier, int32_t site);
void arriveWithCopies(const std::byte *barrier, int32_t site);
/// Waits as long as it takes.
bool waitForPhase(const std::byte *barrier, int32_t parity, int32_t site);
void showToProducts();
void beginProducts();
/// `sums` are replaced. `sides`: see below; `fragment` are the four registers of the left side, or null.
enum Sides : int32_t { LeftInRegisters = 1, RightHasColumns = 2 };
void multiplyGroup(fragments::Element, int32_t sides, uint64_t left, const uint32_t *fragment, uint64_t right,
                   float *sums, int32_t count, int32_t site);
void commitProducts();
void waitForProducts(int64_t groups);
void finishProducts(float *sums, int32_t count, int64_t groups);
void arriveExpecting(const std::byte *barrier, int32_t bytes, int32_t site);
/// By a tensor map, see TensorMap.h; `at` are as many coordinates as `rank`.
void copyBulk(std::byte *to, const std::byte *barrier, const void *map, const int32_t *at, int32_t rank, int32_t site);
/// Fills in a tensor map as its text says, see KernelEntry.cpp, with operands and sizes of the launch. A map that the
/// driver would refuse becomes one that no copy can use, as kernels do not use it.
void makeMap(const char *text, void *const *operands, const int64_t *sizes, void *map);
/// The registers of each thread of the warpgroup from here on.
void setRegisters(int32_t count, int32_t site);

float exp2Approximately(float x);
float reciprocalApproximately(float x);
uint32_t roundToTf32(float x);
uint32_t permuteBytes(uint32_t low, uint32_t high, uint32_t selector);
uint32_t packPair(fragments::Element, float low, float high);
enum Access : int32_t { Read = 0, Write = 1, Atomic = 2 };
/// Before memory is accessed.
void access(const std::byte *address, int64_t bytes, int32_t kind, int32_t site);

/// Totals since the process began, for tests of the emulator and of coverage.
struct Counters {
  uint64_t launches = 0, blocks = 0, barriers = 0, shuffles = 0, sharedAccesses = 0, products = 0, copies = 0;
  uint64_t groupProducts = 0, phases = 0, bulkCopies = 0;
};
Counters counters();

} // namespace burin::test::simt
