#pragma once
#include <string>

namespace burin::test {

/// Writes image.burin, text.burin, memory.burin and rows.burin.
void writeNets(const std::string &folder);

} // namespace burin::test
