// Concatenates strings.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace burin::rt {

/// As text() of Format.h, for strings only, in less code: not a template.
std::string joined(std::initializer_list<std::string_view> parts);

} // namespace burin::rt
