#include "runtime/support/JoinedText.h"

namespace burin::rt {

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (std::string_view part : parts)
    out += part;
  return out;
}

} // namespace burin::rt
