// A file as read-only memory.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace burin::detail {

class Mapping {
public:
  /// Returns null, with the system's reason in `problem`, if the file cannot be mapped.
  static std::shared_ptr<const Mapping> open(const std::string &path, std::string &problem);
  /// Maps an open file, which the caller closes.
  static std::shared_ptr<const Mapping> ofFile(int file, std::string &problem);
  ~Mapping();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(start), size}; }
  /// Releases the physical memory of a part; the system reads the file again on the next access.
  void forget(std::span<const std::byte> part) const;

private:
  void *start = nullptr;
  size_t size = 0;
};

} // namespace burin::detail
