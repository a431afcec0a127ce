// Prefetches of the right operand for the tiles of a product, see ContractionKernel.cpp.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"

namespace burin::codegen {

/// The prefetches of one tile. Panels are consecutive in memory, with `width` elements per step of the sum.
class PanelPrefetch {
public:
  /// The tile uses `taken` elements per step from each of `chunks` on, which are in L2 already if `areCached`.
  PanelPrefetch(KernelBuilder &k, Memory panels, int64_t width, ArrayRef<Value> chunks, int64_t taken, bool areCached)
      : k(k), panels(std::move(panels)), width(width), chunks(chunks), taken(taken), areCached(areCached) {}

  /// Makes this tile, number `visit` of `visits`, prefetch its share of panel `next` to L2, during its `depth` steps. A
  /// tile without a share prefetches from its own panel.
  void share(Value next, Value depth, Value visit, Value visits);
  /// Called before a step of a tile with `rows` rows; the step is number `ahead` of an unrolled iteration.
  void operator()(int64_t rows, int64_t ahead, Value step);

  /// Prefetches the row of a step to L1.
  void row(Value step);

private:
  /// The cache lines of a step that the tile uses.
  void eachLine(Value step, llvm::function_ref<void(Value at)> body);
  void line(Value at, int64_t locality);

  KernelBuilder &k;
  Memory panels;
  int64_t width;
  ArrayRef<Value> chunks;
  int64_t taken;
  bool areCached;
  Value shareFrom, perStep; // start of the share (null: none), and its elements per step
};

} // namespace burin::codegen
