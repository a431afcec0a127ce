#include "test/frontend/Check.h"
#include <cmath>

TEST_CASE("a convolution with bias rounds its 16-bit result once") {
  // 1 + 2^-8 is halfway between two bf16 numbers; the bias decides the direction of rounding.
  double small = 0x1p-8;
  for (int64_t groups : {1, 2, 4}) {
    int64_t inputs = 4 / groups;
    // Taps 1 and 2^-8 in the first channel of each group; with one channel per group there are two taps.
    std::vector<float> filter(size_t(4 * inputs * 2), 0);
    for (int64_t o = 0; o < 4; ++o) {
      filter[size_t(o * inputs * 2)] = 1;
      filter[size_t(o * inputs * 2 + 1)] = float(small);
    }
    Tensor weight = from_vector(filter).reshape({4, inputs, 2}).to(bf16);
    Tensor y = conv(full({1, 4, 2}, 1).to(bf16), weight, full({4}, small).to(bf16), {}, {}, {}, groups);
    CHECK(y.to(f32).to_vector<float>() == std::vector<float>(4, 1.0078125f));
  }
  Tensor sums = matmul(tensor({1.0, 1.0}).to(bf16), tensor({1.0, small}).to(bf16)) + full({}, small).to(bf16);
  CHECK(sums.to(f32).item() == 1); // two separate ops round twice
}

TEST_CASE("numbers in nested braces") {
  Tensor a = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(str(a.spec()) == "i64[2, 3]");
  CHECK(ints(a) == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  CHECK(tensor({1, 2.5}).dtype() == f32);
  CHECK(tensor({true, false}).dtype() == boolean);
  CHECK(tensor({1, 2}, f16).dtype() == f16);
  CHECK(str(tensor(7).spec()) == "i64[]");
  CHECK(str(tensor({{{1}}, {{2}}}).spec()) == "i64[2, 1, 1]");
  CHECK_ERROR(tensor({{1, 2}, {3}}), "differ in length");
  CHECK_ERROR(tensor({{1, 2}, 3}), "not nested equally deep");
}

TEST_CASE("creation") {
  CHECK(floats(zeros({2, 2})) == std::vector<float>(4, 0));
  CHECK(ints(full({3}, 7, i32)) == std::vector<int64_t>{7, 7, 7});
  CHECK(ints(arange(5)) == std::vector<int64_t>{0, 1, 2, 3, 4});
  CHECK(ints(arange(10, 3, -3)) == std::vector<int64_t>{10, 7, 4});
  CHECK(arange(3).dtype() == i64);
  CHECK(floats(arange(0.0, 1.0, 0.25)) == std::vector<float>{0, 0.25, 0.5, 0.75});
  CHECK(ints(arange(3, 3)).empty());
  CHECK(floats(linspace(0, 1, 5)) == std::vector<float>{0, 0.25, 0.5, 0.75, 1});
  CHECK(floats(linspace(2, 2, 1)) == std::vector<float>{2});
  CHECK(linspace(-1, 1.1, 7).to_vector<double>().back() == float(1.1));
  CHECK(floats(eye(2, 3)) == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(ints(iota({2, 3}, i64, 1)) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(str(zeros_like(tensor({1, 2})).spec()) == "i64[2]");
  CHECK(zeros({0, 3}).to_vector<float>().empty());
  CHECK_ERROR(zeros({2, -1}), "[2, -1]");
  CHECK_ERROR(empty({Dim("n")}), "[n]");
}

TEST_CASE("from_vector, from_blob and reading back") {
  CHECK(floats(from_vector<float>({1, 2, 3, 4}, Shape{2, 2})) == std::vector<float>{1, 2, 3, 4});
  CHECK(from_vector<bool>({true, false}).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK_ERROR(from_vector<float>({1, 2, 3}, Shape{2, 2}), "3 values", "[2, 2]");
  std::vector<int32_t> memory{1, 2, 3};
  int released = 0;
  {
    Tensor x = from_blob(memory.data(), {i32, {3}}, [&] { ++released; });
    CHECK(x.data<int32_t>().data() == memory.data());
    Tensor y = x.reshape({3, 1});
    CHECK(y.data<int32_t>().data() == memory.data());
    CHECK(ints(y + 1) == std::vector<int64_t>{2, 3, 4});
    synchronize();
    CHECK(released == 0);
    CHECK_ERROR(x.data<float>(), "i32[3]", "f32");
  }
  CHECK(released == 1);
}

TEST_CASE("reading converts by the rules of cast") {
  Tensor x = tensor({-1.5, 300.0, 2.9});
  CHECK(values<uint8_t>(x) == std::vector<uint8_t>{0, 255, 2});
  CHECK(values<int8_t>(tensor({300, -129})) == std::vector<int8_t>{44, 127});
  CHECK(tensor({0.1}, f64).item<float>() == 0.1f);
  CHECK(tensor({1.0009765625}, f16).item() == 1.0009765625);
  CHECK(tensor({65520.0}, f16).item() == INFINITY);
  CHECK(tensor({1.00390625}, bf16).item() == 1.0); // half to even
  CHECK(Tensor(0.1).item() == 0.1);                // a number keeps its precision
  CHECK(Tensor(true).item<int>() == 1);
  CHECK_ERROR(tensor({1, 2}).item(), "i64[2]", "2 elements");
  CHECK_ERROR(Tensor().item(), "empty");
}

TEST_CASE("element types meet by PyTorch's promotion") {
  const DType all[] = {boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64};
  // The results of torch.promote_types for these types, in this order.
  const char *expected[] = {
      "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64",  "u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64",
      "i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64",   "i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64",
      "i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64", "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
      "f16 f16 f16 f16 f16 f16 f16 f32 f32 f64",  "bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
      "f32 f32 f32 f32 f32 f32 f32 f32 f32 f64",  "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64"};
  Graph graph = trace(
      [&] {
        std::vector<Tensor> results;
        for (DType a : all)
          for (DType b : all)
            results.push_back(maximum(zeros({1}, a).to(a == boolean && b == boolean ? u8 : a), zeros({1}, b)));
        return results;
      },
      {});
  size_t at = 0;
  for (const char *row : expected) {
    std::istringstream names(row);
    for (std::string name; names >> name; ++at)
      if (at > 0) // maximum of two bools is not defined
        CHECK(std::string(burin::name(graph.outputs()[at].spec.dtype)) == name);
  }
}

TEST_CASE("numbers in the source take the element type of their partners") {
  CHECK((zeros({1}, f16) + 1.5).dtype() == f16);
  CHECK((zeros({1}, f16) * 2).dtype() == f16);
  CHECK((zeros({1}, i8) + 1).dtype() == i8);
  CHECK((zeros({1}, i8) + 1.5).dtype() == f32);
  CHECK((zeros({1}, boolean) + 1).dtype() == i64);
  CHECK((zeros({1}, i32) / 2).dtype() == f32);
  CHECK((Tensor(1) + Tensor(2.5)).dtype() == f32);
  CHECK((zeros({1}, f64) + 0.1).item() == 0.1); // the number is not rounded to f32 first
  CHECK((tensor({int64_t(1) << 60}) + 1).item<int64_t>() == (int64_t(1) << 60) + 1);
  CHECK_ERROR(zeros({1}, i8) + 1000, "1000", "i8");
}

TEST_CASE("operators") {
  Tensor a = tensor({7, -7}), b = tensor({2, 3});
  CHECK(ints(a % b) == std::vector<int64_t>{1, 2});
  CHECK(floats(a / b) == std::vector<float>{3.5f, -7.0f / 3});
  CHECK(ints(-a) == std::vector<int64_t>{-7, 7});
  CHECK(ints(~b) == std::vector<int64_t>{-3, -4});
  CHECK(ints((a & b) | 8) == std::vector<int64_t>{10, 9});
  CHECK(ints(b << 2) == std::vector<int64_t>{8, 12});
  CHECK((a > 0).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK((!(a == 7)).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK(ints(1 - b) == std::vector<int64_t>{-1, -2});
  CHECK(a.sum().item<int>() == 0);
  CHECK(ints(tensor({{1, 2}, {3, 4}}).sum(0)) == std::vector<int64_t>{4, 6});
  CHECK(str(zeros({2, 3}).mean({0, 1}, true).spec()) == "f32[1, 1]");
}

TEST_CASE("in-place operators make a new value under the old name") {
  Tensor x = tensor({1.0, 2.0}), before = x;
  x += 1;
  x *= tensor({2, 3});
  CHECK(floats(x) == std::vector<float>{4, 9});
  CHECK(floats(before) == std::vector<float>{1, 2});
  CHECK(x.dtype() == f32);
  Tensor half = zeros({1}, f16);
  half += zeros({1}, f32);
  CHECK(half.dtype() == f16);
  Tensor n = tensor({1, 2});
  CHECK_ERROR(n += 1.5, "f32[2]", "i64[2]", "x = x + y");
  CHECK_ERROR(n += zeros({2, 2}, i64), "i64[2, 2]");
}

TEST_CASE("sizes") {
  Tensor x = zeros({2, 3});
  CHECK(x.size(-1) == 3);
  CHECK(x.size(0) < x.size(1));
  CHECK(int(x.size(0) * 2 + 1) == 5);
  CHECK(x.numel() == 6);
  CHECK(str(x.flatten().shape()) == "[6]");
  CHECK(str(x.t().shape()) == "[3, 2]");
  CHECK(str(zeros({2, 3, 4, 5}).flatten(1, 2).shape()) == "[2, 12, 5]");
  CHECK_ERROR(x.size(2), "axis 2", "f32[2, 3]");
}

TEST_CASE("errors name the op, the operands and the caller's line") {
  CHECK_ERROR(matmul(zeros({2, 3}), zeros({4, 5})), "matmul: ", "f32[2, 3]", "f32[4, 5]");
  CHECK_ERROR(zeros({2, 3}) + zeros({4}), "add: ", "f32[2, 3]", "f32[4]", "broadcast");
  CHECK_ERROR(zeros({2}).reduce_sum({1}), "reduce_sum: ", "axes 1");
  CHECK_ERROR(where(zeros({2}), 1, 2), "where: ", "f32[2]", "bool");
  CHECK_ERROR(zeros({2}, f32) & 1, "bitwise_and: ");
  CHECK_ERROR(zeros({2}).reshape({3}), "reshape: ", "[3]");
}
