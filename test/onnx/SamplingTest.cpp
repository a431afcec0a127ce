// GridSample on images of any size, and max pooling with indices.
#include "test/onnx/Load.h"

using namespace burin::test;

TEST_CASE("GridSample of symbolic sizes agrees with that of known ones") {
  Tensor x = sin(iota({2, 3, 4, 5}, f32, 3) * 1.3 + iota({2, 3, 4, 5}, f32, 2) * 0.7 + iota({2, 3, 4, 5}, f32, 1));
  // Positions within the image, at its border, and far outside.
  Tensor grid = stack({iota({2, 6, 7}, f32, 2) * 0.45 - 1.4, iota({2, 6, 7}, f32, 1) * 0.55 - 1.5}, -1);
  for (const char *mode : {"linear", "nearest", "cubic"})
    for (const char *padding : {"zeros", "border", "reflection"})
      for (int64_t aligns : {0, 1}) {
        INFO(mode << " " << padding << " " << aligns);
        ModelText model = graphOf(
            {{"GridSample",
              {"x", "grid"},
              {"y"},
              {attribute("mode", mode), attribute("padding_mode", padding), attribute("align_corners", aligns)}}},
            {floatInput("x", {"n", "3", "h", "w"}), floatInput("grid", {"n", "a", "b", "2"})});
        Graph open = loadModel(model).graph;
        Graph known = loadModel(model, {{"n", 2, 2}, {"h", 4, 4}, {"w", 5, 5}, {"a", 6, 6}, {"b", 7, 7}}).graph;
        CHECK(str(open.outputs()[0]) == "y: f32[n, 3, a, b]");
        CHECK(largestDifference(open.run({x, grid})[0], known.run({x, grid})[0]) < 1e-5);
        Tensor row = x.slice(2, 0, 1); // an image with one row
        Tensor one = open.run({row, grid})[0];
        CHECK(largestDifference(one, loadModel(model, {{"h", 1, 1}}).graph.run({row, grid})[0]) < 1e-5);
        CHECK_FALSE(problemOf(open, {zeros({2, 3, 0, 5}), grid}).empty());
      }
}

TEST_CASE("GridSample gives the pixels at their places") {
  ModelText model = graphOf({{"GridSample", {"x", "grid"}, {"y"}, {attribute("align_corners", int64_t(1))}}},
                            {floatInput("x", {"1", "1", "h", "w"}), floatInput("grid", {"1", "1", "k", "2"})});
  Tensor x = reshape(arange(6), {1, 1, 2, 3}).to(f32);
  Tensor grid = tensor({{{{-1, -1}, {0, -1}, {1, 1}, {0, 0}, {-0.5, 1}}}}, f32);
  CHECK(floats(loadModel(model).graph.run({x, grid})[0]) == std::vector<float>{0, 1, 5, 2.5, 3.5});
}

TEST_CASE("Places of the largest elements in windows that reach beyond the image") {
  for (bool isOpen : {false, true}) {
    ModelText model = graphOf(
        {{"MaxPool",
          {"x"},
          {"z", "y"},
          {attribute("kernel_shape", {3, 3}), attribute("pads", {2, 1, 1, 2}), attribute("strides", {2, 2})}}},
        {floatInput("x", isOpen ? std::vector<Bytes>{"1", "c", "h", "w"} : std::vector<Bytes>{"1", "2", "3", "3"})});
    model.outputs = {valueInfo("y", kInt64, {})};
    Tensor x = reshape(tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1}, f32), {1, 2, 3, 3});
    CHECK(ints(loadModel(model).graph.run({x})[0]) == std::vector<int64_t>{1, 2, 7, 8, 9, 10, 9, 10});
  }
}
