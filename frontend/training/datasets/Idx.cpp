// Readers of IDX files and of CIFAR-10's binary form.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/indexing.h"
#include "burin/training/readers.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <filesystem>
#include <zlib.h>

namespace burin::data {

using detail::inScope;

namespace {

/// All bytes of a file, decompressed if it is gzip; nullopt if it cannot be read.
std::optional<std::vector<std::byte>> readMaybeGzip(const std::string &path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    return std::nullopt;
  std::vector<std::byte> bytes;
  constexpr size_t kChunk = size_t(1) << 20;
  for (int got = 1; got > 0;) {
    const size_t used = bytes.size();
    bytes.resize(used + kChunk);
    got = gzread(file, bytes.data() + used, unsigned(kChunk));
    bytes.resize(used + size_t(std::max(got, 0)));
    if (got < 0) {
      gzclose(file);
      return std::nullopt;
    }
  }
  return gzclose(file) == Z_OK ? std::optional(std::move(bytes)) : std::nullopt;
}

std::optional<DType> idxType(uint8_t code) {
  switch (code) {
  case 0x08:
    return DType::u8;
  case 0x09:
    return DType::i8;
  case 0x0b:
    return DType::i16;
  case 0x0c:
    return DType::i32;
  case 0x0d:
    return DType::f32;
  case 0x0e:
    return DType::f64;
  default:
    return std::nullopt;
  }
}

[[noreturn]] void refuse(const Location &where, const char *op, const std::string &path, const std::string &what) {
  throw Error(where, op, "cannot read \"" + path + "\": " + what);
}

DatasetRef loadMnist(const char *op, Split split, const std::string &folder, const Location &where) {
  const std::string prefix = folder + (split == Split::Train ? "/train-" : "/t10k-");
  auto load = [&](const char *name) {
    for (const char *ending : {"", ".gz"})
      if (std::filesystem::exists(prefix + name + ending))
        return load_idx(prefix + name + ending, where);
    refuse(where, op, prefix + name,
           "there is no such file, nor one with .gz; give the folder of the IDX files, or install Debian's "
           "dataset-fashion-mnist");
  };
  Tensor images = load("images-idx3-ubyte"), labels = load("labels-idx1-ubyte");
  if (images.rank() != 3 || labels.rank() != 1)
    throw Error(where, op, "the files in " + folder + " hold " + str(images.spec()) + " and " + str(labels.spec()));
  Tensor scaled = div(unsqueeze(images, {1}, where).to(DType::f32, where), 255.0, where);
  return tensor_dataset({scaled, labels.to(DType::i64, where)}, where);
}

} // namespace

Tensor load_idx(const std::string &path, Location where) {
  const Location place = inScope(where);
  auto bytes = readMaybeGzip(path);
  if (!bytes)
    refuse(place, "load_idx", path, "it is not there, not readable or damaged");
  auto at = [&](size_t i) { return uint8_t((*bytes)[i]); };
  const size_t rank = bytes->size() >= 4 ? at(3) : 0, header = 4 + 4 * rank;
  std::optional<DType> type = bytes->size() >= 4 && !at(0) && !at(1) ? idxType(at(2)) : std::nullopt;
  if (!type || bytes->size() < header)
    refuse(place, "load_idx", path, "it is no IDX file, or cut off");
  TensorSpec spec{*type, {}};
  const size_t width = byteWidth(*type);
  unsigned __int128 count = width;
  for (size_t i = 0; i < rank; ++i) {
    const size_t p = 4 + 4 * i;
    const uint32_t size = uint32_t(at(p)) << 24 | uint32_t(at(p + 1)) << 16 | uint32_t(at(p + 2)) << 8 | at(p + 3);
    spec.shape.push_back(int64_t(size));
    count = count > bytes->size() ? count : count * size; // avoids overflow: it is too large already
  }
  if (count != bytes->size() - header)
    refuse(place, "load_idx", path,
           str(spec) + " does not fit its " + std::to_string(bytes->size() - header) + " bytes of elements");
  for (size_t i = header; width > 1 && i < bytes->size(); i += width) // swap big-endian elements
    std::reverse(bytes->data() + i, bytes->data() + i + width);
  return from_bytes(bytes->data() + header, spec, place);
}

DatasetRef fashion_mnist(Split split, const std::string &folder, Location where) {
  return loadMnist("fashion_mnist", split, folder, inScope(where));
}
DatasetRef mnist(Split split, const std::string &folder, Location where) {
  return loadMnist("mnist", split, folder, inScope(where));
}

DatasetRef cifar10(Split split, const std::string &folder, Location where) {
  const Location place = inScope(where);
  constexpr size_t kImage = 3 * 32 * 32;
  std::vector<std::string> names{"test_batch.bin"};
  if (split == Split::Train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  std::vector<uint8_t> images;
  std::vector<int64_t> labels;
  for (const std::string &name : names) {
    const std::string path = folder + "/" + name;
    auto bytes = readMaybeGzip(path);
    if (!bytes || bytes->empty() || bytes->size() % (kImage + 1))
      refuse(place, "cifar10", path, bytes ? "it is cut off or of another format" : "it is not there or not readable");
    for (size_t i = 0; i < bytes->size(); i += kImage + 1) {
      labels.push_back(int64_t((*bytes)[i]));
      if (labels.back() > 9)
        refuse(place, "cifar10", path, "it has the class " + std::to_string(labels.back()));
      auto *pixels = reinterpret_cast<const uint8_t *>(bytes->data() + i + 1);
      images.insert(images.end(), pixels, pixels + kImage);
    }
  }
  Tensor all = from_vector(images, Shape{int64_t(labels.size()), 3, 32, 32}, place).to(DType::f32, place);
  return tensor_dataset({div(all, 255.0, place), from_vector(labels, std::nullopt, place)}, place);
}

} // namespace burin::data
