// Reads files of expected values that PyTorch computed: {case: {name: [element type, shape, elements]}}.
#pragma once
#include <burin/burin.h>
#include <map>
#include <string>

namespace burin::test {

using Tensors = StateDict; // in the order of the file

/// Reads all cases of a file in this folder.
std::map<std::string, Tensors> loadCases(const std::string &file);

/// Checks that shapes are equal, and that elements differ by at most `tolerance` relative to the larger of 1 and the
/// expected one; infinities and NaN must be equal.
void checkClose(const Tensor &got, const Tensor &expected, double tolerance, const std::string &what);

} // namespace burin::test
