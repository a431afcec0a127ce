// What tests tell the CUDA driver for tests, and ask of it.
#pragma once
#include "test/gpu/driver/FakeMemory.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace burin::test::fake {

/// A kernel made for this processor: all its blocks at once, as the emulator runs them.
struct Kernel {
  int64_t (*run)(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi) = nullptr;
  int threads = 0; // per block
  size_t operands = 0, sizes = 0, maps = 0;
  size_t sharedBytes = 0;  // that a launch has to give
  bool inGroups = false;   // a launch also gives the number of its first block
  bool waitsFirst = false; // for the kernels before it, ahead of any access to memory
};

/// From now on a module of this PTX has these kernels, by the names of their entries.
void addModule(const std::string &ptx, std::map<std::string, Kernel> kernels);

/// From now on the call of that number, counted from 1, fails with that result; 0: none.
void failCall(int64_t number, int result = 999);
/// From now on about one of so many calls fails, with different results; 0: none. `seed` also chooses the order of what
/// may be done in any order.
void failRandomly(uint64_t seed, int64_t oneOf);
/// From now on streams have ranks by the seed: work waits while that of a stream of a higher rank can go on. 0: none.
void rankStreams(uint64_t seed);
/// From now on the wait of a stream for an event of that number, counted from 1, is forgotten; 0: none.
void forgetWait(int64_t number);
/// Such waits since then.
int64_t waits();
/// Calls since failCall() or failRandomly().
int64_t calls();
/// Launches of graphs, and of kernels that may begin before the one ahead of them has ended, since the process began.
int64_t replays();
int64_t earlyLaunches();

/// From now on there are so many devices: 1, as at first, or 2. FAKE_CUDA_DEVICES says it for a process.
void setDevices(int count);
/// From now on devices have so many multiprocessors: 132 at first.
void setMultiprocessors(int count);
/// From now on memory begins so many bytes after a multiple of 256: 0 at first, as with the real driver.
void shiftMemory(size_t bytes);
/// From now on the driver is of that version: 13000, as at first; before 12040 it has no conditional nodes.
void setVersion(int version);
/// Bytes that copies have moved since the process began.
struct CopyCounts {
  int64_t toDevice = 0, toHost = 0, within = 0, between = 0;
};
CopyCounts copies();
/// Allocations on all devices that have not been freed.
size_t allocations();
/// Whether this address of the process is in pinned memory.
bool isPinned(const void *data);
/// What has been enqueued for a device and is not done.
size_t pendingWork(int device);

/// What the next modules are made of instead of their PTX; "": nothing. It is interpreted.
void replacePtx(std::string text);
void setTraces(Traces mode, size_t run);

/// Enqueues work for a stream, or records it, as a library does that launches kernels of its own: the function returns
/// 0 or a CUresult. Fails for a stream whose capture refuses what such a library does at first, load its kernels.
int enqueueWork(void *stream, std::function<int()> work);
/// Whether the memory of the context's device has these bytes.
bool isOnDevice(const void *data, size_t bytes);

/// What has been made and not given back, and calls that are never right: "" if there is nothing. Forgets the latter.
std::string problems();

} // namespace burin::test::fake
