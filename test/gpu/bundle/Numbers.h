// Elements of the types of floats, as numbers.
#pragma once
#include "burin/narrow_float.h"
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace burin::test::bundle {

template <class T> T elementAt(const std::byte *data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}
inline double real(DType dtype, const std::byte *data, size_t i) {
  switch (byteWidth(dtype)) {
  case 8:
    return elementAt<double>(data, i);
  case 4:
    return elementAt<float>(data, i);
  case 2:
    return fromNarrowFloat(dtype, elementAt<uint16_t>(data, i));
  default:
    return fromNarrowFloat(dtype, elementAt<uint8_t>(data, i));
  }
}

} // namespace burin::test::bundle
