// What the layers share.
#pragma once
#include "burin/layers.h"
#include <string>

namespace burin::nn {

/// The tensor of a parameter that a layer may be built without.
inline std::optional<Tensor> optionally(const Parameter &parameter) {
  return parameter.defined() ? std::optional(parameter.value()) : std::nullopt;
}

/// Numbers as str() shows them: "3, [1, 2]".
inline std::string text(int64_t n) { return std::to_string(n); }
inline std::string text(const IntList &list) {
  std::string s;
  for (int64_t n : list)
    s += (s.empty() ? "" : ", ") + std::to_string(n);
  return list.size() == 1 ? s : "[" + s + "]";
}
template <class... T> std::string listed(const T &...values) {
  std::string s;
  ((s += (s.empty() ? "" : ", ") + text(values)), ...);
  return s;
}

/// One number per dimension from such a list or from one number for all.
IntList perDimension(IntList list, size_t dimensions, const char *layer, const char *what, const Location &where);

} // namespace burin::nn
