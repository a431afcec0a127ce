// Running extrema, histograms and losses with margins where docs/from-pytorch.md is not enough.
#include "test/frontend/Check.h"
#include <cmath>

using Tensors = const std::vector<Tensor> &;

TEST_CASE("running extrema keep the last of equal elements and every NaN") {
  const Tensor x = tensor({1.0, 3.0, 3.0, NAN, 5.0, 2.0});
  auto [values, places] = cummax(x, 0);
  CHECK(ints(places) == std::vector<int64_t>{0, 1, 2, 3, 3, 3});
  CHECK(floats(values)[2] == 3);
  CHECK(std::isnan(floats(values)[5]));
  CHECK(ints(cummin(tensor({2, 2, 1, 4}), 0).values) == std::vector<int64_t>{2, 2, 1, 1});
  CHECK(cummax(zeros({2, 0}), 1).values.shape() == Shape{2, 0});
  gradcheck([](Tensors in) { return std::vector{cummax(in[0], 1).values}; },
            {tensor({{1.0, 0.5, 2.0}, {3.0, 4.0, -1.0}}, f64)});
  CHECK_ERROR(cummax(x, 1), "cummax", "axis 1");
}

TEST_CASE("histograms count what lies in their bounds") {
  const Tensor x = tensor({0.0, 1.0, 2.0, 4.0, 5.0, -1.0});
  CHECK(floats(histc(x, 4, 0, 4)) == std::vector<float>{1, 1, 1, 1});
  CHECK(floats(histc(full({3}, 2.0), 2)) == std::vector<float>{0, 3});
  CHECK(floats(histc(zeros({0}), 2)) == std::vector<float>{0, 0});
  CHECK_ERROR(histc(x, 0), "at least one bin");
}

TEST_CASE("sorting and running extrema give structured bindings") {
  const Tensor x = tensor({3.0, 1.0, 2.0});
  auto [values, indices] = sort(x);
  CHECK(ints(indices) == std::vector<int64_t>{1, 2, 0});
  auto [largest, places] = x.topk(2);
  CHECK(floats(largest) == std::vector<float>{3, 2});
  CHECK(floats(max(x, values)) == std::vector<float>{3, 2, 3});
  CHECK(x.split(2).size() == 2);
}

TEST_CASE("losses with margins have gradients and name what does not fit") {
  const Tensor x = tensor({{0.3, -0.8, 1.7}, {-1.1, 0.4, 0.9}}, f64), y = x * x - 0.5;
  const Tensor classes = tensor({2, 0}), signs = tensor({{1.0, -1.0, 1.0}, {-1.0, 1.0, 1.0}}, f64);
  gradcheck([](Tensors in) { return std::vector{gaussian_nll_loss(in[0], in[1], exp(in[1]), {.full = true})}; },
            {x, y});
  gradcheck([&](Tensors in) { return std::vector{poisson_nll_loss(in[0], in[1] + 2.0, {.full = true})}; }, {x, y});
  gradcheck(
      [&](Tensors in) {
        return std::vector{hinge_embedding_loss(in[0], signs),
                           margin_ranking_loss(in[0], in[0] * in[0], signs, 0.3),
                           soft_margin_loss(in[0], signs),
                           multilabel_soft_margin_loss(in[0], signs * 0.5 + 0.5),
                           multi_margin_loss(in[0], classes, {.p = 2}),
                           multilabel_margin_loss(in[0], tensor({{2, 0, -1}, {1, -1, 0}}))};
      },
      {x});
  CHECK(soft_margin_loss(full({1}, -1000.0), ones({1})).item() == 1000); // no overflow
  CHECK_ERROR(multi_margin_loss(x, tensor({1, 2, 3})), "multi_margin_loss", "one integer per row");
  CHECK_ERROR(multi_margin_loss(x, classes, {.p = 3}), "must be 1 or 2");
  CHECK_ERROR(gaussian_nll_loss(x, y, ones({5})), "the variance is f32[5]");
  CHECK_ERROR(hinge_embedding_loss(x, classes), "they must have one shape");
}
