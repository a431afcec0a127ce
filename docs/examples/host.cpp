// Prints, checks and C++ functions inside compiled functions.
#include <algorithm>
#include <burin/burin.h>
#include <iostream>
using namespace burin;

/// Code of another library, which knows no tensors.
float medianOf(std::vector<float> values) {
  std::nth_element(values.begin(), values.begin() + int64_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int main() {
  auto halve = jit([](const Tensor &x) {
    check(x > 0, "a value is not positive");
    return while_loop([](const Tensor &v) { return v.max() > 1; },
                      [](const Tensor &v) {
                        debug_print(v, "before halving");
                        return v / 2;
                      },
                      x);
  });
  halve(tensor({1.0f, 3.0f})).wait();
  try {
    halve(tensor({1.0f, -3.0f})).wait();
  } catch (const Error &error) {
    std::cout << error.what() << "\n";
  }

  auto centred = jit([](const Tensor &x) {
    Tensor median = host_call([](const Tensor &v) { return medianOf(v.to_vector<float>()); }, TensorSpec{f32, {}}, x);
    return x - median;
  });
  std::cout << centred(tensor({5.0f, 1.0f, 9.0f})) << "\n";
}
