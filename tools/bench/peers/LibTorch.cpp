// libtorch as a contestant for models: TorchScript in C++, from the archives that worker.py makes.
// burin-bench-libtorch FOLDER THREADS
#include "tools/bench/peers/TorchModule.h"
#include "tools/bench/programs/Contestant.h"
#include <cstdlib>
#include <fstream>

namespace burin::bench {
namespace {

class LibTorch : public Contestant {
public:
  explicit LibTorch(std::string folder) : folder(std::move(folder)) {}

  void load(const std::string &name) override {
    std::string base = folder + "/" + name;
    std::vector<TorchArray> inputs;
    std::ifstream names(base + ".inputs");
    for (std::string input; std::getline(names, input);) {
      rt::NpyArray array = readArray(folder, name, input);
      inputs.push_back({array.dtype == DType::i64, array.shape, std::move(array.data)});
    }
    module.reset();
    module = std::make_unique<TorchModule>(base + ".torchscript", inputs);
  }

  void runOnce() override { module->run(); }

  std::vector<rt::NpyArray> outputs() override {
    std::vector<rt::NpyArray> arrays;
    for (TorchArray &array : module->outputs())
      arrays.push_back({DType::f32, std::move(array.shape), std::move(array.data)});
    return arrays;
  }

  std::string settings() override {
    const char *coreType = std::getenv("OPENBLAS_CORETYPE");
    return "libtorch " + torchVersion() +
           ", TorchScript in C++: traced by the newer PyTorch (attention as a softmax between matrix products, as this "
           "version has no call for it), optimize_for_inference with freezing, InferenceMode; OpenBLAS on the same "
           "OpenMP threads, with kernels " +
           (coreType ? std::string("for ") + coreType : "that it chooses itself");
  }

private:
  std::string folder;
  std::unique_ptr<TorchModule> module;
};

} // namespace
} // namespace burin::bench

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fputs("usage: burin-bench-libtorch FOLDER THREADS\n", stderr);
    return 2;
  }
  burin::bench::setTorchThreads(std::atoi(argv[2]));
  burin::bench::LibTorch contestant(argv[1]);
  return burin::bench::serve(contestant, argv[1], "libtorch");
}
