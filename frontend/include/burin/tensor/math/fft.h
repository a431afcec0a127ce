// Fourier transforms. There are no complex element types: a complex tensor has one more dimension at the end, of size
// 2, for real and imaginary part, like the result of torch.view_as_real.
#pragma once
#include "burin/tensor.h"

namespace burin::fft {

// Axes do not count the dimension of real and imaginary parts; the sizes along them must be static. With `n`, or `s`,
// the signal is cropped or zero-padded to this length, or these, first. `norm` says what divides by the number of
// elements: "backward" the inverse transforms, "forward" the others, "ortho" both, by its square root. Sums are
// computed in f64 by products with matrices of sines and cosines: lengths up to 3,000, for real signals 4,200. The
// result has the element type of x, which must be a float.

/// Transforms of complex signals [..., N, ..., 2], with the same shape. As torch.fft.fft, ifft.
BURIN_API Tensor fft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                     const std::string &norm = "backward", Location where = Location::current());
BURIN_API Tensor ifft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      const std::string &norm = "backward", Location where = Location::current());
/// The first half of the spectrum of a real signal [..., N, ...]: [..., N / 2 + 1, ..., 2]. As torch.fft.rfft.
BURIN_API Tensor rfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                      const std::string &norm = "backward", Location where = Location::current());
/// The real signal of length n, by default 2 (M - 1), from half a spectrum [..., M, ..., 2]. As torch.fft.irfft.
BURIN_API Tensor irfft(const Tensor &x, std::optional<int64_t> n = std::nullopt, int64_t axis = -1,
                       const std::string &norm = "backward", Location where = Location::current());

/// Transforms over several axes: by default the last ones, as many as `s` has lengths, or all. The last of the axes of
/// rfftn and irfftn is the one with half a spectrum. As torch.fft.fftn, ifftn, rfftn, irfftn.
BURIN_API Tensor fftn(const Tensor &x, const std::optional<IntList> &s = std::nullopt,
                      const std::optional<IntList> &axes = std::nullopt, const std::string &norm = "backward",
                      Location where = Location::current());
BURIN_API Tensor ifftn(const Tensor &x, const std::optional<IntList> &s = std::nullopt,
                       const std::optional<IntList> &axes = std::nullopt, const std::string &norm = "backward",
                       Location where = Location::current());
BURIN_API Tensor rfftn(const Tensor &x, const std::optional<IntList> &s = std::nullopt,
                       const std::optional<IntList> &axes = std::nullopt, const std::string &norm = "backward",
                       Location where = Location::current());
BURIN_API Tensor irfftn(const Tensor &x, const std::optional<IntList> &s = std::nullopt,
                        const std::optional<IntList> &axes = std::nullopt, const std::string &norm = "backward",
                        Location where = Location::current());

// ---- over two axes, by default the last ones. As torch.fft.fft2 and its kind
inline Tensor fft2(const Tensor &x, const std::optional<IntList> &s = std::nullopt, const IntList &axes = {-2, -1},
                   const std::string &norm = "backward", Location where = Location::current()) {
  return fftn(x, s, axes, norm, where);
}
inline Tensor ifft2(const Tensor &x, const std::optional<IntList> &s = std::nullopt, const IntList &axes = {-2, -1},
                    const std::string &norm = "backward", Location where = Location::current()) {
  return ifftn(x, s, axes, norm, where);
}
inline Tensor rfft2(const Tensor &x, const std::optional<IntList> &s = std::nullopt, const IntList &axes = {-2, -1},
                    const std::string &norm = "backward", Location where = Location::current()) {
  return rfftn(x, s, axes, norm, where);
}
inline Tensor irfft2(const Tensor &x, const std::optional<IntList> &s = std::nullopt, const IntList &axes = {-2, -1},
                     const std::string &norm = "backward", Location where = Location::current()) {
  return irfftn(x, s, axes, norm, where);
}

/// The frequencies of the n elements of a spectrum, or of the n / 2 + 1 of half a spectrum, in cycles per unit of the
/// distance d between samples: f32. As torch.fft.fftfreq, rfftfreq.
BURIN_API Tensor fftfreq(int64_t n, double d = 1, Location where = Location::current());
BURIN_API Tensor rfftfreq(int64_t n, double d = 1, Location where = Location::current());
/// Moves the element of frequency 0 to the middle of the axes, by default all, or back. Here axes count every dimension
/// of x: give those of a complex tensor. As torch.fft.fftshift, ifftshift.
BURIN_API Tensor fftshift(const Tensor &x, const std::optional<IntList> &axes = std::nullopt,
                          Location where = Location::current());
BURIN_API Tensor ifftshift(const Tensor &x, const std::optional<IntList> &axes = std::nullopt,
                           Location where = Location::current());

} // namespace burin::fft
