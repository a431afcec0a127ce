// 8-bit floats are created, converted, moved and stored. Nothing else accepts them. The conversions themselves are
// compared with a search for the nearest number in test/math/CastTest.cpp.
#include "frontend/tensor/data/DlpackAbi.h"
#include "test/frontend/Check.h"
#include <cmath>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <unistd.h>

namespace {

constexpr DType kTypes[] = {f8e4m3fn, f8e5m2};

std::vector<uint8_t> bytesOf(const Tensor &x) {
  DLManagedTensor *shared = to_dlpack(x);
  const auto *data = static_cast<const uint8_t *>(shared->dl_tensor.data);
  std::vector<uint8_t> bytes(data, data + elements(x.shape()).value());
  shared->deleter(shared);
  return bytes;
}

std::string text(const Tensor &x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

/// All 256 numbers of a type.
Tensor allNumbers(DType type) {
  std::vector<uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), uint8_t(0));
  return from_bytes(bytes.data(), {type, {256}});
}

/// Numbers between, below and beyond those of both types.
Tensor samples() {
  std::vector<float> values{0, -0.0f, INFINITY, -INFINITY, NAN, 464, 464.01f, 448, 61439, 61440, 1e30f, 1e-30f, 1e-45f};
  for (int exponent = -20; exponent < 18; ++exponent)
    for (int step = 0; step < 64; ++step)
      for (float sign : {1.0f, -1.0f})
        values.push_back(sign * std::ldexp(1 + float(step) / 64, exponent));
  return from_vector(values);
}

} // namespace

TEST_CASE("8-bit floats: creation and printing") {
  Tensor x = tensor({1.0, 448.0, -0.001953125, 0.3}, f8e4m3fn), y = tensor({1000, 1e9, 57344.0, 1e-7}, f8e5m2);
  CHECK(floats(x) == std::vector<float>{1, 448, -0.001953125f, 0.3125f});
  CHECK(floats(y) == std::vector<float>{1024, INFINITY, 57344, 0});
  CHECK(std::isnan(full({}, 465, f8e4m3fn).item()));
  CHECK(full({}, 464, f8e4m3fn).item() == 448);
  CHECK(std::isnan(full({}, INFINITY, f8e4m3fn).item()));
  CHECK(str(zeros_like(x).spec()) == "f8e4m3fn[4]");
  CHECK(ints(arange(3).to(f8e5m2).to(i64)) == std::vector<int64_t>{0, 1, 2});
  CHECK(contains(text(tensor({1.5, -448.0}, f8e4m3fn)), "[   1.5 -448. ]  f8e4m3fn[2]"));
  CHECK(text(tensor(0.001953125, f8e4m3fn)).substr(0, 11) == "0.001953125");
  CHECK_ERROR(rand({2}, f8e4m3fn), "f32, f64, f16 or bf16", "convert");
}

TEST_CASE("8-bit floats: eager, jitted and compiled conversions give the same bits") {
  for (DType type : kTypes) {
    Tensor numbers = allNumbers(type);
    for (DType wide : {f32, f64, f16, bf16}) {
      std::vector<uint8_t> back = bytesOf(numbers.to(wide).to(type));
      for (int i = 0; i < 256; ++i) {
        const bool isNan = (i & 0x7f) > (type == f8e4m3fn ? 0x7e : 0x7c);
        if (back[size_t(i)] != (isNan ? (i & 0x80) | 0x7f : i)) {
          INFO(i << " becomes " << int(back[size_t(i)]) << " by way of " << name(wide));
          CHECK((isNan && (back[size_t(i)] & 0x7f) == 0x7f));
        }
      }
    }
    auto narrow = [&](const Tensor &x) { return x.to(type); };
    auto widen = [&](const Tensor &x) { return x.to(f32); };
    Tensor x = samples(), y = narrow(x);
    const auto want = bytesOf(y);
    CHECK(bytesOf(jit(narrow)(x)) == want);
    CHECK(all(eq(jit(widen)(y), widen(y)) | is_nan(widen(y))).item<bool>());
    Graph down = trace(narrow, {TensorSpec{f32, {Dim("n")}}}, {"x"}, {"y"});
    Graph up = trace(widen, {TensorSpec{type, {Dim("n")}}}, {"x"}, {"y"});
    for (const char *target : {"native", "x86-64-v3"}) {
      CHECK(bytesOf(compile(down, {.targets = {target}})(x)) == want);
      Tensor wide = compile(up, {.targets = {target}})(y);
      CHECK(all(eq(wide, widen(y)) | is_nan(wide)).item<bool>());
    }
  }
}

TEST_CASE("8-bit floats are moved") {
  for (DType type : kTypes) {
    Tensor x = from_vector(std::vector<float>(60, 0)).to(type);
    x = arange(60).to(f32).to(type).reshape({3, 4, 5});
    auto same = [&](const char *what, auto move) {
      INFO(what << " of " << name(type));
      Tensor y = move(x);
      CHECK(y.dtype() == type);
      CHECK(floats(y) == floats(move(x.to(f32))));
      CHECK(floats(jit(move)(x)) == floats(y));
    };
    same("transpose", [](const Tensor &x) { return x.transpose({2, 0, 1}); });
    same("flip", [](const Tensor &x) { return flip(x, {1}); });
    same("slice", [](const Tensor &x) { return slice(x, {0, 1, 0}, {3, 4, 5}, {2, 1, 2}); });
    same("concat", [](const Tensor &x) { return concat({x, flip(x, {0})}, 2); });
    same("stack", [](const Tensor &x) { return stack({x, x}, 1); });
    same("pad", [](const Tensor &x) { return pad(x, {0, 1, 2}, {1, 0, 3}, "constant", 2.5); });
    same("take", [](const Tensor &x) { return take(x, tensor({2, 0, 2}), 0); });
    same("where", [](const Tensor &x) { return where(x.to(f32) > 7, x, 0.0); });
    same("tril", [](const Tensor &x) { return tril(x); });
    same("scatter",
         [](const Tensor &x) { return scatter(x, full({3, 4, 1}, 2, i64), zeros({3, 4, 1}, x.dtype()), 2, "set"); });
  }
}

TEST_CASE("8-bit floats are not computed with") {
  Tensor x = tensor({1.0, 2.0}, f8e4m3fn), y = tensor({1.0, 2.0}, f8e5m2), z = tensor({1.0, 2.0});
  CHECK_ERROR(x + x, "add: x f8e4m3fn[2] stores 8-bit floats, which are not computed with", ".to(f32)");
  CHECK_ERROR(z * y, "mul: y f8e5m2[2] stores 8-bit floats");
  CHECK_ERROR(x * 2, "mul: x f8e4m3fn[2] stores 8-bit floats");
  CHECK_ERROR(softmax(x), "softmax: x f8e4m3fn[2] stores 8-bit floats");
  CHECK_ERROR(reduce_sum(x), "reduce_sum: x f8e4m3fn[2] stores 8-bit floats");
  CHECK_ERROR(eq(x, y), "eq: x f8e4m3fn[2] stores 8-bit floats");
  CHECK_ERROR(sort(x), "stores 8-bit floats");
  CHECK_ERROR(concat({x, z}), "xs[0] f8e4m3fn[2] and xs[1] f32[2] differ in type", "convert one of them");
  CHECK_ERROR(concat({z, x}), "xs[0] f32[2] and xs[1] f8e4m3fn[2] differ in type");
  CHECK_ERROR(where(z > 1, x, y), "x f8e4m3fn[2] and y f8e5m2[2] differ in type");
  CHECK_ERROR(scatter(x, tensor({0}), ones({1}, f8e4m3fn), 0, "add"), "scatter: x f8e4m3fn[2] stores 8-bit floats");
  CHECK_ERROR(scatter(x, tensor({0}), ones({1}, f32), 0, "set"), "does not fit into x f8e4m3fn[2]");
}

TEST_CASE("8-bit floats: products have f32 sums") {
  for (DType left : kTypes)
    for (DType right : kTypes) {
      INFO(name(left) << " times " << name(right));
      // Sums of small integers times powers of two are exact in f32 whatever their order.
      Tensor a = (arange(35 * 40) % 13 - 6).to(f32).reshape({35, 40}).to(left);
      Tensor b = ((arange(40 * 70) % 7 - 3).to(f32).reshape({40, 70}) * 0.25).to(right);
      const std::vector<float> want = floats(matmul(a.to(f32), b.to(f32)));
      auto product = [](const Tensor &x, const Tensor &y) { return matmul(x, y); };
      CHECK(str(product(a, b).spec()) == "f32[35, 70]");
      CHECK(floats(product(a, b)) == want);
      CHECK(floats(jit(product)(a, b)) == want);
      Graph graph = trace(product, {TensorSpec{left, {Dim("m"), 40}}, TensorSpec{right, {40, Dim("n")}}});
      for (const char *target : {"native", "x86-64-v3"})
        CHECK(floats(compile(graph, {.targets = {target}})(a, b)) == want);
      CHECK(floats(matmul(a, b.reshape({40, 70})[Slice(0, 40)])) == want);
      CHECK(floats(matmul(a.reshape({5, 7, 40}), b)) == want);
      CHECK(floats(jit([&](const Tensor &x) { return matmul(x, b.to(f32)); })(a.to(f32))) == want);
    }
  Tensor one = ones({2, 2}, f8e4m3fn);
  CHECK_ERROR(matmul(one, ones({2, 2})), "lhs f8e4m3fn[2, 2] and rhs f32[2, 2] differ in type", "convert one of them");
  CHECK(std::isnan(matmul(full({1, 3}, NAN, f8e4m3fn), ones({3, 1}, f8e5m2)).item()));
}

TEST_CASE("A weight of 8-bit floats keeps its size in an artifact") {
  Tensor w = (arange(512 * 256) % 31 - 15).to(f32).reshape({512, 256}).to(f8e4m3fn);
  auto layer = [&](const Tensor &x) { return matmul(x, w.to(f32)); };
  Artifact artifact = compile(trace(layer, {TensorSpec{f32, {Dim("n"), 512}}}, {"x"}, {"y"}));
  const auto path = std::filesystem::temp_directory_path() / ("burin-float8-" + std::to_string(getpid()) + ".plate");
  artifact.save(path.string());
  CHECK(std::filesystem::file_size(path) < 512 * 256 * 2);
  std::filesystem::remove(path);
  Tensor x = (arange(3 * 512) % 5).to(f32).reshape({3, 512});
  CHECK(floats(artifact(x)) == floats(matmul(x, w.to(f32))));
}

TEST_CASE("scaled_mm scales the f32 sums") {
  Tensor a = (arange(6 * 16) % 9 - 4).to(f32).reshape({6, 16}).to(f8e4m3fn);
  Tensor b = (arange(16 * 5) % 5 - 2).to(f32).reshape({5, 16}).to(f8e5m2).t();
  Tensor rows = (arange(6) + 1).to(f32).reshape({6, 1}), columns = (arange(5) + 1).to(f32).reshape({1, 5}) * 0.5;
  Tensor bias = tensor({1.0, 2.0, 3.0, 4.0, 5.0});
  const Tensor sums = matmul(a.to(f32), b.to(f32));
  auto scaled = [&](const Tensor &s, const Tensor &t, const Tensor &c) { return scaled_mm(a, b, s, t, bf16, c); };
  CHECK(floats(scaled_mm(a, b, tensor(2.0), tensor({0.25}), f32)) == floats(sums * 0.5));
  CHECK(floats(scaled_mm(a, b, rows, columns, f32)) == floats(sums * rows * columns));
  CHECK(floats(scaled(rows, tensor(2.0), bias)) == floats((sums * rows * 2.0 + bias).to(bf16)));
  CHECK(floats(jit(scaled)(rows, columns, bias)) == floats(scaled(rows, columns, bias)));
  CHECK_ERROR(scaled_mm(a.to(f32), b, rows, columns, f32),
              "scaled_mm: it takes matrices of 8-bit floats, not f32[6, 16]");
  CHECK_ERROR(scaled_mm(a, b, columns, rows, f32), "scale_a f32[1, 5] must be one number or f32[6, 1]");
  CHECK_ERROR(scaled_mm(a, b, rows, columns, i32), "the result cannot be i32");
}

TEST_CASE("8-bit floats: gradients of products pass through them") {
  Tensor x = tensor({{0.5, -1.5}}).requires_grad_(), w = tensor({{1.0, 2.0}, {0.25, -4.0}}).requires_grad_();
  matmul(x.to(f8e4m3fn), w.to(f8e4m3fn)).sum().backward();
  CHECK(floats(x.grad()) == std::vector<float>{3, -3.75f});
  CHECK(floats(w.grad()) == std::vector<float>{0.5f, 0.5f, -1.5f, -1.5f});
}

TEST_CASE("8-bit floats: gradients pass through conversions") {
  Tensor x = tensor({0.3, -1.7}).requires_grad_();
  Tensor y = (x.to(f8e5m2).to(f32) * tensor({3.0, 0.3})).sum();
  y.backward();
  CHECK(floats(x.grad()) == std::vector<float>{3, 0.3125f}); // rounded on the way, as in PyTorch
}

TEST_CASE("8-bit floats in files and in other libraries") {
  const auto folder = std::filesystem::temp_directory_path() / ("burin-float8-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "x").string();
  StateDict weights{{"w", allNumbers(f8e4m3fn)}, {"v", allNumbers(f8e5m2)}};
  save_safetensors(path, weights);
  StateDict loaded = load_safetensors(path);
  for (auto &[key, value] : weights) {
    REQUIRE(loaded.at(key).spec() == value.spec());
    CHECK(bytesOf(loaded.at(key)) == bytesOf(value));
    save_npy(path + ".npy", value);
    CHECK(load_npy(path + ".npy").spec() == value.spec());
    CHECK(bytesOf(load_npy(path + ".npy")) == bytesOf(value));
    DLManagedTensorVersioned *shared = to_dlpack_versioned(value);
    CHECK(shared->dl_tensor.dtype.code == (value.dtype() == f8e4m3fn ? kDLFloat8_e4m3fn : kDLFloat8_e5m2));
    CHECK((shared->dl_tensor.dtype.bits == 8 && shared->version.minor == 1));
    CHECK(bytesOf(from_dlpack(shared)) == bytesOf(value));
  }
  // A weight keeps its type in graphs and artifacts.
  Tensor w = (arange(512) % 400).to(f32).to(f8e4m3fn);
  Graph graph = trace([&](const Tensor &x) { return x * w.to(f32); }, {TensorSpec{f32, {Dim("n"), 512}}}, {"x"}, {"y"});
  graph.save(path + ".burin");
  compile(Graph::load(path + ".burin")).save(path + ".plate");
  Tensor x = full({3, 512}, 0.5);
  CHECK(floats(load(path + ".plate")(x)) == floats(x * w.to(f32)));
  std::filesystem::remove_all(folder);
}
