#include "runtime/npy/Npy.h"
#include "runtime/support/FileReplacement.h"
#include "runtime/support/Format.h"
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace burin::rt {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 32;
constexpr uint64_t kMaxBytes = uint64_t(1) << 47;

/// Parser of the dictionary at the start of the file.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;

  /// Returns false if the text is not `{'descr': '…', 'fortran_order': …, 'shape': (…), }` with each key once.
  bool run() {
    int seen[3] = {};
    if (!eat("{"))
      return false;
    while (!eat("}")) {
      std::string key;
      if (!string(key) || !eat(":"))
        return false;
      bool good = key == "descr"           ? ++seen[0] && string(descr)
                  : key == "fortran_order" ? ++seen[1] && boolean(fortran)
                  : key == "shape"         ? ++seen[2] && tuple(shape)
                                           : false;
      if (!good || (!eat(",") && !peek("}")))
        return false;
    }
    skip();
    return rest.empty() && seen[0] == 1 && seen[1] == 1 && seen[2] == 1;
  }

private:
  std::string_view rest;

  void skip() { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n\r"), rest.size())); }
  bool peek(std::string_view token) {
    skip();
    return rest.substr(0, token.size()) == token;
  }
  bool eat(std::string_view token) {
    if (!peek(token))
      return false;
    rest.remove_prefix(token.size());
    return true;
  }
  bool string(std::string &out) {
    char quote = peek("'") ? '\'' : '"';
    if (!eat({&quote, 1}))
      return false;
    size_t end = rest.find(quote);
    if (end == std::string_view::npos)
      return false;
    out = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool &out) {
    out = peek("True");
    return eat("True") || eat("False");
  }
  bool tuple(std::vector<int64_t> &out) {
    if (!eat("("))
      return false;
    while (!eat(")")) {
      int64_t value = 0;
      skip();
      auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (failure != std::errc() || value < 0 || out.size() == kMaxRank)
        return false;
      rest.remove_prefix(size_t(end - rest.data()));
      out.push_back(value);
      if (!eat(",") && !peek(")"))
        return false;
    }
    return true;
  }
};

std::optional<DType> parseType(const std::string &descr, std::string &error) {
  std::string_view code = descr;
  char order = '=';
  if (!code.empty() && std::strchr("<>|=", code[0])) {
    order = code[0];
    code.remove_prefix(1);
  }
  for (const DTypeInfo &info : kDTypes) {
    if (info.npy != code)
      continue;
    if (order == '>' && info.bytes > 1) {
      error = text("the array is big-endian ('", descr, "')\n  convert it: a.astype(a.dtype.newbyteorder('<'))");
      return std::nullopt;
    }
    return info.dtype;
  }
  error = text("the array has the element type '", descr.substr(0, 40),
               "', which burin does not have\n  convert it to one of float16/32/64, int8/16/32/64, uint8, bool");
  return std::nullopt;
}

/// Copies column-major data to row-major order: loops over the output and updates the source index incrementally.
void fromFortran(std::span<const int64_t> shape, size_t width, Bytes from, std::vector<std::byte> &to) {
  size_t rank = shape.size(), count = to.size() / width;
  std::vector<size_t> stride(rank), index(rank, 0);
  size_t step = 1;
  for (size_t d = 0; d < rank; ++d) {
    stride[d] = step;
    step *= size_t(shape[d]);
  }
  size_t source = 0;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to.data() + i * width, from.data() + source * width, width);
    for (size_t d = rank; d-- > 0;) {
      source += stride[d];
      if (++index[d] < size_t(shape[d]))
        break;
      source -= stride[d] * size_t(shape[d]);
      index[d] = 0;
    }
  }
}

} // namespace

std::optional<NpyArray> readNpy(Bytes file, std::string &error) {
  std::string_view chars(reinterpret_cast<const char *>(file.data()), file.size());
  if (chars.substr(0, kMagic.size()) != kMagic || chars.size() < 10) {
    error = "not a .npy file: it does not start with \\x93NUMPY";
    return std::nullopt;
  }
  auto byte = [&](size_t i) { return size_t(uint8_t(file[i])); };
  size_t major = byte(6), lengthBytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3) {
    error = text("the .npy file has format version ", major, "; versions 1 to 3 are known");
    return std::nullopt;
  }
  size_t start = 8 + lengthBytes, length = 0;
  if (file.size() < start) {
    error = "the .npy file is truncated in its header";
    return std::nullopt;
  }
  for (size_t i = lengthBytes; i-- > 0;)
    length = length << 8 | byte(8 + i);
  if (length > file.size() - start) {
    error = "the .npy file is truncated in its header";
    return std::nullopt;
  }
  HeaderParser header(chars.substr(start, length));
  if (!header.run()) {
    error = "the header of the .npy file is malformed";
    return std::nullopt;
  }

  NpyArray array;
  std::optional<DType> dtype = parseType(header.descr, error);
  if (!dtype)
    return std::nullopt;
  array.dtype = *dtype;
  array.shape = std::move(header.shape);
  // Sizes of an empty array may be arbitrarily large; their product is not computed.
  uint64_t bytes = byteWidth(*dtype);
  for (int64_t dim : array.shape)
    if (dim == 0)
      bytes = 0;
  for (int64_t dim : array.shape)
    if (bytes && (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes) || bytes > kMaxBytes)) {
      error = "the .npy file has an impossible shape";
      return std::nullopt;
    }
  Bytes data = file.subspan(start + length);
  if (data.size() != bytes) {
    error = text("the .npy file is ", data.size() < bytes ? "truncated" : "too long", ": its array takes ", bytes,
                 " bytes, there are ", data.size());
    return std::nullopt;
  }
  array.data.resize(bytes);
  if (header.fortran && array.shape.size() > 1)
    fromFortran(array.shape, byteWidth(*dtype), data, array.data);
  else if (bytes)
    std::memcpy(array.data.data(), data.data(), bytes);
  return array;
}

std::vector<std::byte> writeNpy(DType dtype, std::span<const int64_t> shape, Bytes data) {
  bool ordered = byteWidth(dtype) > 1 || isFloat8(dtype);
  std::string header =
      text("{'descr': '", ordered ? "<" : "|", infoOf(dtype).npy, "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < shape.size(); ++i)
    header += text(i ? ", " : "", shape[i]);
  header += shape.size() == 1 ? ",), }" : "), }";
  constexpr size_t kPrefix = 10, kAlign = 64;
  header.append(kAlign - (kPrefix + header.size() + 1) % kAlign, ' ');
  header += '\n';

  std::string prefix(kMagic);
  prefix += {'\x01', '\x00', char(header.size() & 255), char(header.size() >> 8)};
  std::vector<std::byte> out(prefix.size() + header.size() + data.size());
  std::memcpy(out.data(), prefix.data(), prefix.size());
  std::memcpy(out.data() + prefix.size(), header.data(), header.size());
  if (!data.empty())
    std::memcpy(out.data() + prefix.size() + header.size(), data.data(), data.size());
  return out;
}

std::optional<std::vector<std::byte>> readWholeFile(const std::string &path, std::string &error) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  bool good = fd >= 0 && ::fstat(fd, &info) == 0;
  // The size is a hint: the file may be a pipe, or grow. One extra byte detects the end without growing the buffer.
  std::vector<std::byte> bytes(good ? size_t(info.st_size) + 1 : 0);
  size_t used = 0;
  while (good) {
    if (used == bytes.size())
      bytes.resize(used + used / 2 + 65536);
    ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
    if (got == 0)
      break;
    good = got > 0 || errno == EINTR;
    used += got > 0 ? size_t(got) : 0;
  }
  if (!good)
    error = text("cannot read ", path, ": ", std::strerror(errno), "\n  check the path and its permissions");
  if (fd >= 0)
    ::close(fd);
  bytes.resize(used);
  return good ? std::optional(std::move(bytes)) : std::nullopt;
}

bool writeWholeFile(const std::string &path, Bytes bytes, std::string &error) {
  FileReplacement file(path);
  bool good = file.isOpen() && file.write(bytes) && file.commit();
  if (!good)
    error = text("cannot write ", path, ": ", std::strerror(file.problem()));
  return good;
}

std::optional<NpyArray> loadNpy(const std::string &path, std::string &error) {
  std::optional<std::vector<std::byte>> bytes = readWholeFile(path, error);
  if (!bytes)
    return std::nullopt;
  std::optional<NpyArray> array = readNpy(*bytes, error);
  if (!array)
    error = text(path, ": ", error);
  return array;
}

bool saveNpy(const std::string &path, const NpyArray &array, std::string &error) {
  return writeWholeFile(path, writeNpy(array), error);
}

} // namespace burin::rt
