// The loops around the tiles of a contraction: tasks, and chunks of columns.
#pragma once
#include "codegen/kernels/contraction/ContractionSchedule.h"

namespace burin::codegen {

/// A block of units times a block of panels, of one batch.
struct ContractionTask {
  Value batch;
  Value unitFrom, unitTo;
  Value chunkFrom, chunkTo;
  Value isLastBlock; // of panels
};
void eachTask(KernelBuilder &k, ContractionSchedule &s, llvm::function_ref<void(const ContractionTask &)> body);

/// The columns of a tile: a chunk, or several adjacent ones.
struct Chunk {
  Value number; // of the first chunk
  int64_t vectors;
  bool isWhole = false; // known to have all its columns
  bool isRest = false;  // left by tiles of several chunks
};
/// Calls `body` for the chunks of a task, `together` at a time, then for those left, one by one, and for a last chunk
/// that the columns do not fill. If `areTogether` is given, all are left where it is false.
void eachChunk(KernelBuilder &k, const ContractionSchedule &s, const ContractionTask &task, int64_t together,
               llvm::function_ref<void(const Chunk &)> body, Value areTogether = {});

} // namespace burin::codegen
