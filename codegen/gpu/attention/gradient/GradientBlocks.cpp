#include "codegen/gpu/attention/gradient/GradientBlocks.h"
#include "codegen/scalar/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

GpuLaunch GradientBlocks::emit(int64_t tileRows, int64_t threads, Emit ofQueries, Emit ofKeys) {
  const Dim queryTiles = ceildiv(operands.rows, tileRows), keyTiles = ceildiv(operands.keys, tileRows);
  const Dim queryBlocks = operands.heads * queryTiles, keyBlocks = operands.heads * keyTiles;
  const Dim group = max(queryBlocks, keyBlocks); // so that each group is one launch
  auto firstOf = [&](Value block, const Dim &tiles) {
    head = k.div(block, k.dim(tiles));
    operands.goToHead(head);
    return k.mul(k.rem(block, k.dim(tiles)), k.constant(tileRows));
  };
  k.when(operands.isBelow(k.lo, k.dim(queryBlocks)),
         [&] { operands.e.scoped([&] { ofQueries(firstOf(k.lo, queryTiles)); }); });
  k.unless(operands.isBelow(k.lo, k.dim(group)),
           [&] { operands.e.scoped([&] { ofKeys(firstOf(k.sub(k.lo, k.dim(group)), keyTiles)); }); });
  return {.blocks = group + keyBlocks,
          .threads = threads,
          .scratchOfThread = (tileRows * RowState::kBytes + threads - 1) / threads,
          .group = group};
}

/// Scratch memory has an array of all rows for each number of a state.
SmallVector<Value> GradientBlocks::statePlaces(Value row) {
  Value place = k.add(k.mul(head, k.dim(operands.rows)), row);
  const Dim rows = operands.heads * operands.rows;
  return {place, k.add(place, k.dim(rows)), k.add(place, k.dim(rows * 2))};
}

RowState GradientBlocks::load(Value row) {
  SmallVector<Value> places = statePlaces(k.minimum(row, k.sub(k.dim(operands.rows), k.constant(1))));
  auto number = [&](size_t i) { return k.load({k.scratch, DType::f32, {}}, {places[i]}, 1, {}); };
  return {number(0), number(1), number(2)};
}

void GradientBlocks::store(Value row, const RowState &state) {
  const Value numbers[] = {state.shift, state.inverse, state.total};
  for (auto [place, number] : llvm::zip_equal(statePlaces(row), numbers))
    k.store({k.scratch, DType::f32, {}}, {place}, number, 1, {});
}

Value GradientBlocks::shiftOf(Value top) {
  return select(operands.scalar(top) == -INFINITY, operands.scalar(operands.number(0)), operands.scalar(top)).value();
}

RowState GradientBlocks::stateOf(Value top, Value weights, Value products) {
  Scalar total = operands.scalar(weights);
  Scalar inverse = select(total == 0, operands.scalar(operands.number(0)), 1 / total); // a row that sees no key
  return {shiftOf(top), inverse.value(), (operands.scalar(products) * inverse).value()};
}

Value GradientBlocks::placeOf(Part part, Value row, Value column) {
  const Dim &rows = operands.rows, &keys = operands.keys;
  const Dim first = part == Part::OfQueries ? Dim(0) : part == Part::OfKeys ? rows : rows + keys;
  Value all = k.add(k.add(k.mul(head, k.dim(rows + keys * 2)), k.dim(first)), row);
  return k.add(k.mul(all, k.dim(operands.width)), column);
}

} // namespace burin::codegen
