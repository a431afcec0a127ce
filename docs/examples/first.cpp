// The guide's first program: one function, run call by call and compiled.
#include <burin/burin.h>
#include <iostream>
using namespace burin;

int main() {
  auto distance = [](const Tensor &a, const Tensor &b) { return sqrt(pow(a - b, 2).sum(1)); };
  Tensor a = tensor({{0, 0}, {1, 2}}).to(f32), b = tensor({{3, 4}, {1, 2}}).to(f32);
  std::cout << distance(a, b) << "\n"; // eagerly: four ops, one after the other
  auto fast = jit(distance);
  std::cout << fast(a, b) << "\n"; // traced and compiled by the first call: one kernel
}
