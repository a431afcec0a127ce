// Tensors as text.
#pragma once
#include "burin/dtype.h"
#include <span>
#include <string>
#include <string_view>

namespace burin::rt {

/// The elements as NumPy prints them: "[1. 2.]", "[]" if there are none. More than 1000 are shortened.
std::string elementsText(DType dtype, std::span<const int64_t> shape, const void *elements);
/// What a debug print of a tensor writes: "model.cpp:12: label: f32[2] [1. 2.]\n"; the elements of matrices begin on a
/// line of their own.
std::string printText(std::string_view where, std::string_view label, DType dtype, std::span<const int64_t> shape,
                      const void *elements);
/// In one piece, as far as the system allows.
void writeToStandardError(std::string_view message);

} // namespace burin::rt
