#include "frontend/tensor/composed/Fourier.h"
#include "burin/tensor/math/fft.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"
#include <algorithm>
#include <cmath>
#include <span>

namespace burin {

using namespace detail;

bool detail::isTooLong(int64_t length, int64_t bins) {
  constexpr int64_t most = 9'000'000; // 4,096 by 2,049
  return length > most || bins > most / length;
}

/// [rows, columns] of f(2 pi row column / length), times a weight per row if given.
static Tensor wave(double (*f)(double), int64_t rows, int64_t columns, int64_t length,
                   const std::vector<double> &weights = {}) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k)
      values.push_back(f(2 * M_PI * double(i * k % length) / double(length)) *
                       (weights.empty() ? 1 : weights[size_t(i)]));
  return detail::following(from_vector(values, Shape{rows, columns}));
}
static double cosine(double x) { return std::cos(x); }
static double sine(double x) { return std::sin(x); }

Signal detail::transform(const Signal &x, int64_t length, int64_t bins, bool inverse) {
  Tensor c = wave(cosine, length, bins, length), s = wave(sine, length, bins, length);
  if (inverse)
    s = -s;
  Signal y{matmul(x.real, c), -matmul(x.real, s)};
  if (x.imaginary.defined())
    y = {y.real + matmul(x.imaginary, s), y.imaginary + matmul(x.imaginary, c)};
  if (inverse)
    y = {y.real / double(length), y.imaginary / double(length)};
  return y;
}

Tensor detail::realInverse(const Signal &x, int64_t length) {
  const int64_t bins = length / 2 + 1;
  std::vector<double> weights(size_t(bins), 2 / double(length));
  weights[0] = 1 / double(length);
  if (length % 2 == 0)
    weights.back() = 1 / double(length);
  return matmul(x.real, wave(cosine, bins, length, length, weights)) -
         matmul(x.imaginary, wave(sine, bins, length, length, weights));
}

Tensor detail::fitted(const Tensor &x, int64_t length) {
  const int64_t axis = x.rank() - 1, size = x.shape().back().value();
  if (size >= length)
    return size == length ? x : x.slice(axis, 0, length);
  std::vector<int64_t> low(size_t(x.rank()), 0), high = low;
  high.back() = length - size;
  return burin::pad(x, low, high);
}

namespace fft {

namespace {

/// Checked arguments of a transform, with the signal's axis moved to the end.
struct Call {
  int64_t axis, size, length;
  DType dtype;
  Signal signal;

  Tensor moveBack(const Tensor &x) const { return movedim(x, -1, axis).to(dtype); }
  Tensor moveBack(const Signal &y) const { return stack({moveBack(y.real), moveBack(y.imaginary)}, -1); }
};

void requireFloats(const Tensor &x, const char *name) {
  if (!isFloat(x.dtype()))
    throw Error(inScope({}), name, "the signal is " + str(x.spec()) + ", but must be floats; convert it: to(f32)");
}

Call prepare(const Tensor &x, std::optional<int64_t> n, int64_t axis, bool isComplex, bool isHalf, const char *name) {
  const Location place = inScope(Location());
  requireFloats(x, name);
  if (isComplex && (x.rank() < 2 || x.shape().back() != Dim(2)))
    throw Error(place, name,
                "a complex signal has a last dimension of size 2, for real and imaginary parts, not " + str(x.spec()));
  auto part = [&](int64_t i) { return isComplex ? select(x, -1, i) : x; };
  const Tensor real = part(0);
  axis = axisOf(real, axis, name);
  const Dim &size = real.shape()[size_t(axis)];
  if (!size.isStatic())
    throw Error(place, name, "the size " + size.str() + " along the axis is symbolic, but must be known");
  const int64_t length = n.value_or(isHalf ? 2 * (size.value() - 1) : size.value());
  if (length < 1 || isTooLong(length, isComplex && !isHalf ? length : length / 2 + 1))
    throw Error(place, name,
                "a transform of length " + std::to_string(length) +
                    "; complex signals have lengths from 1 to 3000, real ones to about 4200");
  const int64_t used = isHalf ? length / 2 + 1 : length;
  auto prepared = [&](const Tensor &x) { return fitted(movedim(x, axis, -1), used).to(DType::f64); };
  return {axis, size.value(), length, x.dtype(), {prepared(real), isComplex ? prepared(part(1)) : Tensor()}};
}

/// What `norm` multiplies the result by, if an inverse transform already divides by the length.
double scaleOf(const std::string &norm, bool isInverse, int64_t length, const char *name) {
  const double n = double(length);
  if (norm == "backward")
    return 1;
  if (norm == "forward")
    return isInverse ? n : 1 / n;
  if (norm == "ortho")
    return isInverse ? std::sqrt(n) : 1 / std::sqrt(n);
  throw Error(inScope({}), name, R"(norm is ")" + norm + R"(", but must be "backward", "forward" or "ortho")");
}
Tensor times(const Tensor &x, double scale) { return scale == 1 ? x : x * scale; }
Signal times(const Signal &x, double scale) { return {times(x.real, scale), times(x.imaginary, scale)}; }

Tensor wide(const Tensor &x, const char *name) {
  requireFloats(x, name);
  return x.to(DType::f64);
}

/// The axes of a transform over several, from the first, with the length along each.
std::vector<std::pair<int64_t, std::optional<int64_t>>> axesOf(const Tensor &x, bool isComplex,
                                                               const std::optional<IntList> &s,
                                                               const std::optional<IntList> &axes, const char *name) {
  const int64_t rank = x.rank() - isComplex, count = axes ? int64_t(axes->size()) : s ? int64_t(s->size()) : rank;
  auto fail = [&](const std::string &what) { throw Error(inScope({}), name, what + " for " + str(x.spec())); };
  if (count < 1 || count > rank)
    fail(std::to_string(count) + " axes");
  if (s && int64_t(s->size()) != count)
    fail(std::to_string(s->size()) + " lengths for " + std::to_string(count) + " axes");
  std::vector<std::pair<int64_t, std::optional<int64_t>>> result;
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = axes ? (*axes)[size_t(i)] : rank - count + i;
    if (axis < -rank || axis >= rank)
      fail("axis " + std::to_string(axis) + " is out of range");
    axis = axis < 0 ? axis + rank : axis;
    if (std::ranges::any_of(result, [&](const auto &known) { return known.first == axis; }))
      fail("axis " + std::to_string(axis) + " occurs twice");
    result.emplace_back(axis, s && (*s)[size_t(i)] != -1 ? std::optional((*s)[size_t(i)]) : std::nullopt);
  }
  return result;
}

/// Moves each axis by half of its size.
Tensor shifted(const Tensor &x, const std::optional<IntList> &axes, bool isBack, const char *name) {
  IntList shifts, all;
  for (const auto &[axis, length] : axesOf(x, false, std::nullopt, axes, name)) {
    const Dim &size = x.shape()[size_t(axis)];
    if (!size.isStatic())
      throw Error(inScope({}), name, "the size " + size.str() + " along an axis is symbolic, but must be known");
    shifts.push_back((size.value() + isBack) / 2);
    all.push_back(axis);
  }
  return roll(x, shifts, all);
}

} // namespace

Tensor fft(const Tensor &x, std::optional<int64_t> n, int64_t axis, const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, false, "fft");
  return call.moveBack(
      times(transform(call.signal, call.length, call.length, false), scaleOf(norm, false, call.length, "fft")));
}
Tensor ifft(const Tensor &x, std::optional<int64_t> n, int64_t axis, const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, false, "ifft");
  return call.moveBack(
      times(transform(call.signal, call.length, call.length, true), scaleOf(norm, true, call.length, "ifft")));
}
Tensor rfft(const Tensor &x, std::optional<int64_t> n, int64_t axis, const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, false, false, "rfft");
  return call.moveBack(times(transform(call.signal, call.length, call.length / 2 + 1, false),
                             scaleOf(norm, false, call.length, "rfft")));
}
Tensor irfft(const Tensor &x, std::optional<int64_t> n, int64_t axis, const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, true, "irfft");
  return call.moveBack(times(realInverse(call.signal, call.length), scaleOf(norm, true, call.length, "irfft")));
}

/// A transform of complex signals along one axis after the other.
template <class Axes>
static Tensor alongEach(decltype(fft) *transform, Tensor x, const Axes &axes, const std::string &norm) {
  for (const auto &[axis, length] : axes)
    x = transform(x, length, axis, norm, Location());
  return x;
}
Tensor fftn(const Tensor &x, const std::optional<IntList> &s, const std::optional<IntList> &axes,
            const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  return alongEach(fft, wide(x, "fftn"), axesOf(x, true, s, axes, "fftn"), norm).to(x.dtype());
}
Tensor ifftn(const Tensor &x, const std::optional<IntList> &s, const std::optional<IntList> &axes,
             const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  return alongEach(ifft, wide(x, "ifftn"), axesOf(x, true, s, axes, "ifftn"), norm).to(x.dtype());
}
Tensor rfftn(const Tensor &x, const std::optional<IntList> &s, const std::optional<IntList> &axes,
             const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  auto all = axesOf(x, false, s, axes, "rfftn");
  Tensor half = rfft(wide(x, "rfftn"), all.back().second, all.back().first, norm);
  return alongEach(fft, half, std::span(all).first(all.size() - 1), norm).to(x.dtype());
}
Tensor irfftn(const Tensor &x, const std::optional<IntList> &s, const std::optional<IntList> &axes,
              const std::string &norm, Location where) {
  LocationScope scope(inScope(where));
  auto all = axesOf(x, true, s, axes, "irfftn");
  Tensor half = alongEach(ifft, wide(x, "irfftn"), std::span(all).first(all.size() - 1), norm);
  return irfft(half, all.back().second, all.back().first, norm).to(x.dtype());
}

static void requireFrequencies(int64_t n, double d, const char *name) {
  if (n < 1 || d == 0)
    throw Error(inScope({}), name, "n must be positive, and d not 0");
}
Tensor fftfreq(int64_t n, double d, Location where) {
  LocationScope scope(inScope(where));
  requireFrequencies(n, d, "fftfreq");
  Tensor half = arange((n + 1) / 2), rest = arange(-(n / 2), 0);
  return (concat({half, rest}, 0).to(DType::f64) / (double(n) * d)).to(DType::f32);
}
Tensor rfftfreq(int64_t n, double d, Location where) {
  LocationScope scope(inScope(where));
  requireFrequencies(n, d, "rfftfreq");
  return (arange(n / 2 + 1).to(DType::f64) / (double(n) * d)).to(DType::f32);
}
Tensor fftshift(const Tensor &x, const std::optional<IntList> &axes, Location where) {
  LocationScope scope(inScope(where));
  return shifted(x, axes, false, "fftshift");
}
Tensor ifftshift(const Tensor &x, const std::optional<IntList> &axes, Location where) {
  LocationScope scope(inScope(where));
  return shifted(x, axes, true, "ifftshift");
}

} // namespace fft

} // namespace burin
