// Transforms of images and batches, compared with torchvision's results (make_transforms.py).
#include "test/frontend/Check.h"
#include <cmath>
#include <map>
#include <set>

using namespace burin::data;

namespace {

Tensor applied(const Transform &transform, const Tensor &image, uint64_t index = 0) {
  Random random(1, 2, index);
  return transform({image}, random)[0];
}

} // namespace

TEST_CASE("transforms without chance give torchvision's results") {
  const StateDict stored = load_safetensors(TRANSFORM_VALUES);
  using Case = std::pair<const char *, Transform>;
  const Case cases[] = {
      {"resize 4", resize(4)},
      {"resize 13", resize(13)},
      {"resize 5 14", resize(5, 14)},
      {"center_crop 4 5", center_crop({4, 5})},
      {"center_crop 12", center_crop(12)},
      {"resized_crop", random_resized_crop({6, 5}, {.scale = {1, 1}, .ratio = {0.1, 0.1000001}})},
      {"flip", random_horizontal_flip(1)},
      {"flip down", random_vertical_flip(1)},
      {"brightness 1.4", color_jitter({.brightness = {1.4, 1.4}})},
      {"brightness 0.3", color_jitter({.brightness = {0.3, 0.3}})},
      {"contrast 1.7", color_jitter({.contrast = {1.7, 1.7}})},
      {"contrast 0.2", color_jitter({.contrast = {0.2, 0.2}})},
      {"saturation 1.9", color_jitter({.saturation = {1.9, 1.9}})},
      {"saturation 0", color_jitter({.saturation = {0, 0}})},
      {"hue 0.2", color_jitter({.hue = {0.2, 0.2}})},
      {"hue -0.45", color_jitter({.hue = {-0.45, -0.45}})},
  };
  for (const char *image : {"color", "gray"}) {
    auto compare = [&](const std::string &name, const Transform &transform) {
      INFO(image << " " << name);
      Tensor got = applied(transform, stored.at(image)), want = stored.at(image + (" " + name));
      REQUIRE(got.spec() == want.spec());
      CHECK(largestDifference(got, want) < 2e-6);
    };
    for (const auto &[name, transform] : cases)
      compare(name, transform);
    const bool isColor = std::string(image) == "color";
    compare("normalize", isColor ? data::normalize({0.4, 0.5, 0.6}, {0.2, 0.3, 0.25}) : data::normalize({0.4}, {0.2}));
    CHECK(largestDifference(applied(color_jitter({}), stored.at(image)), stored.at(image)) == 0);
  }
}

TEST_CASE("random crops are all the parts there are") {
  Tensor image = arange(12).to(f32).reshape({3, 4}) + 1;
  std::set<std::vector<float>> parts;
  for (uint64_t i = 0; i < 200; ++i)
    parts.insert(floats(applied(random_crop({2, 3}), image, i)));
  CHECK(parts == std::set<std::vector<float>>{
                     {1, 2, 3, 5, 6, 7}, {2, 3, 4, 6, 7, 8}, {5, 6, 7, 9, 10, 11}, {6, 7, 8, 10, 11, 12}});
  parts.clear();
  for (uint64_t i = 0; i < 200; ++i)
    parts.insert(floats(applied(random_crop({3, 4}, {.padding = 1, .fill = -1}), image, i)));
  CHECK(parts.size() == 9);
  CHECK(parts.contains({-1, -1, -1, -1, -1, 1, 2, 3, -1, 5, 6, 7}));
  CHECK(str(applied(random_crop(6, {.pad_if_needed = true}), image).shape()) == "[6, 6]");
  CHECK(contains(messageOf([&] { applied(random_crop({3, 5}), image); }), "smaller than 3×5"));
}

TEST_CASE("random parts of images have the area and the ratio asked for") {
  // Each pixel has the number of its row and column, so that a linear resize tells the part.
  Tensor rows = arange(40).to(f32).reshape({1, 40, 1}).expand({1, 40, 60}) + zeros({1, 40, 60});
  Tensor columns = zeros({1, 40, 60}) + arange(60).to(f32).reshape({1, 1, 60});
  double least = 1, most = 0, widest = 0, narrowest = 10;
  for (uint64_t i = 0; i < 300; ++i) {
    Transform crop = random_resized_crop(2);
    // The pixels of the result are weighted means by triangles, 0.4048 of the extent apart.
    auto extent = [&](const Tensor &numbers, int64_t step) {
      std::vector<float> four = floats(applied(crop, numbers, i));
      return (four[size_t(step)] - four[0]) / 0.4048;
    };
    const double height = extent(rows, 2), width = extent(columns, 1), area = height * width / 2400;
    least = std::min(least, area);
    most = std::max(most, area);
    widest = std::max(widest, width / height);
    narrowest = std::min(narrowest, width / height);
  }
  CHECK((least > 0.06 && least < 0.2 && most > 0.7 && most < 1.05));
  CHECK((narrowest > 0.68 && narrowest < 0.85 && widest > 1.2 && widest < 1.45));
}

TEST_CASE("erasing overwrites one rectangle") {
  int erased = 0;
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    std::vector<float> pixels = floats(applied(random_erasing({.value = 5}), zeros({2, 30, 20}), i));
    int count = 0, top = 30, bottom = -1, left = 20, right = -1;
    for (int j = 0; j < 600; ++j) {
      CHECK(pixels[size_t(j)] == pixels[size_t(j) + 600]); // in both channels
      if (pixels[size_t(j)] == 0)
        continue;
      ++count;
      top = std::min(top, j / 20);
      bottom = std::max(bottom, j / 20);
      left = std::min(left, j % 20);
      right = std::max(right, j % 20);
    }
    if (!count)
      continue;
    ++erased;
    CHECK(count == (bottom - top + 1) * (right - left + 1));
    least = std::min(least, count / 600.0);
    most = std::max(most, count / 600.0);
  }
  CHECK(erased == Approx(200).margin(40));
  CHECK((least > 0.01 && least < 0.05 && most > 0.25 && most < 0.36));
  Tensor noise =
      applied(random_erasing({.p = 1, .scale = {0.3, 0.3}, .ratio = {1, 1}, .random = true}), zeros({90, 90}));
  std::vector<float> pixels = floats(noise);
  std::erase(pixels, 0.0f);
  CHECK(pixels.size() == 49 * 49); // the root of .3 · 90²
  double sum = 0, squares = 0;
  for (float x : pixels) {
    sum += x;
    squares += double(x) * x;
  }
  CHECK(std::abs(sum / double(pixels.size())) < 0.08);
  CHECK(squares / double(pixels.size()) == Approx(1).margin(0.1));
}

TEST_CASE("colours are jittered in any order, by factors in the interval") {
  Tensor image = full({1, 1, 1}, 0.5);
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const double factor = applied(color_jitter({.brightness = 0.4}), image, i).item() / 0.5;
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  CHECK((least >= 0.6 && least < 0.62 && most <= 1.4 && most > 1.38));
  // Twice as bright and half the contrast: 0.2 and 0.6 become 0.55 and 0.85 if the brightness comes first, which makes
  // them 0.4 and 1 (its limit), and 0.6 and 1 otherwise.
  std::map<std::vector<int>, int> results;
  for (uint64_t i = 0; i < 200; ++i) {
    Tensor got = applied(color_jitter({.brightness = {2, 2}, .contrast = {0.5, 0.5}}), tensor({{0.2, 0.6}}), i);
    ++results[{int(std::lround(got[{0, 0}].item() * 100)), int(std::lround(got[{0, 1}].item() * 100))}];
  }
  CHECK(results.size() == 2);
  CHECK(results[{55, 85}] == Approx(100).margin(30));
  CHECK(results[{60, 100}] == Approx(100).margin(30));
}

TEST_CASE("mixup mixes each example with the one before it") {
  Tensor images = tensor({{1.0, 10.0}, {2.0, 20.0}, {4.0, 40.0}}), classes = tensor({0, 2, 1});
  double sum = 0, squares = 0;
  constexpr int kDraws = 2000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    Random random(1, 1, i);
    Example batch = mixup(3, 0.4)({images, classes, classes}, random);
    const double lambda = batch[1][{0, 0}].item();
    sum += lambda;
    squares += lambda * lambda;
    if (i)
      continue;
    CHECK(str(batch[1].spec()) == "f32[3, 3]");
    CHECK(largestDifference(batch[0], images * lambda + roll(images, 1, 0) * (1 - lambda)) < 1e-5);
    Tensor targets = one_hot(classes, 3).to(f32);
    CHECK(largestDifference(batch[1], targets * lambda + roll(targets, 1, 0) * (1 - lambda)) < 1e-6);
    CHECK(ints(batch[2]) == ints(classes));
    Example again = mixup(3)({batch[0], batch[1]}, random); // probabilities are mixed further
    CHECK(largestDifference(again[1].sum({1}), ones({3})) < 1e-6);
  }
  const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
  CHECK(mean == Approx(0.5).margin(0.03));
  CHECK(variance == Approx(1 / (4 * (2 * 0.4 + 1))).margin(0.01)); // that of the Beta(0.4, 0.4) distribution
  Random random(1, 1, 1);
  CHECK(contains(messageOf([&] { mixup(2)({images, classes}, random); }), "class 2 among 2"));
  CHECK(contains(messageOf([&] { mixup(2)({images}, random); }), "f32[3, 2]; is it the batch_transform?"));
}

TEST_CASE("wrong options of transforms are errors where they are made") {
  CHECK_ERROR(data::normalize({1, 2}, {1}), "2 means and 1 deviations");
  CHECK_ERROR(data::normalize({1}, {0}), "positive");
  CHECK_ERROR(resize(0), "resize", "0×0");
  CHECK_ERROR(resize(3, -1), "3×-1");
  CHECK_ERROR(center_crop({-1, 2}), "center_crop");
  CHECK_ERROR(random_crop(3, {.padding = -1}), "padding");
  CHECK_ERROR(random_resized_crop(3, {.scale = {0.5, 0.1}}), "the scale", "0.5", "0.1");
  CHECK_ERROR(random_horizontal_flip(1.5), "probability", "1.5");
  CHECK_ERROR(random_erasing({.ratio = {-1, 1}}), "ratio");
  CHECK_ERROR(color_jitter({.brightness = -1}), "brightness");
  CHECK_ERROR(color_jitter({.hue = 0.6}), "hue");
  CHECK_ERROR(mixup(0), "positive");
  CHECK(contains(messageOf([] { applied(resize(3), ones({2, 2}, i32)); }), "i32[2, 2], but must be f32 [C, H, W]"));
  CHECK(contains(messageOf([] { applied(color_jitter({}), ones({2, 2, 2})); }), "2 channels"));
  CHECK(contains(messageOf([] { applied(data::normalize({1, 1}, {1, 1}), ones({3, 1, 1})); }), "3 channels"));
}
