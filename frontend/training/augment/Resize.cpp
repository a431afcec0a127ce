// Transforms that interpolate between pixels.
#include "frontend/training/augment/Image.h"
#include <cmath>

namespace burin::data {

using detail::inScope;

namespace {

/// The pixels that one of the result is a weighted mean of.
struct Window {
  int64_t first;
  std::vector<float> weights;
};

/// A triangle as wide as two pixels, of the result if it has fewer.
std::vector<Window> windowsOf(int64_t from, int64_t to) {
  const double scale = double(from) / double(to), stretch = std::max(scale, 1.0);
  std::vector<Window> windows;
  for (int64_t i = 0; i < to; ++i) {
    const double center = scale * (double(i) + 0.5);
    const int64_t first = std::max<int64_t>(int64_t(center - stretch + 0.5), 0);
    const int64_t end = std::min(int64_t(center + stretch + 0.5), from);
    Window window{first, {}};
    double sum = 0;
    std::vector<double> weights;
    for (int64_t j = first; j < end; ++j) {
      weights.push_back(std::max(0.0, 1 - std::abs((double(j) - center + 0.5) / stretch)));
      sum += weights.back();
    }
    for (double weight : weights)
      window.weights.push_back(float(weight / sum));
    windows.push_back(std::move(window));
  }
  return windows;
}

} // namespace

Image Image::resized(int64_t newHeight, int64_t newWidth) const {
  if (newHeight == height && newWidth == width)
    return *this;
  if (height < 1 || width < 1)
    throw Error(inScope({}), "resize", "the image " + str(spec) + " has no pixels");
  Image wide(*this, height, newWidth), result(*this, newHeight, newWidth);
  const std::vector<Window> columns = windowsOf(width, newWidth), rows = windowsOf(height, newHeight);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const float *from = row(c, y);
      float *to = wide.row(c, y);
      for (int64_t x = 0; x < newWidth; ++x) {
        const Window &window = columns[size_t(x)];
        float sum = 0;
        for (size_t i = 0; i < window.weights.size(); ++i)
          sum += window.weights[i] * from[window.first + int64_t(i)];
        to[x] = sum;
      }
    }
    for (int64_t y = 0; y < newHeight; ++y) {
      const Window &window = rows[size_t(y)];
      float *to = result.row(c, y);
      for (size_t i = 0; i < window.weights.size(); ++i) {
        const float *from = wide.row(c, window.first + int64_t(i));
        for (int64_t x = 0; x < newWidth; ++x)
          to[x] += window.weights[i] * from[x];
      }
    }
  }
  return result;
}

Transform resize(int64_t size, Location where) {
  checkSize(size, "resize", inScope(where));
  return [=](Example example, Random &) {
    const Image image(example, "resize");
    const int64_t smaller = std::min(image.height, image.width);
    auto scaled = [&](int64_t side) { return side == smaller ? size : size * side / std::max<int64_t>(smaller, 1); };
    return image.resized(scaled(image.height), scaled(image.width)).in(std::move(example));
  };
}

Transform resize(int64_t height, int64_t width, Location where) {
  checkSize({height, width}, "resize", inScope(where));
  return
      [=](Example example, Random &) { return Image(example, "resize").resized(height, width).in(std::move(example)); };
}

namespace {

struct Part {
  int64_t top, left, height, width;
};

/// As torchvision draws it: at most ten times, then the largest part in the middle whose ratio is allowed.
Part drawPart(const Image &image, const ResizedCropOptions &options, Random &random) {
  const double area = double(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double taken = area * random.uniform(options.scale[0], options.scale[1]);
    const double ratio = std::exp(random.uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const int64_t width = std::llround(std::sqrt(taken * ratio)), height = std::llround(std::sqrt(taken / ratio));
    if (width > 0 && width <= image.width && height > 0 && height <= image.height) {
      const int64_t top = random.integer(0, image.height - height + 1);
      return {top, random.integer(0, image.width - width + 1), height, width};
    }
  }
  Part part{0, 0, image.height, image.width};
  const double ratio = double(image.width) / double(image.height);
  if (ratio < options.ratio[0])
    part.height = std::clamp<int64_t>(std::llround(double(image.width) / options.ratio[0]), 1, image.height);
  else if (ratio > options.ratio[1])
    part.width = std::clamp<int64_t>(std::llround(double(image.height) * options.ratio[1]), 1, image.width);
  part.top = (image.height - part.height) / 2;
  part.left = (image.width - part.width) / 2;
  return part;
}

} // namespace

Transform random_resized_crop(ImageSize size, ResizedCropOptions options, Location where) {
  constexpr const char *kOp = "random_resized_crop";
  const Location place = inScope(where);
  checkSize(size, kOp, place);
  checkRange(options.scale, 0, 1, kOp, "the scale", place);
  checkRange(options.ratio, 1e-6, 1e6, kOp, "the ratio", place);
  return [=](Example example, Random &random) {
    const Image image(example, kOp);
    if (image.pixels.empty())
      throw Error(inScope({}), kOp, "the image " + str(image.spec) + " has no pixels");
    const Part part = drawPart(image, options, random);
    return image.part(part.top, part.left, part.height, part.width)
        .resized(size.height, size.width)
        .in(std::move(example));
  };
}

} // namespace burin::data
