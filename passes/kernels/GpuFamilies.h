// Conditions and limits of the kernel families for GPUs.
#pragma once
#include "passes/kernels/KernelFamily.h"

namespace burin::passes {

/// Longest line of a running sum, in elements, that one thread computes.
inline constexpr int64_t kShortLine = 64;
/// Most rows of the left operand of a thin contraction.
inline constexpr int64_t kMostThinRows = 4;
/// Most value columns of an attention without tensor cores: four tiles of 64, whose sums a thread keeps.
inline constexpr int64_t kMostAttentionColumns = 256;
/// Most value columns of an attention on tensor cores: its sums stay in registers.
inline constexpr int64_t kMostTensorCoreWidth = 192;
/// Columns of a block in shared memory of such an attention, and the most blocks of keys and values together.
inline constexpr int64_t kTensorCoreBlock = 32, kMostTensorCoreBlocks = 12;

/// cumsum or cumprod along the innermost dimension, with lines that are or may be long. Along other dimensions one
/// thread per line already reads adjacent elements.
bool isLongRunning(const KernelBody &);
/// A contraction with so few rows that reading the right operand bounds its time.
bool isThinContraction(const KernelBody &);
/// A contraction of 16-bit floats without separate tail columns.
bool isTensorCoreContraction(const KernelBody &);
/// Attention in 16-bit floats with static depth and width, at most 384 together.
bool isTensorCoreAttention(const KernelBody &);
/// Attention of any element type with few value columns.
bool isGpuAttention(const KernelBody &);

} // namespace burin::passes
