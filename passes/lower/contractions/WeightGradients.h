// Gradients of weights. Those of linear layers are products of a transposed left side, and are transposed. Those of
// convolutions are convolutions with image-sized windows that move by a few positions: few results, each a sum over all
// positions and the whole batch, which is the last dimension of x [channels, spatial…, batch] and the last but one of
// weight [spatial…, batch, outputs].
#pragma once
#include "passes/lower/contractions/Pack.h"

namespace burin::passes {

/// Convolutions with at least this many taps may be gradients of a weight.
inline constexpr int64_t kLeastGradientTaps = 64;
/// Parts of the batch whose sums are computed apart where there are few tiles.
inline constexpr int64_t kShards = 4;

/// A product of matrices, in CPU code, whose left side is a transpose and whose only reader is another one: replaced by
/// the product of the transposed right side and the left one, which has the same sums and no transposed result, if
/// fewer elements are moved, to packed right sides and to the result. Otherwise the product itself.
ir::MatmulOp withoutTransposedResult(ir::MatmulOp);

/// The product of the sizes; 0 if one is symbolic.
int64_t staticProduct(llvm::ArrayRef<Dim> sizes);
/// The shape of a convolution's result with the channels last, whatever its layout.
Shape resultChannelsLast(ir::ConvOp);
/// Whether a convolution is such a gradient. This must not depend on the batch size or on whether it is static, so that
/// eager and compiled sums have the same order.
bool isWeightGradient(ir::ConvOp, mlir::Value x, mlir::Value weight);
/// Whether the result has too few tiles to occupy several threads.
bool hasFewTiles(ir::ConvOp, const Dim &columns);
/// Whether all windows are the whole image, as in gradients of 1×1 convolutions: one product per image.
bool seesWholeImage(mlir::Value x, const Windows &);

/// The gradient of few tiles, whose sum over the whole batch would be a single task: the batch is cut into four shards,
/// which are separate tasks, and their sums are added as a tree.
mlir::Value contractShards(GraphBuilder &, mlir::Value x, mlir::Value weight, const Windows &, Readers);
/// The gradient from a packed left side (see isPackedLeft).
mlir::Value contractPackedLeft(GraphBuilder &, ir::ConvOp, mlir::Value x, mlir::Value weight, const Windows &, Readers);

} // namespace burin::passes
