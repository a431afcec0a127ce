// Fourier transforms and window functions.
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/tensor/shape/SymbolicMoves.h"
#include "frontend/tensor/composed/Fourier.h"
#include <algorithm>
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;
using namespace detail;

constexpr int64_t kMaxSize = 1 << 22; // of values computed during import

void checkLength(Node &n, int64_t length, bool isHalf) {
  if (isTooLong(length, isHalf ? length / 2 + 1 : length))
    n.unsupported("a transform of " + std::to_string(length) + " elements");
}

/// Cosines and sines of 2 pi row column / length: [rows, columns], for lengths that are known when the graph runs.
struct Waves {
  Tensor cosines, sines;
};
Waves wavesOf(const Dim &rows, const Dim &columns, const Dim &length) {
  const Shape shape{rows, columns};
  const Tensor turns = remainder(iota(shape, DType::i64, 0) * iota(shape, DType::i64, 1), sizeTensor(length));
  const Tensor angle = turns.to(DType::f64) * (2 * M_PI) / sizeTensor(length).to(DType::f64);
  return {cos(angle), sin(angle)};
}

/// detail::transform for a symbolic length.
Signal symbolicTransform(const Signal &x, const Dim &length, const Dim &bins, bool inverse) {
  Waves w = wavesOf(length, bins, length);
  if (inverse)
    w.sines = -w.sines;
  Signal y{matmul(x.real, w.cosines), -matmul(x.real, w.sines)};
  if (x.imaginary.defined())
    y = {y.real + matmul(x.imaginary, w.sines), y.imaginary + matmul(x.imaginary, w.cosines)};
  const Tensor count = sizeTensor(length).to(DType::f64);
  return inverse ? Signal{y.real / count, y.imaginary / count} : y;
}

/// detail::realInverse for a symbolic length.
Tensor symbolicRealInverse(const Signal &x, const Dim &length) {
  const Dim bins = floordiv(length, 2) + 1;
  const Waves w = wavesOf(bins, length, length);
  const Tensor bin = iota({bins}, DType::i64), count = sizeTensor(length);
  const Tensor isSingle = logical_or(bin == 0, bin * 2 == count); // without a conjugate
  const Tensor weight = where(isSingle, full({}, 1, DType::f64), full({}, 2, DType::f64)) / count.to(DType::f64);
  return matmul(x.real * weight, w.cosines) - matmul(x.imaginary * weight, w.sines);
}

Values dft(Node &n) {
  Tensor x = n[0];
  int64_t rank = x.rank(), axis = n.opset() >= 20 ? n.has(2) ? n.integer(2) : -2 : n.attribute("axis", int64_t(1));
  axis = n.axis(axis);
  bool inverse = n.attribute("inverse", int64_t(0)), onesided = n.attribute("onesided", int64_t(0));
  const Dim size = n.shape()[size_t(axis)];
  if (axis == rank - 1)
    n.fail("the axis must not be the last, which holds real and imaginary parts");
  const bool isReal = onesided && inverse; // the result
  const Dim length = n.has(1) ? n.sizes(1).at(0) : isReal ? (size - 1) * 2 : size, half = floordiv(length, 2) + 1;
  const bool isKnown = size.isStatic() && length.isStatic();
  if (length.isStatic()) {
    if (length.value() < 1)
      n.fail("the length must be at least 1");
    checkLength(n, length.value(), onesided);
  }
  Ints order; // moves the transformed dimension to the end
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis)
      order.push_back(i);
  order.push_back(axis);
  Ints back(order.size() + 1);
  for (size_t i = 0; i < order.size(); ++i)
    back[size_t(order[i])] = int64_t(i);
  back.back() = rank - 1;
  const Dim used = isReal ? half : length;
  auto component = [&](int64_t i) {
    const Tensor signal = transpose(squeeze(part(x, rank - 1, i, i + 1), {-1}), order);
    return (isKnown ? fitted(signal, used.value()) : padSymbolic(n, signal, rank - 2, 0, used - size, "constant", 0))
        .to(DType::f64);
  };
  Signal signal{component(0), n.shape().back() == Dim(2) ? component(1) : Tensor()};
  if (isReal) {
    if (!signal.imaginary.defined())
      n.fail("a one-sided inverse transform needs a complex input");
    const Tensor y = isKnown ? realInverse(signal, length.value()) : symbolicRealInverse(signal, length);
    return transpose(unsqueeze(y, {-1}), back).to(x.dtype());
  }
  const Dim bins = onesided ? half : length;
  Signal y = isKnown ? transform(signal, length.value(), bins.value(), inverse)
                     : symbolicTransform(signal, length, bins, inverse);
  return transpose(stack({y.real, y.imaginary}, -1), back).to(x.dtype());
}

/// Transforms of sliding windows.
Values stft(Node &n) {
  Tensor x = n[0];
  Shape shape = n.shape();
  if (shape.size() != 3)
    n.unsupported("a signal " + str(shape));
  const int64_t step = n.integer(1);
  const Dim &size = shape[1], length = n.has(3) ? n.sizes(3).at(0) : n.has(2) ? n.shape(2)[0] : size;
  const bool isLonger = lowerBound(length - size - 1).value_or(-1) >= 0; // than the signal
  if (step < 1 || length == Dim(0) || isLonger)
    n.fail("frames of " + length.str() + " at steps of " + std::to_string(step) + " do not fit the signal");
  if (length.isStatic())
    checkLength(n, length.value(), n.attribute("onesided", int64_t(1)) && shape[2] != Dim(2));
  const Shape frames{floordiv(max(size - length, -step), step) + 1, length};
  Tensor at = iota(frames, DType::i64, 0) * step + iota(frames, DType::i64, 1);
  auto component = [&](int64_t i) {
    Tensor framed = take(squeeze(part(x, 2, i, i + 1), {-1}), at, 1); // [batch, frames, length]
    return (n.has(2) ? framed * n[2] : framed).to(DType::f64);
  };
  Signal signal{component(0), shape[2] == Dim(2) ? component(1) : Tensor()};
  const bool onesided = n.attribute("onesided", int64_t(1)) && !signal.imaginary.defined();
  const Dim bins = onesided ? floordiv(length, 2) + 1 : length;
  Signal y = length.isStatic() ? transform(signal, length.value(), bins.value(), false)
                               : symbolicTransform(signal, length, bins, false);
  return stack({y.real, y.imaginary}, -1).to(x.dtype());
}

/// a - b cos(2 pi i / n) + c cos(4 pi i / n)
Values cosineWindow(Node &n, double a, double b, double c) {
  int64_t size = n.integer(0);
  if (size < 0 || size > kMaxSize)
    n.fail("a window of " + std::to_string(size) + " elements");
  double period = double(n.attribute("periodic", int64_t(1)) ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i)
    values.push_back(a - b * std::cos(2 * M_PI * double(i) / period) + c * std::cos(4 * M_PI * double(i) / period));
  return from_vector(values).to(n.attributeType("output_datatype", DType::f32));
}
Values hann(Node &n) { return cosineWindow(n, 0.5, 0.5, 0); }
Values hamming(Node &n) { return cosineWindow(n, 25.0 / 46, 21.0 / 46, 0); }
Values blackman(Node &n) { return cosineWindow(n, 0.42, 0.5, 0.08); }

/// Triangular filters from bins of a spectrum to bands of equal width on the mel scale.
Values melWeightMatrix(Node &n) {
  int64_t bands = n.integer(0), length = n.integer(1), rate = n.integer(2), bins = length / 2 + 1;
  double low = n.real(3), high = n.real(4);
  if (bands < 1 || length < 1 || rate < 1 || bands > kMaxSize / bins)
    n.fail("a matrix for " + std::to_string(bands) + " bands of transforms of " + std::to_string(length) +
           " elements, " + std::to_string(rate) + " per second");
  auto melOf = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> edges; // bins where triangles start, peak, and end
  for (int64_t i = 0; i < bands + 2; ++i) {
    double mel = melOf(low) + (melOf(high) - melOf(low)) / double(bands + 2) * double(i);
    double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    edges.push_back(int64_t(std::floor(double(length + 1) * hertz / double(rate))));
  }
  std::vector<double> weights(size_t(bins * bands), 0);
  auto set = [&](int64_t bin, int64_t band, double weight) {
    if (bin >= 0 && bin < bins)
      weights[size_t(bin * bands + band)] = weight;
  };
  for (int64_t band = 0; band < bands; ++band) {
    int64_t begin = edges[size_t(band)], top = edges[size_t(band) + 1], end = edges[size_t(band) + 2];
    for (int64_t bin = begin; bin <= top; ++bin)
      set(bin, band, top == begin ? 1 : double(bin - begin) / double(top - begin));
    for (int64_t bin = top; bin < end; ++bin)
      set(bin, band, double(end - bin) / double(end - top));
  }
  return reshape(from_vector(weights), {bins, bands}).to(n.attributeType("output_datatype", DType::f32));
}

constexpr OpEntry table[] = {
    {"BlackmanWindow", blackman},         {"DFT", dft},
    {"HammingWindow", hamming},           {"HannWindow", hann},
    {"MelWeightMatrix", melWeightMatrix}, {"STFT", stft, {3, 0, 1}},
};

} // namespace

std::span<const OpEntry> signalOps() { return table; }

} // namespace burin::onnx
