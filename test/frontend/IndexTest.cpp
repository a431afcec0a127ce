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

TEST_CASE("brackets that do not fit say so") {
  Tensor x = zeros({4, 5});
  CHECK_ERROR((x[{0, 0, 0}]), "3 indices", "f32[4, 5]");
  CHECK_ERROR(x[4], "index 4", "size 4");
  CHECK_ERROR((x[{0, -6}]), "index -6", "dimension 1");
  CHECK_ERROR((x[Slice(None, None, 0)]), "step 0");
  CHECK_ERROR((x[{Ellipsis, Ellipsis}]), "Ellipsis");
  CHECK_ERROR(x[tensor({0.5})], "type f32");
}
