// A hash of the bits of f32 tensors.
#pragma once
#include <burin/burin.h>
#include <cstring>

namespace burin::test {

/// FNV-1a, 64 bits, one byte at a time.
class Hash {
public:
  void add(const Tensor &x) {
    for (float value : x.to_vector<float>()) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      for (int i = 0; i < 4; ++i, bits >>= 8)
        hash = (hash ^ (bits & 0xff)) * 1099511628211u;
    }
  }
  unsigned long long value() const { return hash; }

private:
  uint64_t hash = 14695981039346656037u;
};

} // namespace burin::test
