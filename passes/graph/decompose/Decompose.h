// Pattern sets of the decomposition pass.
#pragma once
#include "mlir/IR/PatternMatch.h"

namespace burin::passes {

/// Attention, dot_general, convolution with bias.
void populateContractionDecompositions(mlir::RewritePatternSet &);
/// Transposed convolution.
void populateConvTransposeDecompositions(mlir::RewritePatternSet &);
/// Normalisations with statistics per channel or per group.
void populateNormalizationDecompositions(mlir::RewritePatternSet &);
/// nonzero.
void populateIndexDecompositions(mlir::RewritePatternSet &);

} // namespace burin::passes
