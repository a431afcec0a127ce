// Window functions and short-time Fourier transforms of signals. A complex tensor has one more dimension at the end, of
// size 2, like the result of torch.view_as_real.
#pragma once
#include "burin/tensor.h"

namespace burin {

/// Window functions: `size` numbers. A periodic window is the first `size` elements of the symmetric one of size + 1.
/// Throws for a negative size and for element types other than floats. As torch.hann_window, hamming_window,
/// blackman_window, bartlett_window, kaiser_window.
BURIN_API Tensor hann_window(int64_t size, bool periodic = true, DType dtype = f32,
                             Location where = Location::current());
BURIN_API Tensor hamming_window(int64_t size, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                                DType dtype = f32, Location where = Location::current());
BURIN_API Tensor blackman_window(int64_t size, bool periodic = true, DType dtype = f32,
                                 Location where = Location::current());
BURIN_API Tensor bartlett_window(int64_t size, bool periodic = true, DType dtype = f32,
                                 Location where = Location::current());
BURIN_API Tensor kaiser_window(int64_t size, bool periodic = true, double beta = 12, DType dtype = f32,
                               Location where = Location::current());

/// Options of stft and istft with PyTorch's names and defaults; both must be given the same ones.
struct StftOptions {
  int64_t hop_length = 0;            ///< between frames; 0: n_fft / 4
  int64_t win_length = 0;            ///< at most n_fft; 0: n_fft
  std::optional<Tensor> window = {}; ///< win_length numbers; ones by default
  bool center = true;                ///< frame t is centred at sample t * hop_length: pads n_fft / 2 on both sides
  std::string pad_mode = "reflect";
  bool normalized = false; ///< divides by the square root of n_fft
};
/// The Fourier transforms of overlapping frames of n_fft samples of a real signal [..., length], which may be symbolic:
/// [..., n_fft / 2 + 1, frames, 2]. Throws if no frame fits. As torch.view_as_real of torch.stft with
/// return_complex=True.
BURIN_API Tensor stft(const Tensor &x, int64_t n_fft, const StftOptions &options = {},
                      Location where = Location::current());
/// The signal [..., length] from spectra [..., n_fft / 2 + 1, frames, 2], the inverse of stft: frames are added, and
/// divided by the sum of the squares of their windows. Without `length`, as many samples as frames cover. As
/// torch.istft.
BURIN_API Tensor istft(const Tensor &x, int64_t n_fft, const StftOptions &options = {},
                       const std::optional<Dim> &length = std::nullopt, Location where = Location::current());

} // namespace burin
