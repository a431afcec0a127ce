// Window functions and short-time Fourier transforms.
#include "burin/tensor/math/signal.h"
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/math/fft.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <cmath>

namespace burin {

using namespace detail;

/// f(i / last) for i = 0 … size - 1, where `last` is that of the symmetric window.
template <class F>
static Tensor window(int64_t size, bool periodic, DType dtype, const char *op, const Location &where, F f) {
  if (size < 0 || !isFloat(dtype))
    throw Error(inScope(where), op,
                "the size " + std::to_string(size) + " must not be negative and the type " + std::string(name(dtype)) +
                    " must be a float");
  const double last = double(periodic ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i)
    values.push_back(size == 1 ? 1 : f(double(i) / last));
  return following(from_vector(values, std::nullopt, where)).to(dtype, where);
}
Tensor hann_window(int64_t size, bool periodic, DType dtype, Location where) {
  return window(size, periodic, dtype, "hann_window", where,
                [](double at) { return 0.5 - 0.5 * std::cos(2 * M_PI * at); });
}
Tensor hamming_window(int64_t size, bool periodic, double alpha, double beta, DType dtype, Location where) {
  return window(size, periodic, dtype, "hamming_window", where,
                [=](double at) { return alpha - beta * std::cos(2 * M_PI * at); });
}
Tensor blackman_window(int64_t size, bool periodic, DType dtype, Location where) {
  return window(size, periodic, dtype, "blackman_window", where,
                [](double at) { return 0.42 - 0.5 * std::cos(2 * M_PI * at) + 0.08 * std::cos(4 * M_PI * at); });
}
Tensor bartlett_window(int64_t size, bool periodic, DType dtype, Location where) {
  return window(size, periodic, dtype, "bartlett_window", where, [](double at) { return 1 - std::abs(2 * at - 1); });
}
Tensor kaiser_window(int64_t size, bool periodic, double beta, DType dtype, Location where) {
  if (!(beta >= 0))
    throw Error(inScope(where), "kaiser_window", "beta is " + std::to_string(beta) + ", but must not be negative");
  return window(size, periodic, dtype, "kaiser_window", where, [=](double at) {
    const double across = std::max(0.0, 1 - (2 * at - 1) * (2 * at - 1));
    return std::cyl_bessel_i(0.0, beta * std::sqrt(across)) / std::cyl_bessel_i(0.0, beta);
  });
}

namespace {

/// Checked options of a transform with frames of n_fft samples.
struct Frames {
  int64_t hop;
  Tensor window; // n_fft numbers

  Frames(int64_t length, const StftOptions &options, DType dtype, const char *op, const Location &where)
      : hop(options.hop_length ? options.hop_length : length / 4) {
    const int64_t width = options.win_length ? options.win_length : length;
    if (length < 1 || hop < 1 || width < 1 || width > length)
      throw Error(inScope(where), op,
                  "frames of " + std::to_string(length) + " samples, windows of " + std::to_string(width) +
                      " and steps of " + std::to_string(hop) + " must be positive, and a window is at most a frame");
    window = options.window ? options.window->to(dtype) : ones({width}, dtype);
    if (window.shape() != Shape{width})
      throw Error(inScope(where), op,
                  "the window is " + str(window.spec()) + ", but must have the " + std::to_string(width) +
                      " elements of win_length");
    const int64_t before = (length - width) / 2;
    if (width < length)
      window = burin::pad(window, IntList{before}, IntList{length - width - before});
  }
};

} // namespace

Tensor stft(const Tensor &given, int64_t n_fft, const StftOptions &options, Location where) {
  LocationScope scope(inScope(where));
  if (given.rank() < 1 || given.rank() > 2 || !isFloat(given.dtype()))
    throw Error(inScope(where), "stft",
                "the signal is " + str(given.spec()) + ", but must be floats [length] or [batch, length]");
  const Frames frames(n_fft, options, given.dtype(), "stft", where);
  Tensor x = given;
  if (options.center && options.pad_mode == "constant")
    x = padded(x, Padding({n_fft / 2, n_fft / 2}, where), "constant", 0);
  else if (options.center)
    x = squeeze(padded(unsqueeze(x, 0), Padding({n_fft / 2, n_fft / 2}, where), options.pad_mode, 0), 0);
  const Dim size = x.shape().back();
  if (size.isStatic() && size.value() < n_fft)
    throw Error(inScope(where), "stft",
                "a frame of " + std::to_string(n_fft) + " samples does not fit the signal " + str(given.spec()));
  const Dim count = floordiv(size - n_fft, frames.hop) + 1;
  const Tensor at = unsqueeze(arange(count) * frames.hop, 1) + arange(n_fft);
  Tensor spectrum = fft::rfft(take(x, at, -1) * frames.window);
  if (options.normalized)
    spectrum = spectrum / std::sqrt(double(n_fft));
  return swapaxes(spectrum, -3, -2);
}

Tensor istft(const Tensor &x, int64_t n_fft, const StftOptions &options, const std::optional<Dim> &length,
             Location where) {
  LocationScope scope(inScope(where));
  if (x.rank() < 3 || x.rank() > 4 || !isFloat(x.dtype()) || x.shape().back() != Dim(2) ||
      x.shape()[size_t(x.rank() - 3)] != Dim(n_fft / 2 + 1))
    throw Error(inScope(where), "istft",
                "the spectra are " + str(x.spec()) + ", but must be floats [" + std::to_string(n_fft / 2 + 1) +
                    ", frames, 2], with or without a dimension for a batch before these");
  const Frames frames(n_fft, options, x.dtype(), "istft", where);
  Tensor parts = fft::irfft(swapaxes(x, -3, -2), n_fft) * frames.window;
  if (options.normalized)
    parts = parts * std::sqrt(double(n_fft));
  const Dim count = x.shape()[size_t(x.rank() - 2)], total = (count - 1) * frames.hop + n_fft;
  const Tensor at = ravel(unsqueeze(arange(count) * frames.hop, 1) + arange(n_fft));
  Shape flat(parts.shape().begin(), parts.shape().end() - 2), whole = flat;
  flat.push_back(count * n_fft);
  whole.push_back(total);
  const int64_t axis = int64_t(whole.size()) - 1, margin = options.center ? n_fft / 2 : 0;
  Tensor y = index_add(zeros(whole, x.dtype()), axis, at, reshape(parts, flat));
  const Tensor squares = reshape(broadcast_to(frames.window * frames.window, {count, Dim(n_fft)}), {count * n_fft});
  Tensor weight = index_add(zeros({total}, x.dtype()), 0, at, squares);
  const Dim kept = length.value_or(total - 2 * margin), present = min(kept, total - margin);
  weight = narrow(weight, 0, margin, present);
  weight =
      check(weight > 1e-11, weight, "istft: the windows do not cover the signal: the sum of their squares is 0", where);
  y = narrow(y, axis, margin, present) / weight;
  if (present == kept)
    return y;
  whole.back() = kept - present;
  return concat({y, zeros(whole, x.dtype())}, axis);
}

} // namespace burin
