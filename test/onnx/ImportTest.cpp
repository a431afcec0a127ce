// Imports ONNX models as users do: results, names, symbolic sizes, and messages about models that are not accepted.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

namespace {

Graph loadModel(const ModelText &model, const StateDict &fixed = {}) {
  Folder folder;
  return load_onnx(model.write(folder / "model.onnx"), fixed);
}
std::string messageFor(const ModelText &model) {
  return messageOf([&] { loadModel(model); });
}

ModelText oneNode(NodeText node, std::vector<Bytes> inputs, std::vector<Bytes> initializers = {}) {
  return {.nodes = {std::move(node)},
          .inputs = std::move(inputs),
          .outputs = {valueInfo("y", kFloat, {})},
          .initializers = std::move(initializers)};
}

} // namespace

TEST_CASE("An MLP from ONNX computes, for any batch, under the model's names") {
  ModelText mlp{.nodes = {{"Gemm", {"x", "w", "b"}, {"h"}, {attribute("transB", int64_t(1))}, "fc"},
                          {"Relu", {"h"}, {"r"}},
                          {"Softmax", {"r"}, {"probs"}}},
                .inputs = {valueInfo("x", kFloat, {"batch", "2"})},
                .outputs = {valueInfo("probs", kFloat, {"batch", "3"})},
                .initializers = {floatTensor("w", {3, 2}, {1, 2, 3, 4, 5, 6}), floatTensor("b", {3}, {0, -100, 1})}};
  Graph graph = loadModel(mlp);
  CHECK(str(graph.inputs()[0]) == "x: f32[batch, 2]");
  CHECK(str(graph.outputs()[0]) == "probs: f32[batch, 3]");
  Tensor x = tensor({{1, 1}, {2, 0.5}});
  Tensor w = tensor({{1, 2}, {3, 4}, {5, 6}}, f32), b = tensor({0, -100, 1}, f32);
  CHECK(largestDifference(graph.run({x})[0], softmax(relu(matmul(x, w.t()) + b))) < 1e-6);
  CHECK(contains(graph.str(), "fc.weight") == false);
  CHECK(contains(graph.str(), "\"w\"")); // weights keep their names
}

TEST_CASE("Convolutions, pools and batch normalisation of a model agree with the same calls") {
  std::vector<float> weight(4 * 3 * 3 * 3), ones(4, 1), zeros(4, 0), shift{1, 2, 3, 4};
  for (size_t i = 0; i < weight.size(); ++i)
    weight[i] = float(i % 7) - 3;
  ModelText net{.nodes = {{"Conv", {"x", "w"}, {"c"}, {attribute("pads", {1, 1, 1, 1}), attribute("strides", {2, 2})}},
                          {"BatchNormalization", {"c", "ones", "shift", "zeros", "ones"}, {"n"}},
                          {"MaxPool", {"n"}, {"p"}, {attribute("kernel_shape", {2, 2}), attribute("strides", {2, 2})}},
                          {"GlobalAveragePool", {"p"}, {"g"}},
                          {"Flatten", {"g"}, {"y"}}},
                .inputs = {valueInfo("x", kFloat, {"n", "3", "8", "8"})},
                .outputs = {valueInfo("y", kFloat, {"n", "4"})},
                .initializers = {floatTensor("w", {4, 3, 3, 3}, weight), floatTensor("ones", {4}, ones),
                                 floatTensor("zeros", {4}, zeros), floatTensor("shift", {4}, shift)}};
  Tensor x = randn({2, 3, 8, 8});
  Tensor c = conv(x, from_vector(weight, Shape{4, 3, 3, 3}), std::nullopt, {2}, {1});
  Tensor n = batch_norm(c, full({4}, 0, f32), full({4}, 1, f32), full({4}, 1, f32), from_vector(shift));
  Tensor expected = max_pool(n, {2}).mean({2, 3});
  CHECK(largestDifference(loadModel(net).run({x})[0], expected) < 1e-4);
}

TEST_CASE("Shapes computed from Shape become symbolic sizes, and leave nothing in the graph") {
  // y = x reshaped to [batch, seq, heads, -1], with the sizes taken from Shape, as exporters write it.
  ModelText model{.nodes = {{"Shape", {"x"}, {"s"}},
                            {"Gather", {"s", "zero"}, {"b"}},
                            {"Gather", {"s", "one"}, {"t"}},
                            {"Unsqueeze", {"b", "axes"}, {"b1"}},
                            {"Unsqueeze", {"t", "axes"}, {"t1"}},
                            {"Concat", {"b1", "t1", "rest"}, {"to"}, {attribute("axis", int64_t(0))}},
                            {"Reshape", {"x", "to"}, {"y"}}},
                  .inputs = {valueInfo("x", kFloat, {"batch", "seq len", "8"})},
                  .outputs = {valueInfo("y", kFloat, {})},
                  .initializers = {intTensor("zero", {}, {0}), intTensor("one", {}, {1}), intTensor("axes", {1}, {0}),
                                   intTensor("rest", {2}, {2, -1})}};
  Graph graph = loadModel(model);
  CHECK(str(graph.outputs()[0]) == "y: f32[batch, seq_len, 2, 4]");
  CHECK(!contains(graph.str(), "concat"));
  CHECK(graph.run({ones({3, 5, 8})})[0].shape() == Shape{3, 5, 2, 4});
}

TEST_CASE("Sizes are rounded down where only size 0 would be rounded up, which is refused") {
  // arange(ceil(h / 8)), as exporters write it: (h - 1) / 8 + 1.
  ModelText model{.nodes = {{"Size", {"x"}, {"h"}},
                            {"Sub", {"h", "one"}, {"less"}},
                            {"Div", {"less", "eight"}, {"whole"}},
                            {"Add", {"whole", "one"}, {"end"}},
                            {"Range", {"zero", "end", "one"}, {"y"}, {}, "range"}},
                  .inputs = {valueInfo("x", kFloat, {"h"})},
                  .outputs = {valueInfo("y", kInt64, {""})},
                  .initializers = {intTensor("zero", {}, {0}), intTensor("one", {}, {1}), intTensor("eight", {}, {8})}};
  Graph graph = loadModel(model);
  CHECK(str(graph.outputs()[0].spec.shape) == "[floordiv(h + 7, 8)]");
  CHECK(ints(graph.run({ones({17})})[0]) == std::vector<int64_t>{0, 1, 2});
  CHECK(ints(graph.run({ones({1})})[0]) == std::vector<int64_t>{0});
  CHECK(contains(messageOf([&] { graph.run({ones({0})})[0].to_vector<int64_t>(); }), "0 and -1"));
}

TEST_CASE("Sizes that are an output are computed when the graph runs") {
  ModelText model{.nodes = {{"Shape", {"x"}, {"s"}}, {"Mul", {"s", "two"}, {"y"}}},
                  .inputs = {valueInfo("x", kFloat, {"n", "4"})},
                  .outputs = {valueInfo("y", kInt64, {"2"})},
                  .initializers = {intTensor("two", {1}, {2})}};
  Graph graph = loadModel(model);
  CHECK(ints(graph.run({ones({7, 4})})[0]) == std::vector<int64_t>{14, 8});
  CHECK(ints(graph.run({ones({0, 4})})[0]) == std::vector<int64_t>{0, 8});
}

TEST_CASE("Sizes that must be equal and are not known to be are checked by every run") {
  // Adds the first positions of a table of 4, as many as the text has tokens.
  ModelText positions{.nodes = {{"Shape", {"x"}, {"s"}, {attribute("start", int64_t(1))}},
                                {"Slice", {"table", "zero", "s", "one"}, {"p"}},
                                {"Add", {"x", "p"}, {"y"}, {}, "positions"}},
                      .inputs = {valueInfo("x", kFloat, {"batch", "length"})},
                      .outputs = {valueInfo("y", kFloat, {"batch", "length"})},
                      .initializers = {floatTensor("table", {1, 4}, {10, 20, 30, 40}), intTensor("zero", {1}, {0}),
                                       intTensor("one", {1}, {1})}};
  Graph graph = loadModel(positions);
  CHECK(str(graph.outputs()[0]) == "y: f32[batch, length]");
  CHECK(floats(graph.run({ones({2, 3})})[0]) == std::vector<float>{11, 21, 31, 11, 21, 31});
  std::string message = messageOf([&] { graph.run({ones({2, 5})})[0].to_vector<float>(); });
  INFO(message);
  CHECK(contains(message, "model.onnx:positions: min(4, length) must be equal to length, but they are 4 and 5"));

  // The pooled and upsampled value is joined with its input, which is valid for even sizes.
  ModelText skip{.nodes = {{"MaxPool", {"x"}, {"p"}, {attribute("kernel_shape", {2}), attribute("strides", {2})}},
                           {"Unsqueeze", {"p", "three"}, {"u"}},
                           {"Concat", {"u", "u"}, {"d"}, {attribute("axis", int64_t(3))}},
                           {"Reshape", {"d", "flat"}, {"r"}},
                           {"Concat", {"x", "r"}, {"y"}, {attribute("axis", int64_t(1))}}},
                 .inputs = {valueInfo("x", kFloat, {"1", "1", "width"})},
                 .outputs = {valueInfo("y", kFloat, {"1", "2", "width"})},
                 .initializers = {intTensor("three", {1}, {3}), intTensor("flat", {3}, {0, 0, -1})}};
  Graph net = loadModel(skip);
  CHECK(floats(net.run({tensor({{{1, 2, 3, 4}}}, f32)})[0]) == std::vector<float>{1, 2, 3, 4, 2, 2, 4, 4});
  CHECK(contains(messageOf([&] { net.run({ones({1, 1, 5})})[0].to_vector<float>(); }), "4 and 5"));
}

TEST_CASE("A reshape that fits for some sizes only is checked by every run") {
  Graph graph = loadModel(
      oneNode({"Reshape", {"x", "to"}, {"y"}}, {valueInfo("x", kFloat, {"n"})}, {intTensor("to", {2}, {-1, 2})}));
  CHECK(graph.run({ones({6})})[0].shape() == Shape{3, 2});
  CHECK(contains(messageOf([&] { graph.run({ones({5})})[0].to_vector<float>(); }), "4 and 5"));
}

TEST_CASE("Sizes in the signature may be sums of others, and slices may count from the end by a size") {
  // The last `length` of past + length positions.
  ModelText model{.nodes = {{"Shape", {"x"}, {"s"}},
                            {"Neg", {"s"}, {"start"}},
                            {"Slice", {"mask", "start", "far", "zero"}, {"m"}},
                            {"Add", {"x", "m"}, {"y"}}},
                  .inputs = {valueInfo("x", kFloat, {"length"}), valueInfo("past", kFloat, {"past"}),
                             valueInfo("mask", kFloat, {"past + length"})},
                  .outputs = {valueInfo("y", kFloat, {"length"}), valueInfo("past", kFloat, {"past"})},
                  .initializers = {intTensor("far", {1}, {INT64_MAX}), intTensor("zero", {1}, {0})}};
  Graph graph = loadModel(model);
  CHECK(str(graph.inputs()[2]) == "mask: f32[length + past]");
  CHECK(str(graph.outputs()[0]) == "y: f32[length]");
  CHECK(floats(graph.run({zeros({2}), ones({1}), tensor({1.0, 2.0, 3.0})})[0]) == std::vector<float>{2, 3});
}

TEST_CASE("An input that decides on a size is given when the model is loaded") {
  ModelText model = oneNode({"Reshape", {"x", "shape"}, {"y"}, {}, "flat"},
                            {valueInfo("x", kFloat, {"2", "3"}), valueInfo("shape", kInt64, {"1"})});
  ModelText sum = oneNode({"ReduceSum", {"x", "axes"}, {"y"}, {}, "sum"},
                          {valueInfo("x", kFloat, {"2", "3"}), valueInfo("axes", kInt64, {"1"})});
  CHECK(contains(messageFor(sum), "model.onnx:sum: ReduceSum: its input \"axes\" must be known"));
  CHECK(contains(messageFor(sum), "--fix axes=@FILE"));
  Graph graph = loadModel(model, {{"shape", tensor({6})}});
  CHECK(graph.inputs().size() == 1);
  CHECK(graph.run({ones({2, 3})})[0].shape() == Shape{6});
  CHECK(contains(messageOf([&] { loadModel(model, {{"shap", tensor({6})}}); }), "there is no input \"shap\" to fix"));
}

TEST_CASE("Functions of the model are expanded, with their attributes and defaults") {
  Bytes body = NodeText{"LeakyRelu", {"a"}, {"b"}, {referenceAttribute("alpha", "slope", 1)}};
  Bytes function = Message()
                       .add(1, Bytes("Leak"))
                       .add(4, Bytes("a"))
                       .add(5, Bytes("b"))
                       .add(7, body)
                       .add(9, Message().add(1, Bytes()).add(2, int64_t(21)))
                       .add(10, Bytes("local"))
                       .add(11, attribute("slope", 0.5));
  ModelText model{.nodes = {{"Leak", {"x"}, {"h"}, {}, "", "local"},
                            {"Leak", {"h"}, {"y"}, {attribute("slope", 0.25)}, "", "local"}},
                  .inputs = {valueInfo("x", kFloat, {"2"})},
                  .outputs = {valueInfo("y", kFloat, {"2"})},
                  .functions = {function}};
  CHECK(floats(loadModel(model).run({tensor({-8, 4}, f32)})[0]) == std::vector<float>{-1, 4});
}

TEST_CASE("Det and Inverse take matrices of any size and symbolic batches") {
  Graph det = loadModel({.nodes = {{"Det", {"x"}, {"y"}}},
                         .inputs = {valueInfo("x", kFloat, {"b", "2", "2"})},
                         .outputs = {valueInfo("y", kFloat, {"b"})}});
  Tensor pair = tensor({{{1, 2}, {3, 4}}, {{1, 2}, {2, 4}}}, f32);
  CHECK(largestDifference(det.run({pair})[0], tensor({-2, 0}, f32)) < 1e-6);
  Graph inverse = loadModel({.nodes = {{"Inverse", {"x"}, {"y"}, {}, "", "com.microsoft"}},
                             .inputs = {valueInfo("x", kFloat, {"20", "20"})},
                             .outputs = {valueInfo("y", kFloat, {"20", "20"})}});
  Tensor x = eye(20).flip(0) * arange(1, 21).to(f32); // the largest pivots are not on the diagonal
  CHECK(largestDifference(matmul(inverse.run({x})[0], x), eye(20)) < 1e-5);
}

TEST_CASE("All unsupported ops are named at once") {
  ModelText model{.nodes = {{"ImageDecoder", {"x"}, {"a"}},
                            {"ImageDecoder", {"x"}, {"b"}},
                            {"Wonder", {"x"}, {"y"}, {}, "", "local"}},
                  .inputs = {valueInfo("x", kFloat, {"2"})},
                  .outputs = {valueInfo("y", kFloat, {"2"})}};
  std::string message = messageFor(model);
  CHECK(contains(message, "ImageDecoder (ai.onnx 21) in 2 nodes"));
  CHECK(contains(message, "Wonder (local 1)"));
}

TEST_CASE("Errors name the node") {
  Bytes x = valueInfo("x", kFloat, {"2", "3"});
  CHECK(contains(messageFor(oneNode({"MatMul", {"x", "x"}, {"y"}, {}, "attn/scores"}, {x})),
                 "model.onnx:attn/scores: matmul: lhs f32[2, 3] and rhs f32[2, 3] do not multiply"));
  CHECK(contains(messageFor(oneNode({"Add", {"x", "z"}, {"y"}}, {x})),
                 "model.onnx:Add->y: Add: its input \"z\" is computed by no node"));
  CHECK(contains(messageFor(oneNode({"Relu", {}, {"y"}}, {x})), "Relu: it needs the input 0"));
  CHECK(contains(messageFor(oneNode({"Softmax", {"x"}, {"y"}, {attribute("axis", int64_t(5))}}, {x})),
                 "the axis 5 is out of range"));
  CHECK(contains(messageFor(oneNode({"Relu", {"x"}, {"z"}}, {x})), "the output \"y\" is computed by no node"));
  CHECK(contains(messageFor(oneNode({"Relu", {"x"}, {"y"}}, {valueInfo("x", OnnxType(23), {"2"})})), "FLOAT4E2M1"));
}

TEST_CASE("What a model says about its values is held against what they are") {
  auto message = [](const std::vector<Bytes> &values, OnnxType type, const std::vector<Bytes> &sizes) {
    std::string warning;
    Folder folder;
    ModelText model{.nodes = {{"Relu", {"x"}, {"r"}, {}, "act"}, {"Transpose", {"r"}, {"y"}, {}, "turn"}},
                    .inputs = {valueInfo("x", kFloat, {"batch", "3"})},
                    .outputs = {valueInfo("y", type, sizes)},
                    .values = values};
    OnnxOptions options{.fixed = {}, .sizes = {}, .warn = [&](const std::string &text) { warning = text; }};
    std::string error = messageOf([&] { load_onnx(model.write(folder / "model.onnx"), options); });
    return error + warning;
  };
  CHECK(message({}, kFloat, {"3", "batch"}).empty());
  CHECK(message({}, kFloat, {"3", "other"}).empty()); // a name cannot contradict a number
  CHECK(message({}, kFloat, {"three", ""}).empty());
  CHECK(message({}, kFloat, {"3", "7"}).empty()); // possible for some batch
  CHECK(message({}, kFloat, {}).empty());
  CHECK(
      contains(message({}, kFloat, {"4", "batch"}),
               "model.onnx:turn: the model declares the output \"y\" with the shape [4, batch], but it is computed as "
               "[3, batch]"));
  CHECK(contains(message({}, kFloat, {"3"}), "with the shape [3], but it is computed as [3, batch]"));
  CHECK(contains(message({}, kInt64, {"3", "batch"}), "declares \"y\" as INT64, but it is computed as f32"));
  // Not an input any more, as tools may leave behind.
  CHECK(message({valueInfo("r", kFloat, {"9", "9"})}, kFloat, {}).empty());
  CHECK(contains(message({valueInfo("r", kInt64, {})}, kFloat, {}),
                 "model.onnx:act: the model declares \"r\" as INT64, but it is computed as f32"));
}

TEST_CASE("A name stands for one value") {
  Bytes x = valueInfo("x", kFloat, {"2"}), y = valueInfo("y", kFloat, {"2"});
  auto message = [](ModelText model) { return messageFor(model); };
  NodeText relu{"Relu", {"x"}, {"y"}, {}, "act"};
  CHECK(contains(message({.nodes = {relu, relu}, .inputs = {x}, .outputs = {y}}),
                 "model.onnx:act: there are two values of the name \"y\""));
  CHECK(contains(message({.nodes = {{"Relu", {"x"}, {"x"}}}, .inputs = {x}, .outputs = {x}}), "of the name \"x\""));
  CHECK(contains(message({.nodes = {relu}, .inputs = {x, x}, .outputs = {y}}), "two of its inputs have one name"));
  CHECK(contains(message({.nodes = {relu}, .inputs = {x}, .outputs = {y, y}}), "two of its outputs have one name"));
  Bytes w = floatTensor("w", {2}, {1, 2});
  CHECK(contains(message({.nodes = {relu}, .inputs = {x}, .outputs = {y}, .initializers = {w, w}}), "\"w\""));
}

TEST_CASE("Bytes that are no model are refused with a reason") {
  Folder folder;
  ModelText model = oneNode({"Relu", {"x"}, {"y"}}, {valueInfo("x", kFloat, {"2"})});
  std::string whole = model.model(), path = folder / "cut.onnx";
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    INFO("the first " << size << " of " << whole.size() << " bytes");
    CHECK(contains(messageOf([&] { load_onnx(path); }), "cut.onnx"));
  }
  model.initializers = {tensorHead("w", kFloat, {1 << 30, 1 << 30, 1 << 30})};
  CHECK(contains(messageFor(model), "\"w\" has an impossible shape"));
  model.initializers = {floatTensor("w", {-1}, {})};
  CHECK(contains(messageFor(model), "\"w\" has an impossible shape"));
  model.initializers = {floatTensor("w", {3}, {1, 2})};
  CHECK(contains(messageFor(model), "\"w\" f32[3] needs 12 bytes, but has 8"));
}

TEST_CASE("External data is read from the model's folder, and from nowhere else") {
  Folder folder;
  namespace fs = std::filesystem;
  std::vector<float> numbers{1, 2, 3, 4};
  std::string bytes(reinterpret_cast<const char *>(numbers.data()), 16);
  auto put = [&](const std::string &name) { std::ofstream(folder / name, std::ios::binary) << bytes; };
  fs::create_directory(folder / "model");
  fs::create_directory(folder / "model/sub");
  put("outside.bin"), put("model/w.bin"), put("model/sub/w.bin");
  fs::create_symlink("w.bin", folder / "model/link.bin");
  fs::create_symlink("..", folder / "model/up");
  put("model/first.bin"), fs::create_hard_link(folder / "model/first.bin", folder / "model/second.bin");
  auto load = [&](const std::string &location, const std::string &offset, const std::string &length) {
    auto entry = [](const Bytes &key, const Bytes &value) { return Bytes(Message().add(1, key).add(2, value)); };
    Bytes weight = tensorHead("w", kFloat, {2})
                       .add(14, int64_t(1))
                       .add(13, entry("location", location))
                       .add(13, entry("offset", offset))
                       .add(13, entry("length", length));
    ModelText model = oneNode({"Add", {"x", "w"}, {"y"}}, {valueInfo("x", kFloat, {"2"})}, {weight});
    return load_onnx(model.write(folder / "model/model.onnx"));
  };
  CHECK(floats(load("w.bin", "8", "8").run({zeros({2})})[0]) == std::vector<float>{3, 4});
  CHECK(floats(load("./sub//w.bin", "0", "8").run({zeros({2})})[0]) == std::vector<float>{1, 2});
  auto refused = [&](const std::string &location, const std::string &offset, const std::string &length,
                     const std::string &reason) {
    std::string message = messageOf([&] { load(location, offset, length); });
    INFO(message);
    CHECK(contains(message, reason));
  };
  refused("../outside.bin", "0", "8", "leaves the model's folder");
  refused("sub/../w.bin", "0", "8", "leaves the model's folder");
  refused(folder / "model/w.bin", "0", "8", "must be a relative path");
  refused("", "0", "8", "must be a relative path");
  refused("link.bin", "0", "8", "symbolic link");
  refused("up/outside.bin", "0", "8", "cannot be read");
  refused("second.bin", "0", "8", "hard link");
  refused("sub", "0", "8", "not a regular file");
  refused("missing.bin", "0", "8", "No such file");
  refused("w.bin", "9", "8", "ends beyond its file");
  refused("w.bin", "18446744073709551615", "8", "ends beyond its file");
  refused("w.bin", "-1", "8", "but the tensor needs 8 bytes");
  refused("w.bin", "0", "4", "but the tensor needs 8 bytes");
}
