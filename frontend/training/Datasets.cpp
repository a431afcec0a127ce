// Data sets in memory and from files, and transforms of images.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/indexing.h"
#include "burin/training/dataset.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/Shuffle.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <zlib.h>

namespace burin::data {

using detail::inScope;

namespace {

class TensorDataset : public Dataset {
public:
  TensorDataset(std::vector<Tensor> given, const Location &where) : tensors(std::move(given)), place(where) {
    if (tensors.empty())
      throw Error(where, "tensor_dataset", "there are no tensors");
    for (const Tensor &tensor : tensors)
      if (tensor.rank(where) < 1 || tensor.shape(where)[0] != tensors[0].shape(where)[0])
        throw Error(where, "tensor_dataset",
                    "the tensors have different numbers of rows: " + str(tensors[0].spec(where)) + " and " +
                        str(tensor.spec(where)));
  }
  int64_t size() const override { return tensors[0].shape()[0].value(); }
  Example get(int64_t index) const override {
    Example example = batch({&index, 1});
    for (Tensor &tensor : example)
      tensor = squeeze(tensor, {0}, place);
    return example;
  }
  Example batch(std::span<const int64_t> indices) const override {
    Example result;
    for (const Tensor &tensor : tensors) {
      TensorSpec spec = tensor.spec(place);
      std::span<const std::byte> all = tensor.bytes(place);
      const size_t row = spec.shape[0].value() ? all.size() / size_t(spec.shape[0].value()) : 0;
      std::vector<std::byte> rows(indices.size() * row);
      for (size_t i = 0; i < indices.size(); ++i)
        std::copy_n(all.data() + size_t(indices[i]) * row, row, rows.data() + i * row);
      spec.shape[0] = int64_t(indices.size());
      result.push_back(from_bytes(rows.data(), spec, place));
    }
    return result;
  }

private:
  std::vector<Tensor> tensors;
  Location place;
};

class Subset : public Dataset {
public:
  Subset(DatasetRef dataset, std::vector<int64_t> indices) : dataset(std::move(dataset)), indices(std::move(indices)) {}
  int64_t size() const override { return int64_t(indices.size()); }
  Example get(int64_t index) const override { return dataset->get(indices.at(size_t(index))); }
  Example batch(std::span<const int64_t> list) const override {
    std::vector<int64_t> inner;
    for (int64_t index : list)
      inner.push_back(indices.at(size_t(index)));
    return dataset->batch(inner);
  }

private:
  DatasetRef dataset;
  std::vector<int64_t> indices;
};

} // namespace

DatasetRef tensor_dataset(std::vector<Tensor> tensors, Location where) {
  return std::make_shared<TensorDataset>(std::move(tensors), inScope(where));
}
DatasetRef subset(DatasetRef dataset, std::vector<int64_t> indices, Location where) {
  for (int64_t index : indices)
    if (index < 0 || index >= dataset->size())
      throw Error(inScope(where), "subset",
                  "there is no example " + std::to_string(index) + " among " + std::to_string(dataset->size()));
  return std::make_shared<Subset>(std::move(dataset), std::move(indices));
}
std::vector<DatasetRef> random_split(DatasetRef dataset, const std::vector<int64_t> &sizes, uint64_t seed,
                                     Location where) {
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != dataset->size() ||
      std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }))
    throw Error(inScope(where), "random_split",
                "the sizes do not add up to the " + std::to_string(dataset->size()) + " examples");
  std::vector<int64_t> order = shuffled(dataset->size(), seed, 0);
  std::vector<DatasetRef> parts;
  auto at = order.begin();
  for (int64_t size : sizes) {
    parts.push_back(std::make_shared<Subset>(dataset, std::vector<int64_t>(at, at + size)));
    at += size;
  }
  return parts;
}

// ---- files

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

// ---- transforms

Transform compose(std::vector<Transform> transforms) {
  return [=](Example example, Random &random) {
    for (const Transform &transform : transforms)
      example = transform(std::move(example), random);
    return example;
  };
}

namespace {
/// An image as mutable numbers: [C, H, W] or [H, W].
struct Image {
  explicit Image(const Tensor &tensor, const char *op) : spec(tensor.spec()) {
    if (spec.dtype != DType::f32 || spec.shape.size() < 2 || spec.shape.size() > 3)
      throw Error(inScope({}), op,
                  "the first tensor of the example is " + str(spec) + ", but must be f32 [C, H, W] or [H, W]");
    auto numbers = tensor.data<float>();
    pixels.assign(numbers.begin(), numbers.end());
    width = spec.shape.back().value();
    height = spec.shape[spec.shape.size() - 2].value();
    channels = spec.shape.size() == 3 ? spec.shape[0].value() : 1;
  }
  Tensor tensor() const { return from_bytes(pixels.data(), spec); }
  float *row(int64_t channel, int64_t y) { return pixels.data() + (channel * height + y) * width; }
  TensorSpec spec;
  std::vector<float> pixels;
  int64_t channels, height, width;
};
} // namespace

Transform normalize(std::vector<double> mean, std::vector<double> deviation) {
  return [=](Example example, Random &) {
    Image image(example.at(0), "normalize");
    if (int64_t(mean.size()) != image.channels || mean.size() != deviation.size())
      throw Error(inScope({}), "normalize",
                  "there are " + std::to_string(mean.size()) + " means and " + std::to_string(deviation.size()) +
                      " deviations for " + std::to_string(image.channels) + " channels");
    const size_t plane = size_t(image.height * image.width);
    for (size_t i = 0; i < image.pixels.size(); ++i)
      image.pixels[i] = float((double(image.pixels[i]) - mean[i / plane]) / deviation[i / plane]);
    example[0] = image.tensor();
    return example;
  };
}

Transform random_crop(int64_t padding) {
  return [=](Example example, Random &random) {
    Image from(example.at(0), "random_crop"), to = from;
    const int64_t top = random.integer(-padding, padding + 1), left = random.integer(-padding, padding + 1);
    for (int64_t c = 0; c < to.channels; ++c)
      for (int64_t y = 0; y < to.height; ++y)
        for (int64_t x = 0; x < to.width; ++x) {
          const int64_t fromY = y + top, fromX = x + left;
          const bool isInside = fromY >= 0 && fromY < from.height && fromX >= 0 && fromX < from.width;
          to.row(c, y)[x] = isInside ? from.row(c, fromY)[fromX] : 0;
        }
    example[0] = to.tensor();
    return example;
  };
}

Transform random_horizontal_flip(double p) {
  return [=](Example example, Random &random) {
    if (random.uniform() >= p)
      return example;
    Image image(example.at(0), "random_horizontal_flip");
    for (int64_t c = 0; c < image.channels; ++c)
      for (int64_t y = 0; y < image.height; ++y)
        std::reverse(image.row(c, y), image.row(c, y) + image.width);
    example[0] = image.tensor();
    return example;
  };
}

} // namespace burin::data
