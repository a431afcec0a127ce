// Compiled kernels kept across processes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burin::detail {

/// A folder of files named by the hash of what they were compiled from, of this library and of this processor.
/// Processes may share it: files appear whole, by rename, and are never changed; what is read is checked, so a damaged
/// file is compiled again. When it outgrows its limit the files used least recently go.
///
/// The folder is $BURIN_CACHE_DIR, else $XDG_CACHE_HOME/burin, else ~/.cache/burin. The kernels are code, so it must
/// belong to the user and be writable by nobody else; otherwise, or if BURIN_CACHE_DIR is empty, nothing is cached.
class DiskCache {
public:
  static DiskCache &shared();
  explicit DiskCache(std::string folder, uint64_t limit = uint64_t(256) << 20);

  std::optional<std::vector<std::byte>> load(const std::string &content) const;
  void store(const std::string &content, const std::vector<std::byte> &bytes);
  /// Removes files until at most `bytes` are left.
  void shrink(uint64_t bytes) const;

private:
  std::string pathOf(const std::string &content) const;
  std::string folder; // empty: off
  uint64_t limit;
  uint64_t written = 0; // bytes since the last look at the folder's size
};

} // namespace burin::detail
