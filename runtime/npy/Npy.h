// NumPy's .npy files (format versions 1 to 3), as bytes.
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

/// Parses the bytes of a whole file, which may be untrusted. Converts Fortran order; rejects trailing bytes. On failure
/// `error` says what was found and what to do.
std::optional<NpyArray> readNpy(std::span<const std::byte> file, std::string &error);

/// Serialises an array; the data starts at a multiple of 64. Equal arrays yield equal bytes.
std::vector<std::byte> writeNpy(DType dtype, std::span<const int64_t> shape, std::span<const std::byte> data);
inline std::vector<std::byte> writeNpy(const NpyArray &array) { return writeNpy(array.dtype, array.shape, array.data); }

/// Reads or writes a file.
std::optional<NpyArray> loadNpy(const std::string &path, std::string &error);
bool saveNpy(const std::string &path, const NpyArray &array, std::string &error);

/// Whole files; writes are atomic. Error messages contain the path.
std::optional<std::vector<std::byte>> readWholeFile(const std::string &path, std::string &error);
bool writeWholeFile(const std::string &path, std::span<const std::byte> bytes, std::string &error);

} // namespace burin::rt
