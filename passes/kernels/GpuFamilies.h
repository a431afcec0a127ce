// What the families of kernels for GPUs accept, and the limits of their emitters.
#pragma once
#include "passes/kernels/KernelFamily.h"

namespace burin::passes {

/// Lines of running sums of up to this many elements are for one thread each.
inline constexpr int64_t kShortLine = 64;
/// Left rows of a thin contraction.
inline constexpr int64_t kMostThinRows = 4;
/// Columns of the values of an attention without tensor cores: four tiles of 64, whose sums a thread keeps.
inline constexpr int64_t kMostAttentionColumns = 256;
/// Columns of the values of an attention on tensor cores: sums stay in registers.
inline constexpr int64_t kMostTensorCoreWidth = 192;
/// Columns of a block of shared memory of such an attention, and how many blocks keys and values have together.
inline constexpr int64_t kTensorCoreBlock = 32, kMostTensorCoreBlocks = 12;

/// cumsum or cumprod along the innermost dimension of lines that are long, or may be. Along other dimensions a thread
/// per line reads neighbouring elements.
bool isLongRunning(const KernelBody &);
/// So few rows that reading the right side is all that counts.
bool isThinContraction(const KernelBody &);
/// A contraction of 16-bit floats, without columns apart from the panels.
bool isTensorCoreContraction(const KernelBody &);
/// An attention of 16-bit floats, of known depth and width, up to 384 together.
bool isTensorCoreAttention(const KernelBody &);
/// An attention of any element type with few columns of values.
bool isGpuAttention(const KernelBody &);

} // namespace burin::passes
