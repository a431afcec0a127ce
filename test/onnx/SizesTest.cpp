// Sizes that models leave open: each is its own symbol; sizes that an op needs equal share one; conditions that are not
// known at import are checked by every run. Also the arithmetic by which exporters compute shapes.
#include "test/onnx/Load.h"

using namespace burin::test;

// ---- names

TEST_CASE("A size without a name is a symbol of its own") {
  for (const char *name : {"", "?", "0", "-1", "unk__7", "None"}) {
    INFO("\"" << name << "\"");
    Graph graph = loadModel(graphOf({{"Relu", {"x"}, {"y"}}}, {floatInput("x", {"1", name, name})})).graph;
    CHECK(str(graph.inputs()[0]) == "x: f32[1, x_1, x_2]");
    CHECK(graph.run({ones({1, 3, 4})})[0].shape() == Shape{1, 3, 4});
  }
  Graph empty = loadModel(graphOf({{"Relu", {"x"}, {"y"}}}, {floatInput("x", {"2", "0"})})).graph;
  CHECK(empty.run({ones({2, 0})})[0].shape() == Shape{2, 0});
}

TEST_CASE("Sizes of one name that no op needs equal may differ, with a warning") {
  ModelText model = graphOf({{"Concat", {"a", "b"}, {"y"}, {attribute("axis", int64_t(0))}}},
                            {floatInput("a", {"n", "2"}), floatInput("b", {"n", "2"})});
  Loaded loaded = loadModel(model);
  CHECK(loaded.graph.run({ones({3, 2}), ones({1, 2})})[0].shape() == Shape{4, 2});
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(
      contains(loaded.warnings[0], "the name \"n\" stands for sizes that no op needs equal: n of \"a\", n_1 of \"b\""));
}

TEST_CASE("Sizes that an op needs equal are one symbol, whatever they are called") {
  ModelText model = graphOf({{"Add", {"a", "b"}, {"s"}}, {"MatMul", {"s", "c"}, {"y"}}},
                            {floatInput("a", {"n", "m"}), floatInput("b", {"?", "?"}), floatInput("c", {"?", "?"})});
  Loaded loaded = loadModel(model);
  CHECK(loaded.warnings.empty());
  CHECK(str(loaded.graph.inputs()[1]) == "b: f32[n, m]");
  CHECK(str(loaded.graph.inputs()[2]) == "c: f32[m, c_1]");
  CHECK(loaded.graph.run({ones({2, 3}), ones({2, 3}), ones({3, 4})})[0].shape() == Shape{2, 4});
  CHECK(contains(problemOf(loaded.graph, {ones({2, 3}), ones({2, 4}), ones({3, 4})}), "b"));
}

TEST_CASE("A size may be the sum of others that an op needs it to equal") {
  ModelText model =
      graphOf({{"Concat", {"past", "x"}, {"k"}, {attribute("axis", int64_t(1))}}, {"Add", {"k", "mask"}, {"y"}}},
              {floatInput("past", {"b", "?"}), floatInput("x", {"batch", "?"}), floatInput("mask", {"?", "?"})});
  Graph graph = loadModel(model).graph;
  CHECK(str(graph.inputs()[2]) == "mask: f32[b, past_1 + x_1]");
  CHECK(graph.run({ones({2, 3}), ones({2, 1}), ones({2, 4})})[0].shape() == Shape{2, 4});
  CHECK_FALSE(problemOf(graph, {ones({2, 3}), ones({2, 1}), ones({2, 5})}).empty());
}

TEST_CASE("A size is a multiple of another that an op needs it to fit") {
  auto larger = [](const char *from, const char *scales, const char *to) {
    return NodeText{"Resize", {from, "", scales}, {to}, {attribute("mode", "nearest")}};
  };
  ModelText model = graphOf({larger("a", "by4", "x"),
                             larger("b", "by2", "z"),
                             {"Concat", {"x", "z"}, {"y"}, {attribute("axis", int64_t(1))}}},
                            {floatInput("a", {"1", "2", "h", "w"}), floatInput("b", {"1", "3", "h2", "w2"})},
                            {floatTensor("by4", {4}, {1, 1, 4, 4}), floatTensor("by2", {4}, {1, 1, 2, 2})});
  Graph graph = loadModel(model).graph;
  CHECK(str(graph.inputs()[1]) == "b: f32[1, 3, h*2, w*2]");
  CHECK(graph.run({ones({1, 2, 3, 5}), ones({1, 3, 6, 10})})[0].shape() == Shape{1, 5, 12, 20});
  CHECK_FALSE(problemOf(graph, {ones({1, 2, 3, 5}), ones({1, 3, 7, 10})}).empty());
}

TEST_CASE("Sizes are fixed and bounded when the model is loaded") {
  ModelText model = graphOf({{"Relu", {"x"}, {"y"}}}, {floatInput("x", {"batch", "?"})});
  Graph fixed = loadModel(model, {{"batch", 1, 1}, {"x_1", 2, 5}}).graph;
  CHECK(str(fixed.inputs()[0]) == "x: f32[1, x_1{2..5}]");
  CHECK(fixed.run({ones({1, 5})})[0].shape() == Shape{1, 5});
  CHECK(contains(problemOf(fixed, {ones({1, 6})}), "x_1 must be in [2, 5], got 6"));
  CHECK(contains(problemOf(fixed, {ones({1, 1})}), "x_1 must be in [2, 5], got 1"));
  CHECK(contains(messageOf([&] { loadModel(model, {{"width", 1, 1}}); }),
                 "no input has a size called \"width\"; the sizes that are no numbers are batch, x_1"));
}

// ---- checked by every run

TEST_CASE("A squeezed size is 1 by arithmetic, or a run says that it is not") {
  // Convolutions of stride 2 that reduce 8 positions to one.
  std::vector<NodeText> nodes;
  for (int i = 0; i < 3; ++i)
    nodes.push_back({"MaxPool",
                     {i ? "x" + std::to_string(i) : Bytes("x")},
                     {"x" + std::to_string(i + 1)},
                     {attribute("kernel_shape", {3}), attribute("strides", {2}), attribute("pads", {1, 1})}});
  nodes.push_back({"Squeeze", {"x3", "axis"}, {"y"}, {}, "last"});
  Graph graph = loadModel(graphOf(nodes, {floatInput("x", {"n", "4", "width"})}, {ints("axis", {2})})).graph;
  CHECK(graph.run({ones({2, 4, 8})})[0].shape() == Shape{2, 4});
  CHECK(graph.run({ones({2, 4, 5})})[0].shape() == Shape{2, 4});
  CHECK(contains(problemOf(graph, {ones({2, 4, 17})}), "model.onnx:last"));
  Graph plain =
      loadModel(graphOf({{"Squeeze", {"x", "axis"}, {"y"}}}, {floatInput("x", {"n", "w"})}, {ints("axis", {0})})).graph;
  CHECK(str(plain.inputs()[0]) == "x: f32[1, w]");
}

TEST_CASE("A size that is 1 by arithmetic is repeated") {
  // ceil(n / 4096) is 1 for all sizes that are run here: one scale for n columns.
  std::vector<NodeText> nodes{{"Slice", {"x", "zero", "far", "axis", "step"}, {"first"}},
                              {"Mul", {"x", "first"}, {"y"}}};
  Graph graph =
      loadModel(graphOf(nodes, {floatInput("x", {"2", "n"})},
                        {ints("zero", {0}), ints("far", {INT64_MAX}), ints("axis", {1}), ints("step", {4096})}))
          .graph;
  CHECK(floats(graph.run({tensor({{2, 3}, {4, 5}}, f32)})[0]) == std::vector<float>{4, 6, 16, 20});
}

TEST_CASE("Operands that must agree are checked: Concat, Where, MatMul, Gemm, GatherElements") {
  auto sizes = [](const char *a, const char *b) { return std::vector<Bytes>{a, b}; };
  Bytes condition = valueInfo("c", kBool, {"?", "?"}), index = valueInfo("i", kInt64, {"?", "?"});
  Graph where = loadModel(graphOf({{"Where", {"c", "a", "b"}, {"y"}}},
                                  {condition, floatInput("a", sizes("?", "?")), floatInput("b", sizes("n", "m"))}))
                    .graph;
  CHECK(where.run({ones({2, 3}).to(boolean), ones({2, 3}), ones({2, 3})})[0].shape() == Shape{2, 3});
  Graph gemm =
      loadModel(graphOf({{"Gemm", {"a", "b", "d"}, {"y"}, {attribute("transB", int64_t(1))}}},
                        {floatInput("a", sizes("?", "?")), floatInput("b", sizes("?", "?")), floatInput("d", {"?"})}))
          .graph;
  CHECK(gemm.run({ones({2, 3}), ones({4, 3}), ones({4})})[0].shape() == Shape{2, 4});
  CHECK_FALSE(problemOf(gemm, {ones({2, 3}), ones({4, 2}), ones({4})}).empty());
  Graph product = loadModel(graphOf({{"MatMul", {"a", "b"}, {"y"}}},
                                    {floatInput("a", sizes("n", "depth")), floatInput("b", sizes("?", "m"))}))
                      .graph;
  CHECK(floats(product.run({ones({2, 3}), ones({3, 1})})[0]) == std::vector<float>{3, 3});
  CHECK_FALSE(problemOf(product, {ones({2, 3}), ones({4, 1})}).empty());
  Graph joined = loadModel(graphOf({{"Concat", {"a", "b"}, {"y"}, {attribute("axis", int64_t(1))}}},
                                   {floatInput("a", sizes("?", "?")), floatInput("b", sizes("n", "m"))}))
                     .graph;
  CHECK(joined.run({ones({2, 3}), ones({2, 1})})[0].shape() == Shape{2, 4});
  CHECK_FALSE(problemOf(joined, {ones({2, 3}), ones({1, 1})}).empty());
  Graph gather = loadModel(graphOf({{"GatherElements", {"a", "i"}, {"y"}, {attribute("axis", int64_t(1))}}},
                                   {floatInput("a", sizes("?", "?")), index}))
                     .graph;
  CHECK(gather.run({ones({2, 3}), zeros({2, 5}, i64)})[0].shape() == Shape{2, 5});
}

TEST_CASE("The states of recurrent layers have the batch of their input") {
  for (const char *op : {"GRU", "LSTM", "RNN"}) {
    int64_t gates = op[0] == 'G' ? 3 : op[0] == 'L' ? 4 : 1;
    std::vector<Bytes> inputs{"x", "w", "r", "", "", "h"};
    if (gates == 4)
      inputs.push_back("h");
    for (const char *batch : {"1", "?"}) {
      INFO(op << " with a state of batch " << batch);
      ModelText model = graphOf({{op, inputs, {"y"}, {attribute("hidden_size", int64_t(2))}}},
                                {floatInput("x", {"length", "batch", "3"}), floatInput("h", {"1", batch, "2"})},
                                {floatTensor("w", {1, 2 * gates, 3}, std::vector<float>(size_t(6 * gates), 0.1f)),
                                 floatTensor("r", {1, 2 * gates, 2}, std::vector<float>(size_t(4 * gates), 0.1f))});
      Graph graph = loadModel(model).graph;
      CHECK(str(graph.inputs()[0]) == (batch[0] == '1' ? "x: f32[length, 1, 3]" : "x: f32[length, batch, 3]"));
      CHECK(graph.run({ones({4, 1, 3}), zeros({1, 1, 2})})[0].shape() == Shape{4, 1, 1, 2});
    }
  }
}

TEST_CASE("Caches and tokens have one batch, and a reshape divides polynomials") {
  // [b, 4, past + length, 16] as [-1, past + length, 16].
  ModelText model =
      graphOf({{"Concat", {"past", "new"}, {"k"}, {attribute("axis", int64_t(2))}},
               {"Shape", {"k"}, {"s"}},
               {"Gather", {"s", "two"}, {"n"}},
               {"Concat", {"open", "n", "size"}, {"to"}, {attribute("axis", int64_t(0))}},
               {"Reshape", {"k", "to"}, {"y"}}},
              {floatInput("past", {"s23", "4", "s15", "16"}), floatInput("new", {"s31", "4", "s27", "16"})},
              {ints("two", {2}), ints("open", {-1}), ints("size", {16})});
  Graph graph = loadModel(model).graph;
  CHECK(str(graph.outputs()[0]) == "y: f32[s23*4, s15 + s27, 16]");
  CHECK(graph.run({ones({2, 4, 3, 16}), ones({2, 4, 1, 16})})[0].shape() == Shape{8, 4, 16});
  // [b, f - 6, 4, 128] as [b, f - 6, -1].
  ModelText flat = graphOf({{"Slice", {"x", "zero", "end", "one"}, {"c"}},
                            {"Shape", {"c"}, {"s"}, {attribute("end", int64_t(2))}},
                            {"Concat", {"s", "open"}, {"to"}, {attribute("axis", int64_t(0))}},
                            {"Reshape", {"c", "to"}, {"y"}}},
                           {floatInput("x", {"b", "f", "4", "128"})},
                           {ints("zero", {0}), ints("end", {-6}), ints("one", {1}), ints("open", {-1})});
  CHECK(loadModel(flat).graph.run({ones({2, 9, 4, 128})})[0].shape() == Shape{2, 3, 512});
}

// ---- arithmetic

TEST_CASE("Shapes are computed through floats") {
  // floor(float(width) * 0.5) columns: as PyTorch's interpolate with a scale.
  std::vector<NodeText> nodes{{"Shape", {"x"}, {"s"}},
                              {"Cast", {"s"}, {"f"}, {attribute("to", int64_t(1))}},
                              {"Mul", {"f", "scales"}, {"g"}},
                              {"Floor", {"g"}, {"h"}},
                              {"Cast", {"h"}, {"sizes"}, {attribute("to", int64_t(7))}},
                              {"Resize", {"x", "", "", "sizes"}, {"y"}, {attribute("mode", "nearest")}}};
  Graph graph =
      loadModel(graphOf(nodes, {floatInput("x", {"1", "1", "h", "w"})}, {floatTensor("scales", {4}, {1, 1, 2, 0.5})}))
          .graph;
  CHECK(str(graph.outputs()[0]) == "y: f32[1, 1, h*2, floordiv(w, 2)]");
  CHECK(graph.run({ones({1, 1, 3, 7})})[0].shape() == Shape{1, 1, 6, 3});
  // Scales that are ratios of sizes.
  std::vector<NodeText> ratio{
      {"Shape", {"like"}, {"t"}},   {"Cast", {"t"}, {"tf"}, {attribute("to", int64_t(1))}},
      {"Shape", {"x"}, {"s"}},      {"Cast", {"s"}, {"sf"}, {attribute("to", int64_t(1))}},
      {"Div", {"tf", "sf"}, {"r"}}, {"Resize", {"x", "", "r"}, {"y"}, {attribute("mode", "linear")}}};
  Graph like =
      loadModel(graphOf(ratio, {floatInput("x", {"1", "1", "h", "w"}), floatInput("like", {"1", "1", "a", "b"})}))
          .graph;
  CHECK(like.run({ones({1, 1, 3, 7}), ones({1, 1, 5, 4})})[0].shape() == Shape{1, 1, 5, 4});
}

TEST_CASE("A reshape by sizes that are computed in integers and floats") {
  // The patches of an image, as vision transformers write it: [1, h / 2, 2, w / 2, 2], the quotients in two ways.
  std::vector<NodeText> nodes{
      {"Shape", {"x"}, {"s"}},
      {"Slice", {"s", "one", "two"}, {"h"}},
      {"Slice", {"s", "two", "three"}, {"w"}},
      {"Div", {"h", "two"}, {"rows"}},
      {"Cast", {"w"}, {"wf"}, {attribute("to", int64_t(1))}},
      {"Mul", {"wf", "half"}, {"cf"}},
      {"Floor", {"cf"}, {"cw"}},
      {"Cast", {"cw"}, {"columns"}, {attribute("to", int64_t(7))}},
      {"Mul", {"rows", "columns"}, {"patches"}},
      {"Concat", {"one", "rows", "two", "columns", "two"}, {"apart"}, {attribute("axis", int64_t(0))}},
      {"Reshape", {"x", "apart"}, {"split"}},
      {"Transpose", {"split"}, {"turned"}, {attribute("perm", {0, 1, 3, 2, 4})}},
      {"Concat", {"one", "patches", "four"}, {"to"}, {attribute("axis", int64_t(0))}},
      {"Reshape", {"turned", "to"}, {"y"}}};
  Graph graph = loadModel(graphOf(nodes, {floatInput("x", {"1", "h", "w"})},
                                  {ints("one", {1}), ints("two", {2}), ints("three", {3}), ints("four", {4}),
                                   floatTensor("half", {1}, {0.5})}))
                    .graph;
  Tensor x = reshape(arange(8), {1, 2, 4}).to(f32);
  Tensor y = graph.run({x})[0];
  CHECK(y.shape() == Shape{1, 2, 4});
  CHECK(floats(y) == std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7});
  CHECK(graph.run({ones({1, 4, 6})})[0].shape() == Shape{1, 6, 4});
  CHECK_FALSE(problemOf(graph, {ones({1, 3, 4})}).empty());
}

TEST_CASE("Blocks of a dequantized tensor have scales of their own") {
  Graph graph = loadModel(graphOf({{"DequantizeLinear",
                                    {"x", "scales"},
                                    {"y"},
                                    {attribute("axis", int64_t(1)), attribute("block_size", int64_t(2))}}},
                                  {valueInfo("x", kInt32, {"n", "4"}), floatInput("scales", {"n", "2"})}))
                    .graph;
  CHECK(floats(graph.run({tensor({{1, 2, 3, 4}, {5, 6, 7, 8}}, i32), tensor({{0.5, 2}, {1, 4}}, f32)})[0]) ==
        std::vector<float>{0.5, 1, 6, 8, 5, 6, 28, 32});
}

TEST_CASE("A refused size is named, with the option that fixes it") {
  ModelText model = graphOf(
      {{"ConvTranspose", {"x", "w"}, {"y"}, {attribute("output_shape", {16, 10}), attribute("strides", {2, 2})}, "up"}},
      {floatInput("x", {"1", "1", "height", "?"})}, {floatTensor("w", {1, 1, 3, 3}, std::vector<float>(9, 1))});
  std::string message = messageOf([&] { loadModel(model); });
  INFO(message);
  CHECK(contains(message, "model.onnx:up: ConvTranspose: output_shape for an image of the symbolic size height"));
  CHECK(contains(message, "fix it for the artifact with --dim height=SIZE"));
  CHECK(contains(messageOf([&] { loadModel(model, {{"height", 8, 8}}); }), "--dim x_3=SIZE"));
  Graph graph = loadModel(model, {{"height", 8, 8}, {"x_3", 5, 5}}).graph;
  CHECK(graph.run({ones({1, 1, 8, 5})})[0].shape() == Shape{1, 1, 16, 10});
}

TEST_CASE("A resize by sizes that are quotients repeats the elements at the ends") {
  for (const char *mode : {"nearest", "linear", "cubic"}) {
    INFO(mode);
    std::vector<NodeText> nodes{{"Shape", {"like"}, {"t"}}, {"Resize", {"x", "", "", "t"}, {"y"}}};
    nodes[1].attributes = {attribute("mode", mode)};
    ModelText model = graphOf(nodes, {floatInput("x", {"1", "1", "h", "w"}), floatInput("like", {"1", "1", "a", "b"})});
    Tensor x = reshape(arange(12), {1, 1, 3, 4}).to(f32), like = ones({1, 1, 5, 9});
    Graph known = loadModel(model, {{"h", 3, 3}, {"w", 4, 4}, {"a", 5, 5}, {"b", 9, 9}}).graph;
    std::vector<float> want = floats(known.run({x, like})[0]), got = floats(loadModel(model).graph.run({x, like})[0]);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(std::abs(got[i] - want[i]) < 1e-4f);
  }
}

TEST_CASE("Range, ConstantOfShape, Tile, Expand and Pad take sizes") {
  std::vector<NodeText> shape{{"Shape", {"x"}, {"s"}}, {"Gather", {"s", "zero"}, {"n"}}};
  auto with = [&](std::vector<NodeText> more) {
    std::vector<NodeText> nodes = shape;
    nodes.insert(nodes.end(), more.begin(), more.end());
    return loadModel(graphOf(nodes, {floatInput("x", {"n", "m"})},
                             {scalar("zero", 0), ints("axis", {0}), ints("one", {1}), floatTensor("f0", {}, {0}),
                              floatTensor("half", {}, {0.5}), floatTensor("column", {1, 2}, {1, 2})}))
        .graph;
  };
  Graph range = with({{"Cast", {"n"}, {"f"}, {attribute("to", int64_t(1))}}, {"Range", {"f0", "f", "half"}, {"y"}}});
  CHECK(str(range.outputs()[0]) == "y: f32[n*2]");
  CHECK(floats(range.run({ones({2, 1})})[0]) == std::vector<float>{0, 0.5, 1, 1.5});
  Graph filled = with({{"ConstantOfShape", {"s"}, {"c"}, {tensorAttribute("value", floatTensor("", {1}, {3}))}},
                       {"Add", {"x", "c"}, {"y"}}});
  CHECK(floats(filled.run({ones({1, 2})})[0]) == std::vector<float>{4, 4});
  Graph tiled = with({{"Unsqueeze", {"n", "axis"}, {"v"}},
                      {"Concat", {"v", "one"}, {"r"}, {attribute("axis", int64_t(0))}},
                      {"Tile", {"column", "r"}, {"y"}}});
  CHECK(floats(tiled.run({ones({3, 1})})[0]) == std::vector<float>{1, 2, 1, 2, 1, 2});
  Graph expanded = with({{"Unsqueeze", {"n", "axis"}, {"v"}},
                         {"Concat", {"v", "one"}, {"r"}, {attribute("axis", int64_t(0))}},
                         {"Expand", {"column", "r"}, {"y"}}});
  CHECK(expanded.run({ones({3, 1})})[0].shape() == Shape{3, 2});
}

TEST_CASE("A border is as wide as sizes say") {
  // Padded to a multiple of 4 columns, as for windows.
  auto padded = [](const char *mode) {
    return loadModel(graphOf({{"Shape", {"x"}, {"s"}, {attribute("start", int64_t(1))}},
                              {"Mod", {"s", "four"}, {"m"}},
                              {"Sub", {"four", "m"}, {"d"}},
                              {"Mod", {"d", "four"}, {"more"}},
                              {"Concat", {"zeros", "more"}, {"pads"}, {attribute("axis", int64_t(0))}},
                              {"Pad", {"x", "pads"}, {"y"}, {attribute("mode", mode)}}},
                             {floatInput("x", {"1", "w"})}, {ints("four", {4}), ints("zeros", {0, 0, 0})}))
        .graph;
  };
  Tensor x = tensor({{1, 2, 3, 4, 5, 6}}, f32);
  CHECK(floats(padded("constant").run({x})[0]) == std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0});
  CHECK(floats(padded("edge").run({x})[0]) == std::vector<float>{1, 2, 3, 4, 5, 6, 6, 6});
  CHECK(floats(padded("reflect").run({x})[0]) == std::vector<float>{1, 2, 3, 4, 5, 6, 5, 4});
  CHECK(floats(padded("wrap").run({x})[0]) == std::vector<float>{1, 2, 3, 4, 5, 6, 1, 2});
  CHECK(padded("constant").run({ones({1, 8})})[0].shape() == Shape{1, 8});
}

TEST_CASE("Slices with steps over two symbolic axes") {
  for (int64_t row : {0, 1}) {
    std::vector<NodeText> nodes{{"Slice", {"x", "row", "far", "two", "steps"}, {"r"}},
                                {"Slice", {"r", "one", "far", "three", "steps"}, {"y"}}};
    Graph graph = loadModel(graphOf(nodes, {floatInput("x", {"n", "3", "h", "w"})},
                                    {ints("row", {row}), ints("one", {1}), ints("far", {INT64_MAX}), ints("two", {2}),
                                     ints("three", {3}), ints("steps", {2})}))
                      .graph;
    CHECK(graph.run({ones({1, 3, 6, 7})})[0].shape() == Shape{1, 3, 3, 3});
    CHECK(graph.run({ones({1, 3, 7, 2})})[0].shape() == Shape{1, 3, row ? 3 : 4, 1});
  }
}

TEST_CASE("Relative positions of a symbolic length, and a mask of them") {
  // x where |i - j| < 2 and j <= i, as decoders compute masks; both operands are the same range.
  std::vector<NodeText> nodes{{"Shape", {"x"}, {"s"}},
                              {"Gather", {"s", "zero"}, {"n"}},
                              {"Range", {"zero", "n", "one"}, {"i"}},
                              {"Range", {"zero", "n", "one"}, {"j"}},
                              {"Unsqueeze", {"i", "last"}, {"column"}},
                              {"Unsqueeze", {"j", "first"}, {"row"}},
                              {"Sub", {"column", "row"}, {"apart"}},
                              {"Abs", {"apart"}, {"distance"}},
                              {"Less", {"distance", "two"}, {"isNear"}},
                              {"GreaterOrEqual", {"apart", "zero"}, {"isPast"}},
                              {"And", {"isNear", "isPast"}, {"mask"}},
                              {"Where", {"mask", "x", "none"}, {"y"}}};
  Graph graph = loadModel(graphOf(nodes, {floatInput("x", {"n", "n"})},
                                  {scalar("zero", 0), scalar("one", 1), scalar("two", 2), ints("last", {1}),
                                   ints("first", {0}), floatTensor("none", {}, {-9})}))
                    .graph;
  CHECK(floats(graph.run({ones({1, 1})})[0]) == std::vector<float>{1});
  CHECK(floats(graph.run({ones({3, 3})})[0]) == std::vector<float>{1, -9, -9, 1, 1, -9, -9, 1, 1});
}

// ---- unusual models, and decisions at import

TEST_CASE("A declared output of another shape is a warning") {
  ModelText model = graphOf({{"Relu", {"x"}, {"y"}}}, {floatInput("x", {"1", "n", "4"})});
  model.outputs = {valueInfo("y", kFloat, {"1", "seqlen"})};
  Loaded loaded = loadModel(model);
  CHECK(loaded.graph.run({ones({1, 2, 4})})[0].shape() == Shape{1, 2, 4});
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(contains(loaded.warnings[0],
                 "declares the output \"y\" with the shape [1, seqlen], but it is computed as [1, n, 4]"));
}

namespace {

/// PyTorch's squeeze(1) of x, then `after`, from "s" to "y": the dimension is removed if its size is 1.
ModelText squeezeIfOne(std::vector<Bytes> sizes, NodeText after) {
  auto branch = [](NodeText node, const Bytes &output) {
    return ModelText{.nodes = {std::move(node)}, .inputs = {}, .outputs = {valueInfo(output, kFloat, {})}}.graph();
  };
  return graphOf({{"Shape", {"x"}, {"shape"}},
                  {"Gather", {"shape", "one"}, {"size"}},
                  {"Equal", {"size", "one"}, {"c"}},
                  {"If",
                   {"c"},
                   {"s"},
                   {graphAttribute("then_branch", branch({"Squeeze", {"x", "axis"}, {"a"}}, "a")),
                    graphAttribute("else_branch", branch({"Identity", {"x"}, {"b"}}, "b"))}},
                  std::move(after)},
                 {floatInput("x", std::move(sizes))}, {scalar("one", 1), ints("axis", {1})});
}

} // namespace

TEST_CASE("A Squeeze without axes keeps symbolic sizes, with a warning") {
  Loaded loaded = loadModel(graphOf({{"Squeeze", {"x"}, {"y"}}}, {floatInput("x", {"n", "1"})}));
  CHECK(loaded.graph.run({ones({3, 1})})[0].shape() == Shape{3});
  REQUIRE(loaded.warnings.size() == 1);
  CHECK(contains(loaded.warnings[0], "keeps n, which may be"));
  Loaded fixed = loadModel(graphOf({{"Squeeze", {"x"}, {"y"}}}, {floatInput("x", {"n", "1"})}), {{"n", 1, 1}});
  CHECK(fixed.graph.run({ones({1, 1})})[0].shape() == Shape{});
  CHECK(fixed.warnings.empty());
}

TEST_CASE("An If over a rank or a size takes the branch that can be decided") {
  NodeText relu{"Relu", {"s"}, {"y"}};
  CHECK(loadModel(squeezeIfOne({"n", "1", "4"}, relu)).graph.run({ones({2, 1, 4})})[0].shape() == Shape{2, 4});
  CHECK(loadModel(squeezeIfOne({"n", "3", "4"}, relu)).graph.run({ones({2, 3, 4})})[0].shape() == Shape{2, 3, 4});
}

TEST_CASE("An If over a size whose branches differ in rank takes the one that the model fits") {
  // Only one of the two ranks has an axis 2, and only one can be transposed by two axes.
  NodeText two{"Transpose", {"s"}, {"y"}, {attribute("perm", {1, 0})}};
  Loaded squeezed = loadModel(squeezeIfOne({"n", "m", "4"}, two));
  CHECK(squeezed.graph.run({ones({2, 1, 4})})[0].shape() == Shape{4, 2});
  CHECK(!problemOf(squeezed.graph, {ones({2, 3, 4})}).empty());
  REQUIRE(squeezed.warnings.size() == 1);
  CHECK(contains(squeezed.warnings[0], "for whose sizes the condition is false are refused"));

  NodeText three{"Transpose", {"s"}, {"y"}, {attribute("perm", {2, 1, 0})}};
  Loaded kept = loadModel(squeezeIfOne({"n", "m", "4"}, three));
  CHECK(kept.graph.run({ones({2, 3, 4})})[0].shape() == Shape{4, 3, 2});
  CHECK(!problemOf(kept.graph, {ones({2, 1, 4})}).empty());
  REQUIRE(kept.warnings.size() == 1);
  CHECK(contains(kept.warnings[0], "for whose sizes the condition is true are refused"));
}

TEST_CASE("Where chooses between sizes by a condition that is known when the graph runs") {
  // The first Where(n > 4, 2, n) rows of x.
  Graph rows =
      loadModel(graphOf({{"Shape", {"x"}, {"shape"}},
                         {"Gather", {"shape", "zero"}, {"n"}},
                         {"Greater", {"n", "four"}, {"c"}},
                         {"Where", {"c", "two", "n"}, {"end"}},
                         {"Slice", {"x", "zero", "end"}, {"y"}}},
                        {floatInput("x", {"n", "3"})}, {ints("zero", {0}), ints("four", {4}), ints("two", {2})}))
          .graph;
  CHECK(rows.run({ones({3, 3})})[0].shape() == Shape{3, 3});
  CHECK(rows.run({ones({4, 3})})[0].shape() == Shape{4, 3});
  CHECK(rows.run({ones({5, 3})})[0].shape() == Shape{2, 3});
}

TEST_CASE("Where replaces what is -1 in a shape that may be negative as far as is known") {
  // As exporters write expand: -1 means 1.
  Graph graph = loadModel(graphOf({{"Shape", {"x"}, {"xs"}},
                                   {"Shape", {"z"}, {"zs"}},
                                   {"Sub", {"xs", "zs"}, {"shape"}},
                                   {"Equal", {"shape", "open"}, {"c"}},
                                   {"Where", {"c", "ones", "shape"}, {"sizes"}},
                                   {"Expand", {"one", "sizes"}, {"y"}}},
                                  {floatInput("x", {"n", "m"}), floatInput("z", {"k", "l"}), floatInput("one", {"1"})},
                                  {ints("open", {-1, -1}), ints("ones", {1, 1})}))
                    .graph;
  CHECK(graph.run({ones({7, 5}), ones({3, 6}), ones({1})})[0].shape() == Shape{4, 1});
  CHECK(graph.run({ones({2, 5}), ones({3, 1}), ones({1})})[0].shape() == Shape{1, 4});
}

TEST_CASE("Comparisons of sizes are computed when the graph runs") {
  auto branch = [](const Bytes &op, const Bytes &output) {
    return ModelText{.nodes = {{op, {"x"}, {output}}}, .inputs = {}, .outputs = {valueInfo(output, kFloat, {})}}
        .graph();
  };
  // {op, results for n = 4, 5, 6 compared with 5}.
  struct Case {
    const char *op;
    bool below, at, above;
  };
  for (const Case &c :
       {Case{"Equal", false, true, false}, Case{"Less", true, false, false}, Case{"LessOrEqual", true, true, false},
        Case{"Greater", false, false, true}, Case{"GreaterOrEqual", false, true, true}})
    for (const char *logic : {"", "And", "Or", "Xor", "Not"}) {
      INFO(c.op << " " << logic);
      std::vector<NodeText> nodes{{"Shape", {"x"}, {"shape"}},
                                  {"Gather", {"shape", "zero"}, {"n"}},
                                  {c.op, {"n", "five"}, {"first"}},
                                  {"Greater", {"n", "four"}, {"other"}}}; // false, true, true
      Bytes condition = *logic ? "c" : "first";
      if (Bytes(logic) == "Not")
        nodes.push_back({"Not", {"first"}, {"c"}});
      else if (*logic)
        nodes.push_back({logic, {"first", "other"}, {"c"}});
      nodes.push_back({"If",
                       {condition},
                       {"y"},
                       {graphAttribute("then_branch", branch("Abs", "a")),
                        graphAttribute("else_branch", branch("Identity", "b"))}});
      Graph graph = loadModel(graphOf(std::move(nodes), {floatInput("x", {"size"})},
                                      {scalar("zero", 0), scalar("four", 4), scalar("five", 5)}))
                        .graph;
      const bool expected[] = {c.below, c.at, c.above}, others[] = {false, true, true};
      for (int64_t i = 0; i < 3; ++i) {
        bool a = expected[i], b = others[i];
        bool is = Bytes(logic) == "And"   ? a && b
                  : Bytes(logic) == "Or"  ? a || b
                  : Bytes(logic) == "Xor" ? a != b
                  : Bytes(logic) == "Not" ? !a
                                          : a;
        Tensor y = graph.run({full({4 + i}, -1.0)})[0];
        CHECK(y.to_vector<float>()[0] == (is ? 1.0f : -1.0f));
      }
    }
}
