// Branches and loops under vmap.
#include <burin/burin.h>
#include <catch2/catch.hpp>

using namespace burin;

namespace {

using Tensors = std::vector<Tensor>;

/// Compares vmap(f), eager and jitted, with a call of f per example.
template <class F> void compare(F f, const Tensors &xs) {
  Tensors wanted;
  for (int64_t i = 0; i < xs[0].size(0).value(); ++i) {
    Tensors one;
    for (const Tensor &x : xs)
      one.push_back(select(x, 0, i));
    wanted.push_back(f(one));
  }
  auto all = vmap([&](const Tensors &list) { return f(list); });
  for (const Tensor &got : {all(xs), jit(all)(xs)}) {
    REQUIRE(got.shape() == stack(wanted).shape());
    CHECK(allclose(got, stack(wanted), 1e-5, 1e-6));
  }
}

const Tensor xs = random_normal({3, 4}, 1, f32), rows = random_normal({3, 5, 4}, 2, f32);

} // namespace

TEST_CASE("cond in vmap") {
  compare([](const Tensors &x) { return cond(x[0].sum() > 0, [&] { return x[0] * 2; }, [&] { return -x[0]; }); }, {xs});
  Tensor shared = tensor(true);
  compare([&](const Tensors &x) { return cond(shared, [&] { return x[0] * 2; }, [&] { return zeros({4}); }); }, {xs});
  // An example neither reads the operands of the branch that it does not take, nor can that branch's checks fail for
  // it.
  Tensor table = tensor({10.f, 20.f, 30.f});
  compare(
      [&](const Tensors &x) {
        return cond(x[0] < 3, [&] { return take(table, x[0], 0); }, [&] { return take(table, x[0] - 3, 0); });
      },
      {tensor({1, 5, 3})});
  compare(
      [](const Tensors &x) {
        return cond(
            x[0] < 3,
            [&] {
              check(x[0] < 3, "too large");
              return x[0] * 1;
            },
            [&] { return x[0] - 3; });
      },
      {tensor({1, 5, 3})});
  CHECK_THROWS(vmap([](const Tensor &x) {
                 check(x < 3, "too large");
                 return x * 1;
               })(tensor({1, 5, 3}))
                   .to_vector<int64_t>());
}

TEST_CASE("while_loop in vmap runs each example to its own end") {
  compare(
      [](const Tensors &x) { // the length of the Collatz sequence
        auto [n, steps] = while_loop([](const Tensor &n, const Tensor &) { return n > 1; },
                                     [](const Tensor &n, const Tensor &steps) {
                                       return std::pair{where(n % 2 == 0, floor_divide(n, 2), n * 3 + 1), steps + 1};
                                     },
                                     std::pair{x[0], zeros_like(x[0])});
        return steps;
      },
      {tensor({1, 6, 7, 27})});
  compare(
      [](const Tensors &x) { // the number of iterations is the same for all examples
        return while_loop([](const Tensor &i, const Tensor &) { return i < 3; },
                          [&](const Tensor &i, const Tensor &y) { return std::pair{i + 1, y * x[0] + 1}; },
                          std::pair{tensor(0), ones({4})})
            .second;
      },
      {xs});
}

TEST_CASE("scan, fori_loop and map in vmap") {
  compare(
      [](const Tensors &x) {
        return scan(
                   [](const Tensors &state, const Tensors &row) {
                     Tensor next = tanh(state[0] + row[0]);
                     return ScanResult{{next}, {next * 2}};
                   },
                   {x[0]}, {x[1]})
            .outputs[0];
      },
      {xs, rows});
  for (bool reverse : {false, true})
    compare(
        // The state is not batched at first, but becomes batched in an iteration; all states are kept.
        [&](const Tensors &x) {
          ScanResult all = scan(
              [](const Tensors &state, const Tensors &row) {
                Tensor next = state[0] * 0.5 + row[0];
                return ScanResult{{next, state[1] + 1}, {next, state[1]}};
              },
              {zeros({4}), tensor(0)}, {x[0]}, reverse);
          return all.outputs[0] + all.states[0] + unsqueeze(all.outputs[1], {1}).to(f32);
        },
        {rows});
  compare(
      [](const Tensors &x) {
        return fori_loop(0, 4, [&](const Tensor &i, const Tensor &y) { return y * x[0] + i.to(f32); }, ones({4}));
      },
      {xs});
  Tensor shared = random_normal({5, 4}, 3, f32);
  compare([&](const Tensors &x) { return map([&](const Tensor &row) { return (row * x[0]).sum(); }, shared); }, {xs});
}

TEST_CASE("gradients of loops in vmap") {
  compare(
      [](const Tensors &x) {
        auto run = [&](const Tensor &start) {
          return scan(
                     [](const Tensors &state, const Tensors &row) { return ScanResult{{tanh(state[0] * row[0])}, {}}; },
                     {start}, {x[1]})
              .states[0]
              .sum();
        };
        return grad(run)(x[0]);
      },
      {xs, rows});
  compare(
      [](const Tensors &x) {
        auto run = [&](const Tensor &x) {
          return cond(x.sum() > 0, [&] { return (x * x).sum(); }, [&] { return x.sum(); });
        };
        return grad(run)(x[0]);
      },
      {xs});
}
