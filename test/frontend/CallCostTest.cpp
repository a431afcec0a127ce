// Bounds on the work per call, as counts rather than times.
#include "test/frontend/Check.h"
#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<int64_t> allocations = 0;

void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

TEST_CASE("Alternating between sizes binds each of them once") {
  Graph graph = trace([](const Tensor &x) { return exp(x).sum(1); }, {TensorSpec{f32, {Dim("n"), 5}}});
  auto model = compile(graph);
  Tensor few = ones({2, 5}), many = ones({3, 5});
  auto cost = [&](const Tensor &first, const Tensor &second) {
    int64_t before = allocations;
    for (int i = 0; i < 100; ++i) {
      model.run({first})[0].wait();
      model.run({second})[0].wait();
    }
    return allocations - before;
  };
  cost(few, many); // the first run binds the sizes
  int64_t same = cost(few, few), alternating = cost(few, many);
  INFO(same << " allocations for one size, " << alternating << " for two");
  CHECK(same > 0);
  CHECK(alternating < same + same / 4);
}
