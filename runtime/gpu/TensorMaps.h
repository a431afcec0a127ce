// Parameters of kernels that describe operands to bulk copies.
#pragma once
#include "runtime/format/Artifact.h"
#include "runtime/gpu/Device.h"
#include <cstddef>

namespace burin::rt::gpu {

/// A CUtensorMap.
struct alignas(64) EncodedMap {
  std::byte bytes[128];
};

/// Encodes a map for an operand and the sizes of a launch. Operands that are not aligned to 16 bytes, or are empty,
/// have no map: kernels read them without one, and get zeros. Unsupported before CUDA 12.0.
Status encodeMap(const Device &device, const TensorMap &map, const void *operand, const int64_t *sizes,
                 EncodedMap &out);

} // namespace burin::rt::gpu
