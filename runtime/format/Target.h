// Which of an artifact's targets this machine runs.
#pragma once
#include <string>
#include <string_view>

namespace burin::rt {

/// The level of the processor we run on, as a target name: "x86-64-v4".
std::string_view hostTarget();

/// How well the host runs code for `target`: higher is better, negative is not at all.
int targetRank(std::string_view target);

} // namespace burin::rt
