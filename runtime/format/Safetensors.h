// The safetensors format: u64 length of a JSON header, the header, the elements. The header maps names to
// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, and "__metadata__" to strings.
#pragma once
#include "burin/dtype.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace burin::rt {

struct Safetensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; // range in the file

  uint64_t bytes() const { return end - begin; }
};

struct SafetensorsFile {
  std::vector<Safetensor> tensors; // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Parses a file, which may be untrusted: names are distinct, and ranges lie in the file, do not overlap, and match the
/// shapes. On failure the first line of `error` says what was found, the next one what to do.
std::optional<SafetensorsFile> parseSafetensors(std::span<const std::byte> file, std::string &error);

/// The start of a file with these tensors, up to the first element; sets their ranges. Tensors are aligned to their
/// element size. Returns false and sets `error` if a name is reserved or duplicated.
bool startSafetensors(SafetensorsFile &content, std::vector<std::byte> &header, std::string &error);

} // namespace burin::rt
