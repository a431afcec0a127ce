#include "test/frontend/Check.h"
#include <cmath>
#include <sstream>

static std::string text(const Tensor &x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

// The bodies are those that NumPy 2 prints with precision 4, except for 16-bit scalars; the suffix is burin's.
TEST_CASE("tensors print like NumPy's") {
  CHECK(text(tensor({{1, 20}, {-3, 4}})) == "[[ 1 20]\n [-3  4]]  i64[2, 2]");
  CHECK(text(tensor({1.0, 2.5, -3.0})) == "[ 1.   2.5 -3. ]  f32[3]");
  CHECK(text(tensor({true, false})) == "[ True False]  bool[2]");
  CHECK(text(tensor({1.0, double(NAN), -INFINITY})) == "[  1.  nan -inf]  f32[3]");
  CHECK(text(tensor({0.00001, 1.0})) == "[1.e-05 1.e+00]  f32[2]");
  CHECK(text(tensor({1e10})) == "[1.e+10]  f32[1]");
  CHECK(text(tensor({1.23456, 100.0})) == "[  1.2346 100.    ]  f32[2]");
  CHECK(text(tensor(3)) == "3  i64[]");
  CHECK(text(Tensor(2.5)) == "2.5  f32[]");
  CHECK(text(tensor(1e-7, f64)) == "1e-07  f64[]");
  CHECK(text(tensor(0.1, f16)) == "0.1000  f16[]");
  CHECK(text(tensor({1e-5, double(NAN), -INFINITY}, f64)) == "[1.e-05    nan   -inf]  f64[3]");
  CHECK(text(tensor({123456.789, 0.5}, f64)) == "[1.2346e+05 5.0000e-01]  f64[2]");
  CHECK(text(tensor({10000000.5}, f64)) == "[10000000.5]  f64[1]");
  CHECK(text(tensor({-0.0, 0.1})) == "[-0.   0.1]  f32[2]");
  CHECK(text(zeros({0, 3})) == "[]  f32[0, 3]");
  CHECK(text(zeros({2, 1, 2}, i32)) == "[[[0 0]]\n\n [[0 0]]]  i32[2, 1, 2]");
  CHECK(text(tensor({1.5}, f16)) == "[1.5]  f16[1]");
  CHECK(text(Tensor()) == "<empty tensor>");
}

TEST_CASE("long tensors are shortened, long rows are broken") {
  CHECK(text(arange(2000)) == "[   0    1    2 ... 1997 1998 1999]  i64[2000]");
  CHECK(text(arange(1000)).find("...") == std::string::npos);
  std::string big = text(zeros({100, 100}, i64));
  CHECK(big == "[[0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]\n ...\n [0 0 0 ... 0 0 0]\n"
               " [0 0 0 ... 0 0 0]\n [0 0 0 ... 0 0 0]]  i64[100, 100]");
  std::istringstream rows(text(arange(40)));
  std::string first;
  std::getline(rows, first);
  CHECK(first == "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23");
}

TEST_CASE("a traced tensor prints its type") {
  trace(
      [](const Tensor &x) {
        CHECK(text(x) == "<traced f32[n, 2]>");
        return x;
      },
      {TensorSpec{f32, {Dim("n"), 2}}});
}
