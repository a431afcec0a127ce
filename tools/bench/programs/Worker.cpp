// burin as a contestant: runs artifacts through the C interface.
// burin-bench-worker FOLDER THREADS [NAME] loads FOLDER/WORKLOAD.plate, or with NAME, as contestant NAME,
// FOLDER/WORKLOAD.NAME.plate.
#include "burin/runtime.h"
#include "tools/bench/programs/Contestant.h"
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

namespace burin::bench {
namespace {

const burin_runtime_api &api = *burin_runtime_get(BURIN_RUNTIME_VERSION);

void check(burin_status *status) {
  if (!status)
    return;
  Failure failure{api.status_message(status)};
  api.status_release(status);
  throw failure;
}

class Burin : public Contestant {
public:
  Burin(std::string folder, int threads, std::string suffix)
      : folder(std::move(folder)), suffix(std::move(suffix)), threads(threads) {}
  ~Burin() override { unload(); }

  void load(const std::string &name) override {
    unload();
    std::string base = folder + "/" + name;
    check(api.artifact_load_file((base + suffix).c_str(), nullptr, &artifact));
    burin_session_options options{};
    options.struct_size = sizeof options;
    options.threads = threads;
    check(api.session_create(artifact, &options, &session));
    std::ifstream names(base + ".inputs");
    for (std::string input; std::getline(names, input);)
      arrays.push_back(readArray(folder, name, input));
    for (rt::NpyArray &a : arrays) {
      aligned.emplace_back(std::aligned_alloc(kAlignment, (a.data.size() + kAlignment) & -kAlignment), std::free);
      std::memcpy(aligned.back().get(), a.data.data(), a.data.size());
      inputs.push_back({aligned.back().get(), a.shape.data(), uint32_t(a.shape.size()), uint8_t(a.dtype), {}});
    }
    produced.resize(api.artifact_output_count(artifact));
    runOnce();
  }

  /// The outputs stay in the session's memory: no copy is timed.
  void runOnce() override {
    for (burin_tensor &y : produced)
      y.data = nullptr;
    check(api.session_run(session, inputs.data(), uint32_t(inputs.size()), produced.data(), uint32_t(produced.size())));
  }

  std::vector<rt::NpyArray> outputs() override {
    std::vector<rt::NpyArray> arrays;
    for (const burin_tensor &y : produced) {
      rt::NpyArray array{DType(y.dtype), {y.shape, y.shape + y.rank}, {}};
      size_t bytes = byteWidth(array.dtype);
      for (int64_t size : array.shape)
        bytes *= size_t(size);
      auto *data = static_cast<std::byte *>(y.data);
      array.data.assign(data, data + bytes);
      arrays.push_back(std::move(array));
    }
    return arrays;
  }

  std::string settings() override { return std::string(api.library_version()) + ", target " + api.host_target(); }

private:
  std::string folder, suffix;
  int threads;
  burin_artifact *artifact = nullptr;
  burin_session *session = nullptr;
  /// Alignment of the inputs in bytes, as in other frameworks.
  static constexpr size_t kAlignment = 64;
  std::vector<rt::NpyArray> arrays;
  std::vector<std::unique_ptr<void, void (*)(void *)>> aligned;
  std::vector<burin_tensor> inputs, produced;

  void unload() {
    api.session_release(session);
    api.artifact_release(artifact);
    session = nullptr;
    artifact = nullptr;
    arrays.clear();
    aligned.clear();
    inputs.clear();
  }
};

} // namespace
} // namespace burin::bench

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) {
    std::fputs("usage: burin-bench-worker FOLDER THREADS [NAME]\n", stderr);
    return 2;
  }
  std::string name = argc == 4 ? argv[3] : "burin";
  burin::bench::Burin burin(argv[1], std::atoi(argv[2]), argc == 4 ? "." + name + ".plate" : ".plate");
  return burin::bench::serve(burin, argv[1], name);
}
