// Conditions and limits of the kernel families for GPUs.
#pragma once
#include "passes/analysis/StridedView.h"
#include "passes/kernels/families/KernelFamily.h"

namespace burin::passes {

/// Longest slice of a running sum, in elements, that one thread computes.
inline constexpr int64_t kShortSlice = 64;
/// Most rows of the left operand of a thin contraction.
inline constexpr int64_t kMostThinRows = 4;
/// Most value columns of an attention without tensor cores: four tiles of 64, whose sums a thread keeps.
inline constexpr int64_t kMostAttentionColumns = 256;
/// Most value columns of an attention on tensor cores: its sums stay in registers.
inline constexpr int64_t kMostTensorCoreWidth = 192;
/// Most columns of the gradients of attention on tensor cores: tiles of four operands fit in 48 KB of shared memory.
inline constexpr int64_t kMostGradientColumns = 128;
/// Columns of a block in shared memory of such an attention, and the most blocks of keys and values together.
inline constexpr int64_t kTensorCoreBlock = 32, kMostTensorCoreBlocks = 12;
/// Most columns of queries, and of values, of an attention by warpgroups; the fewest query rows: one more than half a
/// tile.
inline constexpr int64_t kMostWarpgroupColumns = 256, kFewestWarpgroupRows = 65;
/// Most query rows that share keys, and columns, of an attention whose keys are split between blocks. Rows beyond the
/// few are left to tensor cores if there are as many heads as multiprocessors of an H100.
inline constexpr int64_t kMostSplitRows = 16, kFewSplitRows = 4, kMostSplitColumns = 256, kManyHeads = 132;

/// Rows of the result per block of a contraction by warpgroups.
inline constexpr int64_t kWarpgroupTileRows = 128;
/// With fewer large tiles than this, multiprocessors are idle (an H100 has 132).
inline constexpr int64_t kFewTiles = 96;

/// Number of tiles of the result of a contraction. Symbolic sizes count as large.
struct Tiles {
  int64_t batches, rows, columns;
  int64_t count() const { return batches * rows * columns; }
};
Tiles contractionTiles(ir::ContractOp, int64_t tileRows, int64_t tileColumns);
/// Columns per block of a contraction by warpgroups: 256 if there are enough such tiles, else 128.
int64_t warpgroupTileColumns(ir::ContractOp);

/// A transposing copy with tiles that are worth a block; nullopt for other bodies.
std::optional<StridedCopy> gpuTransposeOf(mlir::Block &body);
/// Which side of a transposing copy has a short static dimension and is contiguous along it and the long one: the
/// source along the inner dimension, or the result along the last one.
enum class ShortSide { None, Inner, Last };
ShortSide shortSideOf(const StridedCopy &);
bool isGpuTranspose(const KernelBody &);
/// An elementwise kernel with a few transposed operands, whose tiles fit in shared memory.
bool isGpuTransposedReads(const KernelBody &);

/// The window op over images of a kernel whose other ops are elementwise and whose runs of windows one thread computes:
/// max_pool, or depthwise convolution with channels last. Null if there is none.
mlir::Operation *gpuWindowIn(mlir::Block &body);
bool isGpuWindow(const KernelBody &);

/// cumsum or cumprod along the innermost dimension, with slices that are or may be long. Along other dimensions one
/// thread per slice already reads adjacent elements.
bool isLongRunning(const KernelBody &);
/// Whether a number of rows is known to be from 1 to kMostThinRows.
bool hasFewRows(const Dim &rows);
/// A contraction with so few rows that reading the right operand bounds its time.
bool isThinContraction(const KernelBody &);
/// A contraction of 16-bit floats without separate tail columns.
bool isTensorCoreContraction(const KernelBody &);
/// Whether both sides are bytes, and the right one has panels of one column: the elements of a sum follow each other.
bool hasColumnPanels(ir::ContractOp);
/// A contraction of bytes, of which the right side has panels of one column.
bool isByteContraction(const KernelBody &);
/// A contraction of f32 without separate tail columns.
bool isRoundedContraction(const KernelBody &);
/// A contraction on tensor cores with many large tiles, whose left operand may allow copies of 16 bytes.
bool isWarpgroupContraction(const KernelBody &);
/// The query rows of an attention that have the same keys and values: all rows of heads that lie along the last leading
/// dimensions, in which keys and values are repeated.
struct SharedKeys {
  size_t leading; // leading dimensions along which keys differ
  Dim heads;      // number of key/value heads
  int64_t rows;   // query rows of each; 0: more than kMostSplitRows, or symbolic
};
SharedKeys rowsOfSharedKeys(ir::ScaledDotProductAttentionOp);
/// Whether an op is an attention of f32 or 16-bit floats with few query rows and static columns. It reads keys and
/// values as rowsViewsOf().
bool splitsKeys(ir::ScaledDotProductAttentionOp);
bool isSplitAttention(const KernelBody &);
/// Attention in 16-bit floats on tensor cores with many query rows, whose operands may allow copies of 16 bytes.
bool isWarpgroupAttention(const KernelBody &);
/// Attention in 16-bit floats with static depth and width, at most 384 together.
bool isTensorCoreAttention(const KernelBody &);
/// Attention of any element type with few value columns.
bool isGpuAttention(const KernelBody &);
/// Gradients of attention in 16-bit floats with static, few columns.
bool isTensorCoreGradient(const KernelBody &);
/// Gradients of attention of any element type with few columns.
bool isGpuAttentionGradient(const KernelBody &);

} // namespace burin::passes
