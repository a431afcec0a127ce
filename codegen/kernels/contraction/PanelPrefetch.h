// What tiles of a product fetch of the right side ahead of time, see ContractionKernel.cpp.
#pragma once
#include "codegen/emit/KernelBuilder.h"

namespace burin::codegen {

/// The fetches of one tile. Panels lie one after the other, rows of `width` elements for each step of the sum.
class PanelPrefetch {
public:
  /// The tile takes `taken` elements of the rows that begin at each of `chunks`.
  PanelPrefetch(KernelBuilder &k, Memory panels, int64_t width, ArrayRef<Value> chunks, int64_t taken)
      : k(k), panels(std::move(panels)), width(width), chunks(chunks), taken(taken) {}

  /// All tiles of a panel together fetch the `next` one into the second cache level; this one is the `visit`th of
  /// `visits`, and has `depth` steps. A tile without such a share fetches from its own panel, so far ahead.
  void share(Value next, Value depth, Value visit, Value visits);
  /// Before a step of a tile of `rows` rows; the `ahead`th of those written out together.
  void operator()(int64_t rows, int64_t ahead, Value step);

  /// The row of that step, into the first cache level.
  void row(Value step);

private:
  /// The lines of the row of that step that the tile takes.
  void eachLine(Value step, llvm::function_ref<void(Value at)> body);
  void line(Value at, int64_t locality);

  KernelBuilder &k;
  Memory panels;
  int64_t width;
  ArrayRef<Value> chunks;
  int64_t taken;
  Value shareFrom, perStep; // where the share begins (null: there is none), and its elements for each step
};

} // namespace burin::codegen
