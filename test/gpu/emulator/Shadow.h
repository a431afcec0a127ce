// Who has read and written memory: finds races.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace burin::test::simt {

/// When and by whom a byte was accessed. Two barriers of a block enclose an interval; its number counts through all
/// blocks of a launch.
struct Stamp {
  uint32_t thread = 0; // of the block, + 1; 0: never
  uint32_t interval = 0;
  uint32_t block = 0;
  int32_t site = -1;
  uint32_t count = 0;  // of what the thread has done, see Order
  bool isBulk = false; // by a bulk copy, which products see without a fence
};

class Shadow {
public:
  /// The earlier access of a byte that the new one races with: another thread's, at least one of both a write, without
  /// a barrier of their block between them, unless `isOrdered` says of the earlier one that it comes before. Null if
  /// there is none.
  template <class IsOrdered>
  const Stamp *access(uintptr_t address, const Stamp &now, bool writes, bool atomic, IsOrdered isOrdered);
  const Stamp *access(uintptr_t address, const Stamp &now, bool writes, bool atomic) {
    return access(address, now, writes, atomic, [](const Stamp &) { return false; });
  }
  /// A byte that something is on its way to has not been written.
  void forget(uintptr_t address) { at(address).write.thread = 0; }
  /// Whether a byte has been written.
  bool isWritten(uintptr_t address) { return at(address).write.thread != 0; }
  /// The last write, if there is one.
  const Stamp &writeOf(uintptr_t address) { return at(address).write; }
  void clear();

private:
  struct Byte {
    Stamp write, read;
    bool atomic = false;      // the write
    bool manyReaders = false; // of that interval
  };
  static constexpr uintptr_t kPage = 4096;
  using Page = std::array<Byte, kPage>;
  Byte &at(uintptr_t address);

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::vector<std::unique_ptr<Page>> spare; // of earlier blocks
  uintptr_t lastNumber = 0;
  Page *last = nullptr;
};

inline Shadow::Byte &Shadow::at(uintptr_t address) {
  uintptr_t number = address / kPage;
  if (!last || number != lastNumber) {
    std::unique_ptr<Page> &page = pages[number];
    if (!page && !spare.empty()) {
      page = std::move(spare.back());
      spare.pop_back();
      page->fill({});
    } else if (!page) {
      page = std::make_unique<Page>();
    }
    last = page.get(), lastNumber = number;
  }
  return (*last)[address % kPage];
}

template <class IsOrdered>
const Stamp *Shadow::access(uintptr_t address, const Stamp &now, bool writes, bool atomic, IsOrdered isOrdered) {
  Byte &byte = at(address);
  auto races = [&](const Stamp &before, bool many) {
    if (before.thread == 0)
      return false;
    if (before.block != now.block)
      return true;
    return before.interval == now.interval && (many || before.thread != now.thread) && !isOrdered(before);
  };
  const Stamp *other = nullptr;
  if (races(byte.write, false) && !(atomic && byte.atomic))
    other = &byte.write;
  else if (writes && races(byte.read, byte.manyReaders))
    other = &byte.read;
  if (writes) {
    static thread_local Stamp earlier;
    if (other)
      earlier = *other, other = &earlier;
    byte.write = now;
    byte.atomic = atomic;
  } else {
    bool sameTime = byte.read.thread && byte.read.interval == now.interval && byte.read.block == now.block;
    byte.manyReaders = sameTime && (byte.manyReaders || byte.read.thread != now.thread);
    // A reader of another block stays known as one: any write there races.
    byte.read = now;
  }
  return other;
}

inline void Shadow::clear() {
  for (auto &[number, page] : pages)
    spare.push_back(std::move(page));
  pages.clear();
  last = nullptr;
}

} // namespace burin::test::simt
