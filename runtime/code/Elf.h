// Maps the machine code of an artifact, a position-independent ELF image that imports only a few C library functions.
// All accesses are bounds-checked, and no page is both writable and executable.
#pragma once
#include "runtime/support/Status.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace burin::rt {

class CodeImage {
public:
  CodeImage() = default;
  CodeImage(CodeImage &&other) noexcept { *this = std::move(other); }
  CodeImage &operator=(CodeImage &&other) noexcept {
    std::swap(base, other.base), std::swap(size, other.size);
    std::swap(executable, other.executable);
    return *this;
  }
  ~CodeImage();

  /// Maps a copy of `elf`, which may be freed afterwards. Runs no code of it.
  static Status load(std::span<const std::byte> elf, CodeImage &out);

  /// The function at a virtual address of the image; null if that is not executable.
  void *function(uint64_t address) const;

private:
  friend class ElfLoader;
  std::byte *base = nullptr;
  size_t size = 0;
  std::pair<uint64_t, uint64_t> executable; // addresses [first, second)
};

/// The address of a function that code may import, or null; the list is in ElfImports.cpp.
void *importedFunction(std::string_view name);

} // namespace burin::rt
