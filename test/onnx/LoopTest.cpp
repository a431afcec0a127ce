// Recurrent layers, Scan and Loop: imported as loops if their number of iterations is a size, and unrolled if they
// cannot be.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

namespace {

Graph loadModel(const ModelText &model) {
  Folder folder;
  return load_onnx(model.write(folder / "model.onnx"));
}

std::vector<float> numbers(size_t count) {
  std::vector<float> list(count);
  for (size_t i = 0; i < count; ++i)
    list[i] = float(int(i * 7 % 23) - 11) / 20;
  return list;
}

/// Computes the hidden states of an LSTM, and the last hidden and cell state. w [4 * size, inputs] and r [4 * size,
/// size] have the gates in the order input, output, forget, cell.
std::vector<Tensor> lstm(const Tensor &x, const Tensor &w, const Tensor &r, const Tensor &lengths, bool reverse) {
  int64_t length = int64_t(x.size(0)), batch = int64_t(x.size(1)), size = int64_t(r.size(1));
  Tensor h = zeros({batch, size}), c = h;
  std::vector<Tensor> rows(size_t(length), h);
  for (int64_t turn = 0; turn < length; ++turn) {
    int64_t t = reverse ? length - 1 - turn : turn;
    std::vector<Tensor> gate = split(matmul(x[t], w.t()) + matmul(h, r.t()), {size, size, size, size}, 1);
    Tensor cell = sigmoid(gate[2]) * c + sigmoid(gate[0]) * tanh(gate[3]), inside = unsqueeze(lengths > t, {1});
    Tensor hidden = sigmoid(gate[1]) * tanh(cell);
    rows[size_t(t)] = where(inside, hidden, 0.0);
    h = where(inside, hidden, h);
    c = where(inside, cell, c);
  }
  return {length ? stack(rows) : zeros({0, batch, size}), h, c};
}

} // namespace

TEST_CASE("An LSTM runs over sequences of any length, in both directions") {
  constexpr int64_t inputs = 3, size = 5;
  std::vector<float> w = numbers(2 * 4 * size * inputs), r = numbers(2 * 4 * size * size);
  ModelText model{
      .nodes = {{"LSTM",
                 {"x", "w", "r", "", "lengths"},
                 {"y", "h", "c"},
                 {attribute("hidden_size", size), attribute("direction", "bidirectional")}}},
      .inputs = {valueInfo("x", kFloat, {"length", "batch", "3"}), valueInfo("lengths", kInt32, {"batch"})},
      .outputs = {valueInfo("y", kFloat, {"length", "2", "batch", "5"}), valueInfo("h", kFloat, {"2", "batch", "5"}),
                  valueInfo("c", kFloat, {"2", "batch", "5"})},
      .initializers = {floatTensor("w", {2, 4 * size, inputs}, w), floatTensor("r", {2, 4 * size, size}, r)}};
  Graph graph = loadModel(model);
  CHECK(str(graph.outputs()[0]) == "y: f32[length, 2, batch, 5]");
  Tensor weight = from_vector(w, Shape{2, 4 * size, inputs}), recurrent = from_vector(r, Shape{2, 4 * size, size});
  Folder folder;
  compile(graph).save(folder / "lstm.plate");
  Artifact artifact = load(folder / "lstm.plate");
  for (int length : {0, 1, 2, 7, 50}) {
    Tensor x = randn({length, 2, inputs}), lengths = tensor({length, length / 2}, i32);
    std::vector<Tensor> got = artifact.run({x, lengths});
    REQUIRE(got[0].shape() == Shape{length, 2, 2, size});
    for (int direction : {0, 1}) {
      std::vector<Tensor> want = lstm(x, weight[direction], recurrent[direction], lengths, direction == 1);
      if (length)
        CHECK(largestDifference(got[0][{Slice(), direction}], want[0]) < 1e-5);
      CHECK(largestDifference(got[1][direction], want[1]) < 1e-5);
      CHECK(largestDifference(got[2][direction], want[2]) < 1e-5);
    }
  }
}

TEST_CASE("A Scan goes through any axis from either end, and sees what surrounds it") {
  ModelText body{
      .nodes = {{"Mul", {"a", "factor"}, {"scaled"}},
                {"Add", {"sum", "scaled"}, {"next"}},
                {"Sub", {"next", "b"}, {"difference"}},
                {"Identity", {"next"}, {"row"}}},
      .inputs = {valueInfo("sum", kFloat, {"2"}), valueInfo("a", kFloat, {"2"}), valueInfo("b", kFloat, {"2"})},
      .outputs = {valueInfo("next", kFloat, {"2"}), valueInfo("row", kFloat, {"2"}),
                  valueInfo("difference", kFloat, {"2"})}};
  auto modelFor = [&](const Bytes &n) {
    return ModelText{.nodes = {{"Scan",
                                {"initial", "x", "y"},
                                {"last", "rows", "differences"},
                                {graphAttribute("body", body.graph()), attribute("num_scan_inputs", int64_t(2)),
                                 attribute("scan_input_axes", {1, 0}), attribute("scan_input_directions", {1, 0}),
                                 attribute("scan_output_axes", {0, 1}), attribute("scan_output_directions", {0, 1})}}},
                     .inputs = {valueInfo("initial", kFloat, {"2"}), valueInfo("x", kFloat, {"2", n}),
                                valueInfo("y", kFloat, {n, "2"}), valueInfo("factor", kFloat, {})},
                     .outputs = {valueInfo("last", kFloat, {"2"}), valueInfo("rows", kFloat, {n, "2"}),
                                 valueInfo("differences", kFloat, {"2", n})}};
  };
  Graph any = loadModel(modelFor("n")), three = loadModel(modelFor("3"));
  Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, f32), y = tensor({{1, 0}, {0, 1}, {1, 1}}, f32);
  for (const Graph &graph : {any, three}) {
    CHECK(contains(graph.str(), "burin.scan"));
    std::vector<Tensor> got = graph.run({tensor({10, 20}, f32), x, y, Tensor(2.0).to(f32)});
    CHECK(floats(got[0]) == std::vector<float>{22, 50});
    CHECK(floats(got[1]) == std::vector<float>{16, 32, 20, 42, 22, 50});
    CHECK(floats(got[2]) == std::vector<float>{21, 20, 15, 49, 41, 32}); // the last one first
  }
}

TEST_CASE("A Scan of opset 8 runs for each example of a batch") {
  ModelText body{
      .nodes = {{"Mul", {"a", "b"}, {"product"}},
                {"Mul", {"product", "factor"}, {"scaled"}},
                {"Add", {"sum", "scaled"}, {"next"}},
                {"ReduceSum", {"next"}, {"total"}, {attribute("axes", {0}), attribute("keepdims", int64_t(0))}}},
      .inputs = {valueInfo("sum", kFloat, {"2"}), valueInfo("a", kFloat, {"2"}), valueInfo("b", kFloat, {})},
      .outputs = {valueInfo("next", kFloat, {"2"}), valueInfo("total", kFloat, {})}};
  auto modelFor = [&](const Bytes &batch, const Bytes &length) {
    return ModelText{.nodes = {{"Scan",
                                {"", "initial", "x", "y"},
                                {"last", "totals"},
                                {graphAttribute("body", body.graph()), attribute("num_scan_inputs", int64_t(2)),
                                 attribute("directions", {0, 1})}}},
                     .inputs = {valueInfo("initial", kFloat, {batch, "2"}),
                                valueInfo("x", kFloat, {batch, length, "2"}), valueInfo("y", kFloat, {batch, length}),
                                valueInfo("factor", kFloat, {})},
                     .outputs = {valueInfo("last", kFloat, {batch, "2"}), valueInfo("totals", kFloat, {batch, length})},
                     .opset = 8};
  };
  Tensor initial = randn({3, 2}), x = randn({3, 5, 2}), y = randn({3, 5});
  for (const Graph &graph : {loadModel(modelFor("b", "n")), loadModel(modelFor("3", "5"))}) {
    std::vector<Tensor> got = graph.run({initial, x, y, Tensor(0.5).to(f32)});
    Tensor sum = initial;
    for (int64_t turn = 0; turn < 5; ++turn) {
      sum = sum + x[{Slice(), turn}] * unsqueeze(y[{Slice(), 4 - turn}], {1}) * 0.5;
      CHECK(largestDifference(got[1][{Slice(), turn}], sum.sum({1})) < 1e-5);
    }
    CHECK(largestDifference(got[0], sum) < 1e-5);
  }
}

TEST_CASE("A Loop whose number of iterations is a size is a loop of the graph, others are unrolled") {
  auto modelFor = [](const Bytes &n, std::vector<NodeText> nodes, const Bytes &next) {
    ModelText body{.nodes = std::move(nodes),
                   .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {})},
                   .outputs = {valueInfo("on", kBool, {}), valueInfo(next, kFloat, {}), valueInfo("out", kFloat, {})}};
    return ModelText{
        .nodes = {{"Shape", {"x"}, {"shape"}},
                  {"Gather", {"shape", "zero"}, {"count"}},
                  {"Loop", {"count", "", "start"}, {"last", "all"}, {graphAttribute("body", body.graph())}}},
        .inputs = {valueInfo("x", kFloat, {n}), valueInfo("start", kFloat, {})},
        .outputs = {valueInfo("last", kFloat, {}), valueInfo("all", kFloat, {n})},
        .initializers = {intTensor("zero", {}, {0})}};
  };
  std::vector<NodeText> sums{{"Identity", {"goes"}, {"on"}},
                             {"Gather", {"x", "i"}, {"element"}},
                             {"Add", {"v", "element"}, {"next"}},
                             {"Mul", {"next", "element"}, {"out"}}};
  Graph graph = loadModel(modelFor("n", sums, "next"));
  CHECK(contains(graph.str(), "burin.scan"));
  std::vector<Tensor> got = graph.run({tensor({1, 2, 3}, f32), Tensor(0.5).to(f32)});
  CHECK(got[0].item() == 6.5);
  CHECK(floats(got[1]) == std::vector<float>{1.5, 7, 19.5});
  got = graph.run({zeros({0}), Tensor(0.5).to(f32)});
  CHECK(got[0].item() == 0.5);
  CHECK(got[1].shape() == Shape{0});

  // The iteration number determines a shape.
  std::vector<NodeText> ranges = sums;
  ranges.insert(ranges.begin() + 1, {{"Unsqueeze", {"i", "axis"}, {"list"}}, {"Expand", {"v", "list"}, {"many"}}});
  ranges.back() = {"ReduceSum", {"many"}, {"out"}, {attribute("keepdims", int64_t(0))}};
  ModelText model = modelFor("3", ranges, "next");
  model.initializers.push_back(intTensor("axis", {1}, {0}));
  Graph unrolled = loadModel(model);
  CHECK(!contains(unrolled.str(), "burin.scan"));
  got = unrolled.run({tensor({1, 2, 3}, f32), Tensor(0.5).to(f32)});
  CHECK(floats(got[1]) == std::vector<float>{0, 1.5, 7});
  ModelText open = modelFor("n", ranges, "next");
  open.initializers.push_back(intTensor("axis", {1}, {0}));
  CHECK(contains(messageOf([&] { loadModel(open); }), "model.onnx:Expand->many"));
}

TEST_CASE("An If over data is a branch of the graph: only what is chosen runs") {
  auto branch = [](const Bytes &op, const Bytes &output) {
    return ModelText{.nodes = {{op, {"x", "w"}, {output}}}, .inputs = {}, .outputs = {valueInfo(output, kFloat, {"n"})}}
        .graph();
  };
  ModelText model{.nodes = {{"ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", int64_t(0))}},
                            {"Greater", {"sum", "zero"}, {"c"}},
                            {"If",
                             {"c"},
                             {"y"},
                             {graphAttribute("then_branch", branch("Add", "a")),
                              graphAttribute("else_branch", branch("Mul", "b"))}}},
                  .inputs = {valueInfo("x", kFloat, {"n"})},
                  .outputs = {valueInfo("y", kFloat, {"n"})},
                  .initializers = {floatTensor("zero", {}, {0}), floatTensor("w", {1}, {10})}};
  Graph graph = loadModel(model);
  CHECK(contains(graph.str(), "burin.if"));
  CHECK(floats(graph.run({tensor({1, 2}, f32)})[0]) == std::vector<float>{11, 12});
  CHECK(floats(graph.run({tensor({1, -2, -3}, f32)})[0]) == std::vector<float>{10, -20, -30});
  CHECK(floats(graph.run({tensor({NAN}, f32)})[0])[0] != 11);
  CHECK(graph.run({zeros({0})})[0].shape() == Shape{0});
}

TEST_CASE("A Loop ends when the data says so") {
  // Doubles v while its sum is below the limit, at most `count` times.
  auto modelFor = [](const Bytes &count, const Bytes &first) {
    ModelText body{.nodes = {{"Add", {"v", "v"}, {"next"}},
                             {"ReduceSum", {"next"}, {"sum"}, {attribute("keepdims", int64_t(0))}},
                             {"Less", {"sum", "limit"}, {"on"}}},
                   .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {"n"})},
                   .outputs = {valueInfo("on", kBool, {}), valueInfo("next", kFloat, {"n"})}};
    return ModelText{.nodes = {{"Loop", {count, first, "x"}, {"y"}, {graphAttribute("body", body.graph())}}},
                     .inputs = {valueInfo("x", kFloat, {"n"}), valueInfo("limit", kFloat, {}),
                                valueInfo("count", kInt64, {}), valueInfo("first", kBool, {})},
                     .outputs = {valueInfo("y", kFloat, {"n"})},
                     .initializers = {intTensor("three", {}, {3})}};
  };
  auto run = [&](const Bytes &countName, const Bytes &firstName, double limit, int64_t count, bool first) {
    Graph graph = loadModel(modelFor(countName, firstName));
    CHECK(contains(graph.str(), "burin.while"));
    return floats(graph.run({tensor({1, 2}, f32), tensor(limit, f32), tensor(count), tensor(first)})[0]);
  };
  CHECK(run("", "", 20, 0, true) == std::vector<float>{8, 16});
  CHECK(run("", "first", 20, 0, false) == std::vector<float>{1, 2});
  CHECK(run("count", "", 20, 2, true) == std::vector<float>{4, 8});
  CHECK(run("count", "first", 20, 0, true) == std::vector<float>{1, 2});
  CHECK(run("three", "", 1e6, 0, true) == std::vector<float>{8, 16});
  CHECK(run("count", "", 2, 9, true) == std::vector<float>{2, 4}); // the condition is evaluated after an iteration
}

TEST_CASE("A Loop may run as often as an input says") {
  ModelText body{.nodes = {{"Identity", {"goes"}, {"on"}},
                           {"Cast", {"i"}, {"f"}, {attribute("to", int64_t(kFloat))}},
                           {"Add", {"v", "f"}, {"next"}}},
                 .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {})},
                 .outputs = {valueInfo("on", kBool, {}), valueInfo("next", kFloat, {})}};
  Graph graph = loadModel({.nodes = {{"Loop", {"count", "", "x"}, {"y"}, {graphAttribute("body", body.graph())}}},
                           .inputs = {valueInfo("x", kFloat, {}), valueInfo("count", kInt64, {})},
                           .outputs = {valueInfo("y", kFloat, {})}});
  for (int64_t count : {0, 1, 5, -3})
    CHECK(graph.run({tensor(0.5, f32), tensor(count)})[0].item() ==
          0.5 + double(count > 0 ? count * (count - 1) / 2 : 0));
}

TEST_CASE("A Loop that ends when the data says so collects as many rows as it has iterations") {
  // Adds d to v until its sum reaches the limit; collects v and the number of the iteration.
  auto modelFor = [](const Bytes &count, const Bytes &first, bool draws = false) {
    std::vector<NodeText> nodes{{"Add", {"v", "d"}, {"next"}},
                                {"ReduceSum", {"next"}, {"sum"}, {attribute("keepdims", int64_t(0))}},
                                {"Less", {"sum", "limit"}, {"on"}},
                                {"Identity", {"next"}, {"row"}},
                                {"Cast", {"i"}, {"number"}, {attribute("to", int64_t(kFloat))}}};
    if (draws)
      nodes.push_back({"RandomNormalLike", {"next"}, {"noise"}});
    ModelText body{.nodes = std::move(nodes),
                   .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {"2"})},
                   .outputs = {valueInfo("on", kBool, {}), valueInfo("next", kFloat, {"2"}),
                               valueInfo("row", kFloat, {"2"}), valueInfo("number", kFloat, {})}};
    return ModelText{
        .nodes = {{"Loop", {count, first, "x"}, {"last", "rows", "numbers"}, {graphAttribute("body", body.graph())}},
                  {"MatMul", {"numbers", "rows"}, {"y"}}},
        .inputs = {valueInfo("x", kFloat, {"2"}), valueInfo("d", kFloat, {"2"}), valueInfo("limit", kFloat, {}),
                   valueInfo("count", kInt64, {}), valueInfo("first", kBool, {})},
        .outputs = {valueInfo("last", kFloat, {"2"}), valueInfo("rows", kFloat, {"?", "2"}),
                    valueInfo("y", kFloat, {"2"})},
        .initializers = {intTensor("three", {}, {3})}};
  };
  auto run = [&](const Bytes &countName, const Bytes &firstName, double limit, int64_t count, bool first) {
    return loadModel(modelFor(countName, firstName))
        .run({zeros({2}), tensor({1, 2}, f32), tensor(limit, f32), tensor(count), tensor(first)});
  };
  for (auto [countName, firstName, limit, count, first, turns] : {std::tuple("", "", 10.0, 0, true, 4),
                                                                  {"", "", -5.0, 0, true, 1},
                                                                  {"", "first", 10.0, 0, false, 0},
                                                                  {"three", "", 100.0, 0, true, 3},
                                                                  {"three", "", 5.0, 0, true, 2},
                                                                  {"count", "", 10.0, 2, true, 2},
                                                                  {"count", "first", 7.0, 9, true, 3},
                                                                  {"count", "", 10.0, -1, true, 0}}) {
    CAPTURE(countName, firstName, limit, count, first);
    std::vector<Tensor> got = run(countName, firstName, limit, count, first);
    std::vector<float> rows, sum(2);
    for (int i = 0; i < turns; ++i) {
      rows.insert(rows.end(), {float(i + 1), float(2 * i + 2)});
      sum[0] += float(i * (i + 1));
      sum[1] += float(i * (2 * i + 2));
    }
    CHECK(floats(got[0]) == std::vector<float>{float(turns), float(2 * turns)});
    REQUIRE(got[1].shape() == Shape{turns, 2});
    CHECK(floats(got[1]) == rows);
    CHECK(floats(got[2]) == sum);
  }
  CHECK(contains(messageOf([&] { loadModel(modelFor("", "", true)); }),
                 "collected outputs of a loop that ends depending on data and draws random numbers"));
}

TEST_CASE("A Loop that runs as often as an input says collects its rows in one loop") {
  ModelText body{.nodes = {{"Identity", {"goes"}, {"on"}}, {"Add", {"v", "v"}, {"next"}}, {"Neg", {"v"}, {"row"}}},
                 .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {})},
                 .outputs = {valueInfo("on", kBool, {}), valueInfo("next", kFloat, {}), valueInfo("row", kFloat, {})}};
  Graph graph =
      loadModel({.nodes = {{"Loop", {"count", "", "x"}, {"last", "y"}, {graphAttribute("body", body.graph())}}},
                 .inputs = {valueInfo("x", kFloat, {}), valueInfo("count", kInt64, {})},
                 .outputs = {valueInfo("last", kFloat, {}), valueInfo("y", kFloat, {"?"})}});
  CHECK(!contains(graph.str(), "burin.while"));
  for (int64_t count : {0, 1, 4, -3}) {
    std::vector<Tensor> got = graph.run({tensor(0.5, f32), tensor(count)});
    std::vector<float> rows;
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(-0.5f * float(int64_t(1) << i));
    CHECK(floats(got[1]) == rows);
  }
}

TEST_CASE("A thousand iterations of a thousand iterations are one Loop within another") {
  auto around = [](NodeText node) {
    ModelText body{.nodes = {{"Identity", {"goes"}, {"on"}}, std::move(node)},
                   .inputs = {valueInfo("i", kInt64, {}), valueInfo("goes", kBool, {}), valueInfo("v", kFloat, {})},
                   .outputs = {valueInfo("on", kBool, {}), valueInfo("w", kFloat, {})}};
    return graphAttribute("body", body.graph());
  };
  NodeText inner{"Loop", {"count", "", "v"}, {"w"}, {around({"Add", {"v", "x"}, {"w"}})}};
  Graph graph = loadModel({.nodes = {{"Loop", {"count", "", "x"}, {"y"}, {around(inner)}}},
                           .inputs = {valueInfo("x", kFloat, {})},
                           .outputs = {valueInfo("y", kFloat, {})},
                           .initializers = {intTensor("count", {}, {1000})}});
  CHECK(graph.run({tensor(0.5, f32)})[0].item() == 500'000.5);
}

TEST_CASE("What a branch needs of sizes is checked by the runs that take it") {
  auto branch = [](const Bytes &weight) {
    return ModelText{.nodes = {{"Mul", {"x", weight}, {"p"}},
                               {"ReduceSum", {"p"}, {"s" + weight}, {attribute("keepdims", int64_t(0))}}},
                     .inputs = {},
                     .outputs = {valueInfo("s" + weight, kFloat, {})}}
        .graph();
  };
  Graph graph = loadModel(
      {.nodes = {{"If",
                  {"c"},
                  {"y"},
                  {graphAttribute("then_branch", branch("two")), graphAttribute("else_branch", branch("three"))}}},
       .inputs = {valueInfo("x", kFloat, {"n"}), valueInfo("c", kBool, {})},
       .outputs = {valueInfo("y", kFloat, {})},
       .initializers = {floatTensor("two", {2}, {1, 10}), floatTensor("three", {3}, {1, 10, 100})}});
  CHECK(contains(graph.str(), "burin.if"));
  CHECK(graph.run({tensor({1, 2}, f32), tensor(true)})[0].item() == 21);
  CHECK(graph.run({tensor({1, 2, 3}, f32), tensor(false)})[0].item() == 321);
  for (bool isFirst : {true, false}) {
    std::string problem = messageOf([&] { graph.run({ones({5}), tensor(isFirst)})[0].item(); });
    INFO(problem);
    CHECK(contains(problem, isFirst ? "2" : "3"));
    CHECK(contains(problem, "n = 5"));
  }
}
