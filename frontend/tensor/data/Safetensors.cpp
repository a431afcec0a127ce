#include "runtime/format/Safetensors.h"
#include "burin/tensor/creation.h"
#include "burin/training/data.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/data/Mapping.h"
#include "frontend/tensor/functions/Creation.h"
#include "runtime/format/Archive.h"
#include <algorithm>

namespace burin {

using namespace detail;

[[noreturn]] static void fail(const std::string &path, const std::string &problem, const Location &where) {
  throw Error(where, "load_safetensors", "cannot read \"" + path + "\": " + problem);
}

/// A tensor in the mapped file, or a copy if it is not aligned.
static Tensor tensorOf(const rt::Safetensor &entry, const std::shared_ptr<const Mapping> &file, const std::string &path,
                       const Location &where) {
  std::span<const std::byte> bytes = file->bytes().subspan(entry.begin, entry.bytes());
  if (isBool(entry.dtype) && std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte(1); }))
    fail(path, "\"" + entry.name + "\" is bool, but has elements other than 0 and 1\n  save it again", where);
  TensorSpec spec{entry.dtype, Shape(entry.shape.begin(), entry.shape.end())};
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (address % byteWidth(entry.dtype)) // some libraries do not align
    return copyOf(bytes.data(), spec, where);
  void *data = const_cast<std::byte *>(bytes.data()); // read-only
  return from_blob(data, spec, [file] {}, where);
}

StateDict load_safetensors(const std::string &path, std::map<std::string, std::string> *metadata, Location where) {
  const Location place = inScope(where);
  std::string problem;
  std::shared_ptr<const Mapping> file = Mapping::open(path, problem);
  if (!file)
    fail(path, problem + "\n  check the path and its permissions", place);
  std::optional<rt::SafetensorsFile> content = rt::parseSafetensors(file->bytes(), problem);
  if (!content)
    fail(path, problem, place);
  if (metadata)
    for (auto &[key, text] : content->metadata)
      (*metadata)[key] = text;
  StateDict tensors;
  for (const rt::Safetensor &entry : content->tensors)
    tensors.emplace_back(entry.name, createdInScope(tensorOf(entry, file, path, place), "load_safetensors", place));
  return tensors;
}

void save_safetensors(const std::string &path, const StateDict &tensors,
                      const std::map<std::string, std::string> &metadata, Location where) {
  const Location place = inScope(where);
  std::vector<StorageRef> storages;
  rt::SafetensorsFile content{{}, {metadata.begin(), metadata.end()}};
  for (const auto &[name, tensor] : tensors) {
    storages.push_back(concreteStorage(tensor, "save_safetensors", place));
    rt::Safetensor &entry = content.tensors.emplace_back(rt::Safetensor{name, tensor.dtype(place), {}});
    for (const Dim &size : tensor.shape(place))
      entry.shape.push_back(size.value());
  }
  std::vector<std::byte> file;
  std::string problem;
  if (!rt::startSafetensors(content, file, problem))
    throw Error(place, "save_safetensors", problem);
  uint64_t end = file.size();
  for (const rt::Safetensor &entry : content.tensors)
    end = std::max(end, entry.end);
  file.resize(end);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (const rt::Safetensor &entry = content.tensors[i]; entry.bytes())
      std::memcpy(file.data() + entry.begin, await(storages[i], place).data(), entry.bytes());
  if (rt::Status status = rt::writeFile(path, file); !status.ok())
    throw Error(place, "save_safetensors", status.message());
}

} // namespace burin
