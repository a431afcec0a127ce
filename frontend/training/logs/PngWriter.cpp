#include "frontend/training/logs/PngWriter.h"
#include <stdexcept>
#include <zlib.h>

namespace burin::detail {

namespace {

void append(std::string &out, uint32_t number) { // big-endian
  for (int shift = 24; shift >= 0; shift -= 8)
    out += char(number >> shift & 255);
}

void appendChunk(std::string &out, const std::string &kind, const std::string &data) {
  append(out, uint32_t(data.size()));
  const std::string checked = kind + data;
  out += checked;
  append(out, uint32_t(crc32(0, reinterpret_cast<const Bytef *>(checked.data()), uInt(checked.size()))));
}

} // namespace

std::string pngOf(std::span<const uint8_t> pixels, size_t width, size_t height, size_t channels) {
  std::string header;
  append(header, uint32_t(width));
  append(header, uint32_t(height));
  header += {8, char(channels == 3 ? 2 : 0), 0, 0, 0}; // bits, colour type, compression, filter, interlacing
  std::string rows;
  const size_t bytes = width * channels;
  for (size_t y = 0; y < height; ++y) {
    rows += '\0'; // no filter
    rows.append(reinterpret_cast<const char *>(pixels.data()) + y * bytes, bytes);
  }
  uLongf size = compressBound(rows.size());
  std::string data(size, '\0');
  if (compress(reinterpret_cast<Bytef *>(data.data()), &size, reinterpret_cast<const Bytef *>(rows.data()),
               rows.size()) != Z_OK)
    throw std::bad_alloc();
  data.resize(size);
  std::string out = "\x89PNG\r\n\x1a\n";
  appendChunk(out, "IHDR", header);
  appendChunk(out, "IDAT", data);
  appendChunk(out, "IEND", "");
  return out;
}

} // namespace burin::detail
