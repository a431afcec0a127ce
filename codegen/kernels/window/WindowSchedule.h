// The schedule of a channels-last window op: the split of the result into tasks and tiles. It is computed before any
// code is emitted, and can be printed.
#pragma once
#include "codegen/emit/element/Window.h"

namespace burin::codegen {

/// Tasks are bands of rows times blocks of channels. A tile is a run of positions of the last spatial dimension, in one
/// row or in all rows of a band, times a vector of channels.
struct WindowSchedule {
  /// `readsMemory`: x is in memory.
  WindowSchedule(const Window &w, DType type, Shape result, const Target &target, bool readsMemory);

  const Window &w;
  DType type, sumType;
  Shape x, result;
  size_t last;            // the dimension of x and the result that tiles run along
  int64_t columns, width; // of the result and of x, along `last`
  int64_t lanes;
  int64_t channelBlock;
  Dim blocks;                           // of channels
  int64_t sharing = 1;                  // rows of the result that read a row of x
  bool fetchesNext = false;             // tiles prefetch the pixels that only the next tile of the row reads
  int64_t mostRows = 1, rowsOfTask = 1; // limit of rows of a tile with unrolled taps; rows of a task

  Dim tasks() const;
  /// Number of tasks along the rows of an image: even, so that two threads get equal shares.
  Dim bands() const;
  /// Approximate number of positions per row of a tile.
  int64_t positions(int64_t rowsOfTile) const;
  /// Extent in spatial dimension d of x that `windows` adjacent windows cover.
  int64_t reach(size_t d, int64_t windows) const;
  /// Whether all windows of `size` positions from `from` on lie inside the row.
  bool isInside(int64_t from, int64_t size) const;
  /// Lanes per position of the last channels: the rest of the vector holds other positions.
  int64_t lanesOfRest() const;
  /// Whether all vectors of the result cross cache lines and stores would wait for both: then the lines are prefetched.
  /// Shorter vectors share lines, so that prefetching costs more than it saves.
  bool storesSplit() const;
  /// The schedule in readable form.
  std::string text() const;

private:
  bool isFar() const;
  int64_t bytesOfImage() const;
  bool endsWithLine() const;
  bool shouldFetchNext(int64_t rowsOfTile) const;
  int64_t positions(int64_t rowsOfTile, int64_t accumulators) const;
  void cutChannels(int64_t most);

  const Target &target;
  bool readsMemory;
};

} // namespace burin::codegen
