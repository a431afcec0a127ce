#include "codegen/gpu/contraction/ContractionSides.h"
#include "passes/Passes.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

static DType accumulatorType(DType type) {
  if (type == DType::f64 || type == DType::i64)
    return type;
  return isFloat(type) ? DType::f32 : DType::i32;
}

ContractionSides::ContractionSides(ElementEmitter &e, ContractOp op)
    : k(e.k), op(op), left(e.stridedMemoryOf(op.getLhs())), rhs(*e.memoryOf(passes::skipReshapes(op.getRhs()))),
      type(dtypeOf(op.getResult())), sumType(accumulatorType(dtypeOf(op.getLhs()))),
      panelWidth(passes::kPanelBytes / int64_t(byteWidth(sumType))), lhsShape(shapeOf(op.getLhs())),
      shape(shapeOf(op.getResult())), spatial(op.getKernel().size()), columns(shape.back()), panelColumns(columns),
      depth(lhsShape.back()) {
  const Shape right = shapeOf(op.getRhs());
  hasColumns = passes::hasColumnPanels(op);
  if (hasColumns)
    panelWidth = 1;
  isPlain = right[right.size() - 3] == Dim(1) && right.back() == columns;
  if (Value t = op.getTail()) {
    tail = *e.memoryOf(passes::skipReshapes(t));
    panelColumns = columns - shapeOf(t)[op.getBatch() + 1];
  }
  for (size_t d = 0; d < op.getBatch(); ++d)
    batches = batches * shape[d];
  for (size_t d = 0; d < spatial; ++d) {
    rows = rows * shape[op.getBatch() + d];
    depth = depth * Dim(op.getKernel()[d]);
    isCut |= isCutAlong(d);
  }
}

bool ContractionSides::hasTaps() {
  return llvm::any_of(op.getKernel(), [](int64_t n) { return n != 1; });
}

bool ContractionSides::isCutAlong(size_t d) {
  return !op.getPadding().empty() && (op.getPadding()[d] > 0 || op.getPadding()[spatial + d] > 0);
}

ContractionSides::Row ContractionSides::leftRow(Value batch, Value row) {
  Row result{isBelow(row, k.dim(rows)), {}, SmallVector<Value>(spatial)};
  result.start = k.mul(batch, op.getBatch() ? k.dim(left.strides[op.getBatch() - 1]) : k.constant(0));
  for (size_t d = spatial; d-- > 0;) {
    Value size = k.dim(shape[op.getBatch() + d]), at = d ? k.rem(row, size) : row;
    row = d ? k.div(row, size) : row;
    int64_t low = op.getPadding().empty() ? 0 : op.getPadding()[d];
    result.begins[d] = k.sub(k.mul(at, k.constant(op.getStrides()[d])), k.constant(low));
  }
  return result;
}

std::pair<Value, Value> ContractionSides::leftPosition(const Row &row, Value from, Value at, int64_t slice) {
  const bool isOfOneTap = at && isMultipleOf(lhsShape.back(), slice);
  if (at && !isOfOneTap)
    from = k.add(from, at);
  Value inside = isOfOneTap ? row.exists : both(row.exists, isBelow(from, k.dim(depth)));
  Value channels = k.dim(lhsShape.back()), taps = hasTaps() ? k.div(from, channels) : k.constant(0);
  Value channel = hasTaps() ? k.rem(from, channels) : from;
  if (isOfOneTap)
    channel = k.add(channel, at);
  Value position = k.add(row.start, k.mul(channel, k.dim(left.strides.back())));
  for (size_t d = spatial; d-- > 0;) {
    size_t dim = op.getBatch() + d;
    Value kernel = k.constant(op.getKernel()[d]), tap = d ? k.rem(taps, kernel) : taps;
    taps = d ? k.div(taps, kernel) : taps;
    Value x = k.add(row.begins[d], k.mul(tap, k.constant(op.getDilations()[d])));
    if (isCutAlong(d))
      inside =
          both(inside, both(k.compare(arith::CmpIPredicate::sge, x, k.constant(0)), isBelow(x, k.dim(lhsShape[dim]))));
    position = k.add(position, k.mul(x, k.dim(left.strides[dim])));
  }
  return {position, inside};
}

std::pair<Value, Value> ContractionSides::rightPosition(Value batch, Value column, Value at, Value step) {
  Value isStep = isBelow(step, k.dim(depth));
  if (isPlain) {
    Value sharedRow = k.add(k.mul(batch, k.dim(depth)), step), own = k.add(column, at);
    return {k.add(k.mul(sharedRow, k.dim(columns)), own), both(isStep, isBelow(own, k.dim(columns)))};
  }
  Value width = k.constant(panelWidth);
  Value panel = k.add(k.mul(batch, k.dim(ceildiv(panelColumns, panelWidth))), k.div(column, width));
  return {k.add(k.mul(k.add(k.mul(panel, k.dim(depth)), step), width), at),
          both(isStep, isBelow(column, k.dim(panelColumns)))};
}

Value ContractionSides::copiesPieces(int64_t piece) {
  if (left.strides.back() != Dim(1))
    return {};
  Value rest = k.constant(0);
  SmallVector<Dim> multiples(left.strides.begin(), std::prev(left.strides.end()));
  multiples.push_back(lhsShape.back());
  if (isPlain && !hasColumns)
    multiples.push_back(columns);
  for (const Dim &d : multiples) {
    if (isMultipleOf(d, piece))
      continue;
    if (d.isStatic())
      return {};
    rest = arith::OrIOp::create(k.b, k.loc, rest, k.rem(k.dim(d), k.constant(piece)));
  }
  Value isWhole = k.compare(arith::CmpIPredicate::eq, rest, k.constant(0));
  constexpr int64_t bytes = 16;
  return both(isWhole, both(k.isAligned(left.memory.pointer, bytes), k.isAligned(rhs.pointer, bytes)));
}

SmallVector<Index> ContractionSides::placeOf(Value batch, Value row, Value column) {
  SmallVector<Index> at(shape.size());
  at.back() = {column, 1};
  auto split = [&](Value rest, size_t from, size_t to) {
    for (size_t d = to; d-- > from;) {
      at[d] = {d > from ? k.rem(rest, k.dim(shape[d])) : rest};
      rest = d > from ? k.div(rest, k.dim(shape[d])) : rest;
    }
  };
  split(batch, 0, op.getBatch());
  split(row, op.getBatch(), op.getBatch() + spatial);
  return at;
}

} // namespace burin::codegen
