// Split-K for GPUs: products and convolutions with few results and long sums are split along the summed dimension, the
// depth, into parts that run concurrently.
#pragma once
#include "passes/analysis/GraphBuilder.h"

namespace burin::passes {

/// The sums of a product or convolution: `rows` by `columns` results, each of `kernelPositions` times `channels`
/// elements.
struct Sums {
  Dim rows, columns, kernelPositions, channels;
  DType type; // of the left operand
};

/// The number of parts that sums are split into, so that a GPU has enough tiles; 1 if splitting does not pay off, a
/// size is symbolic, or there are at most kMostThinRows rows. It depends on the sizes alone, because the order of
/// additions depends on it.
struct DepthSplit {
  int64_t parts = 1;
  int64_t cost = 0; // estimated time, in summed elements of a tile; of one part, the time that a split must beat
};
/// Splits the channels into a power of two of parts.
DepthSplit splitOfChannels(const Sums &);
/// Splits kernels of so many rows into a divisor of that number of parts.
DepthSplit splitOfWindowRows(const Sums &, int64_t kernelRows);

/// Operands of a batch of contractions, one per part of the channels.
struct PartOperands {
  mlir::Value lhs;    // [parts, …, channels of a part]
  mlir::Value matrix; // [parts, kernel positions * channels of a part, columns]
};
/// Splits lhs [..., channels] and matrix [kernel positions * channels, columns].
PartOperands splitDepth(GraphBuilder &, mlir::Value lhs, mlir::Value matrix, int64_t parts);

/// How windows move along the rows of images.
struct WindowRows {
  int64_t kernelRows, stride, dilation, resultRows, paddingBefore;
};
/// Splits the kernel's rows, a multiple of `parts`, into equal parts. Returns the rows of x [images, rows, …], with
/// padding, that each part reads: [parts, images, rows that a part reads, …].
mlir::Value rowsOfParts(GraphBuilder &, mlir::Value x, const WindowRows &, int64_t parts);

} // namespace burin::passes
