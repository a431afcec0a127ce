// Invalid values: indices out of range, and conditions that do not hold. Kernels find them, and reading a result
// reports the error.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include <burin/graph/program.h>
#include <burin/nn/losses.h>

/// Checks that the error occurs during a run and names the lines of the failing calls.
#define CHECK_FAILS(code, ...)                                                                                         \
  do {                                                                                                                 \
    std::string what = messageOf([&] { code; });                                                                       \
    INFO(what);                                                                                                        \
    for (const std::string &part : std::vector<std::string>{__VA_ARGS__})                                              \
      CHECK(contains(what, part));                                                                                     \
  } while (false)

namespace {

const Dim n("n"), m("m");

std::string line(int number) { return "ValueCheckTest.cpp:" + std::to_string(number); }

} // namespace

TEST_CASE("an index out of range is an error that names the call, the place and the line") {
  Tensor x = reshape(arange(12), {3, 4}), bad = tensor({0, -3, 2, 3, 7});
  const int here = __LINE__;
  Tensor y = take(x, bad, 0);
  CHECK_FAILS(y.to_vector<int64_t>(), "an index of take is out of range along axis 0 (element 3)", line(here + 1));
  CHECK_FAILS(take(x, tensor({0, -4}), 0).to_vector<int64_t>(), "(element 1)");
  CHECK_FAILS(gather(x, tensor({{0, 1, 4, 5}}), 1).to_vector<int64_t>(),
              "an index of gather is out of range along axis 1", "(element 2)");
  CHECK_FAILS(scatter(x, tensor({{1, 3, 0, 0}}), tensor({{9, 9, 9, 9}})).to_vector<int64_t>(),
              "an index of scatter is out of range along axis 0", "(element 1)");
  CHECK_FAILS(x(tensor({0, 5})).to_vector<int64_t>(), "out of range");
  y = x;
  y.set({tensor({3})}, 1);
  CHECK_FAILS(y.to_vector<int64_t>(), "out of range");
  CHECK(take(x, tensor({-1, 0}), 0)(0, 0).item() == 8);
  CHECK(scatter(x, tensor({{1, 3, 0, 0}}), tensor({{-1, -2, -3, -4}}), 0, "set", /*drop=*/true).to_vector<int64_t>() ==
        std::vector<int64_t>{0, 1, -3, -4, -1, 5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("compiled functions find the first index that is out of range, whatever the threads") {
  Graph graph =
      trace([](const Tensor &x, const Tensor &i) { return exp(take(x, i, 0)) + 1; }, {{f32, {n, 8}}, {i64, {m}}});
  std::vector<int64_t> indices(50'000);
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = int64_t(i % 100);
  Artifact artifact = compile(graph);
  Tensor x = randn({100, 8});
  for (int again = 0; again < 10; ++again) {
    std::vector<int64_t> bad = indices;
    CHECK(allclose(artifact(x, from_vector(bad)), exp(take(x, from_vector(bad), 0)) + 1));
    bad[49'000] = 100, bad[31'234] = -101, bad[40'000] = INT64_MIN, bad[31'235] = INT64_MAX;
    CHECK_FAILS(artifact(x, from_vector(bad)).to_vector<float>(), "out of range", "(element 31234)");
    CHECK_FAILS(graph.run({x, from_vector(bad)})[0].to_vector<float>(), "(element 31234)");
  }
}

TEST_CASE("indices of each type and of vectors are looked at") {
  for (DType dtype : {u8, i8, i16, i32, i64}) {
    auto f = jit([](const Tensor &x, const Tensor &i) { return gather(x, i); });
    Tensor x = randn({10, 37}), zero = zeros({10, 37}, i64);
    CHECK(allclose(f(x, zero.to(dtype)), take(x, zeros({10}, i64), 0)));
    for (int row : {0, 3, 9})
      for (int column : {0, 7, 8, 31, 36}) {
        Tensor i = zero;
        i.set({row, column}, 10);
        INFO(row << ", " << column);
        CHECK_FAILS(f(x, i.to(dtype)).to_vector<float>(), "(element " + std::to_string(row * 37 + column) + ")");
      }
  }
}

TEST_CASE("two lookups in one kernel name their own lines") {
  const int here = __LINE__;
  auto f = [](const Tensor &x, const Tensor &i, const Tensor &j) {
    Tensor left = take(x, i, 0);
    Tensor right = take(x, j, 0);
    return left + right;
  };
  Artifact artifact = compile(trace(f, {{f32, {4, 3}}, {i64, {2}}, {i64, {2}}}));
  Tensor x = randn({4, 3}), good = tensor({0, 1}), bad = tensor({0, 4});
  CHECK(allclose(artifact(x, good, good), take(x, good, 0) * 2));
  CHECK_FAILS(artifact(x, bad, good).to_vector<float>(), line(here + 2));
  CHECK_FAILS(artifact(x, good, bad).to_vector<float>(), line(here + 3));
  CHECK_FAILS(artifact(x, bad, bad).to_vector<float>(), line(here + 2));
}

TEST_CASE("a lookup in a table that a product shares is looked at") {
  Tensor table = randn({100, 16});
  Artifact artifact = compile(trace(
      [&](const Tensor &tokens) { return matmul(take(table, tokens, 0), table.transpose({1, 0})); }, {{i64, {n}}}));
  Tensor good = tensor({0, 99, -1});
  CHECK(allclose(artifact(good), matmul(take(table, good, 0), table.transpose({1, 0})), 1e-4, 1e-4));
  CHECK_FAILS(artifact(tensor({0, 100})).to_vector<float>(), "an index of take is out of range", "(element 1)");
}

TEST_CASE("a run that fails leaves states as they were") {
  struct Table : nn::Module {
    Parameter rows = register_buffer("rows", ones({3, 2}));
  } table;
  Program program(table);
  program.add("add",
              [&](const Tensor &i, const Tensor &x) {
                table.rows.set(scatter(table.rows, broadcast_to(unsqueeze(i, {1}), {2, 2}), x, 0, "add"));
                return table.rows.value().sum();
              },
              {{i64, {2}}, {f32, {2, 2}}});
  Artifact artifact = compile(program.graph());
  CHECK(artifact(tensor({0, 2}), ones({2, 2})).item() == 10);
  CHECK_FAILS(artifact(tensor({0, 3}), ones({2, 2})).item(), "an index of scatter is out of range");
  CHECK(artifact.state("rows").sum().item() == 10);
  CHECK(artifact(tensor({1, 1}), ones({2, 2})).item() == 14);
}

TEST_CASE("check passes its operand on, or fails") {
  Tensor x = tensor({4.0f, 9.0f, -1.0f});
  auto root = [](const Tensor &x) { return sqrt(check(x >= 0, x, "root of a negative number")); };
  CHECK(root(abs(x)).to_vector<float>() == std::vector<float>{2, 3, 1});
  CHECK_FAILS(root(x).to_vector<float>(), "root of a negative number (element 2)");
  auto compiled = jit(root);
  CHECK(compiled(abs(x)).to_vector<float>() == std::vector<float>{2, 3, 1});
  CHECK_FAILS(compiled(x).to_vector<float>(), "root of a negative number (element 2)");
  Tensor w = abs(x).requires_grad_();
  root(w).sum().backward();
  CHECK(allclose(w.grad(), tensor({0.25f, 1.0f / 6, 0.5f})));
}

TEST_CASE("a check of a condition fails the call, or each run of what is traced") {
  Tensor x = randn({3});
  check(x == x, "not a number");
  CHECK_FAILS(check(x != x, "it is a number"), "it is a number", line(__LINE__));
  CHECK_ERROR(check(x, "no"), "must be bool");
  const int here = __LINE__;
  auto f = [](const Tensor &x) {
    check(x.sum() < 10, "the sum is too large");
    return x * 2;
  };
  auto compiled = jit(f);
  CHECK(compiled(ones({3})).sum().item() == 6);
  CHECK_FAILS(compiled(ones({11})).to_vector<float>(), "the sum is too large", line(here + 2));
  CHECK_FAILS(trace(f, {{f32, {n}}}).run({ones({20})})[0].to_vector<float>(), "the sum is too large");
}

TEST_CASE("checks in branches and loops run with them") {
  auto f = jit([](const Tensor &x, const Tensor &turns) {
    Tensor y = cond(
        x.sum() > 0,
        [&] {
          check(x.sum() < 100, "too large");
          return x;
        },
        [&] { return -x; });
    Tensor count = while_loop([&](const Tensor &i) { return i < turns; },
                              [&](const Tensor &i) {
                                check(i < 5, "too many turns");
                                return i + 1;
                              },
                              zeros({}, i64));
    return y + count.to(f32);
  });
  Tensor one = ones({2});
  CHECK(f(one, tensor(3)).to_vector<float>() == std::vector<float>{4, 4});
  CHECK(f(-one * 500, tensor(0)).to_vector<float>() == std::vector<float>{500, 500});
  CHECK_FAILS(f(one * 500, tensor(3)).to_vector<float>(), "too large");
  CHECK_FAILS(f(one, tensor(6)).to_vector<float>(), "too many turns");
  auto sums = jit([](const Tensor &x) {
    return scan(
               [](const std::vector<Tensor> &states, const std::vector<Tensor> &xs) {
                 check(states[0] < 3, "the sum has become too large");
                 return ScanResult{.states = {states[0] + xs[0]}, .outputs = {}};
               },
               {zeros({})}, {x})
        .states[0];
  });
  CHECK(sums(ones({3})).item() == 3);
  CHECK_FAILS(sums(ones({5})).item(), "the sum has become too large");
}
