#include "ir/reference/ElementMove.h"
#include <algorithm>
#include <cstring>

namespace burin::ir {

namespace {

/// One dimension of a copy: its size, and the strides in target and source.
struct Loop {
  int64_t size, to, from;
};

/// The dimensions, outermost first, without those of size 1; adjacent ones are merged where one stride covers both.
std::vector<Loop> simplify(const StridedView &to, const StridedView &from) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < to.shape.size(); ++i) {
    Loop loop{to.shape[i], to.strides[i], from.strides[i]};
    if (loop.size == 1)
      continue;
    if (!loops.empty() && loops.back().to == loop.to * loop.size && loops.back().from == loop.from * loop.size)
      loops.back() = {loops.back().size * loop.size, loop.to, loop.from};
    else
      loops.push_back(loop);
  }
  return loops;
}

template <class T> void copyRow(T *to, const T *from, const Loop &loop) {
  if (loop.to == 1 && loop.from == 1) {
    std::memcpy(to, from, size_t(loop.size) * sizeof(T));
  } else if (loop.to == 1 && loop.from == 0) {
    std::fill_n(to, loop.size, *from);
  } else {
    for (int64_t i = 0; i < loop.size; ++i)
      to[i * loop.to] = from[i * loop.from];
  }
}

/// The two innermost loops in square blocks, so that a transpose uses whole cache lines of source and target.
template <class T> void copyBlocks(T *to, const T *from, const Loop &outer, const Loop &inner) {
  constexpr int64_t block = 32;
  for (int64_t i = 0; i < outer.size; i += block)
    for (int64_t j = 0; j < inner.size; j += block) {
      int64_t iEnd = std::min(i + block, outer.size);
      Loop part{std::min(block, inner.size - j), inner.to, inner.from};
      for (int64_t ii = i; ii < iEnd; ++ii)
        copyRow(to + ii * outer.to + j * inner.to, from + ii * outer.from + j * inner.from, part);
    }
}

template <class T> void copyLoops(T *to, const T *from, std::span<const Loop> loops) {
  if (loops.empty()) {
    *to = *from;
  } else if (loops.size() == 1) {
    copyRow(to, from, loops[0]);
  } else if (loops.size() == 2 && loops[1].from != 1 && loops[0].from == 1) {
    copyBlocks(to, from, loops[0], loops[1]);
  } else {
    for (int64_t i = 0; i < loops[0].size; ++i)
      copyLoops(to + i * loops[0].to, from + i * loops[0].from, loops.subspan(1));
  }
}

template <class T> void copyTyped(char *to, const StridedView &toView, const char *from, const StridedView &fromView) {
  std::vector<Loop> loops = simplify(toView, fromView);
  // The loop with stride 1 in `from` becomes the second innermost, so that blocks include it.
  if (loops.size() > 2 && loops.back().from != 1)
    for (size_t i = 0; i + 2 < loops.size(); ++i)
      if (loops[i].from == 1)
        std::rotate(loops.begin() + i, loops.begin() + i + 1, loops.end() - 1);
  copyLoops(reinterpret_cast<T *>(to) + toView.offset, reinterpret_cast<const T *>(from) + fromView.offset, loops);
}

} // namespace

std::vector<int64_t> rowMajorStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

StridedView wholeOf(std::span<const int64_t> shape) {
  return {0, {shape.begin(), shape.end()}, rowMajorStrides(shape)};
}

void moveElements(char *to, const StridedView &toView, const char *from, const StridedView &fromView, size_t width) {
  if (std::find(toView.shape.begin(), toView.shape.end(), 0) != toView.shape.end())
    return;
  switch (width) {
  case 1:
    return copyTyped<uint8_t>(to, toView, from, fromView);
  case 2:
    return copyTyped<uint16_t>(to, toView, from, fromView);
  case 4:
    return copyTyped<uint32_t>(to, toView, from, fromView);
  default:
    return copyTyped<uint64_t>(to, toView, from, fromView);
  }
}

} // namespace burin::ir
