// Tensors by names.
#include "burin/nn/module.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>

namespace burin {

using detail::inScope;

const Tensor *StateDict::find(std::string_view name) const {
  auto at = std::find_if(begin(), end(), [&](auto &entry) { return entry.first == name; });
  return at == end() ? nullptr : &at->second;
}
const Tensor &StateDict::at(std::string_view name, Location where) const {
  if (const Tensor *tensor = find(name))
    return *tensor;
  throw Error(inScope(where), "at",
              "there is no \"" + std::string(name) + "\" among the " + std::to_string(size()) + " tensors" +
                  (empty() ? "" : "; the first is \"" + front().first + "\""));
}

StateDict StateDict::to(Device device, Location where) const {
  StateDict result;
  for (const auto &[name, tensor] : *this)
    result.emplace_back(name, tensor.to(device, where));
  return result;
}

StateDict StateDict::part(std::string_view prefix) const {
  StateDict result;
  for (const auto &[name, tensor] : *this)
    if (name.starts_with(prefix))
      result.emplace_back(name.substr(prefix.size()), tensor);
  return result;
}
void StateDict::add(std::string_view prefix, const StateDict &entries) {
  for (const auto &[name, tensor] : entries)
    emplace_back(std::string(prefix) + name, tensor);
}

} // namespace burin
