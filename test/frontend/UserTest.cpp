// Small programs as users of PyTorch's C++ API write them: training loops, in-place calls, queries, initial values.
#include "test/frontend/Check.h"
#include <filesystem>
#include <sstream>

namespace {

struct Classifier : nn::Module {
  nn::Linear first{4, 8}, last{8, 3};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.5};
  Classifier() {
    first = register_module("first", first);
    norm = register_module("norm", norm);
    drop = register_module("drop", drop);
    last = register_module("last", last);
  }
  // const, as all layers are: a batch norm updates its statistics all the same
  Tensor forward(const Tensor &x) const { return last(drop(relu(norm(first(x))))); }
};

} // namespace

TEST_CASE("A training loop with two optimisers, gradient clipping and accumulation") {
  manual_seed(4);
  Classifier net;
  Tensor x = randn({32, 4}), y = x.argmax(1) % 3;
  optim::AdamW optimizer(net.parameters(), {.lr = 0.01});
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 30; ++epoch) {
    optimizer.zero_grad();
    for (int part = 0; part < 2; ++part)
      (cross_entropy(net.forward(x(Slice(16 * part, 16 * part + 16))), y(Slice(16 * part, 16 * part + 16))) / 2)
          .backward();
    CHECK(nn::utils::clip_grad_norm_(net.parameters(), 10.0).item() > 0);
    optimizer.step();
    last = cross_entropy(net.forward(x), y).item();
    first = epoch ? first : last;
  }
  CHECK(last < first);
  CHECK(net.norm.running_mean.value().abs().sum().item() > 0);
  net.eval();
  CHECK(equal(net.forward(x), net.forward(x)));
  int64_t total = 0;
  for (const Parameter &p : net.parameters())
    total += p.numel();
  CHECK(total == net.count_parameters());
  std::ostringstream text;
  text << net;
  CHECK(contains(text.str(), "first: Linear"));
}

TEST_CASE("Methods with an underscore give the handle a new value") {
  Tensor x = arange(4, f32).view({2, 2}), kept = x;
  x.add_(1).mul_(2).sub_(tensor({0.0, 1.0})).div_(2);
  CHECK(floats(x) == std::vector<float>{1, 1.5, 3, 3.5});
  CHECK(floats(kept) == std::vector<float>{0, 1, 2, 3});
  CHECK(floats(x.clamp_(1.25, 3)) == std::vector<float>{1.25, 1.5, 3, 3});
  CHECK(floats(x.masked_fill_(x == 3, 0)) == std::vector<float>{1.25, 1.5, 0, 0});
  CHECK(floats(x.index_put_({1}, 5)) == std::vector<float>{1.25, 1.5, 5, 5});
  CHECK(floats(x.index_put_({tensor({0, 0}), 0}, 1.0, true)) == std::vector<float>{3.25, 1.5, 5, 5});
  CHECK(floats(x.copy_(tensor({7, 8}))) == std::vector<float>{7, 8, 7, 8});
  CHECK(floats(x.fill_(3)) == std::vector<float>{3, 3, 3, 3});
  CHECK(floats(x.zero_()) == std::vector<float>{0, 0, 0, 0});
  Tensor k = tensor({1, 2});
  CHECK(k.fill_(true).dtype() == i64);
  CHECK_ERROR(k.fill_(0.5), "f32[] does not fit into i64[2]");
  CHECK_ERROR(x.fill_(k), "fill_: the value must be one number, but is i64[2]");
  CHECK_ERROR(x.copy_(ones({3})), "broadcast");
  auto f = jit([](const Tensor &given) {
    Tensor y = given;
    y.mul_(2).index_put_({0}, 1);
    return y;
  });
  CHECK(floats(f(tensor({3.0, 4.0}))) == std::vector<float>{1, 8});
}

TEST_CASE("In-place methods of parameters change their values, also in jitted functions") {
  Parameter p(tensor({1.0, 2.0})), q(tensor({4.0, 8.0}));
  p.mul_(0.5).add_(q * 0.5);
  CHECK(floats(p) == std::vector<float>{2.5, 5});
  CHECK(p.requires_grad());
  p -= 1;
  p /= 2;
  CHECK(floats(p) == std::vector<float>{.75, 2});
  CHECK(floats(p.copy_(7)) == std::vector<float>{7, 7});
  CHECK_ERROR(p.copy_(ones({3})), "broadcast");
  CHECK_ERROR(p += ones({2, 2}), "does not fit the tensor f32[2]");
  auto average = jit([&] { return p.mul_(0.75).add_(q * 0.25).value().sum(); });
  average();
  CHECK(average().item<float>() == (7 * .75f + 1) * .75f + 1 + (7 * .75f + 2) * .75f + 2);
  CHECK(floats(p) == std::vector<float>{(7 * .75f + 1) * .75f + 1, (7 * .75f + 2) * .75f + 2});
  CHECK(floats(p.zero_()) == std::vector<float>{0, 0});
  (p->sum() * 3).backward();
  CHECK(floats(p.grad()) == std::vector<float>{3, 3});
}

TEST_CASE("Properties of tensors and parameters under PyTorch's names") {
  const Tensor x = zeros({2, 3, 4}, f16);
  CHECK(x.ndimension() == 3);
  CHECK(x.is_floating_point());
  CHECK(!x.to(i32).is_floating_point());
  CHECK(x.element_size() == 2);
  CHECK(x.nbytes() == 48);
  CHECK(x.is_contiguous());
  CHECK(x.T().shape() == Shape{4, 3, 2});
  CHECK(x.mT().shape() == Shape{2, 4, 3});
  CHECK(empty_like(x).spec() == x.spec());
  CHECK(*tensor({1.5, 2.0}).data_ptr<float>() == 1.5f);
  CHECK(floats(tensor(std::vector<float>{1, 2})) == std::vector<float>{1, 2});
  std::vector<int32_t> numbers{1, 2, 3, 4};
  CHECK(from_blob(numbers.data(), {2, 2}).spec() == TensorSpec{i32, {2, 2}});
  CHECK(promote_types(f16, bf16) == f32);
  CHECK(promote_types(i32, u8) == i32);
  CHECK(result_type(ones({2}, f16), 1.5) == f16);
  CHECK(result_type(ones({2}, i32), 1.5) == f32);
  CHECK(result_type(ones({2}, i32), ones({}, i64)) == i64);
  std::ostringstream text;
  text << x.dtype();
  CHECK(text.str() == "f16");
  const Parameter p(ones({2, 3}));
  CHECK(p.sizes() == Shape{2, 3});
  CHECK(p.size(1) == 3);
  CHECK(p.dim() == 2);
  CHECK(p.requires_grad());
  int64_t count = 0;
  count += x.numel();
  count -= x.size(0);
  count *= x.size(1);
  CHECK(count == 66);
  auto symbolic = [](const Tensor &y) {
    int64_t n = 0;
    n += y.size(0);
    return y * n;
  };
  CHECK(contains(messageOf([&] { trace(symbolic, {TensorSpec{f32, {Dim("n")}}}); }), "n"));
}

TEST_CASE("Initial values are set by functions with an underscore") {
  manual_seed(8);
  nn::Linear layer(64, 64);
  nn::init::xavier_uniform_(layer.weight);
  CHECK(layer.weight->abs().max().item() <= std::sqrt(6.0 / 128));
  nn::init::zeros_(layer.bias);
  CHECK(layer.bias->abs().max().item() == 0);
  nn::init::normal_(layer.weight, 1, 0.1);
  CHECK(layer.weight->mean().item() == Approx(1).margin(0.02));
  nn::init::eye_(layer.weight);
  CHECK(equal(layer.weight, eye(64)));
  nn::init::orthogonal_(layer.weight);
  CHECK(largestDifference(matmul(layer.weight, layer.weight->t()), eye(64)) < 1e-4);
}

TEST_CASE("Modules are saved and loaded in a line") {
  const std::string path = (std::filesystem::temp_directory_path() / "burin-user-test.safetensors").string();
  nn::Linear a(2, 3), b(2, 3);
  save(a, path);
  load(b, path);
  CHECK(equal(a.weight, b.weight));
  nn::Linear other(3, 3);
  CHECK_ERROR(load(other, path), "weight");
  std::filesystem::remove(path);
}

TEST_CASE("einsum names the letter whose sizes differ") {
  CHECK_ERROR(einsum("ij,jk->ik", ones({2, 3}), ones({4, 5})), "einsum: the letter \"j\" of \"ij,jk->ik\"",
              "the sizes 3 of f32[2, 3] and 4 of f32[4, 5]");
  CHECK(einsum("ij,jk->ik", ones({2, 3}), ones({1, 5})).shape() == Shape{2, 5}); // sizes of 1 broadcast
}
