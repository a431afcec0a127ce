// Concatenates messages: text("input ", 3, ": …"). The runtime uses no formatting library.
#pragma once
#include <concepts>
#include <string>
#include <string_view>

namespace burin::rt {

inline void append(std::string &out, std::string_view part) { out += part; }
inline void append(std::string &out, const char *part) { out += part; }
template <std::integral T> void append(std::string &out, T part) { out += std::to_string(part); }

template <class... Parts> std::string text(const Parts &...parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

} // namespace burin::rt
