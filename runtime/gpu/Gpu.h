// A GPU as one session uses it: the code and the weights of an artifact on it, and a stream that everything goes
// through in order. One thread at a time.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/gpu/Driver.h"
#include <memory>

namespace burin::rt::gpu {

class Gpu {
public:
  /// Loads the best code that the artifact has for this GPU, and copies the weights. Unsupported where there is no
  /// driver, no such GPU, or no code for it.
  static Status open(const Program &program, int ordinal, std::unique_ptr<Gpu> &out);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  /// Makes the GPU's context the thread's own while it lives. All functions below need one.
  class Use {
  public:
    explicit Use(Gpu &gpu);
    ~Use();
    Use(const Use &) = delete;

  private:
    Gpu &gpu;
    bool pushed;
  };

  // What fails is kept until finish(), and nothing is done from there on.
  /// Null: there is no memory.
  void *allocate(size_t bytes);
  void release(void *data);
  void toGpu(void *to, const void *from, size_t bytes);
  void toHost(void *to, const void *from, size_t bytes);
  void copy(void *to, const void *from, size_t bytes);
  void launch(uint32_t kernel, std::span<void *const> operands, const int64_t *sizes, int64_t blocks, void *scratch,
              const std::string &location);
  /// Waits for all before, and reads bytes of the GPU's memory. False: something has failed.
  bool read(void *to, const void *from, size_t bytes);
  /// The least error that kernels have reported since the last call, or INT64_MAX. Waits.
  int64_t takeError();
  /// Waits for all before.
  void wait();
  /// The same. The first failure since the last call.
  Status finish();

  std::byte *weights() const { return weightMemory; }
  /// A byte of the GPU's memory for whoever reads it at once.
  void *flag() const { return mailbox + sizeof(int64_t); }

private:
  Gpu() = default;
  Driver driver;
  std::string name; // "cuda:0"
  const Program *program = nullptr;
  const Code *code = nullptr;
  Device device = 0;
  Context context = nullptr;
  Module module = nullptr;
  Stream stream = nullptr;
  std::vector<Function> functions;
  std::byte *weightMemory = nullptr, *mailbox = nullptr;
  std::vector<void *> arguments;
  Status failure;

  Status chooseCode(const DeviceInfo &info, int ordinal);
  Status load();
  bool works(Result result, const char *what);
};

} // namespace burin::rt::gpu
