#include "codegen/kernels/contraction/ContractionTasks.h"

using namespace mlir;

namespace burin::codegen {

/// The most adjacent tasks with equal units that are computed as one, so that tiles can span several chunks.
static int64_t blocksTogether(const ContractionSchedule &s) {
  const Dim chunks = s.tiling.panelsPerBlock * Dim(s.chunksPerPanel());
  return chunks.isStatic() && chunks.value() % s.tileChunks == 0 ? 1 : s.tileChunks;
}

void eachTask(KernelBuilder &k, ContractionSchedule &s, llvm::function_ref<void(const ContractionTask &)> body) {
  // Only the long expression is passed as a size; the number of blocks is computed from it.
  Value panelsPerBlock = k.dim(s.tiling.panelsPerBlock), one = k.constant(1);
  Value panelBlocks = k.div(k.add(k.dim(s.tiling.panels), k.sub(panelsPerBlock, one)), panelsPerBlock);
  const Dim &unitBlocks = s.tiling.unitBlocks, &perBlock = s.tiling.unitsPerBlock;
  auto compute = [&](Value number, Value count) {
    ContractionTask task;
    Value from = k.rem(number, panelBlocks), rest = k.div(number, panelBlocks), to = k.add(from, count);
    Value unitBlock = k.rem(rest, k.dim(unitBlocks));
    task.batch = k.div(rest, k.dim(unitBlocks));
    Value chunksPerBlock = k.mul(panelsPerBlock, k.constant(s.chunksPerPanel()));
    task.chunkFrom = k.mul(from, chunksPerBlock);
    task.chunkTo = k.minimum(k.mul(to, chunksPerBlock), k.dim(ceildiv(s.columns, s.chunkWidth)));
    task.unitFrom = k.mul(unitBlock, k.dim(perBlock));
    task.unitTo = k.minimum(k.add(task.unitFrom, k.dim(perBlock)), k.dim(s.units));
    task.isLastBlock = k.compare(arith::CmpIPredicate::eq, to, panelBlocks);
    body(task);
  };
  const int64_t together = blocksTogether(s);
  if (together == 1)
    return k.loop(k.lo, k.hi, one, [&](Value number) { compute(number, one); });
  k.loop(k.lo, k.hi, one, {k.lo}, [&](Value number, ValueRange next) -> SmallVector<Value> {
    Value inRow = k.sub(panelBlocks, k.rem(number, panelBlocks));
    Value count = k.minimum(k.constant(together), k.minimum(inRow, k.sub(k.hi, number)));
    Value isNext = k.compare(arith::CmpIPredicate::eq, number, next.front());
    k.when(isNext, [&] { compute(number, count); });
    return {arith::SelectOp::create(k.b, k.loc, isNext, k.add(number, count), next.front())};
  });
}

/// Number of chunks, without a partial last one that has code of its own.
static std::optional<int64_t> fullChunks(const ContractionSchedule &s) {
  if (!s.columns.isStatic())
    return std::nullopt;
  const int64_t columns = s.columns.value();
  return s.narrowVectors ? columns / s.chunkWidth : int64_t(llvm::divideCeil(columns, s.chunkWidth));
}

/// Number of full chunks that are left at the end of the columns by tiles of `together`, if it is known and tiles of
/// the other tasks leave none.
static std::optional<int64_t> chunksLeft(const ContractionSchedule &s, int64_t together) {
  const Dim perTask = s.tiling.panelsPerBlock * Dim(s.chunksPerPanel());
  const std::optional<int64_t> full = fullChunks(s);
  if (!full || !perTask.isStatic() || (perTask.value() % together && perTask.value() < *full))
    return std::nullopt;
  return *full % together;
}

void eachChunk(KernelBuilder &k, const ContractionSchedule &s, const ContractionTask &task, int64_t together,
               llvm::function_ref<void(const Chunk &)> body, Value areTogether) {
  const int64_t vectors = s.chunkVectors();
  const bool areWhole = s.narrowVectors > 0;
  const std::optional<int64_t> left = chunksLeft(s, together);
  const Value from = task.chunkFrom, by = k.constant(together);
  Value whole = s.narrowVectors ? k.minimum(task.chunkTo, k.constant(*fullChunks(s))) : task.chunkTo, done = from;
  const bool hasTogether = together > 1 && fullChunks(s).value_or(together) >= together;
  if (hasTogether) {
    done = k.add(from, k.mul(k.div(k.sub(whole, from), by), by));
    if (areTogether)
      done = arith::SelectOp::create(k.b, k.loc, areTogether, done, from);
    k.loop(from, done, by, [&](Value chunk) { body({chunk, together * vectors, areWhole}); });
  }
  // A partial last chunk is computed together with the whole one before it, if that is left.
  const bool joins = together > 1 && s.narrowVectors && left.value_or(0);
  const int64_t joined = joins ? 1 : 0;
  if (together == 1 || areTogether || !left || *left > joined)
    k.loop(done, k.sub(whole, k.constant(joined)), k.constant(1),
           [&](Value chunk) { body({chunk, vectors, areWhole, hasTogether}); });
  if (s.narrowVectors)
    k.when(k.compare(arith::CmpIPredicate::slt, whole, task.chunkTo),
           [&] { body({k.sub(whole, k.constant(joined)), joined * vectors + s.narrowVectors}); });
}

} // namespace burin::codegen
