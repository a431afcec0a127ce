// Checks of the options of layers, so that an impossible layer is refused where it is made.
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cmath>

namespace burin::nn {

void require(bool isGood, const char *layer, const std::string &problem, const Location &where) {
  if (!isGood)
    throw Error(detail::inScope(where), layer, problem);
}

void requireProbability(double p, const char *layer, const Location &where) {
  require(p >= 0 && p <= 1, layer, "the probability " + std::to_string(p) + " must lie in [0, 1]", where);
}

void requireNumber(double x, const char *what, const char *layer, const Location &where) {
  require(!std::isnan(x), layer, std::string(what) + " is NaN", where);
}

void requireEpsilon(double eps, const char *layer, const Location &where) {
  require(eps >= 0 && std::isfinite(eps), layer,
          "eps is " + std::to_string(eps) + ", but must be finite and not negative", where);
}

void requireSize(int64_t size, int64_t least, const char *what, const char *layer, const Location &where) {
  require(size >= least, layer,
          std::string(what) + " is " + std::to_string(size) + ", but must be at least " + std::to_string(least), where);
}

static void requireSizes(const IntList &list, int64_t least, const char *what, const char *layer,
                         const Location &where) {
  for (int64_t size : list)
    requireSize(size, least, what, layer, where);
}

IntList perDimension(IntList list, size_t dimensions, int64_t least, const char *layer, const char *what,
                     const Location &where) {
  if (list.size() == 1)
    list.assign(dimensions, list[0]);
  if (list.size() != dimensions)
    throw Error(detail::inScope(where), layer,
                std::string(what) + " takes one number or " + std::to_string(dimensions) + ", not " +
                    std::to_string(list.size()));
  requireSizes(list, least, what, layer, where);
  return list;
}

void requireWindow(const WindowLists &lists, size_t dimensions, const char *layer, const Location &where) {
  auto check = [&](const IntList &list, int64_t least, const char *what, bool maySplit) {
    const bool isPairs = maySplit && list.size() == 2 * dimensions; // before and after each dimension
    if (!list.empty() && !isPairs)
      perDimension(list, dimensions, least, layer, what, where);
    requireSizes(list, least, what, layer, where);
  };
  check(lists.stride, 1, "stride", false);
  check(lists.padding, 0, "padding", true);
  check(lists.dilation, 1, "dilation", false);
}

} // namespace burin::nn
