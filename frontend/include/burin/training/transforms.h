// Transforms of examples and batches, with the names and defaults of torchvision.transforms.v2 where it has them.
//
//   options.transform = data::compose({data::random_crop(32, {.padding = 4}), data::random_horizontal_flip(),
//                                      data::normalize({0.49, 0.48, 0.45}, {0.25, 0.24, 0.26})});
//   options.batch_transform = data::mixup(10);
//
// All change the first tensor of an example, an image of numbers: f32 [C, H, W] or [H, W]; other types and shapes are
// errors when an example is loaded. Wrong options are errors when the transform is made. Random numbers depend on the
// seed, the epoch and the index of the example only.
#pragma once
#include "burin/training/dataset.h"
#include <array>

namespace burin::data {

/// Applies transforms in order.
BURIN_API Transform compose(std::vector<Transform> transforms);

/// (x - mean[c]) / std[c], with one number per channel.
BURIN_API Transform normalize(std::vector<double> mean, std::vector<double> std, Location where = Location::current());

/// A size of an image in pixels; one number stands for a square.
struct ImageSize {
  int64_t height, width;
  ImageSize(int64_t both) : height(both), width(both) {}
  ImageSize(int64_t height, int64_t width) : height(height), width(width) {}
};

/// Resizes the smaller side to `size` pixels and keeps the ratio. Bilinear; when it makes an image smaller, each pixel
/// is a mean over all those that it covers (antialias=True).
BURIN_API Transform resize(int64_t size, Location where = Location::current());
/// Resizes to this height and width.
BURIN_API Transform resize(int64_t height, int64_t width, Location where = Location::current());
/// Takes the middle; smaller images are first padded with zeros.
BURIN_API Transform center_crop(ImageSize size, Location where = Location::current());

/// Options of random_crop.
struct CropOptions {
  int64_t padding = 0;        ///< pixels added on each side before
  bool pad_if_needed = false; ///< pad images that are smaller than the result; otherwise they are errors
  double fill = 0;            ///< the value of padded pixels
};
/// Takes a part of this size at a random position.
BURIN_API Transform random_crop(ImageSize size, CropOptions options = {}, Location where = Location::current());

/// An interval of numbers.
using Range = std::array<double, 2>;

/// Options of random_resized_crop.
struct ResizedCropOptions {
  Range scale{0.08, 1};        ///< of the area of the part, as a fraction of the image's
  Range ratio{3. / 4, 4. / 3}; ///< of width over height of the part
};
/// Takes a part of random area and ratio, and resizes it.
BURIN_API Transform random_resized_crop(ImageSize size, ResizedCropOptions options = {},
                                        Location where = Location::current());

/// Mirrors left and right with probability p.
BURIN_API Transform random_horizontal_flip(double p = 0.5, Location where = Location::current());
/// Mirrors top and bottom with probability p.
BURIN_API Transform random_vertical_flip(double p = 0.5, Location where = Location::current());

/// Options of random_erasing.
struct ErasingOptions {
  double p = 0.5;
  Range scale{0.02, 0.33}; ///< of the erased area, as a fraction of the image's
  Range ratio{0.3, 3.3};   ///< of height over width of the erased area
  double value = 0;        ///< what erased pixels become
  bool random = false;     ///< they become normally distributed numbers instead (value="random")
};
/// Overwrites a random rectangle with probability p. Comes after normalize().
BURIN_API Transform random_erasing(ErasingOptions options = {}, Location where = Location::current());

/// How much color_jitter changes: a number x stands for factors from max(0, 1 - x) to 1 + x, or for a hue from -x to x;
/// two numbers are the interval itself.
struct Jitter {
  std::optional<double> amount;
  Range range{};
  Jitter(double amount) : amount(amount) {}
  Jitter(double low, double high) : range{low, high} {}
};
/// Options of color_jitter. The hue is a fraction of the circle of colours, between -0.5 and 0.5.
struct ColorJitterOptions {
  Jitter brightness = 0, contrast = 0, saturation = 0, hue = 0;
};
/// Changes brightness, contrast, saturation and hue by random factors, in a random order. Pixels are in [0, 1], in
/// three channels (red, green, blue) or one; saturation and hue leave images of one channel as they are. Comes before
/// normalize().
BURIN_API Transform color_jitter(ColorJitterOptions options, Location where = Location::current());

/// For LoaderOptions::batch_transform: mixes each example of a batch {images [N, …] of floats, classes i64[N], …} with
/// the one before it (the first with the last): x·λ + x_before·(1 - λ), λ from the Beta(alpha, alpha) distribution, one
/// for the batch. Classes become probabilities f32[N, num_classes], which cross_entropy takes; targets that are
/// probabilities already, f32[N, num_classes], are mixed too. Other tensors of the batch stay as they are.
BURIN_API Transform mixup(int64_t num_classes, double alpha = 1, Location where = Location::current());

} // namespace burin::data
