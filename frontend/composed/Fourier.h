// Fourier transforms along the last dimension, as products with matrices of sines and cosines.
#pragma once
#include "burin/tensor.h"

namespace burin::detail {

/// A complex signal along the last dimension; `imaginary` is absent for a real one. It is f64, as the sums cancel.
struct Signal {
  Tensor real, imaginary;
};

/// Whether a transform of this length to so many bins is refused, because its matrix would be too large.
bool isTooLong(int64_t length, int64_t bins);
/// The first `bins` of the transform of `length` elements.
Signal transform(const Signal &x, int64_t length, int64_t bins, bool inverse);
/// A real signal from the first half of its spectrum: the other half is the same, conjugated.
Tensor realInverse(const Signal &x, int64_t length);
/// The last dimension cut off, or continued by zeros.
Tensor fitted(const Tensor &x, int64_t length);

} // namespace burin::detail
