// One function in three forms: called as it is, jitted, and loaded from a file with its machine code.
#pragma once
#include <algorithm>
#include <burin/burin.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
using namespace burin;

using Tensors = std::vector<Tensor>;

class ThreeWays {
public:
  using Function = std::function<Tensors(const Tensors &)>;

  /// `make` returns the function, each time with states of its own. The artifact takes inputs of the types `specs`,
  /// whose sizes may be symbolic, and is the file `<name>.plate`.
  ThreeWays(const std::function<Function()> &make, const std::vector<TensorSpec> &specs, const std::string &name)
      : plain(make()), jitted(jit(make())) {
    compile(trace(make(), specs)).save(name + ".plate");
    loaded = load(name + ".plate");
  }
  ThreeWays(const Function &pure, const std::vector<TensorSpec> &specs, const std::string &name)
      : ThreeWays([&] { return pure; }, specs, name) {}

  /// The results, which must have the same bits from all three.
  Tensors operator()(const Tensors &inputs) const {
    Tensors results = plain(inputs);
    check("jitted", results, jitted(inputs));
    check("loaded", results, loaded->run(inputs));
    return results;
  }

private:
  Function plain;
  Jit<Function> jitted;
  std::optional<Artifact> loaded;

  static void check(const char *way, const Tensors &want, const Tensors &got) {
    auto isSame = [](const Tensor &a, const Tensor &b) {
      return a.spec() == b.spec() && std::ranges::equal(a.bytes(), b.bytes());
    };
    if (!std::ranges::equal(want, got, isSame)) {
      std::cerr << "the results differ: " << way << "\n";
      std::exit(1);
    }
  }
};

/// Writes a picture [height, width] of integers from 0 (black) to `white` as a portable graymap.
inline void save_pgm(const std::string &path, const Tensor &picture, int64_t white) {
  std::vector<uint8_t> pixels = picture.to_vector<uint8_t>();
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << picture.size(1).str() << " " << picture.size(0).str() << "\n" << white << "\n";
  file.write(reinterpret_cast<const char *>(pixels.data()), std::streamsize(pixels.size()));
}
