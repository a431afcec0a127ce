// training-steps ARTIFACT X.npy TARGET.npy STEPS THREADS: trains with the runtime alone, cycling through the stored
// batches. Prints a hash of the bits of the losses. Fails if anything is allocated after the first step, or if the
// resident memory grows by more than kMostGrowth between step 100 and the last one.
#include "burin/runtime.h"
#include "runtime/npy/Npy.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>

extern "C" void *__libc_malloc(size_t);           // NOLINT(bugprone-reserved-identifier): of glibc
extern "C" void *__libc_calloc(size_t, size_t);   // NOLINT(bugprone-reserved-identifier)
extern "C" void *__libc_memalign(size_t, size_t); // NOLINT(bugprone-reserved-identifier)
extern "C" void *__libc_realloc(void *, size_t);  // NOLINT(bugprone-reserved-identifier)

namespace {

constexpr long kMostGrowth = 512; // KB: pages of stacks and libraries that are accessed for the first time

std::atomic<long> allocations;

const burin_runtime_api *api;

void require(burin_status *status) {
  if (!status)
    return;
  std::fprintf(stderr, "training-steps: %s\n", api->status_message(status));
  std::exit(1);
}

burin::rt::NpyArray read(const char *path) {
  std::string error;
  auto array = burin::rt::loadNpy(path, error);
  if (!array) {
    std::fprintf(stderr, "training-steps: %s\n", error.c_str());
    std::exit(1);
  }
  return std::move(*array);
}

/// Returns batch number `index` of the stacked batches.
burin_tensor batchOf(burin::rt::NpyArray &stack, long index) {
  const long count = stack.shape[0];
  const size_t bytes = stack.data.size() / size_t(count);
  burin_tensor tensor{};
  tensor.data = stack.data.data() + size_t(index % count) * bytes;
  tensor.shape = stack.shape.data() + 1;
  tensor.rank = uint32_t(stack.shape.size() - 1);
  tensor.dtype = uint8_t(stack.dtype);
  return tensor;
}

long residentKilobytes() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

} // namespace

// All functions by which the runtime and libstdc++ allocate.
extern "C" void *malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
extern "C" void *calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
extern "C" void *realloc(void *memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void **out, size_t alignment, size_t bytes) {
  ++allocations;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: training-steps ARTIFACT X.npy TARGET.npy STEPS THREADS\n");
    return 2;
  }
  api = burin_runtime_get(BURIN_RUNTIME_VERSION);
  burin::rt::NpyArray x = read(argv[2]), target = read(argv[3]);
  const long steps = std::strtol(argv[4], nullptr, 10);
  burin_artifact *artifact = nullptr;
  burin_session *session = nullptr;
  burin_session_options options{};
  options.struct_size = sizeof options;
  options.threads = int(std::strtol(argv[5], nullptr, 10));
  require(api->artifact_load_file(argv[1], nullptr, &artifact));
  require(api->session_create(artifact, &options, &session));
  uint64_t hash = 14695981039346656037u;
  long before = 0, resident = 0;
  for (long step = 0; step < steps; ++step) {
    burin_tensor inputs[] = {batchOf(x, step), batchOf(target, step)}, loss{};
    require(api->session_run(session, inputs, 2, &loss, 1));
    uint32_t bits = 0;
    std::memcpy(&bits, loss.data, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
    if (step == 0)
      before = allocations;
    if (step == 100)
      resident = residentKilobytes();
  }
  const long after = allocations;
  const long growth = residentKilobytes() - resident;
  std::printf("%ld steps: losses %016llx\n", steps, static_cast<unsigned long long>(hash));
  api->session_release(session);
  api->artifact_release(artifact);
  if (after != before || growth > kMostGrowth) {
    std::fprintf(stderr, "training-steps: %ld allocations after the first step, resident memory grew by %ld KB\n",
                 after - before, growth);
    return 1;
  }
}
