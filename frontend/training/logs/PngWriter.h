// PNG files of small pictures.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace burin::detail {
/// Eight bits per sample; pixels row by row with `channels` interleaved: 1 for grey levels, 3 for RGB.
std::string pngOf(std::span<const uint8_t> pixels, size_t width, size_t height, size_t channels);
} // namespace burin::detail
