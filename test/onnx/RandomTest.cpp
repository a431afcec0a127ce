// Random ops of ONNX models: shape, type and distribution, and new numbers in each run.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include "test/onnx/ModelWriter.h"

using namespace burin::test;

namespace {

constexpr int64_t kCount = 200000;

/// An artifact with one node from x [n] (or without input) to y.
Artifact nodeOf(NodeText node, bool hasInput = true, std::vector<Bytes> initializers = {},
                std::vector<Bytes> sizes = {"n"}, OnnxType type = kFloat) {
  Folder folder;
  ModelText model{.nodes = {std::move(node)}, .inputs = {}, .outputs = {valueInfo("y", type, {})}};
  if (hasInput)
    model.inputs = {valueInfo("x", kFloat, sizes)};
  model.initializers = std::move(initializers);
  model.nodes[0].name = "drawn";
  return compile(load_onnx(model.write(folder / "model.onnx")));
}

struct Moments {
  double mean, deviation, least, largest;
};
Moments momentsOf(const Tensor &x) {
  Tensor wide = x.to(f64);
  return {wide.mean().item(), wide.std().item(), wide.min().item(), wide.max().item()};
}

void checkNormal(const Tensor &y, double mean, double scale) {
  Moments m = momentsOf(y);
  CHECK(m.mean == Approx(mean).margin(5 * scale / std::sqrt(double(kCount))));
  CHECK(m.deviation == Approx(scale).epsilon(.02));
  double third = (((y.to(f64) - mean) / scale > 1).to(f64)).mean().item(); // 15.87 %
  CHECK(third == Approx(.1587).margin(.005));
}

} // namespace

TEST_CASE("RandomNormal and RandomUniform have the shape, type and distribution that their attributes say") {
  Tensor x = zeros({kCount});
  Artifact normal = nodeOf({"RandomNormalLike", {"x"}, {"y"}, {attribute("mean", 3.0), attribute("scale", .5)}});
  Tensor first = normal(x), second = normal(x);
  checkNormal(first, 3, .5);
  checkNormal(second, 3, .5);
  CHECK(largestDifference(first, second) > 0); // the generator's state advances
  CHECK(normal(zeros({7})).shape() == Shape{7});

  Artifact uniform = nodeOf({"RandomUniformLike", {"x"}, {"y"}, {attribute("low", -1.0), attribute("high", 3.0)}});
  Moments m = momentsOf(uniform(x));
  CHECK(m.mean == Approx(1).margin(.02));
  CHECK(m.deviation == Approx(4 / std::sqrt(12.0)).epsilon(.02));
  CHECK(m.least >= -1);
  CHECK(m.largest < 3);

  const std::initializer_list<int64_t> shape{100, 2000};
  Artifact alone = nodeOf({"RandomNormal", {}, {"y"}, {attribute("shape", shape), attribute("seed", 7.0)}}, false);
  Tensor drawn = alone.run(std::span<const Tensor>())[0];
  CHECK(drawn.spec() == TensorSpec{f32, {100, 2000}});
  checkNormal(drawn, 0, 1);
  Artifact other = nodeOf({"RandomNormal", {}, {"y"}, {attribute("shape", shape), attribute("seed", 7.0)}}, false);
  CHECK(floats(other.run(std::span<const Tensor>())[0]) == floats(drawn)); // determined by the seed
  Artifact wide =
      nodeOf({"RandomUniform", {}, {"y"}, {attribute("shape", shape), attribute("dtype", int64_t(kDouble))}}, false, {},
             {}, kDouble);
  CHECK(wide.outputs()[0].spec == TensorSpec{f64, {100, 2000}});
}

TEST_CASE("Bernoulli, Multinomial and Dropout draw with the given probabilities") {
  Tensor x = full({kCount}, .3f);
  Artifact bernoulli =
      nodeOf({"Bernoulli", {"x"}, {"y"}, {attribute("dtype", int64_t(kInt64))}}, true, {}, {"n"}, kInt64);
  Tensor y = bernoulli(x);
  CHECK(y.dtype() == i64);
  Moments m = momentsOf(y);
  CHECK(m.mean == Approx(.3).margin(.006));
  CHECK((m.least == 0 && m.largest == 1));

  Artifact multinomial =
      nodeOf({"Multinomial", {"x"}, {"y"}, {attribute("sample_size", int64_t(50000))}}, true, {}, {"2", "3"}, kInt32);
  Tensor logits = log(tensor({{1.0f, 2.0f, 7.0f}, {5.0f, 4.0f, 1.0f}}));
  Tensor drawn = multinomial(logits);
  CHECK(drawn.spec() == TensorSpec{i32, {2, 50000}});
  const double want[2][3] = {{.1, .2, .7}, {.5, .4, .1}};
  for (int row = 0; row < 2; ++row)
    for (int which = 0; which < 3; ++which)
      CHECK((drawn(row) == which).to(f64).mean().item() == Approx(want[row][which]).margin(.01));

  Artifact dropout = nodeOf({"Dropout", {"x", "ratio", "training"}, {"y", "mask"}}, true,
                            {floatTensor("ratio", {}, {.25f}), tensorProto<char>("training", kBool, {}, {1})});
  Tensor kept = dropout(ones({kCount}));
  CHECK((kept == 0).to(f64).mean().item() == Approx(.25).margin(.006));
  CHECK(momentsOf(kept).largest == Approx(4 / 3.0));
  auto seeded = [&](int64_t seed) {
    return nodeOf({"Dropout", {"x", "ratio", "training"}, {"y", "mask"}, {attribute("seed", seed)}}, true,
                  {floatTensor("ratio", {}, {.25f}), tensorProto<char>("training", kBool, {}, {1})})(ones({kCount}));
  };
  CHECK(floats(seeded(5)) == floats(seeded(5)));
  CHECK(floats(seeded(5)) != floats(seeded(0)));
}
