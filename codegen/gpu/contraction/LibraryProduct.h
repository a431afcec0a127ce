// Kernels that are a matrix product which a library computes, too, with the same meaning.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"
#include "runtime/format/Artifact.h"

namespace burin::codegen {

/// A size as the host finds it for a launch; a symbolic one must be among those of the kernel.
rt::LaunchSize launchSizeOf(const KernelBuilder &, const Dim &size);

/// The product that a kernel is: both operands of f32, f16 or bf16, the right one not packed, one row of the left one
/// at a fixed distance from the next one; the result as summed, or, in f32, with a bias per column. Adds the sizes that
/// the library needs to those of the kernel.
std::optional<rt::Product> libraryProductOf(ir::KernelOp, KernelBuilder &);

} // namespace burin::codegen
