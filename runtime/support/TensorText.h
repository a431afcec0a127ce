// Text form of tensors.
#pragma once
#include "burin/dtype.h"
#include <span>
#include <string>
#include <string_view>

namespace burin::rt {

/// The elements in NumPy's format: "[1. 2.]", "[]" if there are none. Abbreviated beyond 1000 elements.
std::string elementsText(DType dtype, std::span<const int64_t> shape, const void *elements);
/// The output of a debug print: "model.cpp:12: label: f32[2] [1. 2.]
/// "; elements of matrices start on a new line.
std::string printText(std::string_view where, std::string_view label, DType dtype, std::span<const int64_t> shape,
                      const void *elements);
/// Writes the message with one call, as far as the system allows.
void writeToStandardError(std::string_view message);

} // namespace burin::rt
