#include "test/onnx/Hostile.h"
#include <filesystem>
#include <sys/stat.h>

namespace burin::test {

namespace {

namespace fs = std::filesystem;

Bytes withWeight(const Bytes &weight) {
  ModelText model = relu();
  model.nodes = {{"Add", {"x", "w"}, {"y"}}};
  model.initializers = {weight};
  return model.model();
}

Bytes external(const Bytes &location, const Bytes &offset = "0", const Bytes &length = "8") {
  auto entry = [](const Bytes &key, const Bytes &value) { return Bytes(Message().add(1, key).add(2, value)); };
  return withWeight(tensorHead("w", kFloat, {2})
                        .add(14, int64_t(1))
                        .add(13, entry("location", location))
                        .add(13, entry("offset", offset))
                        .add(13, entry("length", length)));
}

void put(const std::string &path) { std::ofstream(path, std::ios::binary) << Bytes(64, '\0'); }
void putWeights(const std::string &folder) { put(folder + "/w.bin"); }

Bytes ofBytes(OnnxType type, std::vector<int64_t> dims, const Bytes &raw) {
  return withWeight(tensorHead("w", type, dims).add(9, raw));
}

} // namespace

std::vector<HostileModel> hostileTensors() {
  return {
      {"a weight of 2^90 elements", withWeight(tensorHead("w", kFloat, {1 << 30, 1 << 30, 1 << 30})), 3,
       "impossible shape"},
      {"a weight of 2^64 elements, which wraps to none", ofBytes(kFloat, {int64_t(1) << 32, int64_t(1) << 32}, ""), 3,
       "impossible shape"},
      {"a weight of negative size", withWeight(floatTensor("w", {-2}, {1, 2})), 3, "impossible shape"},
      {"a weight of 100 dimensions", withWeight(floatTensor("w", std::vector<int64_t>(100, 1), {1})), 3,
       "more than 64 dimensions"},
      {"a weight with too few bytes", ofBytes(kFloat, {2}, Bytes(7, '\0')), 3, "needs 8 bytes, but has 7"},
      {"a weight with too many bytes", ofBytes(kFloat, {2}, Bytes(9, '\0')), 3, "needs 8 bytes, but has 9"},
      {"a weight of a terabyte in no bytes", ofBytes(kFloat, {int64_t(1) << 38}, ""), 3, "but has 0"},
      {"a weight with too few numbers", withWeight(tensorHead("w", kFloat, {2}).addFloat(4, 1)), 3,
       "needs 8 bytes, but has 4"},
      {"a weight without a type", withWeight(Message().add(1, int64_t(2)).add(8, Bytes("w"))), 4, "UNDEFINED"},
      {"a weight of an unknown type", ofBytes(OnnxType(77), {2}, "ab"), 4, "type 77"},
      {"a weight of strings", withWeight(tensorHead("w", kString, {2}).add(6, Bytes("a")).add(6, Bytes("b"))), 4,
       "STRING"},
      {"a weight of 4-bit floats", ofBytes(OnnxType(23), {2}, "a"), 4, "FLOAT4E2M1"},
      {"a weight of 64-bit unsigned numbers with too few bytes", ofBytes(OnnxType(13), {2}, Bytes(8, '\1')), 3,
       "needs 16 bytes, but has 8"},
      {"a weight of 4-bit numbers with too few bytes", ofBytes(OnnxType(22), {3}, "a"), 3, "needs 2 bytes, but has 1"},
      {"a weight of 2^62 numbers of 4 bits in no bytes", ofBytes(OnnxType(21), {int64_t(1) << 62}, ""), 3, "but has 0"},
      {"a bool that is 7", ofBytes(kBool, {2}, "\7\1"), 3, "other than 0 and 1"},
      {"a weight in segments", withWeight(tensorHead("w", kFloat, {2}).add(3, Bytes())), 4, "in segments"},
      {"a weight of integers added to floats", withWeight(intTensor("w", {2}, {1, 2})), 3, "f32 and i64"},
      {"external data at an absolute path", external("/etc/passwd"), 3, "must be a relative path"},
      {"external data in the folder above", external("../outside.bin"), 3, "leaves the model's folder"},
      {"external data above a folder below", external("sub/../../outside.bin"), 3, "leaves the model's folder",
       [](const std::string &folder) { fs::create_directory(folder + "/sub"); }},
      {"external data by a symbolic link", external("link.bin"), 3, "symbolic link",
       [](const std::string &folder) { fs::create_symlink("/etc/passwd", folder + "/link.bin"); }},
      {"external data in a linked folder", external("link/passwd"), 3, "cannot be read",
       [](const std::string &folder) { fs::create_directory_symlink("/etc", folder + "/link"); }},
      {"external data by a hard link", external("second.bin"), 3, "hard link",
       [](const std::string &folder) {
         put(folder + "/first.bin");
         fs::create_hard_link(folder + "/first.bin", folder + "/second.bin");
       }},
      {"external data in a folder", external("sub"), 3, "not a regular file",
       [](const std::string &folder) { fs::create_directory(folder + "/sub"); }},
      {"external data in a pipe", external("pipe"), 3, "not a regular file",
       [](const std::string &folder) { ::mkfifo((folder + "/pipe").c_str(), 0600); }},
      {"external data nowhere", external("w.bin"), 3, "No such file"},
      {"external data without a name", external(""), 3, "must be a relative path"},
      {"external data with a zero in its name", external(Bytes("w.bin\0x", 7)), 3,
       "\"w.bin?x\": its location must be a relative path", putWeights},
      {"external data beyond its file", external("w.bin", "60"), 3, "ends beyond its file", putWeights},
      {"external data at 2^64 - 1", external("w.bin", "18446744073709551615"), 3, "ends beyond its file", putWeights},
      {"external data at -1", external("w.bin", "-1"), 3, "but the tensor needs 8 bytes", putWeights},
      {"external data at no number", external("w.bin", "0x10"), 3, "but the tensor needs 8 bytes", putWeights},
      {"external data of another length", external("w.bin", "0", "64"), 3, "but the tensor needs 8 bytes", putWeights},
  };
}

} // namespace burin::test
