// Elementwise kernels that read transposed operands. A vector of the result runs along the last dimension, along which
// a transposed operand is strided. Squares of elements are therefore computed along the dimension in which the operand
// is contiguous, transposed in registers, and stored in scratch memory for the vectors of the result, so that cache
// lines are read and written as a whole.
#include "codegen/emit/KernelEmitters.h"
#include "passes/analysis/StridedView.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kBlock = passes::kSquareBlock;

class TransposedReadsKernel {
public:
  TransposedReadsKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a,
                        const passes::TransposedReads &reads, ArrayRef<Value> results)
      : e(e), k(e.k), body(body), a(a), results(results), p(e, a), last(int(a.space.size()) - 1), across(reads.along),
        turned(reads.values) {
    for (Value v : turned)
      widest = std::max<int64_t>(widest, byteWidth(dtypeOf(v)));
    lanes = k.target.lanes(widest);
  }

  LaunchShape emit() {
    Shape counts; // per dimension: blocks of the two dimensions of the squares, single indices of the others
    Dim tasks = 1;
    for (int d = 0; d <= last; ++d) {
      counts.push_back(d == across || d == last ? ceildiv(a.space[d], kBlock) : a.space[d]);
      tasks = tasks * counts.back();
    }
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) { e.scoped([&] { block(e.delinearize({task}, counts)); }); });
    return {tasks, int64_t(turned.size()) * squareBytes()};
  }

private:
  int64_t squareBytes() const { return lanes * lanes * widest; }

  Memory squareOf(size_t number) {
    Value pointer = k.elementPointer({k.scratch, DType::i8, {}}, k.constant(int64_t(number) * squareBytes()));
    return {pointer, dtypeOf(turned[number]), {}};
  }

  void block(const SmallVector<Index> &at) {
    p.point = at;
    auto each = [&](int d, llvm::function_ref<void(Value)> visit) {
      Value begin = k.mul(at[d].base, k.constant(kBlock));
      Value end = k.minimum(k.add(begin, k.constant(kBlock)), k.dim(a.space[d]));
      k.loop(begin, end, k.constant(lanes), visit);
    };
    each(across, [&](Value row) {
      each(last, [&](Value column) {
        inCases(row, across, [&](bool isCut) { readSquare(row, column, isCut); });
        inCases(column, last, [&](bool isCut) { writeSquare(row, column, isCut); });
      });
    });
  }

  /// Emits `body` twice: for vectors of lanes that lie inside dimension d, and for those that do not.
  void inCases(Value begin, int d, llvm::function_ref<void(bool isCut)> body) {
    const Dim &size = a.space[d];
    if (isMultipleOf(size, lanes))
      return e.scoped([&] { body(false); });
    Value isWhole = k.compare(arith::CmpIPredicate::sle, k.add(begin, k.constant(lanes)), k.dim(size));
    k.when(isWhole, [&] { e.scoped([&] { body(false); }); });
    k.unless(isWhole, [&] { e.scoped([&] { body(true); }); });
  }

  /// Loads vectors along the rows of the square and transposes them. Columns beyond the last one repeat it.
  void readSquare(Value row, Value column, bool isCut) {
    llvm::SaveAndRestore width(k.width, lanes);
    llvm::SaveAndRestore mask(e.mask, isCut ? k.below(row, k.dim(a.space[across]), lanes) : Value());
    Value end = k.sub(k.dim(a.space[last]), k.constant(1));
    for (auto [number, v] : llvm::enumerate(turned)) {
      SmallVector<Value> vectors;
      for (int64_t i = 0; i < lanes; ++i) {
        SmallVector<Index> where;
        for (int d : a.dims.find(v)->second)
          where.push_back(d < 0         ? Index{k.constant(0)}
                          : d == across ? Index{row, 1}
                          : d == last   ? Index{k.minimum(k.add(column, k.constant(i)), end)}
                                        : p.point[d]);
        vectors.push_back(k.broadcast(e.element(v, where), lanes));
      }
      k.transpose(vectors);
      for (int64_t i = 0; i < lanes; ++i)
        k.store(squareOf(number), {k.constant(i * lanes), 1}, vectors[i], lanes, {});
    }
  }

  /// Stores vectors along the last dimension, one per row of the square. Rows are far apart in memory, more of them
  /// than the hardware prefetches, so each row of the other operands is prefetched a cache line ahead.
  void writeSquare(Value row, Value column, bool isCut) {
    Value rows = k.minimum(k.constant(lanes), k.sub(k.dim(a.space[across]), row));
    DType stored = narrowest(body, DType::i64);
    Value mask = isCut ? k.below(column, k.maskBound(a.space[last], stored), lanes) : Value();
    k.loop(k.constant(0), rows, k.constant(1), [&](Value i) {
      llvm::SaveAndRestore width(k.width, lanes);
      llvm::SaveAndRestore masked(e.mask, mask);
      p.point[across] = {k.add(row, i)};
      p.point[last] = {column, 1};
      p.later = p.point;
      p.later[last] = {k.add(column, k.constant(passes::kTaskVectorBytes / byteWidth(dtypeOf(turned[0])))), 1};
      p.scoped([&] {
        for (auto [number, v] : llvm::enumerate(turned))
          p.bind(v, k.load(squareOf(number), {k.mul(i, k.constant(lanes)), 1}, lanes, {}));
        p.storeResults(body, results);
      });
    });
  }

  ElementEmitter &e;
  KernelBuilder &k;
  Block &body;
  const passes::IterationSpace &a;
  ArrayRef<Value> results;
  PointEmitter p;
  int last, across;          // dimensions of the squares
  SmallVector<Value> turned; // transposed values
  int64_t widest = 4, lanes; // of the transposed values: largest element in bytes; lanes of vectors
};

} // namespace

LaunchShape emitTransposedReads(const KernelEmission &kernel) {
  auto reads = passes::transposedReadsOf(kernel.body, *kernel.space);
  return TransposedReadsKernel(kernel.e, kernel.body, *kernel.space, *reads, kernel.results).emit();
}

} // namespace burin::codegen
