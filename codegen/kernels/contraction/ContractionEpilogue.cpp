#include "codegen/kernels/contraction/ContractionEpilogue.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

ContractionEpilogue::ContractionEpilogue(ElementEmitter &e, const ContractionLoopNest &nest, DType sumType, Block &body,
                                         const passes::IterationSpace &space, ArrayRef<Value> results)
    : e(e), k(e.k), nest(nest), op(nest.op), p(e, space), body(body), results(results), type(dtypeOf(op.getResult())),
      sumType(sumType), lanes(k.target.lanes(byteWidth(sumType))), shape(shapeOf(op.getResult())) {}

void ContractionEpilogue::finish(const Rows &rows, Value column, int64_t vectors, const Dim &bound, bool allThere,
                                 ArrayRef<Value> sums) {
  placeBatch(rows.batch);
  k.width = lanes;
  bool partial = !allThere && !isMultipleOf(bound, lanes); // masks, which also skip vectors beyond the last column
  for (int64_t r = 0; r < rows.count; ++r) {
    auto one = [&] { finishRow(rows, r, column, vectors, bound, partial, sums.slice(r * vectors, vectors)); };
    if (rows.end && r >= rows.sure)
      k.when(k.compare(arith::CmpIPredicate::slt, k.add(rows.first, k.constant(r)), rows.end), one);
    else
      one();
  }
  k.width = 1;
}

void ContractionEpilogue::finishRow(const Rows &rows, int64_t row, Value column, int64_t vectors, const Dim &bound,
                                    bool partial, ArrayRef<Value> sums) {
  for (int64_t v = 0; v < vectors; ++v) {
    p.scoped([&] {
      placeRow(k.add(rows.first, k.constant(row)), rows.outer);
      Value at = k.add(column, k.constant(v * lanes));
      place(shape.size() - 1, {at, 1});
      if (partial)
        e.mask = k.below(at, k.maskBound(bound, narrowest(body, type)), lanes);
      p.bind(op.getResult(), castLanes(k.b, k.loc, sums[v], sumType, type));
      // Computes all results before the first store, which may overwrite memory that they are computed from.
      SmallVector<Value> values;
      for (Value yielded : body.getTerminator()->getOperands()) {
        values.push_back(p.alignment.contains(yielded) ? yielded : passes::skipReshapes(yielded));
        p.at(values.back());
      }
      for (auto [value, pointer] : llvm::zip(values, results))
        p.store(value, p.at(value), pointer);
      e.mask = {};
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
