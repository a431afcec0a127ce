#include "runtime/npy/Zip.h"
#include "runtime/support/Format.h"
#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace burin::rt {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint16_t kZip64Extra = 1, kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kIn64 = 0xffffffff; // the number is in the zip64 extra field

/// Reads little-endian numbers at an offset; beyond the end yields 0 and sets `failed`.
class Fields {
public:
  explicit Fields(Bytes bytes) : bytes(bytes) {}
  template <class T> T at(uint64_t offset) {
    T value = 0;
    if (offset > bytes.size() || sizeof(T) > bytes.size() - offset)
      failed = true;
    else
      std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  Bytes range(uint64_t offset, uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) {
      failed = true;
      return {};
    }
    return bytes.subspan(offset, size);
  }
  bool failed = false;

private:
  Bytes bytes;
};

/// Finds the start of the central directory and its number of entries.
bool findDirectory(Bytes file, uint64_t &start, uint64_t &count) {
  Fields f(file);
  constexpr size_t kMaxComment = 65535;
  if (file.size() < kEndBytes)
    return false;
  size_t end = file.size() - kEndBytes, lowest = end > kMaxComment ? end - kMaxComment : 0;
  while (f.at<uint32_t>(end) != kEnd) {
    if (end-- == lowest)
      return false;
  }
  count = f.at<uint16_t>(end + 10);
  start = f.at<uint32_t>(end + 16);
  if (end >= kLocator64Bytes && f.at<uint32_t>(end - kLocator64Bytes) == kLocator64) {
    uint64_t end64 = f.at<uint64_t>(end - kLocator64Bytes + 8);
    if (f.at<uint32_t>(end64) != kEnd64)
      return false;
    count = f.at<uint64_t>(end64 + 32);
    start = f.at<uint64_t>(end64 + 48);
  }
  return !f.failed && count <= file.size() / kCentralBytes;
}

/// Replaces numbers that exceed 32 bits by those of the extra field.
bool readExtra64(Bytes extra, ZipEntry &entry) {
  Fields f(extra);
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    uint16_t id = f.at<uint16_t>(at), size = f.at<uint16_t>(at + 2);
    if (id == kZip64Extra) {
      uint64_t next = at + 4;
      for (uint64_t *number : {&entry.size, &entry.packed, &entry.local})
        if (*number == kIn64) {
          *number = f.at<uint64_t>(next);
          next += 8;
        }
    }
    at += 4 + uint64_t(size);
  }
  return !f.failed;
}

bool readEntry(Bytes file, uint64_t &at, ZipEntry &e) {
  Fields f(file);
  bool good = f.at<uint32_t>(at) == kCentral;
  e.flags = f.at<uint16_t>(at + 8);
  e.method = f.at<uint16_t>(at + 10);
  e.crc = f.at<uint32_t>(at + 16);
  e.packed = f.at<uint32_t>(at + 20);
  e.size = f.at<uint32_t>(at + 24);
  e.local = f.at<uint32_t>(at + 42);
  uint64_t nameBytes = f.at<uint16_t>(at + 28), extraBytes = f.at<uint16_t>(at + 30), comment = f.at<uint16_t>(at + 32);
  Bytes name = f.range(at + kCentralBytes, nameBytes), extra = f.range(at + kCentralBytes + nameBytes, extraBytes);
  if (!good || f.failed)
    return false;
  e.name.assign(reinterpret_cast<const char *>(name.data()), name.size());
  at += kCentralBytes + nameBytes + extraBytes + comment;
  return readExtra64(extra, e);
}

bool inflateAll(Bytes packed, std::vector<std::byte> &out) {
  z_stream z{};
  if (::inflateInit2(&z, -MAX_WBITS) != Z_OK)
    return false;
  int result = Z_OK;
  size_t in = 0, filled = 0;
  constexpr size_t kMost = size_t(1) << 30; // zlib counts in 32 bits
  while (result == Z_OK && (filled < out.size() || in < packed.size())) {
    size_t give = std::min(packed.size() - in, kMost), room = std::min(out.size() - filled, kMost);
    std::byte none;
    z.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(packed.data() + in));
    z.avail_in = uInt(give);
    z.next_out = reinterpret_cast<Bytef *>(room ? out.data() + filled : &none);
    z.avail_out = uInt(room);
    result = ::inflate(&z, Z_NO_FLUSH);
    in += give - z.avail_in;
    filled += room - z.avail_out;
  }
  ::inflateEnd(&z);
  return result == Z_STREAM_END && filled == out.size();
}

std::vector<std::byte> deflated(Bytes data) {
  z_stream z{};
  ::deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<std::byte> out;
  constexpr size_t kChunk = size_t(1) << 20;
  for (size_t in = 0;;) {
    size_t give = std::min(data.size() - in, kChunk), used = out.size();
    out.resize(used + kChunk);
    z.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(data.data() + in));
    z.avail_in = uInt(give);
    z.next_out = reinterpret_cast<Bytef *>(out.data() + used);
    z.avail_out = uInt(kChunk);
    int result = ::deflate(&z, in + give == data.size() ? Z_FINISH : Z_NO_FLUSH);
    in += give - z.avail_in;
    out.resize(used + kChunk - z.avail_out);
    if (result == Z_STREAM_END)
      break;
  }
  ::deflateEnd(&z);
  return out;
}

constexpr uint16_t kVersion64 = 45, kFirstDay = 1 << 5 | 1; // 1980-01-01: zip has no "no date"

} // namespace

// ---- reading

std::optional<std::vector<ZipEntry>> readZip(Bytes file, std::string &error) {
  uint64_t at = 0, count = 0;
  if (!findDirectory(file, at, count)) {
    error = "it has no zip directory";
    return std::nullopt;
  }
  std::vector<ZipEntry> entries(count);
  for (ZipEntry &entry : entries)
    if (!readEntry(file, at, entry)) {
      error = "its zip directory is malformed";
      return std::nullopt;
    }
  return entries;
}

/// The bytes of an entry as stored, compressed or not.
static std::optional<Bytes> packedBytes(Bytes file, const ZipEntry &e) {
  Fields f(file);
  uint64_t data = e.local + kLocalBytes + f.at<uint16_t>(e.local + 26) + f.at<uint16_t>(e.local + 28);
  bool good = f.at<uint32_t>(e.local) == kLocal;
  Bytes packed = f.range(data, e.packed);
  constexpr uint64_t kMostExpansion = 1032; // of deflate
  if (!good || f.failed || (e.flags & kEncrypted) || (e.method != kStored && e.method != kDeflated) ||
      (e.method == kStored && e.size != e.packed) || e.size / kMostExpansion > e.packed)
    return std::nullopt;
  return packed;
}

std::optional<Bytes> storedBytes(Bytes file, const ZipEntry &entry) {
  return entry.method == kStored ? packedBytes(file, entry) : std::nullopt;
}

std::optional<std::vector<std::byte>> unpack(Bytes file, const ZipEntry &e, std::string &error) {
  std::optional<Bytes> packed = packedBytes(file, e);
  if (!packed) {
    error = text("'", e.name, "' in the archive is malformed, encrypted or compressed in an unknown way");
    return std::nullopt;
  }
  std::vector<std::byte> out(e.size);
  bool good = true;
  if (e.method == kStored)
    std::copy(packed->begin(), packed->end(), out.begin());
  else
    good = inflateAll(*packed, out);
  if (!good || ::crc32_z(0, reinterpret_cast<const Bytef *>(out.data()), out.size()) != e.crc) {
    error = text("'", e.name, "' in the archive is damaged");
    return std::nullopt;
  }
  return out;
}

// ---- writing

template <class T> void ZipWriter::put(T value) {
  auto *p = reinterpret_cast<const std::byte *>(&value);
  out.insert(out.end(), p, p + sizeof value);
}
void ZipWriter::append(const std::string &text) {
  auto *p = reinterpret_cast<const std::byte *>(text.data());
  out.insert(out.end(), p, p + text.size());
}

// Common part of local and central headers. All sizes are in the extra field, so that there is one form for any size.
void ZipWriter::header(const ZipEntry &e, std::initializer_list<const uint64_t *> numbers) {
  put<uint16_t>(kVersion64), put<uint16_t>(e.flags), put<uint16_t>(e.method), put<uint16_t>(0);
  put<uint16_t>(kFirstDay), put<uint32_t>(e.crc), put<uint32_t>(kIn64), put<uint32_t>(kIn64);
  put<uint16_t>(uint16_t(e.name.size())), put<uint16_t>(uint16_t(4 + 8 * numbers.size()));
}
void ZipWriter::extra(std::initializer_list<const uint64_t *> numbers) {
  put<uint16_t>(kZip64Extra), put<uint16_t>(uint16_t(8 * numbers.size()));
  for (const uint64_t *number : numbers)
    put<uint64_t>(*number);
}

void ZipWriter::add(const std::string &name, Bytes data, bool compress) {
  std::vector<std::byte> packed(data.begin(), data.end());
  if (compress)
    packed = deflated(data);
  ZipEntry e{name,
             0,
             compress ? kDeflated : kStored,
             uint32_t(::crc32_z(0, reinterpret_cast<const Bytef *>(data.data()), data.size())),
             packed.size(),
             data.size(),
             out.size()};
  put<uint32_t>(kLocal);
  header(e, {&e.size, &e.packed});
  append(e.name);
  extra({&e.size, &e.packed});
  out.insert(out.end(), packed.begin(), packed.end());
  entries.push_back(std::move(e));
}

std::vector<std::byte> ZipWriter::finish() {
  uint64_t start = out.size();
  for (ZipEntry &e : entries) {
    put<uint32_t>(kCentral);
    put<uint16_t>(kVersion64);
    header(e, {&e.size, &e.packed, &e.local});
    for (int i = 0; i < 3; ++i) // comment, disk, internal attributes
      put<uint16_t>(0);
    put<uint32_t>(0); // external attributes
    put<uint32_t>(kIn64);
    append(e.name);
    extra({&e.size, &e.packed, &e.local});
  }
  uint64_t end = out.size(), count = entries.size();
  put<uint32_t>(kEnd64), put<uint64_t>(kEnd64Bytes - 12), put<uint16_t>(kVersion64), put<uint16_t>(kVersion64);
  put<uint32_t>(0), put<uint32_t>(0), put<uint64_t>(count), put<uint64_t>(count);
  put<uint64_t>(end - start), put<uint64_t>(start);
  put<uint32_t>(kLocator64), put<uint32_t>(0), put<uint64_t>(end), put<uint32_t>(1);
  uint16_t count16 = uint16_t(std::min<uint64_t>(count, 0xffff));
  put<uint32_t>(kEnd), put<uint16_t>(0), put<uint16_t>(0), put<uint16_t>(count16), put<uint16_t>(count16);
  put<uint32_t>(kIn64), put<uint32_t>(kIn64), put<uint16_t>(0);
  return std::move(out);
}

} // namespace burin::rt
