// runtime-test-model FOLDER: writes an artifact, an input and the expected output, for burin-run.test.
#include "runtime/npy/Npy.h"
#include "test/runtime/Model.h"
#include <sys/stat.h>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

bool save(const std::string &path, const std::vector<float> &values, std::vector<int64_t> shape) {
  auto bytes = std::as_bytes(std::span(values));
  std::string error;
  return saveNpy(path, {f32, std::move(shape), {bytes.begin(), bytes.end()}}, error);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::string folder = argv[1];
  ::mkdir(folder.c_str(), 0777);
  std::vector<float> x(7 * 5);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 7) * .1f - .3f;
  std::vector<float> y = expectedThreeSteps(x, 5), wrong = y;
  wrong[9] += 1;
  bool good = writeFile(folder + "/model.plate", threeSteps(5).bytes()).ok() &&
              writeFile(folder + "/other.plate", threeSteps(5).bytes({"riscv64"})).ok() &&
              save(folder + "/x.npy", x, {7, 5}) && save(folder + "/y.npy", y, {7, 5}) &&
              save(folder + "/wrong.npy", wrong, {7, 5}) && save(folder + "/flat.npy", x, {35});
  return good ? 0 : 1;
}
