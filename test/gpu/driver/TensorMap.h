// What the drivers for tests keep in the 128 bytes of a CUtensorMap, and what a bulk copy by it moves: the emulator and
// the interpreter share it. Checked against CuTe's layouts in FragmentTest.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace burin::test::simt {

/// 16 bytes of shared memory: so many from global memory, then zeros.
struct BulkPiece {
  uint64_t to;
  const std::byte *from;
  uint32_t bytes;
};

/// A tensor of 16-bit elements in global memory, innermost dimension first, and the box that one copy moves.
class TensorMap {
public:
  static constexpr size_t kBytes = 128, kMostRank = 5, kPiece = 16;
  /// `strides` are in bytes, without the innermost one; `line` are the bytes within which pieces are permuted, 64 or
  /// 128. What the real driver refuses is refused, with the reason in `problem`.
  static TensorMap make(uint64_t address, std::span<const uint64_t> sizes, std::span<const uint64_t> strides,
                        std::span<const uint32_t> box, uint32_t line, std::string &problem);
  /// From memory in which one has been stored, or something else.
  static TensorMap load(const void *memory);
  void store(void *memory) const;

  /// "", or why a copy of this rank to an address cannot be.
  std::string check(int rank, uint64_t to) const;
  /// Bytes that a copy writes to shared memory.
  uint32_t boxBytes() const;
  /// The copy of the box at these coordinates to `to`. Elements outside of the tensor are zeros.
  std::vector<BulkPiece> pieces(uint64_t to, const int32_t *at) const;

private:
  uint64_t mark = 0, address = 0;
  uint64_t sizes[kMostRank] = {}, strides[kMostRank - 1] = {};
  uint16_t box[kMostRank] = {}, rank = 0, line = 0;
};

} // namespace burin::test::simt
