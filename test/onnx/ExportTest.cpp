// Exports graphs to ONNX and imports them again: every op of the op table, and the properties that a model must keep.
#include "frontend/onnx/export/Export.h"
#include "frontend/trace/GraphData.h"
#include "ir/reference/Reference.h"
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/ops/Row.h"
#include <burin/graph/program.h>
#include <burin/nn/layer.h>
#include <burin/nn/transformer.h>
#include <fstream>
#include <set>
#include <sstream>

using namespace burin::test;

namespace {

/// Ops with element types for which ONNX has no equivalent; {} stands for all types of symbolic shape.
const std::map<std::string, std::set<DType>> withoutForm{
    {"conv", {i32, i64}}, {"conv_transpose", {i32, i64}}, {"max_pool", {i64}}, {"non_max_suppression", {}}};

/// Ops with an epsilon. Attributes of nodes are f32, which makes a difference in f64.
const std::set<std::string> withEpsilon{"layer_norm", "batch_norm", "group_norm", "instance_norm"};

burin::Graph throughOnnx(const burin::Graph &graph) {
  Folder folder;
  graph.save(folder / "graph.onnx");
  return burin::Graph::load(folder / "graph.onnx");
}

burin::Graph throughText(const std::string &text) {
  Folder folder;
  std::ofstream(folder / "graph.mlir") << text;
  return burin::Graph::load(folder / "graph.mlir");
}

Runner interpreterOf(const burin::Graph &graph) {
  return [graph](const Tensors &inputs) {
    auto results = ir::interpret(*graph.shared()->module, inputs, {}, {.roundF32 = true});
    if (mlir::failed(results))
      throw std::runtime_error(graph.shared()->takeDiagnostics());
    return std::move(*results);
  };
}

class RoundTrip : public Catch::ITestInvoker {
public:
  explicit RoundTrip(Row row) : row(std::move(row)) {}
  void invoke() const override {
    std::string different = tryRow(row, "through ONNX", 20240, [](test::Graph &graph) {
      return interpreterOf(throughOnnx(throughText(graph.text())));
    });
    INFO(different);
    CHECK(different.empty());
  }

private:
  Row row;
};

struct Registered {
  Registered() {
    for (const Row *each : allRows()) {
      Row row = *each;
      if (auto at = withoutForm.find(row.op); at != withoutForm.end())
        std::erase_if(row.types, [&](DType type) { return at->second.empty() || at->second.count(type); });
      if (withEpsilon.count(row.op))
        row.tolerance.absolute = 1e-7;
      if (!row.types.empty())
        Catch::AutoReg(new RoundTrip(row), CATCH_INTERNAL_LINEINFO, "",
                       Catch::NameAndTags("export: " + row.op, "[op]"));
    }
  }
} registered;

std::string readFile(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

} // namespace

TEST_CASE("What ONNX cannot express is named at once with its places") {
  Folder folder;
  burin::Graph graph =
      trace([](const Tensor &x, const Tensor &w) { return std::vector{conv(x, w), max_pool(x.to(i64), {2})}; },
            {{i32, {Dim("b"), 3, 8, 8}}, {i32, {4, 3, 3, 3}}});
  std::string message = messageOf([&] { graph.save(folder / "no.onnx"); });
  INFO(message);
  CHECK(contains(message, "ONNX cannot express:"));
  CHECK(contains(message, "ExportTest.cpp"));
  for (const char *op : {"burin.conv: ", "burin.max_pool: "})
    CHECK(contains(message, op));
  CHECK(!std::filesystem::exists(folder / "no.onnx"));
}

TEST_CASE("Random numbers of a generator are the same in the model, whose state is an input and an output") {
  auto draw = [generator = Generator(-7)](const Tensor &x) {
    Tensor noise = generator.randn({x.size(0), 3}), unit = generator.rand({x.size(0)});
    Tensor whole = generator.randint(-5, 1000, {x.size(0), 2}), coin = generator.bernoulli(full(x.shape(), 0.3));
    return std::vector{noise,
                       unit,
                       whole,
                       coin,
                       generator.rand({x.size(0)}, f64),
                       generator.randint(INT64_MIN, INT64_MAX, {x.size(0)})};
  };
  burin::Graph graph = trace(draw, {{f32, {Dim("n")}}});
  Folder folder;
  graph.save(folder / "random.onnx");
  burin::Graph back = burin::Graph::load(folder / "random.onnx");
  REQUIRE(back.inputs().size() == 2);
  Tensor state = tensor({-7, 0});
  for (int64_t n : {1, 2, 7, 16}) {
    std::vector<Tensor> want = draw(zeros({n})), got = back.run({zeros({n}), state});
    for (size_t i = 0; i < want.size(); ++i) {
      CAPTURE(n, i);
      REQUIRE(got[i].shape() == want[i].shape());
      CHECK(largestDifference(got[i].to(f64), want[i].to(f64)) <= (i == 0 ? 1e-5 : 0));
    }
    state = got.back();
  }
}

TEST_CASE("A model keeps its signature, its parameters' names and its numbers") {
  auto net = nn::Sequential(nn::Linear(6, 16), nn::ReLU(), nn::Linear(16, 3));
  burin::Graph graph = trace(net, {{f32, {Dim("batch"), 6}}}, {"pixels"}, {"scores"});
  Folder folder;
  graph.save(folder / "mlp.onnx");
  std::string bytes = readFile(folder / "mlp.onnx");
  for (const char *part : {"batch", "pixels", "scores", "0.weight", "2.bias", "MatMul", "Relu", "ExportTest.cpp"})
    CHECK(contains(bytes, part));
  CHECK(!contains(bytes, "Expand")); // the bias broadcasts implicitly
  burin::Graph back = burin::Graph::load(folder / "mlp.onnx");
  CHECK(back.inputs() == graph.inputs());
  CHECK(back.outputs() == graph.outputs());
  Tensor x = randn({5, 6});
  CHECK(largestDifference(back.run({x})[0], graph.run({x})[0]) == 0);
}

TEST_CASE("Outputs that are inputs, constants or the same value twice are copied") {
  Tensor c = tensor({1.f, 2.f});
  burin::Graph graph = trace(
      [&](const Tensor &x) {
        Tensor y = x * 2;
        return std::vector{x, y, y, c, broadcast_to(c, {3, 2})};
      },
      {{f32, {2}}}, {"x"}, {"a", "b", "c", "d", "e"});
  burin::Graph back = throughOnnx(graph);
  CHECK(back.outputs() == graph.outputs());
  Tensor x = tensor({3.f, 4.f});
  std::vector<Tensor> want = graph.run({x}), got = back.run({x});
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(floats(got[i]) == floats(want[i]));
}

TEST_CASE("Names that are taken are made unique") {
  burin::Graph graph = trace([](const Tensor &x, const Tensor &y) { return std::vector{relu(x), relu(relu(y))}; },
                             {{f32, {2}}, {f32, {2}}}, {"relu", "relu_1"}, {"relu_2", "relu_3"});
  burin::Graph back = throughOnnx(graph);
  CHECK(back.inputs() == graph.inputs());
  CHECK(back.outputs() == graph.outputs());
  CHECK(floats(back.run({tensor({-1.f, 2.f}), tensor({3.f, -4.f})})[1]) == std::vector<float>{3, 0});
}

TEST_CASE("Symbolic sizes are computed from those of tensors") {
  Dim b("b"), h("h");
  burin::Graph graph = trace(
      [&](const Tensor &x, const Tensor &y) {
        Tensor flat = reshape(x, {b * h, 6}), heads = transpose(reshape(x, {b, h, 2, 3}), {0, 2, 1, 3});
        Tensor grown = broadcast_to(y, {b, 6}), row = iota({floordiv(h - 1, 2) + max(h, 3)}, i64);
        return std::vector{flat, heads, grown, row, reshape(heads, {b * 2, h, 3})};
      },
      {{f32, {b, h, 6}}, {f32, {1, 6}}});
  burin::Graph back = throughOnnx(graph);
  CHECK(back.outputs() == graph.outputs());
  Tensor x = randn({2, 5, 6}), y = randn({1, 6});
  std::vector<Tensor> want = graph.run({x, y}), got = back.run({x, y});
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(largestDifference(got[i].to(f32), want[i].to(f32)) == 0);
}

TEST_CASE("states are inputs and outputs of the model, behind the caller's") {
  Parameter total = Parameter::state(ones({2}), "total"), scale(tensor({2.0f, 3.0f}));
  auto f = [&](const Tensor &x) {
    total.set(total * scale + x);
    return total.value().sum();
  };
  Folder folder;
  trace(f, {{DType::f32, {2}}}, {"x"}, {"y"}).save(folder / "f.onnx");
  burin::Graph model = burin::Graph::load(folder / "f.onnx");
  auto names = [](const std::vector<NamedSpec> &specs) {
    std::string text;
    for (const NamedSpec &spec : specs)
      text += str(spec) + "; ";
    return text;
  };
  CHECK(names(model.inputs()) == "x: f32[2]; total.in: f32[2]; ");
  CHECK(names(model.outputs()) == "y: f32[]; total.out: f32[2]; ");
  Tensor state = total;
  for (int run = 0; run < 3; ++run) {
    std::vector<burin::Tensor> got = model.run({tensor({1.0f, -1.0f}), state});
    CHECK(got[0].item() == f(tensor({1.0f, -1.0f})).item());
    CHECK(floats(got[1]) == floats(total));
    state = got[1];
  }
}

TEST_CASE("a key/value cache is exported, with a position per row and rows that do not fit") {
  struct Decoder : nn::Layer<Decoder> {
    nn::KVCache cache = register_module("cache", nn::KVCache(/*batch=*/2, /*heads=*/1, /*length=*/5, /*size=*/3));
    Tensor forward(const Tensor &x, const Tensor &positions) const {
      Tensor token = x.reshape({2, 1, x.size(1), 3}), sees = cache.mask(positions, x.size(1));
      auto [keys, values] = cache.update(token, token * 2, positions);
      return scaled_dot_product_attention(token, keys, values, sees);
    }
  };
  Decoder decoder;
  Program program(decoder);
  program.add("prefill", decoder, {{f32, {2, Dim("m"), 3}}, {i64, {2}}}, {"x", "at"}, {"y"});
  program.add("decode", decoder, {{f32, {2, 1, 3}}, {i64, {2}}}, {"x", "at"}, {"y"});
  burin::Graph graph = program.graph();
  Folder folder;
  std::string message = messageOf([&] { graph.save(folder / "all.onnx"); });
  CHECK(contains(message, "this graph has prefill, decode"));
  CHECK(contains(message, "graph.function(\"prefill\").save("));
  CHECK(!std::filesystem::exists(folder / "all.onnx"));
  manual_seed(5);
  std::vector<Tensor> states{zeros({2, 1, 5, 3}), zeros({2, 1, 5, 3})};
  Tensor at = zeros({2}, i64);
  for (auto [function, count] : {std::pair("prefill", 2), {"decode", 1}, {"decode", 1}}) {
    graph.function(function).save(folder / "step.onnx");
    burin::Graph model = burin::Graph::load(folder / "step.onnx");
    CHECK(model.inputs()[2].name == "cache.keys.in");
    Tensor x = randn({2, count, 3}), want = decoder(x, at);
    std::vector<Tensor> got = model.run({x, at, states[0], states[1]});
    CHECK(largestDifference(got[0], want) < 1e-6);
    states = {got[1], got[2]};
    CHECK(floats(states[0]) == floats(decoder.cache.keys));
    CHECK(floats(states[1]) == floats(decoder.cache.values));
    at = at + tensor(count);
    if (count == 2)
      at = tensor({2, 1}); // rows go on from different positions
  }
}

TEST_CASE("updates that are out of range are dropped in the model, too") {
  auto put = [](const char *reduction) {
    return [reduction](const Tensor &x, const Tensor &at, const Tensor &updates) {
      return scatter(x, at, updates, 1, reduction, /*drop=*/true);
    };
  };
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
         updates = tensor({{10.0, 20.0, 30.0, 40.0}, {1.0, 2.0, 3.0, 4.0}});
  Tensor at = tensor({{0, 3, -4, -1}, {-3, 100, INT64_MIN, 2}});
  for (const char *reduction : {"set", "add", "mul", "max"}) {
    burin::Graph model = throughOnnx(trace(put(reduction), {{f32, {2, Dim("n")}}, {i64, {2, 4}}, {f32, {2, 4}}}));
    CHECK(floats(model.run({x, at, updates})[0]) == floats(put(reduction)(x, at, updates)));
    CHECK(model.run({zeros({2, 0}), at, updates})[0].shape() == Shape{2, 0});
  }
}

TEST_CASE("Loops become Scan, from both ends, with what they use of the graph around them") {
  manual_seed(4);
  Tensor weight = randn({4, 4});
  for (bool reverse : {false, true}) {
    burin::Graph graph = trace(
        [&](const Tensor &x, const Tensor &scale) {
          Tensor twice = scale * 2;
          auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
            Tensor next = tanh(matmul(states[0], weight) + elements[0] * twice);
            return ScanResult{{next, states[1] + 1.0}, {next, next.sum({1}), elements[1]}};
          };
          ScanResult all = scan(step, {zeros({x.size(1), 4}), scale}, {x, iota({x.size(0)}, i64)}, reverse);
          std::vector<Tensor> results = all.states;
          results.insert(results.end(), all.outputs.begin(), all.outputs.end());
          results.push_back(twice); // the loop uses this name as well
          return results;
        },
        {{f32, {Dim("n"), Dim("b"), 4}}, {f32, {}}});
    burin::Graph back = throughOnnx(graph);
    CHECK(back.outputs() == graph.outputs());
    for (int length : {0, 2, 5}) {
      Tensor x = randn({length, 3, 4}), scale = Tensor(0.5).to(f32);
      std::vector<Tensor> want = graph.run({x, scale}), got = back.run({x, scale});
      for (size_t i = 0; i < want.size(); ++i) {
        REQUIRE(got[i].shape() == want[i].shape());
        CHECK(got[i].to_vector<float>() == want[i].to_vector<float>());
      }
    }
  }
}

TEST_CASE("Branches become If, and loops that depend on data become Loop") {
  Tensor weight = tensor({{1.0, 2.0}, {0.5, -1.0}}), bias = tensor({0.25, 0.5});
  auto branches = [&](const Tensor &x, const Tensor &index) {
    Tensor twice = x * 2.0;
    Tensor one = cond(
        x.sum() > 0.0, [&] { return matmul(twice, weight) + bias; }, [&] { return broadcast_to(bias, x.shape()); });
    Tensor two = switch_case(index, [&] { return x; }, [&] { return x + twice; }, [&] { return x * bias; });
    return std::vector{one, two, twice};
  };
  burin::Graph graph = trace(branches, {{f32, {Dim("n"), 2}}, {i64, {}}});
  burin::Graph back = throughOnnx(graph);
  CHECK(contains(back.str(), "burin.if"));
  for (int64_t index : {-1, 0, 1, 2, 7})
    for (float sign : {1.f, -1.f}) {
      Tensor x = ones({3, 2}) * sign;
      std::vector<Tensor> want = graph.run({x, tensor(index)}), got = back.run({x, tensor(index)});
      for (size_t i = 0; i < want.size(); ++i)
        CHECK(floats(got[i]) == floats(want[i]));
    }
  // A loop in a loop, with what both see of the graph; the condition has values of its own.
  auto loops = [&](const Tensor &x, const Tensor &limit) {
    Tensor most = limit * 2.0;
    using Values = std::vector<Tensor>;
    auto turn = [&](const Values &v) {
      auto inner = while_loop([&](const Values &w) { return w[1] < v[1]; },
                              [&](const Values &w) { return Values{w[0] + bias * v[0], w[1] + 1}; },
                              Values{v[0], tensor(int64_t(0))});
      return Values{inner[0], v[1] + 1};
    };
    auto goesOn = [&](const Values &v) { return (v[0] * bias).sum() < most; };
    Values last = while_loop(goesOn, turn, Values{x, tensor(int64_t(1))});
    return std::vector{last[0], last[1]};
  };
  burin::Graph counted = trace(loops, {{f32, {Dim("n"), 2}}, {f32, {}}});
  burin::Graph again = throughOnnx(counted);
  CHECK(contains(again.str(), "burin.while"));
  for (double limit : {0.0, 3.0, 50.0}) {
    Tensor x = ones({2, 2}), most = tensor(limit, f32);
    std::vector<Tensor> want = counted.run({x, most}), got = again.run({x, most});
    CHECK(floats(got[0]) == floats(want[0]));
    CHECK(got[1].item() == want[1].item());
  }
}

TEST_CASE("Weights beyond what a protobuf message holds lie beside the model") {
  Folder folder;
  auto net = nn::Sequential(nn::Linear(64, 64), nn::Linear(64, 32));
  burin::Graph graph = trace(net, {{f32, {3, 64}}});
  {
    std::lock_guard lock(graph.shared()->mutex);
    onnx::exportModel(ir::mainFunction(*graph.shared()->module), folder / "net.onnx", Location::current(),
                      /*maxInline=*/1000);
  }
  CHECK(std::filesystem::file_size(folder / "net.onnx") < 4000);
  CHECK(std::filesystem::file_size(folder / "net.onnx.data") >= (64 + 32) * 64 * sizeof(float));
  Tensor x = randn({3, 64});
  CHECK(largestDifference(burin::Graph::load(folder / "net.onnx").run({x})[0], graph.run({x})[0]) == 0);
}

TEST_CASE("A place that cannot be written to is named") {
  burin::Graph graph = trace([](const Tensor &x) { return x + 1; }, {{f32, {2}}});
  CHECK_ERROR(graph.save("/nowhere/at/all.onnx"), "/nowhere/at/all.onnx");
}
