#include "tools/common/Values.h"
#include "burin/narrow_float.h"
#include <cmath>
#include <cstring>

namespace burin::run {
namespace {

template <class T> T load(const std::byte *p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

void store(DType dtype, std::byte *p, double x) {
  auto put = [&](auto value) { std::memcpy(p, &value, sizeof value); };
  switch (dtype) {
  case DType::f32:
    return put(float(x));
  case DType::f64:
    return put(x);
  case DType::f16:
  case DType::bf16:
    return put(toNarrowFloat(dtype, x));
  case DType::f8e4m3fn:
  case DType::f8e5m2:
    return put(uint8_t(toNarrowFloat(dtype, x)));
  case DType::i8:
    return put(int8_t(x));
  case DType::u8:
    return put(uint8_t(x));
  case DType::i16:
    return put(int16_t(x));
  case DType::i32:
    return put(int32_t(x));
  case DType::i64:
    return put(int64_t(x));
  case DType::boolean:
    return put(uint8_t(x != 0));
  }
}

rt::NpyArray zeros(DType dtype, std::vector<int64_t> shape) {
  rt::NpyArray array{dtype, std::move(shape), {}};
  array.data.resize(size_t(Values{dtype, array.shape, nullptr}.count()) * byteWidth(dtype));
  return array;
}

/// SplitMix64: mixes a counter.
class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  double normal() { // Box-Muller transform
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }

private:
  uint64_t state;
};

} // namespace

int64_t Values::count() const {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

double Values::operator[](int64_t i) const {
  const std::byte *p = data + size_t(i) * byteWidth(dtype);
  switch (dtype) {
  case DType::f32:
    return load<float>(p);
  case DType::f64:
    return load<double>(p);
  case DType::f16:
  case DType::bf16:
    return fromNarrowFloat(dtype, load<uint16_t>(p));
  case DType::f8e4m3fn:
  case DType::f8e5m2:
    return fromNarrowFloat(dtype, load<uint8_t>(p));
  case DType::i8:
    return load<int8_t>(p);
  case DType::u8:
  case DType::boolean:
    return load<uint8_t>(p);
  case DType::i16:
    return load<int16_t>(p);
  case DType::i32:
    return load<int32_t>(p);
  case DType::i64:
    return double(load<int64_t>(p));
  }
  return NAN;
}

rt::NpyArray filled(DType dtype, std::vector<int64_t> shape, double value) {
  rt::NpyArray array = zeros(dtype, std::move(shape));
  for (size_t at = 0; at < array.data.size(); at += byteWidth(dtype))
    store(dtype, array.data.data() + at, value);
  return array;
}

rt::NpyArray random(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  rt::NpyArray array = zeros(dtype, std::move(shape));
  Generator generator(seed);
  for (size_t at = 0; at < array.data.size(); at += byteWidth(dtype)) {
    double x = isFloat(dtype)  ? generator.normal()
               : isBool(dtype) ? double(generator.next() & 1)
                               : std::floor(generator.uniform() * 10);
    store(dtype, array.data.data() + at, x);
  }
  return array;
}

std::string typeText(DType dtype, std::span<const int64_t> shape) {
  std::string out(name(dtype));
  out += "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Summary summarize(const Values &values) {
  Summary s;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0, n = values.count(); i < n; ++i) {
    double x = values[i];
    if (!std::isfinite(x)) {
      ++s.notFinite;
      continue;
    }
    s.min = finite ? std::min(s.min, x) : x;
    s.max = finite ? std::max(s.max, x) : x;
    sum += x;
    ++finite;
  }
  s.mean = finite ? sum / double(finite) : 0;
  return s;
}

Difference compare(const Values &got, const Values &expected, double rtol, double atol) {
  Difference out;
  double worstExcess = 0;
  for (int64_t i = 0, n = got.count(); i < n; ++i) {
    double a = got[i], b = expected[i];
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double difference = std::fabs(a - b);
    double excess = std::isfinite(difference) ? difference - (atol + rtol * std::fabs(b)) : INFINITY;
    if (std::isfinite(difference))
      out.worstAbsolute = std::max(out.worstAbsolute, difference);
    if (std::isfinite(difference) && b != 0 && std::fabs(b) >= atol)
      out.worstRelative = std::max(out.worstRelative, difference / std::fabs(b));
    if (excess > worstExcess) {
      worstExcess = excess;
      out.index = i, out.got = a, out.expected = b;
    }
  }
  return out;
}

} // namespace burin::run
