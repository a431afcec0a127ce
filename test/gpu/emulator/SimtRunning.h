// The launch that the emulator runs, for its parts.
#pragma once
#include "test/gpu/driver/Asynchronous.h"
#include "test/gpu/emulator/Simt.h"

namespace burin::test::simt {

enum class State { Ready, AtBarrier, AtWarpBarrier, AtShuffle, AtProduct, AtMatrices, AtPhase, AtGroupProduct, Done };

struct ShuffleRequest {
  Shuffle kind;
  int32_t mask, value, lane, clamp, result;
};

struct ProductRequest {
  fragments::Element type;
  fragments::Multiplied *parts;
};

struct MatricesRequest {
  const std::byte *row;
  bool transposed;
  uint32_t *result;
};

struct PhaseRequest {
  uintptr_t barrier;
  uint32_t parity;
};

struct GroupProductRequest {
  Asynchronous::Product product;
  float *sums;
};

/// A copy on its way.
struct Copy {
  std::byte *to;
  const std::byte *from;
  int32_t bytes, site;
};
inline constexpr size_t kCopiedBytes = 16;

struct Thread {
  void *stackPointer = nullptr;
  State state = State::Done;
  int32_t site = -1; // where it waits
  ShuffleRequest request = {};
  ProductRequest product = {};
  MatricesRequest matrices = {};
  PhaseRequest phase = {};
  GroupProductRequest groupProduct = {};
  std::vector<std::vector<Copy>> groups = {}; // on their way
  std::vector<Copy> copies = {};              // of no group yet
};

/// The launch that runs.
struct Running {
  const Kernel *kernel = nullptr;
  ThreadFunction function = nullptr;
  void *const *operands = nullptr;
  const int64_t *sizes = nullptr;
  void *scratch = nullptr;
  int64_t error = INT64_MAX;
  int64_t block = 0, blocks = 0;
  Blocks begun;
  int thread = 0;
  uint32_t interval = 0;
  bool failed = false;
  size_t errors = 0;
  void *scheduler = nullptr;
  std::vector<Thread> threads;
  Asynchronous asynchronous;
};

extern Running *running;
extern Shadow sharedShadow;
extern Counters totals;

void report(const std::string &what, int32_t site);
/// Waits until the scheduler lets this thread go on.
void toScheduler(State state, int32_t site);
/// Whether all threads of a range wait for the same thing at the same place. They may also have ended, all of them.
bool together(size_t from, size_t to, State state);
/// The copies of a thread arrive.
void land(const std::vector<Copy> &);
/// When a thread ends: whether its copies have arrived.
void checkCopiesAtEnd();

/// A block begins whose kernel has barriers in shared memory.
void startPhases();
/// Lets go on those who wait for a phase that has ended, or for their warpgroup. False if there is nobody.
bool releasePhases();

} // namespace burin::test::simt
