// Memory that code needs.
#pragma once
#include "runtime/support/Memory.h"
#include "test/frontend/Check.h"

/// Returns the peak increase in bytes in use during `code`.
template <class F> size_t extraBytes(F &&code) {
  synchronize();
  rt::Memory::shared().resetPeak();
  size_t before = rt::Memory::shared().stats().inUse;
  code();
  synchronize();
  return rt::Memory::shared().stats().peak - before;
}
