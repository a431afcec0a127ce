// Transforms that change the values of pixels.
#include "frontend/training/augment/Image.h"
#include <cmath>
#include <numeric>

namespace burin::data {

using detail::inScope;

Transform normalize(std::vector<double> mean, std::vector<double> std, Location where) {
  if (mean.empty() || mean.size() != std.size() || std::ranges::any_of(std, [](double d) { return !(d > 0); }))
    throw Error(inScope(where), "normalize",
                "there are " + std::to_string(mean.size()) + " means and " + std::to_string(std.size()) +
                    " deviations; it takes one of each per channel, and the latter positive");
  return [=](Example example, Random &) {
    Image image(example, "normalize");
    if (int64_t(mean.size()) != image.channels)
      throw Error(inScope({}), "normalize",
                  "there are " + std::to_string(mean.size()) + " means for the " + std::to_string(image.channels) +
                      " channels of " + str(image.spec));
    const size_t plane = size_t(image.height * image.width);
    for (size_t i = 0; i < image.pixels.size(); ++i)
      image.pixels[i] = float((double(image.pixels[i]) - mean[i / plane]) / std[i / plane]);
    return image.in(std::move(example));
  };
}

// ---- colour jitter, with torchvision's arithmetic

namespace {

float clamped(float x) { return std::clamp(x, 0.0f, 1.0f); }

struct Color {
  float r, g, b;
};
float grayOf(Color c) { return 0.2989f * c.r + 0.587f * c.g + 0.114f * c.b; }

/// Calls change(color) → color for each pixel of an image of three channels.
template <class F> void changeColors(Image &image, F change) {
  const size_t plane = size_t(image.height * image.width);
  float *p = image.pixels.data();
  for (size_t i = 0; i < plane; ++i) {
    const Color color = change(Color{p[i], p[i + plane], p[i + 2 * plane]});
    p[i] = color.r;
    p[i + plane] = color.g;
    p[i + 2 * plane] = color.b;
  }
}

void changeBrightness(Image &image, float factor) {
  for (float &x : image.pixels)
    x = clamped(x * factor);
}

void changeContrast(Image &image, float factor) {
  double sum = 0;
  if (image.channels == 3)
    changeColors(image, [&](Color c) {
      sum += grayOf(c);
      return c;
    });
  else
    sum = std::accumulate(image.pixels.begin(), image.pixels.end(), 0.0);
  const float mean = float(sum / double(std::max<int64_t>(image.height * image.width, 1)));
  for (float &x : image.pixels)
    x = clamped(x * factor + mean * (1 - factor));
}

void changeSaturation(Image &image, float factor) {
  changeColors(image, [&](Color c) {
    const float gray = grayOf(c) * (1 - factor);
    return Color{clamped(c.r * factor + gray), clamped(c.g * factor + gray), clamped(c.b * factor + gray)};
  });
}

/// The hue in [0, 1): red, green and blue are at 0, 1/3 and 2/3.
float hueOf(Color c, float most, float range) {
  if (range == 0)
    return 0;
  const float sixths = most == c.r   ? (c.g - c.b) / range
                       : most == c.g ? 2 + (c.b - c.r) / range
                                     : 4 + (c.r - c.g) / range;
  return std::fmod(sixths / 6 + 1, 1.0f);
}

void changeHue(Image &image, float turn) {
  changeColors(image, [&](Color c) {
    const float most = std::max({c.r, c.g, c.b}), range = most - std::min({c.r, c.g, c.b});
    const float saturation = range == 0 ? 0 : range / most;
    float hue = std::fmod(hueOf(c, most, range) + turn, 1.0f);
    hue = (hue < 0 ? hue + 1 : hue) * 6;
    const float sector = std::floor(hue), rest = hue - sector;
    const float low = clamped(most * (1 - saturation)), falling = clamped(most * (1 - saturation * rest)),
                rising = clamped(most * (1 - saturation * (1 - rest)));
    switch (int(sector) % 6) {
    case 0:
      return Color{most, rising, low};
    case 1:
      return Color{falling, most, low};
    case 2:
      return Color{low, most, rising};
    case 3:
      return Color{low, falling, most};
    case 4:
      return Color{rising, low, most};
    default:
      return Color{most, low, falling};
    }
  });
}

/// The interval of factors around `neutral`, which changes nothing.
Range rangeOf(const Jitter &jitter, double neutral, double least, double most, const char *name,
              const Location &where) {
  Range range = jitter.range;
  if (jitter.amount) {
    if (!(*jitter.amount >= 0))
      throw Error(where, "color_jitter", std::string(name) + " is negative");
    range = {std::max(neutral - *jitter.amount, neutral == 1 ? 0.0 : -1.0), neutral + *jitter.amount};
  }
  checkRange(range, least, most, "color_jitter", name, where);
  return range;
}

} // namespace

Transform color_jitter(ColorJitterOptions options, Location where) {
  struct Change {
    Range range;
    double neutral;
    void (*change)(Image &, float);
    bool isOfColors;
  };
  const Location place = inScope(where);
  constexpr double kMost = 1e6;
  const std::array<Change, 4> changes{
      Change{rangeOf(options.brightness, 1, 0, kMost, "brightness", place), 1, changeBrightness, false},
      Change{rangeOf(options.contrast, 1, 0, kMost, "contrast", place), 1, changeContrast, false},
      Change{rangeOf(options.saturation, 1, 0, kMost, "saturation", place), 1, changeSaturation, true},
      Change{rangeOf(options.hue, 0, -0.5, 0.5, "hue", place), 0, changeHue, true}};
  return [=](Example example, Random &random) {
    Image image(example, "color_jitter");
    if (image.channels != 1 && image.channels != 3)
      throw Error(inScope({}), "color_jitter",
                  "the image " + str(image.spec) + " has " + std::to_string(image.channels) +
                      " channels; it takes one or three");
    std::array<size_t, 4> order{0, 1, 2, 3};
    for (size_t i = 3; i > 0; --i)
      std::swap(order[i], order[size_t(random.integer(0, int64_t(i) + 1))]);
    for (size_t i : order) {
      const Change &each = changes[i];
      const float factor = float(random.uniform(each.range[0], each.range[1]));
      if (each.range != Range{each.neutral, each.neutral} && !(each.isOfColors && image.channels == 1))
        each.change(image, factor);
    }
    return image.in(std::move(example));
  };
}

} // namespace burin::data
