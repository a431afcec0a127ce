// Elementwise kernels that read transposed operands. A block computes a tile of these in the order in which they lie in
// memory, keeps it in shared memory, and reads it from there for results along the last dimension, so that adjacent
// threads access adjacent memory on both sides.
#include "codegen/gpu/Block.h"
#include "codegen/gpu/GpuKernels.h"
#include "codegen/gpu/Results.h"
#include "passes/analysis/StridedView.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kThreads = 256, kWordBytes = 4;

class GpuTransposedReads {
public:
  GpuTransposedReads(const KernelEmission &kernel, const passes::TransposedReads &reads)
      : e(kernel.e), k(e.k), body(kernel.body), a(*kernel.space), p(e, a), results(body, a, kernel.results),
        last(int(a.space.size()) - 1), across(reads.along), turned(reads.values) {
    int64_t widest = 1;
    for (Value v : turned)
      widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
    side = turned.size() == 1 && widest <= kWordBytes ? 64 : 32;
    for (Value v : turned) {
      const int64_t pitch = side + std::max<int64_t>(kWordBytes / int64_t(byteWidth(dtypeOf(v))), 1);
      tiles.push_back({sharedArray(k, k.storageType(dtypeOf(v)), side * pitch), pitch});
    }
  }

  GpuLaunch emit() {
    Shape counts;
    Dim blocks = 1;
    for (int d = 0; d <= last; ++d) {
      counts.push_back(isTiled(d) ? ceildiv(a.space[d], side) : a.space[d]);
      blocks = blocks * counts.back();
    }
    p.point = e.delinearize({k.lo}, counts);
    for (int d : {across, last})
      p.point[d] = {k.mul(p.point[d].base, k.constant(side))};
    row0 = p.point[across].base, column0 = p.point[last].base;
    Value thread = threadIndex(k);
    at = k.rem(thread, k.constant(side)), sharedRow = k.div(thread, k.constant(side));
    read();
    barrier(k);
    write();
    return {.blocks = blocks, .threads = kThreads};
  }

private:
  struct Tile {
    Value pointer;
    int64_t pitch; // elements from one row to the next
  };

  bool isTiled(int d) const { return d == across || d == last; }
  Memory memoryOf(size_t number) const { return {tiles[number].pointer, dtypeOf(turned[number]), {}}; }
  Value placeOf(size_t number, Value row, Value column) {
    return k.add(k.mul(row, k.constant(tiles[number].pitch)), column);
  }

  /// Calls `body` for the shared rows of the tile that this thread visits, several at once if their code is short.
  void eachSharedRow(bool isShort, llvm::function_ref<void(ArrayRef<Value>)> body) {
    int64_t step = kThreads / side, count = side / step, together = isShort ? 4 : 1;
    k.loop(k.constant(0), k.constant(count), k.constant(together), [&](Value i) {
      e.scoped([&] {
        SmallVector<Value> sharedRows;
        for (int64_t n = 0; n < together; ++n)
          sharedRows.push_back(k.add(sharedRow, k.mul(k.add(i, k.constant(n)), k.constant(step))));
        body(sharedRows);
      });
    });
  }

  /// Threads are adjacent along the dimension in which the operands are contiguous. Positions beyond the end repeat the
  /// last one.
  void read() {
    auto inside = [&](Value i, int d) {
      return isMultipleOf(a.space[d], side) ? i : k.minimum(i, k.sub(k.dim(a.space[d]), k.constant(1)));
    };
    Value row = inside(k.add(row0, at), across);
    for (auto [number, v] : llvm::enumerate(turned))
      eachSharedRow(e.mayRepeat(v, 4), [&](ArrayRef<Value> sharedRows) {
        SmallVector<Value> elements;
        for (Value l : sharedRows) {
          SmallVector<Index> where;
          for (int d : a.dims.find(v)->second)
            where.push_back(d < 0         ? Index{k.constant(0)}
                            : d == across ? Index{row}
                            : d == last   ? Index{inside(k.add(column0, l), last)}
                                          : p.point[d]);
          elements.push_back(e.element(v, where));
        }
        for (auto [l, element] : llvm::zip_equal(sharedRows, elements))
          k.store(memoryOf(number), {placeOf(number, at, l)}, element, 1, {});
      });
  }

  void write() {
    const bool isShort = body.getOperations().size() < 8;
    Value column = k.add(column0, at);
    p.point[last] = {column};
    Value isColumn = isMultipleOf(a.space[last], side) ? Value() : less(column, last);
    eachSharedRow(isShort, [&](ArrayRef<Value> sharedRows) {
      for (Value l : sharedRows) {
        Value row = k.add(row0, l), isInside = isColumn;
        if (!isMultipleOf(a.space[across], side)) {
          Value isRow = less(row, across);
          isInside = isInside ? arith::AndIOp::create(k.b, k.loc, isInside, isRow).getResult() : isRow;
        }
        auto store = [&] {
          p.point[across] = {row};
          p.scoped([&] {
            for (auto [number, v] : llvm::enumerate(turned))
              p.bind(v, k.load(memoryOf(number), {placeOf(number, l, at)}, 1, {}));
            results.write(p);
          });
        };
        isInside ? k.when(isInside, store) : store();
      }
    });
  }

  Value less(Value i, int d) { return k.compare(arith::CmpIPredicate::slt, i, k.dim(a.space[d])); }

  ElementEmitter &e;
  KernelBuilder &k;
  Block &body;
  const passes::IterationSpace &a;
  PointEmitter p;
  GpuResults results;
  int last, across; // dimensions of the tile
  SmallVector<Value> turned;
  SmallVector<Tile> tiles; // of the transposed values
  int64_t side;
  Value row0, column0, at, sharedRow; // first positions of the tile; of the thread, along a shared row and across
};

} // namespace

GpuLaunch emitGpuTransposedReads(const KernelEmission &kernel) {
  return GpuTransposedReads(kernel, *passes::transposedReadsOf(kernel.body, *kernel.space)).emit();
}

} // namespace burin::codegen
