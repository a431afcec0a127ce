// Elementwise kernels that read columns by computed indices, the same ones in every row, as a resize does. The
// positions of a vector of columns are computed once for several rows. If all of them lie in two vectors, as in a
// resize, these are loaded and a permutation picks the elements; a gather would load each element alone.
#include "codegen/emit/KernelEmitters.h"
#include "codegen/emit/builder/RowVectors.h"
#include "passes/analysis/StridedView.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class TakenColumnsKernel {
public:
  TakenColumnsKernel(ElementEmitter &e, Block &body, const passes::IterationSpace &a, ArrayRef<Value> results)
      : e(e), k(e.k), body(body), a(a), results(results), takes(passes::takesOfColumns(body, a)), p(e, a),
        last(a.space.size() - 1), lanes(k.target.lanes(4)) {}

  LaunchShape emit() {
    Shape counts(a.space.begin(), a.space.end()); // blocks of rows and columns, single indices of other dimensions
    counts[last - 1] = ceildiv(a.space[last - 1], passes::kTakenRows);
    counts[last] = ceildiv(a.space[last], passes::kMapBlock);
    Dim tasks = 1;
    for (const Dim &count : counts)
      tasks = tasks * count;
    k.eachPosition(k.lo, k.hi, counts, [&](ArrayRef<Value> at) { e.scoped([&] { block(at); }); });
    return {tasks, 0};
  }

private:
  std::pair<Value, Value> range(Value block, int64_t size, const Dim &all) {
    Value begin = k.mul(block, k.constant(size));
    return {begin, k.minimum(k.add(begin, k.constant(size)), k.dim(all))};
  }

  void block(ArrayRef<Value> at) {
    p.point = llvm::map_to_vector(at, [](Value index) { return Index{index}; });
    auto [row, rowsEnd] = range(at[last - 1], passes::kTakenRows, a.space[last - 1]);
    auto [column, columnsEnd] = range(at[last], passes::kMapBlock, a.space[last]);
    auto rows = [&, from = row, to = rowsEnd] {
      k.loop(from, to, k.constant(1), [&](Value row) {
        p.point[last - 1] = {row};
        p.scoped([&] { p.storeResults(body, results); });
      });
    };
    // Fewer lanes would be gathered, see findTwoVectors().
    RowRange range{.from = column,
                   .to = columnsEnd,
                   .begin = 0,
                   .end = a.space[last],
                   .lanes = lanes,
                   .stored = narrowest(body, DType::i64),
                   .mayRepeat = !k.sharesMemory()};
    eachVector(k, range, [&](Value i, int64_t, Value mask) { columns(i, mask, rows); });
  }

  /// Computes a vector of columns of all rows.
  void columns(Value from, Value mask, llvm::function_ref<void()> rows) {
    llvm::SaveAndRestore width(k.width, lanes);
    llvm::SaveAndRestore masked(e.mask, mask);
    p.point[last] = {from, 1};
    e.scoped([&] {
      SmallVector<Index> positions;
      for (TakeOp take : takes)
        positions.push_back(e.takenAt(take, p.point[last]));
      llvm::DenseMap<Value, KernelBuilder::TwoVectors> twoVectors;
      Value areNear = k.permutesPairs(lanes) ? findTwoVectors(positions, twoVectors) : Value();
      if (!areNear)
        return rows();
      {
        llvm::SaveAndRestore known(k.twoVectors, twoVectors);
        k.when(areNear, rows);
      }
      k.unless(areNear, rows);
    });
  }

  /// Whether an element of `v` depends only on elements of the kernel's operands at its position, so that two vectors
  /// of it may be read wherever `v` has elements. Not so for a pad: the element that it reads may not exist.
  bool isElementwise(Value v) {
    Operation *op = v.getDefiningOp();
    return !op || (op->hasTrait<ir::Elementwise>() &&
                   llvm::all_of(op->getOperands(), [&](Value x) { return isElementwise(x); }));
  }

  /// Returns the condition (i1) under which all positions taken of a value lie in two neighbouring vectors, and fills
  /// `twoVectors` for that case. Takes of one value share the vectors. Null if no take can be read in this way.
  Value findTwoVectors(ArrayRef<Index> positions, llvm::DenseMap<Value, KernelBuilder::TwoVectors> &twoVectors) {
    llvm::MapVector<Value, SmallVector<size_t>> bySource;
    for (auto [i, take] : llvm::enumerate(takes))
      if (positions[i].lanes && !positions[i].base && isElementwise(take.getX()))
        bySource[take.getX()].push_back(i);
    Value areNear;
    for (auto &[source, numbers] : bySource) {
      Value least, most;
      for (size_t i : numbers) {
        Value at = active(positions[i].lanes);
        least = least ? Value(arith::MinSIOp::create(k.b, k.loc, least, at)) : at;
        most = most ? Value(arith::MaxSIOp::create(k.b, k.loc, most, at)) : at;
      }
      Value base = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MINSI, least);
      Value end = vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MAXSI, most);
      Value fits = k.compare(arith::CmpIPredicate::slt, k.sub(end, base), k.constant(2 * lanes));
      areNear = areNear ? Value(arith::AndIOp::create(k.b, k.loc, areNear, fits)) : fits;
      auto [first, second] = insideFrom(base, shapeOf(source)[takes[numbers[0]].getAxis()]);
      for (size_t i : numbers) {
        Value picks = arith::SubIOp::create(k.b, k.loc, positions[i].lanes, k.broadcast(base, lanes));
        picks = arith::TruncIOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), picks);
        twoVectors[positions[i].lanes] = {base, picks, {first, second}};
      }
    }
    return areNear;
  }

  /// Masks of the elements of the two vectors from `base` on. Null for rows that are known to have two vectors: `base`
  /// is then moved back so that both lie in the row.
  std::pair<Value, Value> insideFrom(Value &base, const Dim &size) {
    Value width = k.constant(lanes);
    if (size.isStatic() && size.value() >= 2 * lanes) {
      base = k.minimum(base, k.constant(size.value() - 2 * lanes));
      return {};
    }
    // Opaque, or LLVM would repeat the comparison in the loop over rows.
    return {k.opaqueMask(k.below(base, k.dim(size), lanes)),
            k.opaqueMask(k.below(k.add(base, width), k.dim(size), lanes))};
  }

  /// Positions of inactive lanes are those of the first one.
  Value active(Value positions) {
    if (!e.mask)
      return positions;
    Value first = vector::ExtractOp::create(k.b, k.loc, positions, 0);
    return arith::SelectOp::create(k.b, k.loc, e.mask, positions, k.broadcast(first, lanes));
  }

  ElementEmitter &e;
  KernelBuilder &k;
  Block &body;
  const passes::IterationSpace &a;
  ArrayRef<Value> results;
  SmallVector<TakeOp> takes;
  PointEmitter p;
  size_t last; // dimension
  int64_t lanes;
};

} // namespace

LaunchShape emitTakenColumns(const KernelEmission &kernel) {
  return TakenColumnsKernel(kernel.e, kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
