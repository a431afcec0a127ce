// Loss ops compared with their formulas.
#include "test/onnx/Load.h"

using namespace burin::test;

TEST_CASE("A target that is ignored need not be a class") {
  // Two examples of three positions; three classes with the weights 1, 2 and 4.
  Tensor x = log(tensor({{{0.5, 0.25, 0.125}, {0.25, 0.25, 0.125}, {0.25, 0.5, 0.75}}}, f32)), target;
  for (int64_t ignored : {10, -7, 1}) {
    INFO(ignored);
    target = tensor({{0, 0, 2}}, i64);
    target = where(tensor({{false, true, false}}), ignored, target);
    auto loss = [&](const char *reduction) {
      ModelText model = graphOf({{"NegativeLogLikelihoodLoss",
                                  {"x", "t", "w"},
                                  {"y"},
                                  {attribute("ignore_index", ignored), attribute("reduction", reduction)}}},
                                {floatInput("x", {"n", "3", "d"}), valueInfo("t", kInt64, {"n", "d"})},
                                {floatTensor("w", {3}, {1, 2, 4})});
      return loadModel(model).graph.run({x, target})[0];
    };
    const double first = -std::log(0.5), last = -4 * std::log(0.75);
    std::vector<float> each = floats(loss("none"));
    REQUIRE(each.size() == 3);
    CHECK(each[0] == Approx(first));
    CHECK(each[1] == 0);
    CHECK(each[2] == Approx(last));
    CHECK(loss("sum").item() == Approx(first + last));
    CHECK(loss("mean").item() == Approx((first + last) / 5));
  }
}
