// Zip archives as bytes, the container of .npz and PyTorch's .pt files. Needs zlib.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace burin::rt {

using Bytes = std::span<const std::byte>;

/// A file of an archive, as listed in the directory.
struct ZipEntry {
  std::string name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t packed, size, local;
};

/// Reads the directory of an archive, which may be untrusted. On failure `error` says what was found.
std::optional<std::vector<ZipEntry>> readZip(Bytes file, std::string &error);
/// The bytes of an uncompressed entry, without a copy; nullopt if it is compressed or invalid. The checksum is not
/// verified.
std::optional<Bytes> storedBytes(Bytes file, const ZipEntry &entry);
/// The decompressed bytes of an entry; the checksum is verified. Allocations are bounded by the maximum expansion of
/// deflate.
std::optional<std::vector<std::byte>> unpack(Bytes file, const ZipEntry &entry, std::string &error);

/// Builds an archive. Equal files yield equal bytes: entries carry no time.
class ZipWriter {
public:
  void add(const std::string &name, Bytes data, bool compress);
  /// Returns the whole archive; must be the last call.
  std::vector<std::byte> finish();

private:
  std::vector<std::byte> out;
  std::vector<ZipEntry> entries;

  template <class T> void put(T value);
  void append(const std::string &text);
  void header(const ZipEntry &entry, std::initializer_list<const uint64_t *> numbers);
  void extra(std::initializer_list<const uint64_t *> numbers);
};

} // namespace burin::rt
