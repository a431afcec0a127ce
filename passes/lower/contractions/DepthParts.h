// Products and convolutions with few results and long sums, for GPUs: the depth is split into parts that run at once.
#pragma once
#include "passes/analysis/GraphBuilder.h"

namespace burin::passes {

/// The sums of a product or convolution: `rows` by `columns` results, each of `taps` times `channels` elements.
struct Sums {
  Dim rows, columns, taps, channels;
  DType type; // of the left operand
};

/// A number of parts that sums are split into, so that a GPU has enough tiles; 1 if splitting does not pay off. It
/// depends on the sizes alone, because the order of additions depends on it.
struct DepthSplit {
  int64_t parts = 1, cost = 0; // `cost`: the estimated time, in summed elements of a tile
};
/// Splits the channels into a power of two of parts.
DepthSplit splitOfChannels(const Sums &);
/// Splits windows into parts of their rows of taps.
DepthSplit splitOfWindowRows(const Sums &, int64_t rows);

/// Operands of a batch of contractions, one per part of the channels.
struct PartOperands {
  mlir::Value lhs;    // [parts, …, channels of a part]
  mlir::Value matrix; // [parts, taps * channels of a part, columns]
};
/// Splits lhs [..., channels] and matrix [taps * channels, columns].
PartOperands splitDepth(GraphBuilder &, mlir::Value lhs, mlir::Value matrix, int64_t parts);

/// How windows move along the rows of images.
struct WindowRows {
  int64_t taps, stride, dilation, positions, low; // `low`: rows of padding before the first
};
/// For each part of the rows of taps, which divide into `parts`, the rows of x [images, rows, …] that it sees:
/// [parts, images, rows of a part, …].
mlir::Value rowsOfParts(GraphBuilder &, mlir::Value x, const WindowRows &, int64_t parts);

} // namespace burin::passes
