#include "frontend/training/augment/Image.h"
#include <cmath>

namespace burin::data {

using detail::inScope;

/// Zhong et al. 2017. The rectangle is drawn as torchvision does, at most ten times; an image for which none fits stays
/// as it is.
Transform random_erasing(ErasingOptions options, Location where) {
  constexpr const char *kOp = "random_erasing";
  const Location place = inScope(where);
  checkProbability(options.p, kOp, place);
  checkRange(options.scale, 0, 1, kOp, "the scale", place);
  checkRange(options.ratio, 1e-6, 1e6, kOp, "the ratio", place);
  return [=](Example example, Random &random) {
    if (random.uniform() >= options.p)
      return example;
    Image image(example, kOp);
    const double area = double(image.height * image.width);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double erased = area * random.uniform(options.scale[0], options.scale[1]);
      const double ratio = std::exp(random.uniform(std::log(options.ratio[0]), std::log(options.ratio[1])));
      const int64_t height = std::llround(std::sqrt(erased * ratio)), width = std::llround(std::sqrt(erased / ratio));
      if (height >= image.height || width >= image.width)
        continue;
      const int64_t top = random.integer(0, image.height - height + 1),
                    left = random.integer(0, image.width - width + 1);
      for (int64_t c = 0; c < image.channels; ++c)
        for (int64_t y = top; y < top + height; ++y)
          std::generate_n(image.row(c, y) + left, width,
                          [&] { return options.random ? float(random.normal()) : float(options.value); });
      return image.in(std::move(example));
    }
    return example;
  };
}

} // namespace burin::data
