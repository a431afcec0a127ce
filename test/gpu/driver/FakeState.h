// What the functions of the CUDA driver for tests share.
#pragma once
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/driver/FakeStreams.h"
#include "test/gpu/ptx/PtxProgram.h"
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace burin::test::fake {

constexpr size_t kMemory = size_t(1) << 30;
constexpr int kMostDevices = 2;

/// For the emulator, or to be interpreted.
struct Function {
  Kernel kernel;
  const burin::test::ptx::Function *interpreted = nullptr;
  const burin::test::ptx::Program *program = nullptr;
  int device = 0;
  size_t mostShared = 48 << 10; // that a launch may give, together with what the code itself has, unless it has asked
  bool hasAsked = false;
};
struct Module {
  int device = 0;
  std::map<std::string, Function> functions;
  burin::test::ptx::Program program;
};

struct Context {
  int retained = 0;
};

/// One driver for the process; under `mutex`, as its functions are called from any thread.
struct Driver {
  std::recursive_mutex mutex;
  std::array<Memory, kMostDevices> memories;
  std::map<uint64_t, size_t> pinned;                          // of the process: address, bytes
  std::map<std::string, std::map<std::string, Kernel>> known; // by PTX
  std::set<Module *> modules;
  std::set<Graph *> graphs, executables;
  Streams streams;
  std::array<Context, kMostDevices> contexts;
  int deviceCount = 1, version = 13000, multiprocessors = 132;
  uint64_t conditionCount = 0;
  CopyCounts copyCounts;
  std::string wrong, replacement;
  int64_t replayCount = 0, earlyCount = 0, waitCount = 0, forgottenWait = 0;
  int64_t callCount = 0, failNumber = 0, failOneOf = 0;
  int failResult = 0;

  Driver() {
    if (const char *count = getenv("FAKE_CUDA_DEVICES"))
      deviceCount = int(strtol(count, nullptr, 10));
  }
  int planted(std::string_view function);
  bool inside(int device, uint64_t address, size_t bytes) const {
    return memories[size_t(device)].inside(address, bytes);
  }
  int deviceOf(const void *context) const { return int(static_cast<const Context *>(context) - contexts.data()); }
  bool isDevice(int device) const { return device >= 0 && device < deviceCount; }
  bool isPinned(const void *data, size_t bytes) const;
  /// The streams that null stands for are never destroyed.
  Streams::Stream *find(void *stream);
  int enqueue(void *stream, Work work) { return streams.enqueue(find(stream), std::move(work)); }
};
extern Driver driver;
extern thread_local std::vector<int> entered; // devices whose contexts have been pushed
extern thread_local int captureMode;          // of the thread: 0, or 2 where captures refuse nothing

} // namespace burin::test::fake

#define BEGIN                                                                                                          \
  std::lock_guard lock(driver.mutex);                                                                                  \
  const int failure = driver.planted(__func__)
#define PLANTED                                                                                                        \
  BEGIN;                                                                                                               \
  if (failure)                                                                                                         \
  return failure
#define IN_CONTEXT                                                                                                     \
  PLANTED;                                                                                                             \
  if (entered.empty())                                                                                                 \
  return kInvalidContext
