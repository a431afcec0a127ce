// Transforms that move pixels.
#include "frontend/training/augment/Image.h"
#include <cmath>

namespace burin::data {

using detail::inScope;

Transform compose(std::vector<Transform> transforms) {
  for (const Transform &transform : transforms)
    if (!transform)
      throw Error(detail::inScope({}), "compose", "a transform is empty");
  return [=](Example example, Random &random) {
    for (const Transform &transform : transforms)
      example = transform(std::move(example), random);
    return example;
  };
}

Transform center_crop(ImageSize size, Location where) {
  checkSize(size, "center_crop", inScope(where));
  return [=](Example example, Random &) {
    const Image image(example, "center_crop");
    auto first = [](int64_t of, int64_t part) { // rounds half to even as torchvision, but padding down
      return of >= part ? int64_t(std::nearbyint(double(of - part) / 2)) : -((part - of) / 2);
    };
    return image.part(first(image.height, size.height), first(image.width, size.width), size.height, size.width)
        .in(std::move(example));
  };
}

Transform random_crop(ImageSize size, CropOptions options, Location where) {
  checkSize(size, "random_crop", inScope(where));
  if (options.padding < 0)
    throw Error(inScope(where), "random_crop", "the padding is negative");
  return [=](Example example, Random &random) {
    const Image image(example, "random_crop");
    /// The padding, and the number of positions of the part, along one dimension.
    auto positions = [&](int64_t of, int64_t part) {
      const int64_t lacking = std::max<int64_t>(0, part - of - 2 * options.padding);
      if (lacking && !options.pad_if_needed)
        throw Error(inScope({}), "random_crop",
                    "the image " + str(image.spec) + " is smaller than " + std::to_string(size.height) + "×" +
                        std::to_string(size.width) + "; give a padding, pad_if_needed, or resize() it before");
      const int64_t padding = options.padding + lacking;
      return std::pair(padding, of + 2 * padding - part + 1);
    };
    const auto [above, rows] = positions(image.height, size.height);
    const auto [before, columns] = positions(image.width, size.width);
    const int64_t top = random.integer(0, rows) - above, left = random.integer(0, columns) - before;
    return image.part(top, left, size.height, size.width, float(options.fill)).in(std::move(example));
  };
}

Transform random_horizontal_flip(double p, Location where) {
  checkProbability(p, "random_horizontal_flip", inScope(where));
  return [=](Example example, Random &random) {
    if (random.uniform() >= p)
      return example;
    Image image(example, "random_horizontal_flip");
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t y = 0; y < image.height; ++y)
        std::reverse(image.row(c, y), image.row(c, y) + image.width);
    return image.in(std::move(example));
  };
}

Transform random_vertical_flip(double p, Location where) {
  checkProbability(p, "random_vertical_flip", inScope(where));
  return [=](Example example, Random &random) {
    if (random.uniform() >= p)
      return example;
    Image image(example, "random_vertical_flip");
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t y = 0; y < image.height / 2; ++y)
        std::swap_ranges(image.row(c, y), image.row(c, y) + image.width, image.row(c, image.height - 1 - y));
    return image.in(std::move(example));
  };
}

} // namespace burin::data
