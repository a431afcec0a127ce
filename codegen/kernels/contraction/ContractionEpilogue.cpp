#include "codegen/kernels/contraction/ContractionEpilogue.h"
#include "codegen/kernels/LongEpilogue.h"
#include "codegen/kernels/contraction/microkernel/KeptSums.h"
#include "codegen/scalar/Elementwise.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

// Rows of a tile share the code of a loop if their epilogue has at least so many ops (two vectors of hardswish with a
// bias have 52), and if these and the multiply-adds of a row are so many that storing and loading its sums, two
// instructions per vector, costs little beside them.
static constexpr int64_t kOpsOfLoop = 50, kWorkOfLoop = 200;
static constexpr int64_t kMostVectors = 32; // of a tile: it fits in the registers

ContractionEpilogue::ContractionEpilogue(ElementEmitter &e, const ContractionLoopNest &nest, DType sumType, Block &body,
                                         const passes::IterationSpace &space, ArrayRef<Value> results)
    : e(e), k(e.k), nest(nest), op(nest.op), p(e, space), body(body), results(results), type(dtypeOf(op.getResult())),
      sumType(sumType), lanes(k.target.lanes(byteWidth(sumType))), shape(shapeOf(op.getResult())) {}

void ContractionEpilogue::finish(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool allThere,
                                 ArrayRef<Value> sums) {
  placeBatch(rows.batch);
  llvm::SaveAndRestore inLanes(k.width, lanes);
  bool partial = !allThere && !isMultipleOf(bound, lanes); // masks, which also skip vectors beyond the last column
  auto finishOne = [&](int64_t r) {
    auto one = [&] {
      finishRow(rows, k.constant(r), column, vectors, bound, partial, sums.slice(r * vectors, vectors));
    };
    if (rows.end && r >= rows.sure)
      k.when(k.compare(arith::CmpIPredicate::slt, k.add(rows.first, k.constant(r)), rows.end), one);
    else
      one();
  };
  const int64_t ops = opsOf(k, [&] { finishOne(0); });
  const int64_t depth = nest.depth.isStatic() ? nest.depth.value() : kWorkOfLoop;
  const bool isLong = ops >= kOpsOfLoop && ops + depth * vectors >= kWorkOfLoop;
  if (isLong && rows.count > 2 && int64_t(sums.size()) <= kMostVectors)
    finishInLoop(rows, column, vectors, bound, partial, sums);
  else
    for (int64_t r = 1; r < rows.count; ++r)
      finishOne(r);
}

/// Finishes all rows but the first in a loop.
void ContractionEpilogue::finishInLoop(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool partial,
                                       ArrayRef<Value> sums) {
  if (!tileSums)
    tileSums = stackMemory(k, kMostVectors * k.target.vectorBytes);
  KeptSums kept(k, tileSums, sumType, vectors * lanes);
  const Value base = k.constant(0);
  kept.store(base, base, vectors, sums);
  Value end = k.constant(rows.count);
  if (rows.end && rows.sure < rows.count)
    end = k.minimum(end, k.sub(rows.end, rows.first));
  k.loop(k.constant(1), end, k.constant(1),
         [&](Value row) { finishRow(rows, row, column, vectors, bound, partial, kept.load(base, row, 1, vectors)); });
}

void ContractionEpilogue::finishRow(const Rows &rows, Value row, Value column, int64_t vectors, const Dim &bound,
                                    bool partial, ArrayRef<Value> sums) {
  for (int64_t v = 0; v < vectors; ++v) {
    p.scoped([&] {
      placeRow(k.add(rows.first, row), rows.outer);
      Value at = k.add(column, k.constant(v * lanes));
      place(shape.size() - 1, {at, 1});
      llvm::SaveAndRestore existing(e.mask,
                                    partial ? k.below(at, k.maskBound(bound, narrowest(body, type)), lanes) : Value());
      p.bind(op.getResult(), castLanes(k.b, k.loc, sums[v], sumType, type));
      // Computes all results before the first store, which may overwrite memory that they are computed from.
      SmallVector<Value> values;
      for (Value yielded : body.getTerminator()->getOperands()) {
        values.push_back(p.alignment.contains(yielded) ? yielded : passes::skipReshapes(yielded));
        p.at(values.back());
      }
      for (auto [value, pointer] : llvm::zip(values, results))
        p.store(value, p.at(value), pointer);
    });
  }
}

void ContractionEpilogue::place(size_t resultDim, Index at) {
  ArrayRef<int> dims = p.alignment.dims.find(op.getResult())->second;
  if (dims[resultDim] >= 0)
    p.point[dims[resultDim]] = std::move(at);
}

void ContractionEpilogue::placeBatch(Value batch) {
  Value rest = batch;
  for (size_t d = op.getBatch(); d-- > 0;) {
    place(d, {d ? k.rem(rest, k.dim(shape[d])) : rest});
    rest = d ? k.div(rest, k.dim(shape[d])) : rest;
  }
}

/// Splits the merged row dimension.
void ContractionEpilogue::placeRow(Value row, ArrayRef<Value> outer) {
  for (size_t i = 0; i < nest.outer.size(); ++i)
    place(nest.outer[i].dim, {outer[i]});
  Value rest = row;
  for (size_t d = nest.along.dim + nest.along.dims - 1; d > nest.along.dim; --d) {
    place(d, {k.rem(rest, k.dim(shape[d]))});
    rest = k.div(rest, k.dim(shape[d]));
  }
  place(nest.along.dim, {rest});
}

} // namespace burin::codegen
