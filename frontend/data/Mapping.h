// A file as read-only memory.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace burin::detail {

class Mapping {
public:
  /// Null, with the system's reason in `problem`, if the file cannot be mapped.
  static std::shared_ptr<const Mapping> open(const std::string &path, std::string &problem);
  /// The same for an open file, which stays the caller's to close.
  static std::shared_ptr<const Mapping> ofFile(int file, std::string &problem);
  ~Mapping();
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(start), size}; }
  /// Gives the memory behind a part back to the system, which reads the file again if the part is used once more.
  void forget(std::span<const std::byte> part) const;

private:
  void *start = nullptr;
  size_t size = 0;
};

} // namespace burin::detail
