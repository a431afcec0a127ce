// Sums of a kernel with symbolic sizes add in the order of the same kernel with fixed sizes.
#pragma once
#include "codegen/emit/KernelEmitters.h"

namespace burin::codegen {

/// Emits a rowwise kernel by `emit` for its iteration space and, under conditions, for each space of other order that
/// it has in runs where symbolic sizes are 1.
///
/// The order of a sum follows from the innermost dimension of the space: along a reduced one the elements of a row are
/// added to the lanes of several vectors, else each sum adds in row-major order. Spaces have no dimensions of size 1,
/// so one that is 1 when the kernel runs changes which dimension is the innermost one, and may join two others.
LaunchShape emitInOrderOfSums(const KernelEmission &,
                              llvm::function_ref<LaunchShape(const passes::IterationSpace &)> emit);

} // namespace burin::codegen
