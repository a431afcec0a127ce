// Products and convolutions with few results and long sums, for GPUs: the depth is split into parts that run at once.
#pragma once
#include "passes/analysis/GraphBuilder.h"

namespace burin::passes {

/// The sums of a product or convolution: `rows` by `columns` results, each of `taps` times `channels` elements.
struct Sums {
  Dim rows, columns, taps, channels;
  DType type; // of the left operand
};

/// The number of parts that the channels are split into, so that a GPU has enough tiles: a power of two, 1 if splitting
/// does not pay off. It depends on the sizes alone, because the order of additions depends on it.
int64_t depthParts(const Sums &);

/// Operands of a batch of contractions, one per part of the channels.
struct PartOperands {
  mlir::Value lhs;    // [parts, …, channels of a part]
  mlir::Value matrix; // [parts, taps * channels of a part, columns]
};
/// Splits lhs [..., channels] and matrix [taps * channels, columns].
PartOperands splitDepth(GraphBuilder &, mlir::Value lhs, mlir::Value matrix, int64_t parts);

} // namespace burin::passes
