#include "test/gpu/driver/FakeMemory.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace burin::test::fake {

constexpr size_t kMemory = size_t(1) << 30, kAlign = 256;

size_t Memory::bytes() const {
  size_t used = 0;
  for (const auto &[address, allocation] : live)
    used += allocation.bytes;
  return used;
}

uint64_t Memory::allocate(size_t bytes) {
  if (bytes > kMemory - this->bytes())
    return 0;
  void *data = aligned_alloc(kAlign, (bytes + shift + kAlign - 1) / kAlign * kAlign);
  memset(data, 0xcd, bytes + shift);
  const uint64_t address = reinterpret_cast<uint64_t>(data) + shift;
  live[address] = {bytes, made++, data};
  return address;
}

void Memory::free(uint64_t address) {
  auto allocation = live.find(address);
  ::free(allocation->second.block);
  live.erase(allocation);
}

uint64_t Memory::begin(uint64_t address, size_t bytes) const {
  auto after = live.upper_bound(address);
  if (after == live.begin())
    return 0;
  auto &[begin, allocation] = *--after;
  const bool fits = address - begin <= allocation.bytes && bytes <= allocation.bytes - (address - begin);
  return fits ? begin : 0;
}

bool Memory::mayTouch(uint64_t address, size_t bytes) {
  const uint64_t from = begin(address, bytes);
  if (!from || traces == Traces::Ignore)
    return from;
  std::unordered_set<uint64_t> &known = touched[{run, launch}];
  for (uint64_t byte = address - from; byte < address - from + bytes; ++byte) {
    const uint64_t place = uint64_t(live.at(from).order) << 40 | byte;
    if (traces == Traces::Learn)
      known.insert(place);
    else if (!known.contains(place))
      return false;
  }
  return true;
}

void Memory::setTraces(Traces mode, size_t ofRun) {
  traces = mode;
  made = launch = 0;
  run = ofRun;
  if (mode == Traces::Learn)
    std::erase_if(touched, [&](const auto &entry) { return entry.first.first == ofRun; });
}

} // namespace burin::test::fake
