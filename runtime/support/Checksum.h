// The checksum of artifact sections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace burin::rt {

/// CRC-32C (Castagnoli), continuing from `crc`.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

/// The data is cut into eight equal parts (multiples of 8 bytes; the last one takes the rest); the checksum is the
/// CRC-32C of their eight CRC-32Cs, which are computed in an interleaved way, at memory bandwidth. Any error within 32
/// consecutive bits is detected.
uint32_t checksum(std::span<const std::byte> data);

} // namespace burin::rt
