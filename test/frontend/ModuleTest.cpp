#include "test/frontend/Check.h"
#include <burin/nn/layer.h>
#include <cmath>

namespace {
struct Block : nn::Module {
  nn::Linear up = register_module("up", nn::Linear(4, 8)), down = register_module("down", nn::Linear(8, 4));
  Parameter scale = register_parameter("scale", ones({4}));
  Block() : Module("Block") {}
  Tensor operator()(const Tensor &x) const { return x + scale * down(gelu(up(x))); }
};
std::vector<std::string> names(const StateDict &state) {
  std::vector<std::string> list;
  for (auto &[name, tensor] : state)
    list.push_back(name);
  return list;
}
} // namespace

TEST_CASE("str() of a module is its tree") {
  auto net = nn::Sequential(nn::Linear(2, 3), nn::Tanh());
  CHECK(str(net) == net.str());
  CHECK(str(net).find("0: Linear(2, 3)") != std::string::npos);
}

TEST_CASE("modules know their parameters by dotted names") {
  auto net = nn::Sequential({{"block", Block()}, {"norm", nn::BatchNorm2d(3)}});
  CHECK(names(net.state_dict()) == std::vector<std::string>{"block.scale", "block.up.weight", "block.up.bias",
                                                            "block.down.weight", "block.down.bias", "norm.weight",
                                                            "norm.bias", "norm.running_mean", "norm.running_var",
                                                            "norm.num_batches_tracked"});
  CHECK(net.parameters().size() == 7);
  CHECK(net.str() == "Sequential(\n  block: Block(\n    up: Linear(4, 8)\n    down: Linear(8, 4)\n  )\n"
                     "  norm: BatchNorm2d(3)\n)\n86 parameters");
  CHECK(net.named_modules()[2].first == "block.up");
  net.named_modules()[1].second.freeze();
  CHECK(contains(net.str(), "86 parameters, 80 of them frozen"));
  CHECK(net.count_parameters(true) == 6);
  int count = 0;
  net.apply([&](nn::Module &module) { count += module.kind() == "Linear"; });
  CHECK(count == 2);
  struct Twice : nn::Module {
    Twice() {
      register_parameter("w", zeros({1}));
      register_parameter("w", zeros({1}));
    }
  };
  CHECK(contains(messageOf([] { Twice(); }), "\"w\""));
}

TEST_CASE("load_state_dict reports everything that does not fit, and then changes nothing") {
  Block a, b;
  a.load_state_dict(b.state_dict());
  Tensor x = randn({2, 4});
  CHECK(largestDifference(a(x), b(x)) == 0);
  StateDict state = b.state_dict();
  state.erase(state.begin() + 1); // up.weight
  state.front().second = ones({4}) * 7;
  state.back().second = zeros({5});
  state.emplace_back("extra", zeros({1}));
  CHECK_ERROR(a.load_state_dict(state), "missing (1): up.weight", "unexpected (1): extra", "down.bias is [5], not [4]",
              "Block");
  CHECK(a.scale->sum().item() == 4);
  CHECK_ERROR(a.load_state_dict(state, false), "down.bias is [5], not [4]");
  state.pop_back();
  state.pop_back();
  a.load_state_dict(state, false);
  CHECK(a.scale->sum().item() == 28);
}

TEST_CASE("modes and element types reach the children") {
  auto net = nn::Sequential(nn::Linear(4, 4), nn::Dropout(0.5));
  CHECK(net.is_training());
  net.eval();
  Tensor x = ones({3, 4});
  CHECK(largestDifference(net(x), net(x)) == 0);
  net.to(f16);
  CHECK(net.state_dict().at("0.weight").dtype() == f16);
  CHECK(net(x.to(f16)).dtype() == f16);
  Tensor kept = nn::Dropout(0.25)(ones({4000}));
  CHECK(kept.mean().item() == Approx(1).margin(0.1));
  CHECK(kept.max().item() == Approx(1 / 0.75));
}

TEST_CASE("layers compute what PyTorch's do") {
  nn::Conv2d conv(2, 4, 3, {.stride = 2, .padding = 1, .groups = 2});
  CHECK(str(conv.weight->shape()) == "[4, 1, 3, 3]");
  CHECK(str(conv(zeros({1, 2, 7, 7})).shape()) == "[1, 4, 4, 4]");
  CHECK(str(nn::Conv1d(3, 5, 2)(zeros({2, 3, 8})).shape()) == "[2, 5, 7]");
  CHECK(str(nn::ConvTranspose2d(3, 2, 2, {.stride = 2})(zeros({1, 3, 4, 5})).shape()) == "[1, 2, 8, 10]");
  Tensor image = arange(16).to(f32).reshape({1, 1, 4, 4});
  CHECK(floats(nn::MaxPool2d(2)(image)) == std::vector<float>{5, 7, 13, 15});
  CHECK(floats(nn::AvgPool2d(2)(image)) == std::vector<float>{2.5, 4.5, 10.5, 12.5});
  CHECK(floats(nn::AdaptiveAvgPool2d(1)(image)) == std::vector<float>{7.5});
  CHECK(str(nn::Flatten()(zeros({2, 3, 4})).shape()) == "[2, 12]");
  nn::Embedding table(5, 3);
  CHECK(floats(table(tensor({{4}, {0}}))[{0, 0}]) == floats(table.weight.value()[4]));
  Tensor x = tensor({{1.0, 2.0, 3.0, 6.0}});
  Tensor normal = nn::LayerNorm(4)(x);
  CHECK(normal.mean().item() == Approx(0).margin(1e-6));
  CHECK(normal.var({}, false, 0).item() == Approx(1).margin(1e-4));
  CHECK(floats(nn::RMSNorm(4)(x))[3] == Approx(6 / std::sqrt(12.5)));
  CHECK(str(nn::GroupNorm(2, 4)(zeros({1, 4, 2, 2})).shape()) == "[1, 4, 2, 2]");
  CHECK_ERROR(nn::Conv2d(3, 4, 3, {.groups = 2}), "2 groups", "3 channels");
  CHECK_ERROR(nn::Linear(3, 4)(zeros({2, 5})), "f32[2, 5]");
}

TEST_CASE("batch normalisation trains its statistics") {
  nn::BatchNorm2d norm(2);
  manual_seed(4);
  Tensor x = randn({8, 2, 4, 4}) * 3 + 5;
  Tensor y = norm(x);
  CHECK(y.mean().item() == Approx(0).margin(1e-4));
  CHECK(y.var().item() == Approx(1).margin(0.01));
  Tensor mean = x.mean({0, 2, 3}), variance = x.var({0, 2, 3});
  CHECK(largestDifference(norm.running_mean, mean * 0.1) < 1e-5);
  CHECK(largestDifference(norm.running_var, variance * 0.1 + 0.9) < 1e-4);
  CHECK(norm.num_batches_tracked->item<int>() == 1);
  norm.eval();
  Tensor expected = (x - norm.running_mean.value().reshape({1, 2, 1, 1})) /
                    (norm.running_var.value().reshape({1, 2, 1, 1}) + 1e-5).sqrt();
  CHECK(largestDifference(norm(x), expected) < 1e-4);
  norm.train();
  // The statistics are states of the artifact.
  CHECK(largestDifference(compile(trace(norm, {{f32, {8, 2, 4, 4}}}))(x), y) < 1e-4);
}

TEST_CASE("attention over heads") {
  manual_seed(6);
  nn::MultiheadAttention attention(8, 2);
  attention.eval();
  CHECK(names(attention.state_dict()) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  Tensor x = randn({3, 5, 8});
  Tensor y = attention(x);
  CHECK(str(y.shape()) == "[3, 5, 8]");
  // Computed by hand for the first batch and head.
  auto part = [&](int i) { return matmul(x[0], attention.in_proj_weight.value()[Slice(8 * i, 8 * i + 8)].t()); };
  std::vector<Tensor> heads;
  for (int h : {0, 1}) {
    auto head = [&](int i) { return part(i)[{Slice(), Slice(4 * h, 4 * h + 4)}]; };
    heads.push_back(matmul(softmax(matmul(head(0), head(1).t()) / 2.0), head(2)));
  }
  CHECK(largestDifference(y[0], attention.out_proj(concat(heads, 1))) < 1e-5);
  Graph g = trace(attention, {{f32, {Dim("batch"), Dim("length"), 8}}});
  CHECK(str(g.outputs()[0].spec) == "f32[batch, length, 8]");
  CHECK(largestDifference(g.run({x}).front(), y) < 1e-5);
}

TEST_CASE("initial values follow the literature") {
  manual_seed(7);
  using namespace nn;
  double bound = 1 / std::sqrt(300.0);
  Tensor weight = Linear(300, 200).weight;
  CHECK(weight.abs().max().item() <= bound);
  CHECK(weight.abs().max().item() > 0.99 * bound);
  CHECK(init::kaiming_normal({400, 300}).var().item() == Approx(2.0 / 300).epsilon(0.05));
  CHECK(init::xavier_normal({400, 300}, 2).var().item() == Approx(4 * 2.0 / 700).epsilon(0.05));
  CHECK(init::xavier_uniform({40, 30}).abs().max().item() <= std::sqrt(6.0 / 70));
  CHECK(init::fans({8, 4, 3, 3}) == std::pair<int64_t, int64_t>(36, 72));
  Tensor cut = init::trunc_normal({1000}, 0, 1, -0.5, 2);
  CHECK(cut.min().item() >= -0.5);
  CHECK(cut.max().item() <= 2);
  for (Shape shape : {Shape{3, 5}, Shape{5, 3}}) {
    Tensor q = init::orthogonal(shape);
    Tensor product = shape[0] == Dim(3) ? matmul(q, q.t()) : matmul(q.t(), q);
    CHECK(largestDifference(product, eye(3)) < 1e-5);
  }
  CHECK(init::calculate_gain("leaky_relu", 1) == 1);
  CHECK(init::calculate_gain("tanh") == Approx(5.0 / 3));
  CHECK_ERROR(init::calculate_gain("sine"), "\"sine\"");
  CHECK(floats(init::eye({2, 3})) == std::vector<float>{1, 0, 0, 0, 1, 0});
  Tensor image = randn({1, 4, 5, 5});
  Conv2d same(4, 4, 3, {.padding = 1, .groups = 2, .bias = false});
  same.weight.set(init::dirac({4, 2, 3, 3}, 2));
  CHECK(largestDifference(same(image), image) == 0);
  Tensor few = (init::sparse({10, 6}, 0.25) == 0).to(i64).sum(0);
  CHECK(ints(few) == std::vector<int64_t>(6, 3));
  manual_seed(8);
  Tensor first = Linear(3, 3).weight;
  manual_seed(8);
  CHECK(largestDifference(first, Linear(3, 3).weight) == 0);
}

TEST_CASE("errors and graphs name the module that a call was made in") {
  struct Block : nn::Module {
    nn::Linear up = register_module("up", nn::Linear(4, 8)), down = register_module("down", nn::Linear(7, 4));
    Tensor operator()(const Tensor &x) {
      nn::ModuleScope scope(*this);
      return relu(down(up(x)));
    }
  };
  Block block;
  CHECK(block.up.path() == "up");
  auto net = nn::Sequential({{"first", nn::Tanh()}, {"blocks", nn::Sequential(block)}});
  CHECK(block.down.path() == "blocks.0.down");
  CHECK(net.path().empty());
  for (const std::string &what :
       {messageOf([&] { net(ones({2, 4})); }), messageOf([&] { trace(net, {{f32, {2, 4}}}); })})
    CHECK(contains(what, "in the module blocks.0.down, Linear"));
  try {
    matmul(ones({2, 3}), ones({2, 3}));
    FAIL();
  } catch (const Error &error) {
    CHECK(std::string(error.what()).find("module") == std::string::npos);
  }
}

namespace {
struct Attention : nn::Layer<Attention> {
  nn::Linear qkv, out;
  explicit Attention(int64_t wrong)
      : qkv(register_module("qkv", nn::Linear(8, 24))), out(register_module("out", nn::Linear(8 + wrong, 8))) {}
  Tensor forward(const Tensor &x, const std::optional<Tensor> &scale = std::nullopt) const {
    Tensor all = qkv(x);
    Tensor y = all(Slice(), Slice(0, 8)) + all(Slice(), Slice(8, 16)) * all(Slice(), Slice(16, 24));
    return out(scale ? y * *scale : y);
  }
};
struct Encoder : nn::Layer<Encoder> {
  Attention attention;
  explicit Encoder(int64_t wrong = 0) : Layer("Encoder"), attention(register_module("attention", Attention(wrong))) {}
  Tensor forward(const Tensor &x) { return x + attention(x); }
};
struct Model : nn::Layer<Model> {
  nn::Embedding table = register_module("table", nn::Embedding(5, 8));
  nn::ModuleList<Encoder> blocks = register_module("blocks", nn::ModuleList<Encoder>());
  explicit Model(int64_t wrong = 0) {
    for (int i = 0; i < 5; ++i)
      blocks.push_back(Encoder(i == 3 ? wrong : 0));
  }
  Tensor forward(const Tensor &ids) const {
    Tensor x = table(ids);
    for (Encoder block : blocks)
      x = block(x);
    return x;
  }
};
} // namespace

TEST_CASE("a module with forward() names itself in errors of its own calls") {
  const TensorSpec ids{i64, {Dim("n")}};
  Tensor some = tensor({1, 2, 0});
  Model wrong(1);
  for (const std::string &what : {messageOf([&] { wrong(some); }), messageOf([&] { trace(wrong, {ids}); }),
                                  messageOf([&] { jit(wrong)(some); })}) {
    INFO(what);
    CHECK(contains(what, "in the module blocks.3.attention.out, Linear"));
  }
  // Ops of forward() itself.
  struct Scaled : nn::Layer<Scaled> {
    Model model = register_module("model", Model());
    Tensor forward(const Tensor &x) const { return model.blocks[3].attention(x, ones({7})); }
  };
  Scaled scaled;
  for (const std::string &what : {messageOf([&] { scaled(ones({2, 8})); }),
                                  messageOf([&] { trace(scaled, {TensorSpec{f32, {Dim("n"), 8}}}); })}) {
    INFO(what);
    CHECK(contains(what, "mul: "));
    CHECK(contains(what, "in the module model.blocks.3.attention, Module"));
  }
  CHECK(!contains(messageOf([&] { matmul(some, ones({4, 4})); }), "in the module"));
  CHECK(Model().blocks[2].kind() == "Encoder");
  CHECK(jit(Model())(some).shape() == Shape{3, 8});
  CHECK(nn::Sequential(Model(), nn::Tanh())(some).shape() == Shape{3, 8});
}

TEST_CASE("an error in a module without a scope says after which module it comes") {
  struct Plain : nn::Module {
    nn::Linear up = register_module("up", nn::Linear(4, 8)), down = register_module("down", nn::Linear(8, 4));
    bool isWrong = false;
    Tensor operator()(const Tensor &x) const {
      Tensor hidden = up(x);
      return down(isWrong ? matmul(hidden, ones({4, 4})) : relu(hidden)) + x;
    }
  };
  struct Net : nn::Module {
    nn::ModuleList<Plain> blocks = register_module("blocks", nn::ModuleList<Plain>());
    explicit Net(size_t wrong) {
      for (size_t i = 0; i < 3; ++i) {
        Plain block;
        block.isWrong = i == wrong;
        blocks.push_back(block);
      }
    }
    Tensor operator()(Tensor x) const {
      for (const Plain &block : blocks)
        x = block(x);
      return x;
    }
  };
  Net net(2);
  for (bool isTraced : {false, true}) {
    const std::string what =
        messageOf([&] { isTraced ? (void)trace(net, {TensorSpec{f32, {Dim("n"), 4}}}) : (void)net(ones({2, 4})); });
    INFO(what);
    CHECK(contains(what, "matmul"));
    CHECK(contains(what, "after the call of the module blocks.2.up, Linear"));
    CHECK(lines(what) <= 3);
  }
  // A call in a module with a scope of its own is attributed to that one.
  struct Scoped : nn::Layer<Scoped> {
    nn::Linear up = register_module("up", nn::Linear(4, 8));
    Tensor forward(const Tensor &x) const { return matmul(up(x), ones({4, 4})); }
  };
  struct Outer : nn::Layer<Outer> {
    Scoped inner = register_module("inner", Scoped());
    Tensor forward(const Tensor &x) const { return inner(x); }
  };
  const std::string what = messageOf([] { Outer()(ones({2, 4})); });
  INFO(what);
  CHECK(contains(what, "in the module inner, Module"));
  CHECK(!contains(what, "after the call"));
}

TEST_CASE("a function in a Sequential belongs to it") {
  struct Net : nn::Layer<Net> {
    nn::Sequential head = register_module(
        "head", nn::Sequential(nn::Linear(4, 8), [](const Tensor &x) { return matmul(x, ones({4, 4})); }));
    Tensor forward(const Tensor &x) const { return head(x); }
  };
  const std::string what = messageOf([] { Net()(ones({2, 4})); });
  INFO(what);
  CHECK(contains(what, "in the module head, Sequential"));
}

TEST_CASE("an invalid value in a run names the module, eagerly and compiled") {
  Model model;
  const Tensor bad = tensor({1, 5, 0});
  for (const std::string &what :
       {messageOf([&] { model(bad).to_vector<float>(); }), messageOf([&] { jit(model)(bad).to_vector<float>(); }),
        messageOf([&] { compile(trace(model, {TensorSpec{i64, {3}}}))(bad).to_vector<float>(); })}) {
    INFO(what);
    CHECK(contains(what, "out of range"));
    CHECK(contains(what, "module table"));
  }
  // Also if another thread runs the call, because its operand is not complete yet, and another module waits for it.
  struct Waits : nn::Layer<Waits> {
    float forward(const Tensor &x) const { return x.item<float>(); }
  };
  struct Net : nn::Layer<Net> {
    Model model = register_module("model", Model());
    Waits waits = register_module("waits", Waits());
    float forward(const Tensor &x) const { return waits(model.table(x.to(i64)).sum()); }
  };
  Net net;
  Tensor late = matmul(ones({1500, 1500}), ones({1500, 1500}))(0, 0); // 1500 is no index
  const std::string what = messageOf([&] { net(late); });
  INFO(what);
  CHECK(contains(what, "out of range"));
  CHECK(contains(what, "in the module model.table, Embedding"));
  CHECK(!contains(what, "waits"));
}
