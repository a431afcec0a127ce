// Loops of a module.
#pragma once
#include "ir/dialect/Burin.h"
#include "llvm/ADT/DenseMap.h"

namespace burin::passes {

/// The loops whose body no other loop shares, so that it can be changed for one of them. A body that contains its own
/// loop is left out, too.
inline llvm::SmallVector<ir::ScanOp> scansWithOwnBody(mlir::ModuleOp module) {
  llvm::SmallVector<ir::ScanOp> scans;
  llvm::DenseMap<mlir::Operation *, int> loops; // number of loops with this body
  module.walk([&](ir::ScanOp scan) {
    scans.push_back(scan);
    ++loops[scan.body()];
  });
  llvm::erase_if(scans, [&](ir::ScanOp scan) { return loops[scan.body()] != 1 || scan->getParentOp() == scan.body(); });
  return scans;
}

} // namespace burin::passes
