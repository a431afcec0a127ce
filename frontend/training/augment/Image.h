// Images as transforms change them.
#pragma once
#include "burin/tensor/creation.h"
#include "burin/training/transforms.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>

namespace burin::data {

/// The pixels of an image f32 [C, H, W] or [H, W].
struct Image {
  TensorSpec spec;
  std::vector<float> pixels;
  int64_t channels, height, width;

  /// The first tensor of an example; throws in the name of `op` if it is none.
  Image(const Example &example, const char *op) {
    if (example.empty())
      throw Error(detail::inScope({}), op, "the example has no tensor");
    spec = example[0].spec();
    if (spec.dtype != DType::f32 || spec.shape.size() < 2 || spec.shape.size() > 3)
      throw Error(detail::inScope({}), op,
                  "the first tensor of the example is " + str(spec) + ", but must be f32 [C, H, W] or [H, W]");
    auto numbers = example[0].data<float>();
    pixels.assign(numbers.begin(), numbers.end());
    width = spec.shape.back().value();
    height = spec.shape[spec.shape.size() - 2].value();
    channels = spec.shape.size() == 3 ? spec.shape[0].value() : 1;
  }
  /// An image of as many channels and another size, all `value`.
  Image(const Image &other, int64_t height, int64_t width, float value = 0)
      : spec(other.spec), pixels(size_t(other.channels * height * width), value), channels(other.channels),
        height(height), width(width) {
    spec.shape.back() = width;
    spec.shape[spec.shape.size() - 2] = height;
  }

  float *row(int64_t channel, int64_t y) { return pixels.data() + (channel * height + y) * width; }
  const float *row(int64_t channel, int64_t y) const { return pixels.data() + (channel * height + y) * width; }

  /// The part of this size from row `top` and column `left` on, which may be outside: there it is `fill`.
  Image part(int64_t top, int64_t left, int64_t newHeight, int64_t newWidth, float fill = 0) const {
    Image result(*this, newHeight, newWidth, fill);
    const int64_t firstX = std::max<int64_t>(0, -left), endX = std::min(newWidth, width - left);
    for (int64_t c = 0; c < channels && firstX < endX; ++c)
      for (int64_t y = std::max<int64_t>(0, -top); y < std::min(newHeight, height - top); ++y)
        std::copy_n(row(c, y + top) + left + firstX, endX - firstX, result.row(c, y) + firstX);
    return result;
  }
  /// Bilinear; smaller images are means over the pixels that they cover.
  Image resized(int64_t newHeight, int64_t newWidth) const;

  /// The example with this image.
  Example in(Example example) const {
    example[0] = from_bytes(pixels.data(), spec);
    return example;
  }
};

/// Throws unless low ≤ high, and both are in [least, most].
inline void checkRange(const Range &range, double least, double most, const char *op, const char *name,
                       const Location &where) {
  if (!(range[0] >= least && range[0] <= range[1] && range[1] <= most))
    throw Error(where, op,
                std::string(name) + " is the interval from " + std::to_string(range[0]) + " to " +
                    std::to_string(range[1]) + ", which must ascend between " + std::to_string(least) + " and " +
                    std::to_string(most));
}
inline void checkProbability(double p, const char *op, const Location &where) {
  checkRange({p, p}, 0, 1, op, "the probability", where);
}
inline void checkSize(ImageSize size, const char *op, const Location &where) {
  constexpr int64_t kMost = 1 << 20;
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMost)
    throw Error(where, op,
                "the size " + std::to_string(size.height) + "×" + std::to_string(size.width) + " must be from 1 to " +
                    std::to_string(kMost) + " pixels");
}

} // namespace burin::data
