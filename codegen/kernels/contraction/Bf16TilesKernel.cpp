// f32 products on bf16 tile registers (AMX), by bf16 terms of both operands (bf16x3). Sums of a square of rows and
// columns accumulate over strips of the depth. A row with non-finite sums is recomputed in f32, because they may come
// from values that cannot be split into terms.
#include "codegen/kernels/contraction/ContractionTiles.h"
#include "codegen/kernels/contraction/microkernel/Bf16x3Gemm.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class Bf16TilesKernel {
public:
  Bf16TilesKernel(const KernelEmission &kernel, ContractOp op)
      : k(kernel.e.k), s(op, kernel.e.stridedMemoryOf(op.getLhs()), k.target), tiles(kernel, s),
        products(k, *kernel.e.memoryOf(passes::skipReshapes(op.getTerms())), tiles.rhs, s.depth.value(),
                 s.tiling.unitsPerBlock.value() / Bf16x3Gemm::kSide, s.tiling.panelsPerBlock.value()) {}

  LaunchShape emit() {
    products.begin();
    eachTask(k, s, [&](const ContractionTask &task) { emitTask(task); });
    products.end();
    return {s.tasks(), products.scratchBytes(), s.text()};
  }

private:
  /// The first row of a task is a multiple of the side of a square.
  void emitTask(const ContractionTask &task) {
    ContractionTiles::Place place = tiles.firstPlace(task.batch);
    Value side = k.constant(Bf16x3Gemm::kSide), one = k.constant(1), from = task.unitFrom, to = task.unitTo;
    k.loop(k.constant(0), k.constant(products.strips), one, [&](Value strip) {
      eachChunk(k, s, task, s.tileChunks, [&](const Chunk &chunk) {
        k.loop(from, to, side, [&](Value start) {
          Value square = k.div(k.sub(start, from), side), number = k.sub(chunk.number, task.chunkFrom);
          products.multiply(strip, start, chunk.number, square, number);
          auto finishRows = [&] {
            k.loop(start, k.minimum(to, k.add(start, side)), one, [&](Value row) {
              SmallVector<Value> sums;
              for (int64_t v = 0; v < chunk.vectors; ++v)
                sums.push_back(products.sums(square, number, k.sub(row, start), v));
              finishRow(place, row, chunk, sums);
            });
          };
          Value isLast = k.compare(arith::CmpIPredicate::eq, strip, k.constant(products.strips - 1));
          products.strips > 1 ? k.when(isLast, finishRows) : finishRows();
        });
      });
    });
  }

  void finishRow(const ContractionTiles::Place &place, Value row, const Chunk &chunk, ArrayRef<Value> sums) {
    Value areFinite = products.areFinite(sums);
    k.when(areFinite, [&] { tiles.finish(place, row, chunk, sums); });
    k.unless(areFinite, [&] {
      auto columns = [&](int64_t v, Value step) { return products.columns(chunk.number, step, v); };
      ContractionTiles::Tile inF32{row, 1, chunk};
      inF32.columns = columns;
      tiles.emit(place, inF32);
    });
  }

  KernelBuilder &k;
  ContractionSchedule s;
  ContractionTiles tiles;
  Bf16x3Gemm products;
};

} // namespace

LaunchShape emitBf16Tiles(const KernelEmission &kernel) {
  return Bf16TilesKernel(kernel, *kernel.body.getOps<ContractOp>().begin()).emit();
}

} // namespace burin::codegen
