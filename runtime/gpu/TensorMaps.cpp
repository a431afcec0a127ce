#include "runtime/gpu/TensorMaps.h"
#include "runtime/support/Format.h"

namespace burin::rt::gpu {

// Enumerators of the driver's interface.
static constexpr int kUInt16 = 1, kNoInterleaving = 0, kSwizzle64 = 2, kSwizzle128 = 3, kPromoteTo128 = 2, kZeros = 0;

Status encodeMap(const Device &device, const TensorMap &map, const void *operand, const int64_t *sizes,
                 EncodedMap &out) {
  constexpr uint64_t kAlignment = 16;
  uint64_t counts[TensorMap::kMostRank], strides[TensorMap::kMostRank];
  uint32_t steps[TensorMap::kMostRank];
  auto valueOf = [&](const LaunchSize &n) { return uint64_t(n.index == LaunchSize::kNone ? n.value : sizes[n.index]); };
  out = {};
  bool isUsable = reinterpret_cast<uint64_t>(operand) % kAlignment == 0;
  for (size_t d = 0; d < map.sizes.size(); ++d) {
    counts[d] = valueOf(map.sizes[d]), steps[d] = 1;
    isUsable &= counts[d] != 0;
    if (d > 0)
      strides[d - 1] = valueOf(map.strides[d - 1]);
  }
  if (!isUsable)
    return {};
  if (!device->tensorMapEncode)
    return {
        ErrorCode::Unsupported,
        text(device.name(), ": the driver cannot describe tensors to bulk copies; it must be of CUDA 12.0 or later")};
  return device.check(device->tensorMapEncode(&out, kUInt16, uint32_t(map.sizes.size()),
                                              reinterpret_cast<DevicePointer>(operand), counts, strides, map.box.data(),
                                              steps, kNoInterleaving, map.line == 64 ? kSwizzle64 : kSwizzle128,
                                              kPromoteTo128, kZeros),
                      "describing an operand to bulk copies");
}

} // namespace burin::rt::gpu
