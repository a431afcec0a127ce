// Pattern sets of the simplification pass.
#pragma once
#include "mlir/IR/PatternMatch.h"

namespace burin::passes {

void populateActivationFormulas(mlir::RewritePatternSet &patterns);
void populateRowFormulas(mlir::RewritePatternSet &patterns);
void populateSharedHeads(mlir::RewritePatternSet &patterns);

} // namespace burin::passes
