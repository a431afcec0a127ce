// Fourier transforms along the last dimension, as products with matrices of sines and cosines.
#pragma once
#include "burin/tensor.h"

namespace burin::detail {

/// A complex signal along the last dimension, without `imaginary` if it is real. It is f64, because the sums cancel.
struct Signal {
  Tensor real, imaginary;
};

/// Whether the matrix of a transform of `length` elements to `bins` bins would be too large.
bool isTooLong(int64_t length, int64_t bins);
/// The first `bins` bins of the transform of `length` elements.
Signal transform(const Signal &x, int64_t length, int64_t bins, bool inverse);
/// A real signal from the first half of its spectrum; the other half is its complex conjugate.
Tensor realInverse(const Signal &x, int64_t length);
/// Crops the last dimension, or pads it with zeros.
Tensor fitted(const Tensor &x, int64_t length);

} // namespace burin::detail
