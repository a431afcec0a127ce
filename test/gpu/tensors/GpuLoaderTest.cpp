// Batches of a loader on their way to a GPU.
#include "test/gpu/tensors/GpuTensors.h"
#include <algorithm>
#include <set>

using namespace burin::test;

namespace {

constexpr int64_t kRows = 40, kWidth = 20'000;

/// Rows of equal numbers, 0, 1, 2, …
data::DatasetRef rows() {
  std::vector<float> all;
  for (int64_t i = 0; i < kRows; ++i)
    all.insert(all.end(), size_t(kWidth), float(i));
  return data::tensor_dataset({from_vector(all, Shape{kRows, kWidth}), arange(kRows)});
}

} // namespace

TEST_CASE("gpu loader: batches are in pinned memory, which is reused when it has been copied", "[gpu]") {
  ones({1}).to(cuda(0)).wait(); // from now on the process uses a GPU
  for (int workers : {0, 2}) {
    data::DataLoader loader(rows(), {.batch_size = 2, .workers = workers, .prefetch_bytes = 1});
    std::set<const void *> before;
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<Tensor> there;
      std::set<const void *> places;
      for (const data::Example &batch : loader) {
        const void *place = batch[0].bytes().data();
        CHECK(fake::isPinned(place));
        CHECK_FALSE(fake::isPinned(batch[1].bytes().data())); // too small to matter
        places.insert(place);
        there.push_back(batch[0].to(cuda(0)));
      }
      REQUIRE(there.size() == 20);
      for (size_t i = 0; i < there.size(); ++i) { // the memory of earlier ones may have been taken by later ones
        std::vector<float> got = floats(there[i]);
        CHECK(got.front() == float(2 * i));
        CHECK(got.back() == float(2 * i + 1));
      }
      if (epoch)
        CHECK(std::ranges::any_of(places, [&](const void *place) { return before.contains(place); }));
      before = places;
    }
  }
}

TEST_CASE("gpu loader: a part of a pinned batch is used on both devices", "[gpu]") {
  ones({1}).to(cuda(0)).wait();
  Tensor kept, there;
  {
    data::DataLoader loader(rows(), {.batch_size = 4});
    data::Example batch = *loader.next();
    there = batch[0].to(cuda(0)) * 2;
    kept = batch[0].reshape({2, 2, kWidth});
  }
  data::DataLoader loader(rows(), {.batch_size = 4});
  loader.next(); // other memory, as the reshaped batch has that of the first
  CHECK(kept[{1, 0, 0}].item() == 2);
  CHECK(floats(there)[size_t(3 * kWidth)] == 6);
  CHECK(floats(kept.to(cuda(0)))[size_t(kWidth)] == 1);
}

TEST_CASE("gpu loader: batches are not pinned when they need not be", "[gpu]") {
  ones({1}).to(cuda(0)).wait();
  data::DataLoader loader(rows(), {.batch_size = 4, .pin_memory = false});
  CHECK_FALSE(fake::isPinned((*loader.next())[0].bytes().data()));
}
