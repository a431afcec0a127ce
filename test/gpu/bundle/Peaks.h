// What the GPU can do at most, as measured in the run that its kernels are compared with.
#pragma once
#include <string>

namespace burin::test::bundle {

/// Rows of a table: bandwidth of copies within the first GPU, and products of bf16 by each instruction of its tensor
/// cores. In a process of its own. A failure ends it, and adds a line to `problems`.
std::string measuredPeaks(std::string &problems);

} // namespace burin::test::bundle
