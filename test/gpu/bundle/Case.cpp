#include "test/gpu/bundle/Case.h"
#include "runtime/format/Safetensors.h"
#include <algorithm>

namespace burin::test::bundle {

bool save(const std::string &path, const Arrays &arrays, std::string &error) {
  rt::SafetensorsFile content;
  for (const auto &[name, array] : arrays)
    content.tensors.push_back({name, array.dtype, array.shape, 0, array.data.size()});
  std::vector<std::byte> bytes;
  if (!rt::startSafetensors(content, bytes, error))
    return false;
  for (const rt::Safetensor &tensor : content.tensors) { // in any order
    const std::vector<std::byte> &data = arrays.at(tensor.name).data;
    bytes.resize(std::max<size_t>(bytes.size(), tensor.end));
    std::copy(data.begin(), data.end(), bytes.begin() + int64_t(tensor.begin));
  }
  return rt::writeWholeFile(path, bytes, error);
}

std::optional<Arrays> load(const std::string &path, std::string &error) {
  auto bytes = rt::readWholeFile(path, error);
  auto content = bytes ? rt::parseSafetensors(*bytes, error) : std::nullopt;
  if (!content)
    return std::nullopt;
  Arrays arrays;
  for (const rt::Safetensor &tensor : content->tensors)
    arrays[tensor.name] = {
        tensor.dtype, tensor.shape, {bytes->begin() + int64_t(tensor.begin), bytes->begin() + int64_t(tensor.end)}};
  return arrays;
}

} // namespace burin::test::bundle
