// Code for AMX on processors without it: tile operations become loops over memory.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <cstddef>
#include <vector>

namespace burin::test {

/// Replaces the tile operations in the code of kernels by loops. The tiles are memory of each call of a kernel.
/// Products are those of TDPBF16PS (Intel SDM, volume 2): the even and the odd elements of pairs are summed on their
/// own, by fused multiply-add, and both sums are then added to the tile; denormal numbers, which the instruction takes
/// for zeros, are kept. Returns whether there was one.
bool expandTileOps(mlir::ModuleOp code);

/// The artifact, whose code is for `target`.
std::vector<std::byte> forTarget(const std::vector<std::byte> &artifact, const char *target);

} // namespace burin::test
