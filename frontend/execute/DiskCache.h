// Disk cache of compiled kernels.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burin::detail {

/// Files in a folder, named by a hash of the source of the kernel, this library and this processor. Processes may share
/// it: files are renamed into place when complete and never changed, and their checksums are verified, so damaged files
/// are compiled again. Above the limit, the least recently used files are deleted.
///
/// The folder is $BURIN_CACHE_DIR, else $XDG_CACHE_HOME/burin, else ~/.cache/burin. Kernels are code, so the folder
/// must belong to the user and be writable by nobody else; otherwise, or if BURIN_CACHE_DIR is empty, nothing is
/// cached.
class DiskCache {
public:
  static DiskCache &shared();
  explicit DiskCache(std::string folder, uint64_t limit = uint64_t(256) << 20);

  std::optional<std::vector<std::byte>> load(const std::string &content) const;
  void store(const std::string &content, const std::vector<std::byte> &bytes);
  /// Deletes files until at most `bytes` are left.
  void shrink(uint64_t bytes) const;

private:
  std::string pathOf(const std::string &content) const;
  std::string folder; // empty: disabled
  uint64_t limit;
  uint64_t written = 0; // bytes since the size of the folder was last computed
};

} // namespace burin::detail
