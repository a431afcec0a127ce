// DeformConv compared with plain loops.
#include "test/onnx/Load.h"

using namespace burin::test;

namespace {

constexpr int64_t kChannels = 4, kOutputs = 6, kRows = 2, kColumns = 3; // of the weight
constexpr int64_t kPadTop = 1, kStride = 2, kDilation = 2;              // strides of rows, dilations of columns

struct Case {
  int64_t group, offsetGroups;
  bool hasMask;
};

/// Interpolates between pixels; pixels outside of the image are 0.
double sampled(const std::vector<float> &image, int64_t height, int64_t width, double y, double x) {
  double sum = 0;
  for (int64_t dy : {0, 1})
    for (int64_t dx : {0, 1}) {
      double row = std::floor(y) + double(dy), column = std::floor(x) + double(dx);
      if (row < 0 || column < 0 || row >= double(height) || column >= double(width))
        continue;
      sum += image[size_t(row * double(width) + column)] * (1 - std::fabs(y - row)) * (1 - std::fabs(x - column));
    }
  return sum;
}

float weightAt(int64_t i) { return std::sin(float(i) * 0.7f); }

/// Computes output channel `o` at [row, column] of one image [4, height, width].
double expectedAt(const Case &c, const Tensor &x, const Tensor &offset, const Tensor &mask, int64_t o, int64_t row,
                  int64_t column) {
  const int64_t height = x.size(1).value(), width = x.size(2).value(), inputs = kChannels / c.group;
  auto at = [&](const Tensor &t, int64_t channel) { return double(t(channel, row, column).item()); };
  double sum = double(o);
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t tap = 0; tap < kRows * kColumns; ++tap) {
      int64_t channel = o / (kOutputs / c.group) * inputs + i;
      int64_t group = channel / (kChannels / c.offsetGroups), place = group * kRows * kColumns + tap;
      double y = double(row * kStride - kPadTop + tap / kColumns) + at(offset, 2 * place);
      double z = double(column + tap % kColumns * kDilation) + at(offset, 2 * place + 1);
      double read = sampled(x(channel).to_vector<float>(), height, width, y, z);
      sum += weightAt((o * inputs + i) * kRows * kColumns + tap) * read * (c.hasMask ? at(mask, place) : 1);
    }
  return sum;
}

ModelText modelOf(const Case &c) {
  std::vector<float> weight(size_t(kOutputs * kChannels / c.group * kRows * kColumns));
  for (size_t i = 0; i < weight.size(); ++i)
    weight[i] = weightAt(int64_t(i));
  std::vector<Bytes> inputs{floatInput("x", {"n", "4", "h", "w"}), floatInput("o", {"n", "?", "r", "c"})};
  if (c.hasMask)
    inputs.push_back(floatInput("m", {"n", "?", "r", "c"}));
  return graphOf({{"DeformConv",
                   {"x", "weight", "o", "bias", c.hasMask ? "m" : ""},
                   {"y"},
                   {attribute("kernel_shape", {kRows, kColumns}), attribute("pads", {kPadTop, 0, kPadTop, kDilation}),
                    attribute("strides", {kStride, 1}), attribute("dilations", {1, kDilation}),
                    attribute("group", c.group), attribute("offset_group", c.offsetGroups)}}},
                 std::move(inputs),
                 {floatTensor("weight", {kOutputs, kChannels / c.group, kRows, kColumns}, weight),
                  floatTensor("bias", {kOutputs}, {0, 1, 2, 3, 4, 5})});
}

} // namespace

TEST_CASE("DeformConv reads where offsets say") {
  const int64_t height = 5, width = 6, rows = 3, columns = 4;
  for (const Case &c : {Case{1, 1, false}, Case{2, 1, true}, Case{1, 2, true}, Case{2, 4, false}}) {
    CAPTURE(c.group, c.offsetGroups, c.hasMask);
    const int64_t places = c.offsetGroups * kRows * kColumns;
    auto waves = [](Shape shape, double scale) {
      Tensor wave = iota(shape, f32, 1) * 1.7 + iota(shape, f32, 2) * 0.9 + iota(shape, f32, 3) * 2.3;
      return sin(wave + iota(shape, f32, 0)) * scale;
    };
    Tensor x = waves({2, kChannels, height, width}, 1), offset = waves({2, 2 * places, rows, columns}, 2.4),
           mask = waves({2, places, rows, columns}, 1);
    std::vector<Tensor> inputs{x, offset};
    if (c.hasMask)
      inputs.push_back(mask);
    Tensor y = loadModel(modelOf(c)).graph.run(inputs)[0];
    REQUIRE(y.shape() == Shape{2, kOutputs, rows, columns});
    for (int64_t o : {0, 2, 5})
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          CHECK(y(1, o, row, column).item() ==
                Approx(expectedAt(c, x(1), offset(1), mask(1), o, row, column)).margin(1e-4));
  }
}
