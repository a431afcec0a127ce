// Zip archives, as bytes: what .npz and PyTorch's .pt files are. Needs zlib.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace burin::rt {

using Bytes = std::span<const std::byte>;

/// One file of an archive, as its directory tells.
struct ZipEntry {
  std::string name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t packed, size, local;
};

/// The directory of an archive, which may be hostile. On failure `error` says what was found.
std::optional<std::vector<ZipEntry>> readZip(Bytes file, std::string &error);
/// The bytes of an entry as they lie in the archive; nullopt if they are compressed, or not there. Not compared with
/// the checksum.
std::optional<Bytes> storedBytes(Bytes file, const ZipEntry &entry);
/// The bytes of an entry, decompressed and compared with the checksum. What is allocated is bounded by what deflate can
/// expand the given bytes to.
std::optional<std::vector<std::byte>> unpack(Bytes file, const ZipEntry &entry, std::string &error);

/// An archive in the making. The same files give the same bytes: entries carry no time.
class ZipWriter {
public:
  void add(const std::string &name, Bytes data, bool compress);
  /// The whole archive; the last call.
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
