// Selection of the target of an artifact that this machine runs.
#pragma once
#include <string>
#include <string_view>

namespace burin::rt {

/// The level of this processor as a target name: "x86-64-v4".
std::string_view hostTarget();

/// Preference for code of `target` on this machine: higher is better, negative is unsupported.
int targetRank(std::string_view target);

} // namespace burin::rt
