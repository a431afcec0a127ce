// Who has read and written memory: finds races.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace burin::test::simt {

/// When and by whom a byte was accessed. Two barriers of a block enclose an interval; its number counts through all
/// blocks of a launch. 16 bytes, as there are two for each few bytes of memory.
struct Stamp {
  uint32_t interval = 0;
  uint32_t count = 0; // of what the thread has done, see Order
  int32_t site = -1;
  uint16_t thread = 0;   // of the block, + 1; 0: never
  bool isBulk = false;   // by a bulk copy, which products see without a fence
  bool isMarked = false; // of a write: atomic; of a read: several threads read in the interval
};

/// The first interval of each block of a launch.
class Blocks {
public:
  explicit Blocks(int64_t first = 0) : first(first) {}
  void begin(uint32_t interval) { begins.push_back(interval); }
  uint32_t current() const { return begins.empty() ? 0 : begins.back(); }
  int64_t of(const Stamp &s) const {
    return first + (std::upper_bound(begins.begin(), begins.end(), s.interval) - begins.begin()) - 1;
  }

private:
  int64_t first; // block
  std::vector<uint32_t> begins;
};

class Shadow {
public:
  /// The earlier access of some of the bytes that the new one races with: another thread's, at least one of both a
  /// write, without a barrier of their block between them, unless `isOrdered` says of the earlier one that it comes
  /// before. Null if there is none. The block began in the interval `begin`.
  template <class IsOrdered>
  const Stamp *access(uintptr_t address, size_t bytes, Stamp now, uint32_t begin, bool writes, bool atomic,
                      IsOrdered isOrdered);
  /// Bytes that something is on its way to have not been written.
  void forget(uintptr_t address, size_t bytes);
  bool areWritten(uintptr_t address, size_t bytes);
  /// The last write of a byte, if there is one.
  const Stamp &writeOf(uintptr_t address) { return cellsOf(address, 1).front().write; }
  void clear();

private:
  /// The accesses of a few bytes in a row.
  struct Cell {
    Stamp write, read;
  };
  static constexpr uintptr_t kPage = 4096;
  static constexpr int kMostShift = 4;
  /// Cells are as large as what its accesses are multiples of, for speed: 16 bytes at first.
  struct Page {
    int shift = kMostShift; // log2 of the bytes of a cell
    std::array<Cell, kPage> cells;
    void refine(int to);
    void clear() { std::fill_n(cells.begin(), kPage >> std::exchange(shift, kMostShift), Cell{}); }
  };
  /// The cells of bytes of one page.
  std::span<Cell> cellsOf(uintptr_t address, size_t bytes);
  /// `body` for the cells of all bytes, until it returns something.
  template <class F> auto forEach(uintptr_t address, size_t bytes, F body) -> decltype(body(std::declval<Cell &>()));
  Page &pageOf(uintptr_t number);

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::vector<std::unique_ptr<Page>> spare; // of earlier blocks
  struct Recent {
    uintptr_t number = ~uintptr_t(0);
    Page *page = nullptr;
  };
  std::array<Recent, 512> recent;
};

inline void Shadow::Page::refine(int to) {
  const int parts = 1 << (shift - to);
  for (size_t i = kPage >> shift; i-- > 0;) {
    const Cell whole = cells[i];
    std::fill_n(&cells[i * size_t(parts)], parts, whole);
  }
  shift = to;
}

inline Shadow::Page &Shadow::pageOf(uintptr_t number) {
  Recent &last = recent[number % recent.size()];
  if (last.number == number)
    return *last.page;
  std::unique_ptr<Page> &page = pages[number];
  if (!page && !spare.empty()) {
    page = std::move(spare.back());
    spare.pop_back();
    page->clear();
  } else if (!page) {
    page = std::make_unique<Page>();
  }
  last = {number, page.get()};
  return *page;
}

inline std::span<Shadow::Cell> Shadow::cellsOf(uintptr_t address, size_t bytes) {
  Page &page = pageOf(address / kPage);
  const int shift = std::countr_zero(address | bytes | uintptr_t(1) << kMostShift);
  if (shift < page.shift)
    page.refine(shift);
  return {&page.cells[address % kPage >> page.shift], bytes >> page.shift};
}

template <class F>
auto Shadow::forEach(uintptr_t address, size_t bytes, F body) -> decltype(body(std::declval<Cell &>())) {
  while (bytes > 0) {
    const size_t inPage = std::min<size_t>(bytes, kPage - address % kPage);
    for (Cell &cell : cellsOf(address, inPage))
      if (auto result = body(cell))
        return result;
    address += inPage, bytes -= inPage;
  }
  return {};
}

inline void Shadow::forget(uintptr_t address, size_t bytes) {
  forEach(address, bytes, [](Cell &cell) {
    cell.write.thread = 0;
    return false;
  });
}

inline bool Shadow::areWritten(uintptr_t address, size_t bytes) {
  return !forEach(address, bytes, [](Cell &cell) { return cell.write.thread == 0; });
}

template <class IsOrdered>
const Stamp *Shadow::access(uintptr_t address, size_t bytes, Stamp now, uint32_t begin, bool writes, bool atomic,
                            IsOrdered isOrdered) {
  auto races = [&](const Stamp &before, bool many) {
    if (before.thread == 0)
      return false;
    if (before.interval < begin) // of another block
      return true;
    return before.interval == now.interval && (many || before.thread != now.thread) && !isOrdered(before);
  };
  return forEach(address, bytes, [&](Cell &cell) -> const Stamp * {
    const Stamp *other = nullptr;
    if (races(cell.write, false) && !(atomic && cell.write.isMarked))
      other = &cell.write;
    else if (writes && races(cell.read, cell.read.isMarked))
      other = &cell.read;
    if (writes) {
      static thread_local Stamp earlier;
      if (other)
        earlier = *other, other = &earlier;
      now.isMarked = atomic;
      cell.write = now;
    } else {
      bool sameTime = cell.read.thread && cell.read.interval == now.interval;
      now.isMarked = sameTime && (cell.read.isMarked || cell.read.thread != now.thread);
      // A reader of another block stays known as one: any write there races.
      cell.read = now;
    }
    return other;
  });
}

inline void Shadow::clear() {
  for (auto &[number, page] : pages)
    spare.push_back(std::move(page));
  pages.clear();
  recent.fill({});
}

} // namespace burin::test::simt
