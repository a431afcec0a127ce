// OpenBLAS as a contestant for matrix products. burin-bench-openblas FOLDER
#include "tools/bench/programs/Contestant.h"
#include <cblas.h>

namespace burin::bench {
namespace {

class OpenBlas : public Contestant {
public:
  explicit OpenBlas(std::string folder) : folder(std::move(folder)) {}

  void load(const std::string &name) override {
    s = describe(folder, name);
    if (s.kind != "gemm" && s.kind != "gemm-inputs")
      throw Failure{"unsupported: " + s.kind};
    x = readArray(folder, name, "x");
    weight = readArray(folder, name, "weight");
    y = {DType::f32, {s["m"], s["n"]}, std::vector<std::byte>(size_t(s["m"] * s["n"]) * sizeof(float))};
    m = int(s["m"]), k = int(s["k"]), n = int(s["n"]);
    runOnce();
  }
  void runOnce() override {
    auto floats = [](rt::NpyArray &array) { return reinterpret_cast<float *>(array.data.data()); };
    if (m == 1)
      cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, floats(weight), n, floats(x), 1, 0, floats(y), 1);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, floats(x), k, floats(weight), n, 0, floats(y),
                  n);
  }
  std::vector<rt::NpyArray> outputs() override { return {y}; }
  std::string settings() override {
    const char *coreType = std::getenv("OPENBLAS_CORETYPE");
    return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename() +
           (coreType ? std::string(" (OPENBLAS_CORETYPE=") + coreType + ")" : "");
  }

private:
  std::string folder;
  Description s;
  rt::NpyArray x, weight, y;
  int m = 0, k = 0, n = 0;
};

} // namespace
} // namespace burin::bench

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  burin::bench::OpenBlas contestant(argv[1]);
  return burin::bench::serve(contestant, argv[1], "openblas");
}
