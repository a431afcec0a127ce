// Fourier transforms and window functions.
#include "frontend/onnx/import/Node.h"
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

Values dft(Node &n) {
  Tensor x = n[0];
  int64_t rank = x.rank(), axis = n.opset() >= 20 ? n.has(2) ? n.integer(2) : -2 : n.attribute("axis", int64_t(1));
  axis = n.axis(axis);
  bool inverse = n.attribute("inverse", int64_t(0)), onesided = n.attribute("onesided", int64_t(0));
  Dim size = n.shape()[size_t(axis)];
  if (axis == rank - 1)
    n.fail("the axis must not be the last, which holds real and imaginary parts");
  if (!size.isStatic())
    n.unsupported("a signal", size);
  int64_t length = n.has(1) ? n.integer(1) : onesided && inverse ? 2 * (size.value() - 1) : size.value();
  if (length < 1)
    n.fail("the length must be at least 1");
  checkLength(n, length, onesided);
  Ints order; // moves the transformed dimension to the end
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis)
      order.push_back(i);
  order.push_back(axis);
  Ints back(order.size() + 1);
  for (size_t i = 0; i < order.size(); ++i)
    back[size_t(order[i])] = int64_t(i);
  back.back() = rank - 1;
  int64_t used = onesided && inverse ? length / 2 + 1 : length;
  auto component = [&](int64_t i) {
    return fitted(transpose(squeeze(part(x, rank - 1, i, i + 1), {-1}), order), used).to(DType::f64);
  };
  Signal signal{component(0), n.shape().back() == Dim(2) ? component(1) : Tensor()};
  if (onesided && inverse) {
    if (!signal.imaginary.defined())
      n.fail("a one-sided inverse transform needs a complex input");
    return transpose(unsqueeze(realInverse(signal, length), {-1}), back).to(x.dtype());
  }
  Signal y = transform(signal, length, onesided ? length / 2 + 1 : length, inverse);
  return transpose(stack({y.real, y.imaginary}, -1), back).to(x.dtype());
}

/// Transforms of sliding windows.
Values stft(Node &n) {
  Tensor x = n[0];
  Shape shape = n.shape();
  if (shape.size() != 3 || !shape[1].isStatic())
    n.unsupported("a signal " + str(shape));
  int64_t step = n.integer(1), size = shape[1].value();
  int64_t length = n.has(3) ? n.integer(3) : n.has(2) ? n.shape(2)[0].value() : size;
  if (step < 1 || length < 1 || length > size)
    n.fail("frames of " + std::to_string(length) + " at steps of " + std::to_string(step) + " do not fit the signal");
  checkLength(n, length, n.attribute("onesided", int64_t(1)) && shape[2] != Dim(2));
  int64_t frames = (size - length) / step + 1;
  Tensor at = iota({frames, length}, DType::i64, 0) * step + iota({frames, length}, DType::i64, 1);
  auto component = [&](int64_t i) {
    Tensor framed = take(squeeze(part(x, 2, i, i + 1), {-1}), at, 1); // [batch, frames, length]
    return (n.has(2) ? framed * n[2] : framed).to(DType::f64);
  };
  Signal signal{component(0), shape[2] == Dim(2) ? component(1) : Tensor()};
  bool onesided = n.attribute("onesided", int64_t(1)) && !signal.imaginary.defined();
  Signal y = transform(signal, length, onesided ? length / 2 + 1 : length, false);
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
