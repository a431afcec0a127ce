// Models with data-dependent result sizes.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

namespace {

Graph loadModel(const ModelText &model) {
  Folder folder;
  return load_onnx(model.write(folder / "model.onnx"));
}

} // namespace

TEST_CASE("NonZero of data and of what is known") {
  ModelText model{.nodes = {{"NonZero", {"x"}, {"places"}},
                            {"Shape", {"places"}, {"size"}},
                            {"NonZero", {"mask"}, {"known"}},
                            {"Transpose", {"places"}, {"rows"}},
                            {"GatherND", {"x", "rows"}, {"values"}}},
                  .inputs = {valueInfo("x", kFloat, {"h", "3"})},
                  .outputs = {valueInfo("places", kInt64, {"2", ""}), valueInfo("size", kInt64, {"2"}),
                              valueInfo("known", kInt64, {"1", ""}), valueInfo("values", kFloat, {""})},
                  .initializers = {floatTensor("mask", {4}, {0, 1, 0, 2})}};
  Graph graph = loadModel(model);
  CHECK(str(graph.outputs()[0].spec) == "i64[2, nonzero_0]");
  CHECK(str(graph.outputs()[2].spec) == "i64[1, 2]");
  std::vector<Tensor> y = graph.run({tensor({{0, 5, 0}, {7, 0, -1}}, f32)});
  CHECK(ints(y[0]) == std::vector<int64_t>{0, 1, 1, 1, 0, 2});
  CHECK(ints(y[1]) == std::vector<int64_t>{2, 3});
  CHECK(ints(y[2]) == std::vector<int64_t>{1, 3});
  CHECK(floats(y[3]) == std::vector<float>{5, 7, -1});
  CHECK(graph.run({zeros({0, 3})})[0].shape()[1] == Dim(0));
}

TEST_CASE("Compress by a condition that is computed") {
  ModelText model{.nodes = {{"Greater", {"score", "least"}, {"good"}},
                            {"Compress", {"x", "good"}, {"y"}, {attribute("axis", int64_t(0))}},
                            {"ReduceSum", {"y"}, {"sum"}, {attribute("keepdims", int64_t(0))}}},
                  .inputs = {valueInfo("x", kFloat, {"n", "2"}), valueInfo("score", kFloat, {"n"})},
                  .outputs = {valueInfo("y", kFloat, {"", "2"}), valueInfo("sum", kFloat, {})},
                  .initializers = {floatTensor("least", {}, {0.5})}};
  std::vector<Tensor> y = loadModel(model).run({tensor({{1, 2}, {3, 4}, {5, 6}}, f32), tensor({0.9, 0.1, 0.6}, f32)});
  CHECK(floats(y[0]) == std::vector<float>{1, 2, 5, 6});
  CHECK(y[1].item() == 14);
}

TEST_CASE("A detector's end: suppression, Gather, Slice, Reshape, Cast, TopK of what is left") {
  ModelText model{.nodes = {{"NonMaxSuppression", {"boxes", "scores", "most", "overlap", "least"}, {"kept"}},
                            {"Slice", {"kept", "two", "three", "one"}, {"column"}}, // the box of each triple
                            {"Reshape", {"column", "flat"}, {"index"}},
                            {"Squeeze", {"boxes", "zero"}, {"all"}},
                            {"Gather", {"all", "index"}, {"found"}},
                            {"Reshape", {"scores", "flat"}, {"points"}},
                            {"Gather", {"points", "index"}, {"score"}},
                            {"Shape", {"score"}, {"count"}},
                            {"Min", {"count", "two"}, {"k"}},
                            {"TopK", {"score", "k"}, {"best", "order"}},
                            {"Gather", {"found", "order"}, {"first"}},
                            {"Cast", {"index"}, {"number"}, {attribute("to", int64_t(1))}},
                            {"Mul", {"number", "half"}, {"scaled"}}},
                  .inputs = {valueInfo("boxes", kFloat, {"1", "n", "4"}), valueInfo("scores", kFloat, {"1", "1", "n"})},
                  .outputs = {valueInfo("kept", kInt64, {"", "3"}), valueInfo("first", kFloat, {"", "4"}),
                              valueInfo("best", kFloat, {""}), valueInfo("scaled", kFloat, {""})},
                  .initializers = {intTensor("most", {1}, {10}), floatTensor("overlap", {1}, {0.5}),
                                   floatTensor("least", {1}, {0.2}), intTensor("two", {1}, {2}),
                                   intTensor("three", {1}, {3}), intTensor("one", {1}, {1}),
                                   intTensor("zero", {1}, {0}), intTensor("flat", {1}, {-1}),
                                   floatTensor("half", {}, {0.5})}};
  Graph graph = loadModel(model);
  Tensor boxes = tensor({{{0, 0, 10, 10}, {1, 1, 11, 11}, {20, 20, 30, 30}, {40, 40, 50, 50}, {0, 0, 1, 1}}}, f32);
  std::vector<Tensor> y = graph.run({boxes, tensor({{{0.5, 0.9, 0.3, 0.6, 0.1}}}, f32)});
  CHECK(ints(y[0]) == std::vector<int64_t>{0, 0, 1, 0, 0, 3, 0, 0, 2});
  CHECK(floats(y[1]) == std::vector<float>{1, 1, 11, 11, 40, 40, 50, 50});
  CHECK(floats(y[2]) == std::vector<float>{0.9f, 0.6f});
  CHECK(floats(y[3]) == std::vector<float>{0.5, 1.5, 1});
  y = graph.run({boxes, zeros({1, 1, 5})}); // no box is selected
  CHECK(str(y[0].spec()) == "i64[0, 3]");
  CHECK(str(y[1].spec()) == "f32[0, 4]");
  y = graph.run({slice(boxes, {0, 0, 0}, {1, 1, 4}, {1, 1, 1}), ones({1, 1, 1})});
  CHECK(ints(y[0]) == std::vector<int64_t>{0, 0, 0});
}

TEST_CASE("Unique values, rows, and where they came from") {
  ModelText model{.nodes = {{"Unique", {"x"}, {"y", "first", "inverse", "counts"}, {attribute("sorted", int64_t(0))}},
                            {"Unique", {"m"}, {"rows", "", "", "times"}, {attribute("axis", int64_t(0))}}},
                  .inputs = {valueInfo("x", kFloat, {"n"}), valueInfo("m", kFloat, {"k", "2"})},
                  .outputs = {valueInfo("y", kFloat, {""}), valueInfo("first", kInt64, {""}),
                              valueInfo("inverse", kInt64, {"n"}), valueInfo("counts", kInt64, {""}),
                              valueInfo("rows", kFloat, {"", "2"}), valueInfo("times", kInt64, {""})}};
  std::vector<Tensor> y =
      loadModel(model).run({tensor({2, 1, 1, 3, 4, 3}, f32), tensor({{1, 0}, {0, 5}, {1, 0}, {0, 1}}, f32)});
  CHECK(floats(y[0]) == std::vector<float>{2, 1, 3, 4});
  CHECK(ints(y[1]) == std::vector<int64_t>{0, 1, 3, 4});
  CHECK(ints(y[2]) == std::vector<int64_t>{0, 1, 1, 2, 3, 2});
  CHECK(ints(y[3]) == std::vector<int64_t>{1, 2, 2, 1});
  CHECK(floats(y[4]) == std::vector<float>{0, 1, 0, 5, 1, 0});
  CHECK(ints(y[5]) == std::vector<int64_t>{1, 1, 2});
}
