#include "runtime/npy/NpyZip.h"
#include "runtime/npy/Zip.h"
#include "runtime/support/Format.h"

namespace burin::rt {

std::optional<NamedArrays> readNpz(std::span<const std::byte> file, std::string &error) {
  std::optional<std::vector<ZipEntry>> entries = readZip(file, error);
  if (!entries) {
    error = "not a .npz file: " + error;
    return std::nullopt;
  }
  NamedArrays arrays;
  for (ZipEntry &e : *entries) {
    std::optional<std::vector<std::byte>> bytes = unpack(file, e, error);
    if (!bytes)
      return std::nullopt;
    std::optional<NpyArray> array = readNpy(*bytes, error);
    if (!array) {
      error = text("'", e.name, "' in the archive: ", error);
      return std::nullopt;
    }
    if (e.name.ends_with(".npy"))
      e.name.resize(e.name.size() - 4);
    arrays.emplace_back(std::move(e.name), std::move(*array));
  }
  return arrays;
}

std::vector<std::byte> writeNpz(const NamedArrays &arrays, bool compress) {
  ZipWriter zip;
  for (const auto &[name, array] : arrays)
    zip.add(name + ".npy", writeNpy(array), compress);
  return zip.finish();
}

} // namespace burin::rt
