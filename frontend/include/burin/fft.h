// Fourier transforms of one dimension. There are no complex element types: a complex tensor has a last dimension of
// size 2 more, for real and imaginary part, as torch.view_as_real gives.
#pragma once
#include "burin/tensor.h"

namespace burin::fft {

// In all of them `axis` counts the dimensions without the pair of parts; the size along it must be known. With `n` the
// signal is first cut off, or continued by zeros, to this length. Inverse transforms divide by the length. Sums are
// computed in f64 by products with matrices of sines and cosines: lengths up to 3,000, for real signals 4,200. The
// result has the element type of x, which must be a float.

/// Of a complex signal [..., N, ..., 2]: the same shape. As torch.fft.fft, ifft.
BURIN_API Tensor fft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                     Location where = Location::current());
BURIN_API Tensor ifft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      Location where = Location::current());
/// Of a real signal [..., N, ...]: the first half of the spectrum, [..., N / 2 + 1, ..., 2]. As torch.fft.rfft.
BURIN_API Tensor rfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      Location where = Location::current());
/// From half a spectrum [..., M, ..., 2] the real signal of length n, by default 2 (M - 1). As torch.fft.irfft.
BURIN_API Tensor irfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                       Location where = Location::current());

} // namespace burin::fft
