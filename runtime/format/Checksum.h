// The checksum of artifact sections.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace burin::rt {

/// CRC-32C (Castagnoli), continuing from `crc`.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

/// The data is cut into eight equal parts (a multiple of 8 bytes each; the last takes the rest); the checksum is the
/// CRC-32C of their eight CRC-32Cs. These run side by side, which makes it as fast as memory; any error within
/// 32 consecutive bits is found.
uint32_t checksum(std::span<const std::byte> data);

} // namespace burin::rt
