#include "test/gpu/driver/TensorMap.h"
#include <algorithm>
#include <cstring>

namespace burin::test::simt {
namespace {

constexpr uint64_t kMark = 0x70616D20746E6574; // of a map that has been made
constexpr uint64_t kElement = 2;               // bytes

} // namespace

static_assert(sizeof(TensorMap) <= TensorMap::kBytes);

TensorMap TensorMap::make(uint64_t address, std::span<const uint64_t> sizes, std::span<const uint64_t> strides,
                          std::span<const uint32_t> box, uint32_t line, std::string &problem) {
  constexpr uint64_t kMostSize = uint64_t(1) << 32, kMostStride = uint64_t(1) << 40, kMostBox = 256;
  auto isNot = [&](bool holds, const char *what) {
    if (!holds)
      problem = what;
    return !holds;
  };
  TensorMap map;
  if (isNot(sizes.size() >= 1 && sizes.size() <= kMostRank && strides.size() + 1 == sizes.size() &&
                box.size() == sizes.size(),
            "a rank of a tensor map that is not known") ||
      isNot(address && address % kPiece == 0, "the address of a tensor map is not a multiple of 16") ||
      isNot(std::ranges::all_of(sizes, [](uint64_t n) { return n > 0 && n <= kMostSize; }),
            "a size of a tensor map is 0 or too large") ||
      isNot(std::ranges::all_of(strides, [](uint64_t n) { return n % kPiece == 0 && n < kMostStride; }),
            "a stride of a tensor map is not a multiple of 16, or too large") ||
      isNot(std::ranges::all_of(box, [](uint32_t n) { return n > 0 && n <= kMostBox; }),
            "a box of a tensor map is empty or too large") ||
      isNot((line == 64 || line == 128) && box[0] * kElement == line, "lines of a box that are not known"))
    return map;
  map.mark = kMark, map.address = address, map.line = uint16_t(line), map.rank = uint16_t(sizes.size());
  std::ranges::copy(sizes, map.sizes);
  std::ranges::copy(strides, map.strides);
  std::ranges::copy(box, map.box);
  return map;
}

TensorMap TensorMap::load(const void *memory) {
  TensorMap map;
  std::memcpy(&map, memory, sizeof map);
  return map;
}

void TensorMap::store(void *memory) const {
  std::memset(memory, 0, kBytes);
  std::memcpy(memory, this, sizeof *this);
}

std::string TensorMap::check(int copied, uint64_t to) const {
  constexpr uint64_t kAlignment = 128;
  if (mark != kMark)
    return "a bulk copy by a tensor map that nobody has made";
  if (copied != rank)
    return "a bulk copy of another rank than its tensor map has";
  return to % kAlignment ? "the address of a bulk copy is not a multiple of 128" : "";
}

uint32_t TensorMap::boxBytes() const {
  uint32_t bytes = kElement;
  for (size_t d = 0; d < rank; ++d)
    bytes *= box[d];
  return bytes;
}

std::vector<BulkPiece> TensorMap::pieces(uint64_t to, const int32_t *at) const {
  std::vector<BulkPiece> all;
  const uint64_t lines = boxBytes() / line, swizzle = line / kPiece - 1;
  for (uint64_t n = 0; n < lines; ++n) {
    uint64_t from = address, rest = n;
    bool isInside = true;
    for (size_t d = 1; d < rank; rest /= box[d], ++d) {
      const int64_t place = at[d] + int64_t(rest % box[d]);
      isInside &= place >= 0 && uint64_t(place) < sizes[d];
      from += uint64_t(place) * strides[d - 1];
    }
    for (uint64_t piece = 0; piece < line / kPiece; ++piece) {
      constexpr auto kElements = int64_t(kPiece / kElement);
      const int64_t first = at[0] + int64_t(piece) * kElements, left = int64_t(sizes[0]) - first;
      const bool isThere = isInside && first >= 0 && left > 0;
      const uint64_t straight = to + n * line + piece * kPiece;
      all.push_back({straight ^ (straight >> 7 & swizzle) << 4,
                     isThere ? reinterpret_cast<const std::byte *>(from + uint64_t(first) * kElement) : nullptr,
                     isThere ? uint32_t(std::min(left, kElements)) * uint32_t(kElement) : 0});
    }
  }
  return all;
}

} // namespace burin::test::simt
