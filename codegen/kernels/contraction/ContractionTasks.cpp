#include "codegen/kernels/contraction/ContractionTasks.h"

using namespace mlir;

namespace burin::codegen {

void eachTask(KernelBuilder &k, ContractionSchedule &s, llvm::function_ref<void(const ContractionTask &)> body) {
  // Only the long expression is passed as a size; the number of blocks is computed from it.
  Value together = k.dim(s.tiling.panelsPerBlock), last = k.sub(together, k.constant(1));
  Value panelBlocks = k.div(k.add(k.dim(s.tiling.panels), last), together);
  const Dim &unitBlocks = s.tiling.unitBlocks, &perBlock = s.tiling.unitsPerBlock;
  k.loop(k.lo, k.hi, k.constant(1), [&](Value number) {
    ContractionTask task;
    Value panelBlock = k.rem(number, panelBlocks), rest = k.div(number, panelBlocks);
    Value unitBlock = k.rem(rest, k.dim(unitBlocks));
    task.batch = k.div(rest, k.dim(unitBlocks));
    Value chunksPerBlock = k.mul(together, k.constant(s.chunksPerPanel()));
    task.chunkFrom = k.mul(panelBlock, chunksPerBlock);
    task.chunkTo = k.minimum(k.add(task.chunkFrom, chunksPerBlock), k.dim(ceildiv(s.columns, s.chunkWidth)));
    task.unitFrom = k.mul(unitBlock, k.dim(perBlock));
    task.unitTo = k.minimum(k.add(task.unitFrom, k.dim(perBlock)), k.dim(s.units));
    task.isLastBlock = k.compare(arith::CmpIPredicate::eq, panelBlock, k.sub(panelBlocks, k.constant(1)));
    body(task);
  });
}

Value wholeChunksEnd(KernelBuilder &k, const ContractionSchedule &s, const ContractionTask &task) {
  return s.narrowVectors ? k.minimum(task.chunkTo, k.constant(s.columns.value() / s.chunkWidth)) : task.chunkTo;
}

void eachChunk(KernelBuilder &k, const ContractionSchedule &s, const ContractionTask &task, Value from,
               llvm::function_ref<void(const Chunk &)> body) {
  Value whole = wholeChunksEnd(k, s, task);
  k.loop(from, whole, k.constant(1), [&](Value chunk) { body({chunk, k.target.tileVectors, s.narrowVectors > 0}); });
  if (s.narrowVectors)
    k.when(k.compare(arith::CmpIPredicate::slt, whole, task.chunkTo), [&] { body({whole, s.narrowVectors}); });
}

} // namespace burin::codegen
