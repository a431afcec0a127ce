#include "test/frontend/Check.h"

static Tensor counting(const Shape &shape) { return arange(elements(shape).value()).reshape(shape); }

TEST_CASE("brackets choose parts as in NumPy") {
  Tensor x = counting({4, 5});
  CHECK(ints(x[1]) == std::vector<int64_t>{5, 6, 7, 8, 9});
  CHECK(x[{-1, -1}].item() == 19);
  CHECK(x[{2, 3}].rank() == 0);
  CHECK(ints(x[{Slice(1, None, 2), 3}]) == std::vector<int64_t>{8, 18});
  CHECK(ints(x[{Ellipsis, 0}]) == std::vector<int64_t>{0, 5, 10, 15});
  CHECK(ints(x[Slice(2)][{Slice(), Slice(3, None)}]) == std::vector<int64_t>{3, 4, 8, 9});
  CHECK(ints(x[{0, Slice(-2, None)}]) == std::vector<int64_t>{3, 4});
  CHECK(ints(x[{0, Slice(10, 20)}]).empty());
  CHECK(str(x[{NewAxis, Slice(), NewAxis, 0}].shape()) == "[1, 4, 1]");
  CHECK(str(x[{Ellipsis, NewAxis}].shape()) == "[4, 5, 1]");
  CHECK(str(x[{1, NewAxis}].shape()) == "[1, 5]");
  CHECK(str(x[Ellipsis].shape()) == "[4, 5]");
}

TEST_CASE("a negative step runs backwards") {
  Tensor x = counting({5});
  // Python: list(range(5))[start:stop:step]
  CHECK(ints(x[Slice(None, None, -1)]) == std::vector<int64_t>{4, 3, 2, 1, 0});
  CHECK(ints(x[Slice(None, None, -2)]) == std::vector<int64_t>{4, 2, 0});
  CHECK(ints(x[Slice(3, None, -1)]) == std::vector<int64_t>{3, 2, 1, 0});
  CHECK(ints(x[Slice(3, 0, -1)]) == std::vector<int64_t>{3, 2, 1});
  CHECK(ints(x[Slice(-2, -5, -2)]) == std::vector<int64_t>{3, 1});
  CHECK(ints(x[Slice(100, 1, -1)]) == std::vector<int64_t>{4, 3, 2});
  CHECK(ints(x[Slice(None, -100, -1)]) == std::vector<int64_t>{4, 3, 2, 1, 0});
  CHECK(ints(x[Slice(1, 3, -1)]).empty());
  CHECK(ints(counting({2, 3})[{Slice(None, None, -1), Slice(None, None, -1)}]) ==
        std::vector<int64_t>{5, 4, 3, 2, 1, 0});
}

TEST_CASE("tensors as indices") {
  Tensor x = counting({4, 3});
  Tensor rows = tensor({2, 0, -1});
  CHECK(ints(x[rows]) == std::vector<int64_t>{6, 7, 8, 0, 1, 2, 9, 10, 11});
  CHECK(ints(x[{Slice(), tensor({{2}, {0}})}][0]) == std::vector<int64_t>{2, 0});
  CHECK(str(x[{tensor({{0, 1}, {2, 3}}), Slice(1, None)}].shape()) == "[2, 2, 2]");
  CHECK(str(counting({2, 3, 4})[{0, tensor({1, 2}), NewAxis}].shape()) == "[2, 1, 4]");
}

TEST_CASE("tensors as several indices are read together") {
  const Tensor x = counting({4, 3}), rows = tensor({2, 0, -1}), columns = tensor({1, -1, 0});
  CHECK(ints(x[{rows, columns}]) == std::vector<int64_t>{7, 2, 9});
  CHECK(ints(x[{rows.unsqueeze(1), columns}]) == std::vector<int64_t>{7, 8, 6, 1, 2, 0, 10, 11, 9});
  const Tensor y = counting({2, 4, 3, 5});
  CHECK(str(y[{Slice(), rows, columns}].shape()) == "[2, 3, 5]"); // adjacent
  CHECK(str(y[{tensor({1, 0, 1}), Slice(), columns}].shape()) == "[3, 4, 5]");
  CHECK(str(y[{tensor({{1}, {0}}), Slice(), columns, NewAxis, Slice(1, None)}].shape()) == "[2, 3, 4, 1, 4]");
  CHECK(str(y[{0, Slice(), columns, columns}].shape()) == "[4, 3]"); // an integer is applied before
  CHECK(str(y[{tensor(0), Slice(), columns, columns}].shape()) == "[4, 3]");
  CHECK(ints(y[{tensor({1, 0, 1}), Slice(1, 3), columns, 4}]) == std::vector<int64_t>{84, 99, 29, 44, 79, 94});
  CHECK(x[{zeros({0}, i64), zeros({0}, i64)}].shape() == Shape{0});
  CHECK_ERROR((x[{rows, tensor({1, 0})}]), "broadcast");
  CHECK_ERROR(ints(x[{rows, tensor({1, 3, 0})}]), "IndexTest.cpp:", "out of range");
  CHECK_ERROR(ints(x[{tensor({0, -5, 0}), columns}]), "out of range");

  auto picked = [](const Tensor &x, const Tensor &classes) { return x[{arange(x.size(0)), classes}]; };
  const Graph graph = trace(picked, {{f32, {Dim("n"), Dim("m")}}, {i64, {Dim("n")}}});
  CHECK(ints(graph.run({x.to(f32), tensor({0, 1, 2, 1})})[0]) == std::vector<int64_t>{0, 4, 8, 10});
  const Tensor slopes =
      value_and_grad([&](const Tensor &x) { return (picked(x, tensor({0, 1, 2, 1})) * 2.0).sum(); })(x.to(f32))
          .second[0];
  CHECK(ints(slopes) == std::vector<int64_t>{2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 2, 0});
}

TEST_CASE("several tensors and masks choose what is set") {
  Tensor x = zeros({3, 3}, i64);
  x.set({tensor({0, 1, -1}), tensor({0, 2, 1})}, tensor({5, 6, 7}));
  CHECK(ints(x) == std::vector<int64_t>{5, 0, 0, 0, 0, 6, 0, 7, 0});
  x.set(x > 5, -1);
  CHECK(ints(x) == std::vector<int64_t>{5, 0, 0, 0, 0, -1, 0, -1, 0});
  x.set(tensor({false, true, true}), tensor({1, 2, 3}));
  CHECK(ints(x) == std::vector<int64_t>{5, 0, 0, 1, 2, 3, 1, 2, 3});
  x.set(x == 1, tensor({8, 9})); // one value for each place
  CHECK(ints(x) == std::vector<int64_t>{5, 0, 0, 8, 2, 3, 9, 2, 3});
  x.set({tensor({true, false, true}), 1}, 4);
  CHECK(ints(x) == std::vector<int64_t>{5, 4, 0, 8, 2, 3, 9, 4, 3});
  CHECK(ints(x[x > 4]) == std::vector<int64_t>{5, 8, 9});
  CHECK(ints(x[{Slice(), x[0] > 3}]) == std::vector<int64_t>{5, 4, 8, 2, 9, 4});
  CHECK_ERROR(x[tensor({true, false})], "mask of shape [2]", "dimension 0");
  auto cut = [](Tensor x) {
    x.set(x > 2.0, 2.0);
    return x;
  };
  const Graph graph = trace(cut, {{f32, {Dim("n")}}});
  CHECK(ints(graph.run({tensor({1.0f, 3.0f, 2.0f, 7.0f})})[0]) == std::vector<int64_t>{1, 2, 2, 2});
}

TEST_CASE("brackets that do not fit say so") {
  Tensor x = zeros({4, 5});
  CHECK_ERROR((x[{0, 0, 0}]), "3 indices", "f32[4, 5]");
  CHECK_ERROR(x[4], "index 4", "size 4");
  CHECK_ERROR((x[{0, -6}]), "index -6", "dimension 1");
  CHECK_ERROR((x[Slice(None, None, 0)]), "step 0");
  CHECK_ERROR((x[{Ellipsis, Ellipsis}]), "Ellipsis");
  CHECK_ERROR(x[tensor({0.5})], "type f32");
}

TEST_CASE("set replaces a part, as x[i] = y in NumPy") {
  Tensor x = counting({3, 4}), before = x;
  x.set(1, tensor({10, 20, 30, 40}));
  CHECK(ints(x) == std::vector<int64_t>{0, 1, 2, 3, 10, 20, 30, 40, 8, 9, 10, 11});
  CHECK(ints(before) == ints(counting({3, 4}))); // the handle has a new value; the old value is unchanged
  x.set({Slice(), Slice(None, None, -2)}, tensor({-1, -2})).set({-1, 0}, 7);
  CHECK(ints(x) == std::vector<int64_t>{0, -2, 2, -1, 10, -2, 30, -1, 7, -2, 10, -1});
  x.set({Ellipsis, 0}, x[{Ellipsis, 0}] + 100);
  CHECK(ints(x[{Slice(), 0}]) == std::vector<int64_t>{100, 110, 107});
  x.set(tensor({2, 0, 2}), tensor({{1}, {2}, {3}})); // of repeated indices the last one counts
  CHECK(ints(x) == std::vector<int64_t>{2, 2, 2, 2, 110, -2, 30, -1, 3, 3, 3, 3});
  x.set(Ellipsis, true);
  CHECK(ints(x) == std::vector<int64_t>(12, 1));
  CHECK(x.dtype() == DType::i64);

  Tensor scalar = tensor(2.5), none = zeros({0, 3});
  CHECK(scalar.set(Ellipsis, 4).item() == 4);
  CHECK(str(none.set({Slice(), 1}, 3).shape()) == "[0, 3]");
  Tensor y = zeros({2, 3});
  CHECK(floats(y.set({Slice(1, 1)}, ones({0, 3}))) == std::vector<float>(6));
}

TEST_CASE("set replaces the same part eagerly, recorded on a tape, and in a trace") {
  const std::vector<Indices> parts{{1},
                                   {-1},
                                   {{1, -2}},
                                   {{1, 2, 3}},
                                   {Ellipsis},
                                   {{Ellipsis, 0}},
                                   {{Slice(), 2}},
                                   {{Slice(1, None), Slice(None, None, 2)}},
                                   {{Slice(None, None, -1), 0, Slice(-2, None)}},
                                   {{0, Slice(10, 1, -2), Slice(None, None, -3)}},
                                   {{NewAxis, 1, NewAxis, Slice(0, 100), Ellipsis}},
                                   {{Slice(2, 1), Slice(), -1}},
                                   {{tensor({1, 0}), Slice(1, 3)}}};
  const Tensor x = counting({3, 5, 4}).to(f32);
  for (const Indices &part : parts) {
    const Tensor values = -counting(x[part].shape()).to(f32) - 1;
    auto replaced = [&](const Tensor &given) {
      Tensor y = given;
      return y.set(part, values), y;
    };
    const std::vector<float> expected = floats(jit(replaced)(x));
    CHECK(floats(replaced(x)) == expected);
    CHECK(floats(replaced(x.detach().requires_grad_())) == expected);
  }
  CHECK(floats(x) == floats(counting({3, 5, 4})));
}

TEST_CASE("set in a trace, over symbolic sizes, and its gradients") {
  auto edge = [](Tensor x, const Tensor &y) {
    x.set({Slice(), -1}, y);
    x.set({0, Slice(None, 2)}, 5);
    return x;
  };
  Graph g = trace(edge, {TensorSpec{f32, {Dim("n"), 3}}, TensorSpec{f32, {Dim("n")}}});
  for (int64_t n : {1, 4}) {
    Tensor x = counting({n, 3}).to(f32), y = -counting({n}).to(f32) - 1;
    CHECK(floats(compile(g).run({x, y})[0]) == floats(edge(x, y)));
  }
  Tensor x = ones({2, 3}), y = ones({2});
  x.requires_grad_(), y.requires_grad_();
  (edge(x, y) * counting({2, 3})).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{0, 0, 0, 3, 4, 0});
  CHECK(floats(y.grad()) == std::vector<float>{2, 5});
}

TEST_CASE("set refuses what does not fit") {
  Tensor x = zeros({4, 5}), whole = counting({4});
  CHECK_ERROR(x.set(0, ones({4})), "set", "f32[4]", "f32[4, 5]", "[5]");
  CHECK_ERROR(whole.set(0, 1.5), "set", "f32[]", "i64[4]");
  CHECK_ERROR(x.set(4, 0), "index 4", "f32[4, 5]");
  CHECK_ERROR((x.set({0, 0, 0}, 0)), "3 indices", "f32[4, 5]");
}

// x[0] = y would only change the temporary x[0], so it must not compile.
static_assert(!std::is_assignable_v<Tensor, Tensor> && !std::is_assignable_v<Tensor, int>);
static_assert(std::is_assignable_v<Tensor &, Tensor> && std::is_assignable_v<Tensor &, int>);
template <class T>
concept addsInPlace = requires(T &&x) { std::forward<T>(x) += 1; };
template <class T>
concept setsInPlace = requires(T &&x) { std::forward<T>(x).set(0, 1); };
static_assert(addsInPlace<Tensor &> && !addsInPlace<Tensor> && setsInPlace<Tensor &> && !setsInPlace<Tensor>);
