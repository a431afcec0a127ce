#include "frontend/tensor/composed/Fourier.h"
#include "burin/tensor/math/fft.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/composed/Composed.h"
#include <cmath>

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

Call prepare(const Tensor &x, std::optional<int64_t> n, int64_t axis, bool isComplex, bool isHalf, const char *name) {
  const Location place = inScope(Location());
  if (!isFloat(x.dtype()))
    throw Error(place, name, "the signal is " + str(x.spec()) + ", but must be floats; convert it: to(f32)");
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

} // namespace

Tensor fft(const Tensor &x, std::optional<int64_t> n, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, false, "fft");
  return call.moveBack(transform(call.signal, call.length, call.length, false));
}
Tensor ifft(const Tensor &x, std::optional<int64_t> n, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, false, "ifft");
  return call.moveBack(transform(call.signal, call.length, call.length, true));
}
Tensor rfft(const Tensor &x, std::optional<int64_t> n, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, false, false, "rfft");
  return call.moveBack(transform(call.signal, call.length, call.length / 2 + 1, false));
}
Tensor irfft(const Tensor &x, std::optional<int64_t> n, int64_t axis, Location where) {
  LocationScope scope(inScope(where));
  const Call call = prepare(x, n, axis, true, true, "irfft");
  return call.moveBack(realInverse(call.signal, call.length));
}

} // namespace fft

} // namespace burin
