// Fourier transforms of one dimension. There are no complex element types: a complex tensor has one more dimension at
// the end, of size 2, for real and imaginary part, like the result of torch.view_as_real.
#pragma once
#include "burin/tensor.h"

namespace burin::fft {

// `axis` does not count the dimension of real and imaginary parts; the size along it must be static. With `n` the
// signal is cropped or zero-padded to this length first. Inverse transforms divide by the length. Sums are computed in
// f64 by products with matrices of sines and cosines: lengths up to 3,000, for real signals 4,200. The result has the
// element type of x, which must be a float.

/// Transforms of complex signals [..., N, ..., 2], with the same shape. As torch.fft.fft, ifft.
BURIN_API Tensor fft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                     Location where = Location::current());
BURIN_API Tensor ifft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      Location where = Location::current());
/// The first half of the spectrum of a real signal [..., N, ...]: [..., N / 2 + 1, ..., 2]. As torch.fft.rfft.
BURIN_API Tensor rfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      Location where = Location::current());
/// The real signal of length n, by default 2 (M - 1), from half a spectrum [..., M, ..., 2]. As torch.fft.irfft.
BURIN_API Tensor irfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                       Location where = Location::current());

} // namespace burin::fft
