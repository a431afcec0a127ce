#include "test/frontend/Check.h"
#include <cmath>

namespace {
/// Computes attention by its definition, with other ops.
Tensor byFormula(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &added, double scale) {
  return matmul(softmax(matmul(q, k.transpose({0, 1, 3, 2})) * scale + added, -1), v);
}
/// Reshapes [batch, length, heads * size] to [batch, heads, length, size].
Tensor heads(const Tensor &x, int64_t count) {
  int64_t batch = x.shape()[0].value(), length = x.shape()[1].value(), size = x.shape()[2].value() / count;
  return x.reshape({batch, length, count, size}).transpose({0, 2, 1, 3});
}
} // namespace

TEST_CASE("attention gives what its formula gives, whatever the lengths") {
  auto [rows, keys, size, width] = GENERATE(table<int64_t, int64_t, int64_t, int64_t>(
      {{1, 1, 1, 1}, {1, 130, 64, 64}, {13, 33, 5, 35}, {40, 40, 16, 16}, {200, 97, 32, 33}}));
  Tensor q = randn({2, 3, rows, size}), k = randn({2, 3, keys, size}), v = randn({2, 3, keys, width});
  double scale = 1 / std::sqrt(double(size));
  Tensor plain = scaled_dot_product_attention(q, k, v);
  CHECK(largestDifference(plain, byFormula(q, k, v, zeros({}), scale)) < 2e-5);

  Tensor mask = randn({2, 1, rows, keys});
  CHECK(largestDifference(scaled_dot_product_attention(q, k, v, mask), byFormula(q, k, v, mask, scale)) < 2e-5);
  Tensor seen = mask > -0.5;
  Tensor hidden = where(seen, zeros({}), full({}, -1e30));
  Tensor anySeen = any(seen, {-1}, true);
  CHECK(largestDifference(scaled_dot_product_attention(q, k, v, seen),
                          where(anySeen, byFormula(q, k, v, hidden, scale), zeros({}))) < 2e-5);
  Tensor causal = triu(full({rows, keys}, -1e30), 1);
  CHECK(largestDifference(scaled_dot_product_attention(q, k, v, std::nullopt, true),
                          byFormula(q, k, v, causal, scale)) < 2e-5);
}

TEST_CASE("attention reads transposed operands where they lie") {
  Tensor q = randn({2, 21, 24}), k = randn({2, 37, 24}), v = randn({2, 37, 30});
  auto attend = [](const Tensor &q, const Tensor &k, const Tensor &v) {
    return scaled_dot_product_attention(heads(q, 3), heads(k, 3), heads(v, 3));
  };
  Tensor expected = scaled_dot_product_attention(heads(q, 3), heads(k, 3), heads(v, 3));
  CHECK(largestDifference(jit(attend)(q, k, v), expected) == 0);
  // A transpose with other users is computed separately.
  auto both = [&](const Tensor &q, const Tensor &k, const Tensor &v) {
    Tensor turned = heads(q, 3);
    return std::pair(scaled_dot_product_attention(turned, heads(k, 3), heads(v, 3)), turned * 2);
  };
  auto [attended, doubled] = jit(both)(q, k, v);
  CHECK(largestDifference(attended, expected) == 0);
  CHECK(largestDifference(doubled, heads(q, 3) * 2) == 0);
  // The last dimension may be strided.
  auto across = [](const Tensor &q, const Tensor &k, const Tensor &v) {
    return scaled_dot_product_attention(q, k.transpose({0, 2, 1}), v.transpose({0, 2, 1}));
  };
  Tensor a = randn({2, 5, 19}), b = randn({2, 19, 34}), c = randn({2, 7, 34});
  CHECK(largestDifference(jit(across)(a, b, c),
                          scaled_dot_product_attention(a, b.transpose({0, 2, 1}), c.transpose({0, 2, 1}))) == 0);
}

TEST_CASE("attention of symbolic lengths, and of 16-bit floats") {
  Dim n("n"), s("s");
  Graph graph = trace([](const Tensor &q, const Tensor &k,
                         const Tensor &v) { return scaled_dot_product_attention(q, k, v, std::nullopt, true); },
                      {TensorSpec{f32, {2, n, 16}}, TensorSpec{f32, {2, s, 16}}, TensorSpec{f32, {2, s, 20}}});
  for (auto [rows, keys] : {std::pair(1, 1), {1, 65}, {30, 30}, {193, 200}}) {
    Tensor q = randn({2, rows, 16}), k = randn({2, keys, 16}), v = randn({2, keys, 20});
    CHECK(largestDifference(graph.run({q, k, v}).front(), scaled_dot_product_attention(q, k, v, std::nullopt, true)) <
          1e-6);
    Tensor half = scaled_dot_product_attention(q.to(f16), k.to(f16), v.to(f16), std::nullopt, true);
    Tensor exact =
        scaled_dot_product_attention(q.to(f16).to(f32), k.to(f16).to(f32), v.to(f16).to(f32), std::nullopt, true);
    CHECK(largestDifference(half.to(f32), exact) < 4e-3);
  }
}
