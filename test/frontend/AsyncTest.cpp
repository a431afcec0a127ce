#include "test/frontend/Check.h"
#include <cstdlib>
#include <thread>

static constexpr int64_t kTooMany = int64_t(1) << 46; // bytes; more than any machine has

TEST_CASE("a failed op poisons what depends on it, and names its line") {
  int line = __LINE__ + 1;
  Tensor bad = zeros({kTooMany}, u8);
  Tensor result = (bad + 1).sum();
  Tensor fine = ones({3}) * 2;
  std::string what = messageOf([&] { result.item(); });
  INFO(what);
  CHECK(contains(what, atLine(__FILE__, line)));
  CHECK(contains(what, "memory"));
  CHECK(floats(fine) == std::vector<float>{2, 2, 2});
  CHECK(contains(messageOf([&] { bad.wait(); }), atLine(__FILE__, line)));
  CHECK(contains(messageOf([&] { (void)result.str(); }), atLine(__FILE__, line)));
  CHECK(contains(messageOf([&] { synchronize(); }), atLine(__FILE__, line)));
  synchronize(); // each error is reported once
}

TEST_CASE("long chains run in order") {
  Tensor x = zeros({1000}), y = zeros({1000});
  for (int i = 0; i < 500; ++i) {
    x += 1;
    y = y + x;
  }
  CHECK(x[0].item() == 500);
  CHECK(y[999].item() == 500 * 501 / 2);
}

TEST_CASE("many tensors in flight stay within bounds") {
  std::vector<Tensor> sums;
  for (int i = 0; i < 200; ++i)
    sums.push_back((zeros({1 << 20}) + double(i)).max());
  for (int i = 0; i < 200; ++i)
    CHECK(sums[i].item() == i);
}

TEST_CASE("ops are called from several threads") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  Tensor shared = arange(100).to(f32);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        if ((shared * double(t) + double(i)).sum().item() != 4950.0 * t + 100.0 * i)
          ++wrong;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("kernels serve other shapes and other numbers") {
  Tensor x = ones({3, 5}) * 2.5 + 1;
  (void)x.sum(1).softmax().str();
  auto before = kernel_statistics();
  for (int n : {2, 4, 7, 19}) {
    Tensor y = ones({n, 2 * n + 1}) * (0.5 * n) + n;
    CHECK(y[{0, 0}].item() == 1.5 * n);
    CHECK(y.sum(1).softmax().numel() == n);
    CHECK(y.sum(1).softmax().sum().item() == Approx(1));
  }
  auto after = kernel_statistics();
  // Only y[{0, 0}] and the sum of a vector are compiled anew.
  CHECK(after.compiled + after.fromDisk - before.compiled - before.fromDisk <= 6);
}

TEST_CASE("products with one matrix are compiled once for all numbers of rows") {
  // The sizes of the matrix are constants in the kernel; a matrix of other sizes gets its own kernel.
  Tensor weight = ones({96, 70}), other = ones({80, 70});
  CHECK(matmul(ones({3, 96}), weight).sum().item() == 3 * 96 * 70);
  auto made = [] {
    auto statistics = kernel_statistics();
    return statistics.compiled + statistics.fromDisk;
  };
  auto before = made();
  for (int rows : {2, 5, 33, 200})
    CHECK(matmul(ones({rows, 96}), weight).sum().item() == rows * 96 * 70);
  auto between = made();
  CHECK(between == before);
  CHECK(matmul(ones({5, 80}), other).to_vector<float>()[0] == 80);
  CHECK(made() == between + 1);
}

TEST_CASE("results do not depend on when they are read") {
  manual_seed(5);
  Tensor a = randn({64, 64});
  manual_seed(5);
  Tensor b = randn({64, 64});
  CHECK(a.to_vector<float>() == b.to_vector<float>());
  CHECK(std::abs(a.mean().item()) < 0.1);
  CHECK(a.var().item() == Approx(1).margin(0.1));
  CHECK(rand({1000}).max().item() < 1);
  Tensor dice = randint(1, 7, {6000});
  CHECK(dice.min().item() == 1);
  CHECK(dice.max().item() == 6);
  CHECK(dice.to(f32).mean().item() == Approx(3.5).margin(0.1));
  std::vector<int64_t> order = ints(randperm(50));
  std::sort(order.begin(), order.end());
  CHECK(order == ints(arange(50)));
}
