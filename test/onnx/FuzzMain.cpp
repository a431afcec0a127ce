// Imports mutated models in a loop: `onnx-fuzz FOLDER [--first N] [--seeds N] [--keep FILE]` takes the .onnx files
// below FOLDER (such as ONNX's test data), changes a few fields of one, and imports it. The result must be a graph or
// an Error. --keep writes the latest mutated model to a file, to reproduce a crash.
#include "frontend/onnx/import/Import.h"
#include "test/onnx/Folder.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

using namespace burin;

namespace {

using Random = std::mt19937_64;
using Bytes = std::string;

/// One field of a protobuf message: the key, then a number, or a length and as many bytes.
struct Field {
  uint64_t key = 0, number = 0;
  Bytes payload;
  bool isMessage() const { return (key & 7) == 2; }
};

void putNumber(Bytes &out, uint64_t number) {
  for (; number >= 128; number >>= 7)
    out += char(number | 128);
  out += char(number);
}

class Reader {
public:
  explicit Reader(const Bytes &bytes) : bytes(bytes) {}
  /// Returns false if the bytes are not a message.
  bool fields(std::vector<Field> &out) {
    while (at < bytes.size()) {
      Field field;
      if (!number(field.key))
        return false;
      unsigned type = field.key & 7;
      uint64_t size = type == 1 ? 8 : 4;
      if (type == 0 ? !number(field.number) : type == 2 ? !number(size) : type != 1 && type != 5)
        return false;
      if (type != 0) {
        if (size > bytes.size() - at)
          return false;
        field.payload = bytes.substr(at, size);
        at += size;
      }
      out.push_back(std::move(field));
    }
    return !out.empty();
  }

private:
  const Bytes &bytes;
  size_t at = 0;

  bool number(uint64_t &out) {
    out = 0;
    for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(bytes[at++]);
      out |= uint64_t(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return false;
  }
};

size_t below(Random &random, size_t limit) { return size_t(random() % limit); }

uint64_t interesting(Random &random) {
  constexpr uint64_t numbers[] = {0,
                                  1,
                                  2,
                                  3,
                                  7,
                                  8,
                                  255,
                                  1023,
                                  1u << 31,
                                  uint64_t(1) << 40,
                                  uint64_t(1) << 62,
                                  uint64_t(INT64_MAX),
                                  uint64_t(1) << 63,
                                  ~uint64_t(0),
                                  ~uint64_t(1),
                                  ~uint64_t(6)};
  return numbers[below(random, std::size(numbers))];
}

Bytes flipped(Bytes bytes, Random &random) {
  if (bytes.empty())
    return Bytes(1, char(random()));
  switch (below(random, 4)) {
  case 0:
    bytes[below(random, bytes.size())] = char(random());
    break;
  case 1:
    bytes.resize(below(random, bytes.size()));
    break;
  case 2:
    bytes.insert(below(random, bytes.size()), 1 + below(random, 9), char(random()));
    break;
  default:
    bytes[below(random, bytes.size())] ^= char(1 << below(random, 8));
  }
  return bytes;
}

Bytes written(const std::vector<Field> &fields) {
  Bytes out;
  for (const Field &field : fields) {
    putNumber(out, field.key);
    if ((field.key & 7) == 0)
      putNumber(out, field.number);
    else if (field.isMessage())
      putNumber(out, field.payload.size());
    out += field.payload;
  }
  return out;
}

/// Applies one random change to the message or to a nested one.
Bytes mutated(const Bytes &bytes, Random &random) {
  std::vector<Field> fields;
  if (!Reader(bytes).fields(fields))
    return flipped(bytes, random);
  size_t i = below(random, fields.size());
  Field &field = fields[i];
  if (field.isMessage() && below(random, 8)) {
    field.payload = mutated(field.payload, random);
    return written(fields);
  }
  switch (below(random, 6)) {
  case 0:
    fields.erase(fields.begin() + int64_t(i));
    break;
  case 1:
    fields.push_back(field);
    break;
  case 2:
    std::swap(field, fields[below(random, fields.size())]);
    break;
  case 3:
    field.key = (random() % 26) << 3 | (field.key & 7);
    break;
  case 4:
    field.payload = field.isMessage() ? fields[below(random, fields.size())].payload : flipped(field.payload, random);
    break;
  default:
    field.number = interesting(random);
  }
  return written(fields);
}

std::vector<Bytes> modelsBelow(const std::string &folder) {
  constexpr uintmax_t kMostBytes = 1 << 16;
  std::vector<std::string> paths;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx" && entry.file_size() < kMostBytes)
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> models;
  for (const std::string &path : paths) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    models.push_back(bytes.str());
  }
  return models;
}

} // namespace

int main(int argc, char **argv) {
  uint64_t first = 1, count = 1000;
  std::string keep;
  for (int i = 2; i + 1 < argc; i += 2)
    if (!std::strcmp(argv[i], "--seeds"))
      count = std::strtoull(argv[i + 1], nullptr, 10);
    else if (!std::strcmp(argv[i], "--first"))
      first = std::strtoull(argv[i + 1], nullptr, 10);
    else if (!std::strcmp(argv[i], "--keep"))
      keep = argv[i + 1];
  if (argc < 2)
    return std::fprintf(stderr, "usage: onnx-fuzz FOLDER [--first N] [--seeds N] [--keep FILE]\n"), 2;
  std::vector<Bytes> models = modelsBelow(argv[1]);
  if (models.empty())
    return std::fprintf(stderr, "there are no small .onnx files below %s\n", argv[1]), 2;
  test::Folder folder;
  std::string path = keep.empty() ? folder / "model.onnx" : keep;
  uint64_t imported = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    Bytes model = models[below(random, models.size())];
    for (size_t changes = 1 + below(random, 3); changes > 0; --changes)
      model = mutated(model, random);
    std::ofstream(path, std::ios::binary) << model;
    std::fprintf(stderr, "\rseed %llu, %llu imported", (unsigned long long)seed, (unsigned long long)imported);
    try {
      onnx::importModel(path, {}, {});
      ++imported;
    } catch (const Error &error) {
      if (std::strstr(error.what(), "internal error"))
        std::fprintf(stderr, "\nseed %llu: %s\n", (unsigned long long)seed, error.what());
    }
  }
  std::fprintf(stderr, "\n");
  return 0;
}
