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
  live[address] = {address, bytes, made++, data};
  return address;
}

void Memory::free(uint64_t address) {
  auto allocation = live.find(address);
  ::free(allocation->second.block);
  live.erase(allocation);
  recent = nullptr;
}

const Memory::Allocation *Memory::find(uint64_t address, size_t bytes) const {
  auto has = [&](const Allocation &a) {
    return address >= a.address && address - a.address <= a.bytes && bytes <= a.bytes - (address - a.address);
  };
  if (recent && has(*recent))
    return recent;
  auto after = live.upper_bound(address);
  if (after == live.begin() || !has((--after)->second))
    return nullptr;
  return recent = &after->second;
}

bool Memory::mayTouch(uint64_t address, size_t bytes) {
  const Allocation *allocation = find(address, bytes);
  if (!allocation || traces == Traces::Ignore)
    return allocation;
  std::vector<bool> &known = touched[{run, launch, allocation->order}];
  known.resize(allocation->bytes);
  const auto first = known.begin() + ptrdiff_t(address - allocation->address), last = first + ptrdiff_t(bytes);
  if (traces == Traces::Learn)
    std::fill(first, last, true);
  return std::find(first, last, false) == last;
}

void Memory::setTraces(Traces mode, size_t ofRun) {
  traces = mode;
  made = launch = 0;
  run = ofRun;
  if (mode == Traces::Learn)
    std::erase_if(touched, [&](const auto &entry) { return entry.first[0] == ofRun; });
}

} // namespace burin::test::fake
