#include "test/ops/Values.h"
#include <algorithm>
#include <cmath>

namespace burin::test {

using ir::RefTensor;

namespace {

struct Format {
  int precision, minExponent, maxExponent;
};
Format formatOf(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return {53, -1022, 1023};
  case DType::f16:
    return {11, -14, 15};
  case DType::bf16:
    return {8, -126, 127};
  case DType::f8e4m3fn:
    return {4, -6, 8};
  case DType::f8e5m2:
    return {3, -14, 15};
  default:
    return {24, -126, 127};
  }
}

double epsilonOf(DType dtype) { return std::ldexp(1.0, 1 - formatOf(dtype).precision); }
/// Sums of 16-bit floats are accumulated in f32.
double accumulatorEpsilon(DType dtype) { return std::min(epsilonOf(dtype), 0x1p-23); }

/// Returns the distance between adjacent numbers around x.
double spacing(DType dtype, double x) {
  Format format = formatOf(dtype);
  int exponent = x == 0 || !std::isfinite(x) ? format.minExponent : std::ilogb(x);
  return std::ldexp(1.0, std::clamp(exponent, format.minExponent, format.maxExponent) - format.precision + 1);
}

double between(double low, double high, Random &random) {
  return low + (high - low) * std::uniform_real_distribution<double>()(random);
}
template <class T> const T &pick(const std::vector<T> &from, Random &random) { return from[random() % from.size()]; }

double specialReal(DType dtype, bool modest, Random &random) {
  Format f = formatOf(dtype);
  int maxExponent = modest ? f.maxExponent / 4 : f.maxExponent;
  const bool isNormal = modest && dtype == DType::bf16;
  int minExponent = isNormal ? f.minExponent / 4 : f.minExponent;
  double largest = std::ldexp(2.0 - epsilonOf(dtype), maxExponent), least = std::ldexp(1.0, minExponent),
         denormal = isNormal ? least : spacing(dtype, 0);
  static const std::vector<double> corners{0,  0.5, 1,   1.5,   2.5,          3,     1e-3, 1e-10, 20,
                                           89, 128, 255, 32768, 2147483648.0, 9.3e18};
  double x;
  switch (random() % 4) {
  case 0:
    x = std::min(pick(corners, random), largest);
    break;
  case 1:
    x = pick<double>({largest, least, denormal, denormal * 3, INFINITY, NAN}, random);
    break;
  default: // any exponent
    x = std::ldexp(between(1, 2, random),
                   int(between(minExponent - (isNormal ? 0 : f.precision), maxExponent + 1, random)));
  }
  return random() % 2 ? -x : x;
}

int64_t specialInteger(DType dtype, Random &random) {
  int64_t low = ir::lowest(dtype), high = ir::highest(dtype);
  switch (random() % 3) {
  case 0:
    return pick<int64_t>({low, high, low + 1, high - 1, 0, 1}, random);
  case 1:
    return ir::wrapTo(dtype, int64_t(random()));
  default:
    return ir::wrapTo(dtype, int64_t(random() % 7) - 3);
  }
}

} // namespace

RefTensor randomTensor(DType dtype, std::vector<int64_t> shape, const Draw &draw, Mood mood, Random &random) {
  RefTensor t = RefTensor::zeros(dtype, std::move(shape));
  bool special = mood == Mood::Special && draw.specials != Specials::None;
  auto plain = [&] { return between(draw.low, draw.high, random); };
  for (int64_t i = 0; i < t.size(); ++i) {
    bool isSpecial = special && random() % 4 != 0;
    if (isFloat(dtype)) {
      t.reals()[i] =
          ir::roundTo(dtype, isSpecial ? specialReal(dtype, draw.specials == Specials::Modest, random) : plain());
    } else if (isBool(dtype)) {
      t.ints()[i] = draw.low > 0 || random() % 2;
    } else {
      double limited = std::clamp(std::floor(plain() + 0.5), double(ir::lowest(dtype)), double(ir::highest(dtype)));
      t.ints()[i] = isSpecial ? specialInteger(dtype, random) : int64_t(limited);
    }
  }
  return t;
}

std::string str(const std::vector<int64_t> &sizes) {
  std::string s = "[";
  for (int64_t n : sizes)
    s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "]";
}

namespace {

std::string place(size_t i, const std::vector<int64_t> &shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = int64_t(i) % shape[d];
    i /= size_t(shape[d]);
  }
  return "element " + str(at);
}

std::string text(double x) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.17g (%a)", x, x);
  return buffer;
}

/// Returns whether `got` is within `margin` of `want`, both rounded to the type.
bool isNear(DType dtype, double got, double want, double margin) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isnan(margin))
    return got == want;
  return ir::roundTo(dtype, want - margin) <= got && got <= ir::roundTo(dtype, want + margin);
}

} // namespace

std::vector<double> marginsOf(const RefTensor &want, const Tolerance &tolerance, const RefTensor *scale) {
  DType dtype = want.dtype;
  std::vector<double> margins;
  for (size_t i = 0; i < size_t(want.size()); ++i) {
    const double y = want.reals()[i];
    double margin = tolerance.ulps * spacing(dtype, y) + tolerance.epsilons * epsilonOf(dtype) + tolerance.absolute;
    if (scale && tolerance.sumEpsilons > 0)
      margin += spacing(dtype, y) +
                (tolerance.sumEpsilons * accumulatorEpsilon(dtype) + tolerance.roundings * epsilonOf(dtype) / 2) *
                    (*scale)[i];
    margins.push_back(margin);
  }
  return margins;
}

std::string difference(const RefTensor &got, const RefTensor &want, const Tolerance &tolerance,
                       const RefTensor *scale) {
  DType dtype = want.dtype;
  if (got.dtype != dtype || got.shape != want.shape)
    return "is " + std::string(name(got.dtype)) + str(got.shape) + ", expected " + std::string(name(dtype)) +
           str(want.shape);
  const std::vector<double> margins = isFloat(dtype) ? marginsOf(want, tolerance, scale) : std::vector<double>();
  for (size_t i = 0; i < size_t(want.size()); ++i) {
    if (!isFloat(dtype)) {
      if (got.ints()[i] != want.ints()[i])
        return place(i, want.shape) + " is " + std::to_string(got.ints()[i]) + ", expected " +
               std::to_string(want.ints()[i]);
      continue;
    }
    double x = got.reals()[i], y = want.reals()[i];
    const double margin = margins[i];
    bool sameSign = x != 0 || ir::roundTo(dtype, y) != 0 || !tolerance.zeroSigns || std::signbit(x) == std::signbit(y);
    if (!isNear(dtype, x, y, margin) || !sameSign)
      return place(i, want.shape) + " is " + text(x) + ", expected " + text(y) + " ± " + text(margin);
  }
  return "";
}

} // namespace burin::test
