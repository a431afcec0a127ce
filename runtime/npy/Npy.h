// NumPy's .npy files (format versions 1 to 3), as plain bytes in and out.
//
// Element types: bool, int8/16/32/64, uint8, float16/32/64, and bfloat16 as the ml_dtypes package stores it: two raw
// bytes, '<V2'. A '<V2' or '|V2' array is therefore read as bf16.
#pragma once
#include "burin/dtype.h"
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace burin::rt {

/// A dense row-major array.
struct NpyArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

/// Reads a whole file's bytes, which may be hostile. Fortran order is converted; bytes after the array are refused.
/// On failure `error` says what was found and what to do.
std::optional<NpyArray> readNpy(std::span<const std::byte> file, std::string &error);

/// What readNpy reads; the data starts at a multiple of 64. The same array gives the same bytes.
std::vector<std::byte> writeNpy(DType dtype, std::span<const int64_t> shape, std::span<const std::byte> data);
inline std::vector<std::byte> writeNpy(const NpyArray &array) { return writeNpy(array.dtype, array.shape, array.data); }

/// The same from and to files.
std::optional<NpyArray> loadNpy(const std::string &path, std::string &error);
bool saveNpy(const std::string &path, const NpyArray &array, std::string &error);

/// Whole files; one is written whole or not at all. The message of a failure names the path.
std::optional<std::vector<std::byte>> readWholeFile(const std::string &path, std::string &error);
bool writeWholeFile(const std::string &path, std::span<const std::byte> bytes, std::string &error);

} // namespace burin::rt
