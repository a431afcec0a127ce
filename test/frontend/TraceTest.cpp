#include "test/frontend/Check.h"
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

static const TensorSpec batchOf4{f32, {Dim("batch"), 4}};

TEST_CASE("the first page: an MLP runs eagerly, jitted and traced, with the same results") {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 2));
  Graph g = trace(net, {TensorSpec{f32, {Dim("batch"), 512}}});
  CHECK(str(g.inputs()[0]) == "x: f32[batch, 512]");
  CHECK(str(g.outputs()[0]) == "y: f32[batch, 2]");
  CHECK(contains(g.str(), "name = \"4.bias\""));
  auto fast = jit(net);
  for (int batch : {3, 1, 7}) {
    Tensor x = randn({batch, 512}), eager = net(x);
    CHECK(eager.abs().max().item() > 0.01);
    CHECK(largestDifference(eager, fast(x)) < 1e-5);
    CHECK(largestDifference(eager, g.run({x}).front()) < 1e-5);
  }
  CHECK(fast.traces() == 3);
}

TEST_CASE("traces take and return any number of tensors, named or not") {
  Graph g = trace([](const Tensor &a, const Tensor &b) { return std::make_tuple(a + b, a * b); },
                  {{f32, {2}}, {f32, {2}}}, {"left", "right"}, {"sum", "product"});
  CHECK(str(g.inputs()[1]) == "right: f32[2]");
  CHECK(str(g.outputs()[1]) == "product: f32[2]");
  auto results = g.run({tensor({1.0, 2.0}), tensor({3.0, 4.0})});
  CHECK(floats(results[0]) == std::vector<float>{4, 6});
  CHECK(floats(results[1]) == std::vector<float>{3, 8});
  Graph list = trace([](const std::vector<Tensor> &xs) { return concat(xs); }, {{f32, {2}}, {f32, {1}}, {f32, {3}}});
  CHECK(list.inputs()[2].name == "x2");
  CHECK(str(list.outputs()[0].spec) == "f32[6]");
  CHECK_ERROR(trace([](const Tensor &x) { return x; }, {{f32, {2}}, {f32, {2}}}), "cannot be called with 2 tensors");
  CHECK_ERROR(trace([](const Tensor &x) { return x; }, {{f32, {2}}}, {"a", "b"}), "2 names");
}

TEST_CASE("locations of the ops are the user's lines") {
  int line = 0;
  Graph g = trace(
      [&](const Tensor &x) {
        line = __LINE__ + 1;
        return relu(x * 2.0);
      },
      {batchOf4});
  fs::path path = fs::temp_directory_path() / ("burin-locations-" + std::to_string(::getpid()) + ".burin");
  g.save(path.string());
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  CHECK(contains(bytes, "TraceTest.cpp"));
  fs::remove(path);
  CHECK_ERROR(trace([](const Tensor &x) { return matmul(x, zeros({3, 3})); }, {batchOf4}), "f32[batch, 4]",
              "f32[3, 3]");
}

TEST_CASE("a trace refuses to lie") {
  auto traced = [](auto body) { trace([&](const Tensor &x) { return body(x), x; }, {batchOf4}); };
  CHECK_ERROR(traced([](const Tensor &x) { x.sum().item(); }), "while tracing", "where(condition");
  CHECK_ERROR(traced([](const Tensor &x) { x.to_vector<float>(); }), "while tracing");
  CHECK_ERROR(traced([](const Tensor &x) { x.data<float>(); }), "while tracing");
  CHECK_ERROR(traced([](const Tensor &x) { x.bytes(); }), "while tracing");
  CHECK_ERROR(traced([](const Tensor &x) { (void)int64_t(x.size(0)); }), "size batch is not known");
  CHECK_ERROR(traced([](const Tensor &x) { return x.size(0) == 1; }), "size batch is not known");
  CHECK_ERROR(traced([](const Tensor &x) { return x.size(0) > 3 ? 1 : 2; }), "size batch is not known");
  CHECK_ERROR(traced([](const Tensor &x) { return int(x.size(0) * 2 + x.size(1)); }), "batch");
  CHECK_ERROR(traced([](const Tensor &x) { save_npy("x.npy", x); }), "while tracing");
  // Conditions that hold for every batch size may be tested.
  traced([](const Tensor &x) {
    CHECK(x.size(1) == 4);
    CHECK(x.size(0) == x.size(0));
    CHECK((x.size(0) + 1 > x.size(0)));
    x.wait();
  });
}

TEST_CASE("traced tensors do not leave their trace") {
  Tensor leaked;
  CHECK_ERROR(trace([&](const Tensor &x) { return leaked = x + 1.0; }, {batchOf4}), "the result of add at",
              "in a variable outside of the traced function");
  CHECK_ERROR(leaked + 1.0, "after the trace");
  CHECK_ERROR(trace([&](const Tensor &x) { return x + leaked; }, {batchOf4}), "another trace");
  CHECK_ERROR(leaked.item(), "while tracing");
  CHECK_THROWS_AS(trace([](const Tensor &) -> Tensor { throw std::runtime_error("mine"); }, {batchOf4}),
                  std::runtime_error);
  CHECK((tensor({1.0}) + 1.0).item() == 2); // no trace is active after the exception
}

TEST_CASE("one graph serves every batch") {
  manual_seed(2);
  Tensor weight = randn({4, 3});
  auto f = [&](const Tensor &x) {
    Tensor mean = x.mean(0, true);
    return matmul(x - mean, weight).reshape({x.size(0) * 3}) + arange(3).to(f32).tile({1}).sum();
  };
  Graph g = trace(f, {batchOf4});
  CHECK(str(g.outputs()[0].spec) == "f32[batch*3]");
  for (int batch : {1, 2, 9}) {
    Tensor x = randn({batch, 4});
    CHECK(largestDifference(g.run({x}).front(), f(x)) < 1e-5);
  }
  CHECK_ERROR(g.run({zeros({2, 5})}), "run: ", "5");
  CHECK_ERROR(g.run({zeros({2, 4}, i32)}), "i32");
  CHECK_ERROR(g.run({}), "0 tensors", "1 inputs");
}

TEST_CASE("indexing a symbolic dimension") {
  Graph g = trace([](const Tensor &x) { return std::make_pair(x[0], x[{-1, Slice(1, None, 2)}]); }, {batchOf4});
  CHECK(str(g.outputs()[0].spec) == "f32[4]");
  Tensor x = arange(12).to(f32).reshape({3, 4});
  auto results = g.run({x});
  CHECK(floats(results[0]) == std::vector<float>{0, 1, 2, 3});
  CHECK(floats(results[1]) == std::vector<float>{9, 11});
}

TEST_CASE("captured tensors become constants that share memory, once each") {
  Tensor big = randn({100, 100});
  Graph g = trace([&](const Tensor &x) { return matmul(matmul(x, big), big) + big.t()[0]; }, {{f32, {1, 100}}});
  std::string text = g.str();
  size_t constants = 0;
  for (size_t at = 0; (at = text.find("burin.constant", at)) != std::string::npos; ++at)
    ++constants;
  CHECK(constants == 1);
}

TEST_CASE("graphs survive saving and loading") {
  fs::path path = fs::temp_directory_path() / ("burin-graph-" + std::to_string(::getpid()) + ".burin");
  manual_seed(3);
  auto net = nn::Sequential(nn::Linear(4, 300), nn::Tanh(), nn::Linear(300, 2));
  Graph g = trace(net, {batchOf4}, {"input"}, {"logits"});
  g.save(path.string());
  Graph loaded = Graph::load(path.string());
  CHECK(loaded.inputs() == g.inputs());
  CHECK(loaded.outputs() == g.outputs());
  Tensor x = randn({5, 4});
  CHECK(largestDifference(loaded.run({x}).front(), net(x)) < 1e-5);

  SECTION("hostile files are refused with a reason") {
    std::ifstream file(path, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(file), {}};
    auto refused = [&](const std::string &bytes) {
      std::ofstream(path, std::ios::binary) << bytes;
      std::string what = messageOf([&] { Graph::load(path.string()); });
      CHECK(lines(what) <= 6);
      return what;
    };
    CHECK(contains(refused(""), "empty"));
    CHECK(contains(refused("hello"), "not a graph"));
    CHECK(contains(refused("module {}"), "no public function"));
    CHECK(contains(refused("func.func @main(%x: i32) -> i32 { return %x : i32 }"), "takes or returns 'i32'"));
    CHECK(contains(refused("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"), "?"));
    CHECK(contains(refused(std::string("\x89PNG\r\n\0\0", 8)), "neither a .burin file nor MLIR text"));
    CHECK(contains(refused(good.substr(64)), "bare MLIR bytecode"));
    CHECK(contains(refused(good.substr(0, 40)), "truncated: it ends within its header"));
    for (size_t i = 64; i < good.size(); i += good.size() / 97)
      CHECK(contains(refused(good.substr(0, i)), "truncated: it has " + std::to_string(i - 64) + " bytes"));
    CHECK(contains(refused(good + "x"), "damaged"));
    std::string newer = good;
    newer[8] = 2;
    CHECK(contains(refused(newer), "its format version is 2, this burin reads 1\n  update burin"));
    // Flips one bit at a time, in the whole header and in 400 places of the rest. Each file is refused before MLIR's
    // reader sees it.
    size_t step = (good.size() - 64) / 400 + 1;
    for (size_t i = 0; i < good.size(); i += i < 64 ? 1 : step) {
      std::string flipped = good;
      flipped[i] = char(flipped[i] ^ (1 << i % 8));
      INFO("byte " << i);
      CHECK(contains(refused(flipped), "cannot read"));
    }
    CHECK_ERROR(Graph::load("/nowhere/x.burin"), "/nowhere/x.burin", "No such file");
  }
  fs::remove(path);
}

TEST_CASE("artifacts are compiled, saved, loaded and called") {
  fs::path path = fs::temp_directory_path() / ("burin-artifact-" + std::to_string(::getpid()) + ".plate");
  Graph g = trace([](const Tensor &x, const Tensor &y) { return x * y + 1.0; }, {batchOf4, batchOf4}, {"a", "b"});
  Artifact artifact = compile(g);
  CHECK(str(artifact.inputs()[0]) == "a: f32[batch, 4]");
  CHECK(artifact.target() != "");
  artifact.save(path.string());
  Artifact loaded = load(path.string());
  CHECK(loaded.inputs() == artifact.inputs());
  Tensor x = ones({2, 4});
  CHECK(floats(loaded(x, x * 2)) == std::vector<float>(8, 3));
  CHECK(floats(loaded.run({x, x}).front()) == std::vector<float>(8, 2));
  CHECK_ERROR(loaded(x), "1 tensors", "2 inputs");
  CHECK_ERROR(loaded(x, zeros({3, 4})), "run: ");
  CHECK_ERROR(load("/nowhere.plate"), "/nowhere.plate");
  CHECK_ERROR(compile(g, {.targets = {"z80"}}), "z80", "native");
  fs::remove(path);
}

static void checkTiedTable(DType type, int64_t words, int64_t width, double tolerance) {
  manual_seed(3);
  Tensor table = randn({words, width}).to(type), copy = table.t() * 1;
  auto tied = [&](const Tensor &tokens) { return matmul(tanh(take(table, tokens, 0)), table.t()); };
  auto separate = [&](const Tensor &tokens) { return matmul(tanh(take(table, tokens, 0)), copy); };
  Tensor tokens =
      from_vector<int64_t>({0, 31, 32, words - 1, -1, -words, 1999, words - 2, 1 - words}, Shape{3, 3}).to(i32);
  const std::string path = std::string(std::tmpnam(nullptr)) + ".plate";
  for (auto &f : {std::function<Tensor(const Tensor &)>(tied), std::function<Tensor(const Tensor &)>(separate)}) {
    Artifact artifact = compile(trace(f, {TensorSpec{i32, {Dim("n"), 3}}}), {.targets = {"x86-64-v3"}});
    CHECK(floats(artifact.run({tokens})[0]) ==
          floats(compile(trace(f, {tokens.spec()}), {.targets = {"x86-64-v3"}}).run({tokens})[0]));
    CHECK(largestDifference(artifact.run({tokens})[0], tied(tokens)) < tolerance);
    artifact.save(path);
    CHECK(std::filesystem::file_size(path) < size_t(words * width) * (type == f32 ? 4 : 2) * 3 / 2);
    std::filesystem::remove(path);
  }
}

TEST_CASE("a table that is also a weight lies in an artifact once") {
  checkTiedTable(f32, 2011, 150, 1e-4); // no multiples of a panel
  checkTiedTable(bf16, 4011, 151, 0.2); // in pairs, the last of which is half empty; results are about 12
}
