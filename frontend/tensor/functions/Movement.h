// Eager calls of ops that only move elements, run without compiled code.
#pragma once
#include "frontend/tensor/Normalize.h"
#include "frontend/tensor/core/TensorState.h"
#include "ir/reference/ops/ReferenceMove.h"

namespace burin::detail {

/// Whether operands are as moveOnHost() takes them: in host memory, and no C++ numbers.
bool canMove(std::span<const Tensor *const> operands);

/// Runs the kernel of an op for operands of the strict op's types: at once if there is little to move and the operands
/// are complete, else as a task.
std::vector<Tensor> moveOnHost(std::shared_ptr<const CheckedCall> call, ir::MoveKernel kernel,
                               std::span<const Tensor *const> operands, const Location &where);

} // namespace burin::detail
