// Average pools over planes (channels first), with the ops fused around them.
//
// The rows that a task reads are copied to scratch memory, with zeros where windows reach beyond x, so that sums need
// no masks and ops fused before the pool are computed once per element. The taps of a window are added in row-major
// order, as in other kernels.
#include "codegen/kernels/PlaneKernel.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

class PlaneMeanKernel : PlaneKernel {
public:
  PlaneMeanKernel(ElementEmitter &e, AvgPoolOp op, const Window &w, Block &body, const passes::IterationSpace &a,
                  ArrayRef<Value> results)
      : PlaneKernel(e, op, w, body, a, results), op(op),
        rowsSeen((kRowsOfTask - 1) * w.strides[0] + (w.kernel[0] - 1) * w.dilations[0] + 1) {
    Dim columns = ceildiv(result[3], lanes) * lanes;
    Dim seen = (columns - 1) * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
    length = ceildiv(max(max(ceildiv(x[3], lanes) * lanes, seen) + border, columns), lanes) * lanes;
  }

  LaunchShape emit() {
    Dim tasks = eachTask([&](Value from, Value to) {
      if (w.isOpen(1))
        countColumns();
      copyRows(originOf(k, w, 0, {from}).base);
      k.loop(from, to, k.constant(1), [&](Value row) {
        at[2] = {row};
        Value first = k.mul(k.sub(row, from), k.constant(w.strides[0]));
        e.scoped([&] { alongRow(first, originOf(k, w, 0, {row}).base); });
      });
    });
    return {tasks, length * Dim((rowsSeen + 1) * int64_t(byteWidth(rule.sumType)))};
  }

private:
  Value number(double value) {
    Type type = k.storageType(rule.sumType);
    return k.broadcast(arith::ConstantOp::create(k.b, k.loc, k.b.getFloatAttr(type, value)), lanes);
  }
  Memory scratch() { return {k.scratch, rule.sumType, {Dim(rowsSeen + 1), length}}; }
  /// The position of a column of x in a row of scratch memory; row `rowsSeen` holds numbers of taps.
  Value place(Value row, Value column) { return k.add(k.mul(row, k.dim(length)), column); }
  void storeLanes(Value position, Value value) { k.store(scratch(), {position, 1}, value, lanes, {}); }
  void eachVector(Value end, llvm::function_ref<void(Value)> visit) {
    k.loop(k.constant(0), end, k.constant(lanes), visit);
  }
  /// Adds the taps of one row of the windows of a vector of columns.
  Value addTaps(Value sum, Value row, Value column) {
    Value from = k.add(k.mul(column, k.constant(w.strides[1])), k.constant(border - w.low[1]));
    for (int64_t tap = 0; tap < w.kernel[1]; ++tap) {
      Index position{place(row, k.add(from, k.constant(tap * w.dilations[1]))), w.strides[1]};
      sum = arith::AddFOp::create(k.b, k.loc, sum, k.load(scratch(), position, lanes, {}));
    }
    return sum;
  }

  /// Computes the number of counted taps per column, from a row of ones.
  void countColumns() {
    llvm::SaveAndRestore width(k.width, lanes);
    bool countsPadding = op.getCountIncludePad();
    Value first = k.constant(countsPadding ? border - w.low[1] : border);
    Value end = k.add(k.dim(x[3]), k.constant(countsPadding ? border + w.high[1] : border));
    eachVector(k.dim(length), [&](Value i) {
      Value isCounted = e.inRange({i, 1}, first, end);
      storeLanes(i, arith::SelectOp::create(k.b, k.loc, isCounted, number(1), number(0)));
    });
    eachVector(k.dim(result[3]), [&](Value i) {
      Value count = addTaps(number(0), k.constant(0), i);
      storeLanes(place(k.constant(rowsSeen), i), arith::MaximumFOp::create(k.b, k.loc, count, number(1)));
    });
  }

  /// Copies the rows of x from `origin` on.
  void copyRows(Value origin) {
    eachVector(k.mul(k.constant(rowsSeen), k.dim(length)), [&](Value i) { storeLanes(i, number(0)); });
    Value first = k.maximum(k.sub(k.constant(0), origin), k.constant(0));
    Value end = k.minimum(k.sub(k.dim(x[2]), origin), k.constant(rowsSeen));
    k.loop(first, end, k.constant(1), [&](Value row) {
      eachVectorOf(x[3], false, [&](Value column, Value mask) { copyVector(origin, row, column, mask); });
    });
  }

  void copyVector(Value origin, Value row, Value column, Value mask) {
    llvm::SaveAndRestore width(k.width, lanes);
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    e.scoped([&] {
      Value element = e.element(w.x, {at[0], at[1], {k.add(origin, row)}, {column, 1}});
      element = castLanes(k.b, k.loc, k.broadcast(element, lanes), rule.type, rule.sumType);
      if (mask)
        element = arith::SelectOp::create(k.b, k.loc, mask, element, number(0));
      storeLanes(place(row, k.add(column, k.constant(border))), element);
    });
  }

  /// Number of counted taps per column of windows that begin at this row of x.
  Value countRows(Value origin) {
    if (!w.isOpen(0))
      return k.constant(w.kernel[0]);
    bool countsPadding = op.getCountIncludePad();
    Value moved = countsPadding ? k.add(origin, k.constant(w.low[0])) : origin;
    Value size = countsPadding ? k.add(k.dim(x[2]), k.constant(w.low[0] + w.high[0])) : k.dim(x[2]);
    auto [first, end] = codegen::tapsInside(k, moved, size, w.kernel[0], w.dilations[0]);
    return k.maximum(k.sub(end, first), k.constant(1));
  }

  void alongRow(Value first, Value origin) {
    Value rows = castLanes(k.b, k.loc, countRows(origin), DType::i64, rule.sumType);
    eachVectorOf(result[3], true, [&](Value column, Value mask) { alongVector(first, rows, column, mask); });
  }

  void alongVector(Value first, Value rows, Value column, Value mask) {
    llvm::SaveAndRestore width(k.width, lanes);
    Value sum = number(0);
    for (int64_t tap = 0; tap < w.kernel[0]; ++tap)
      sum = addTaps(sum, k.add(first, k.constant(tap * w.dilations[0])), column);
    Value columns = w.isOpen(1) ? k.load(scratch(), {place(k.constant(rowsSeen), column), 1}, lanes, {})
                                : number(double(w.kernel[1]));
    Value count = arith::MulFOp::create(k.b, k.loc, k.broadcast(rows, lanes), columns);
    Value mean = arith::DivFOp::create(k.b, k.loc, sum, count);
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    at[3] = {column, 1};
    mean = castLanes(k.b, k.loc, mean, rule.sumType, rule.type);
    e.scoped([&] { p.finish(op.getResult(), at, mean, body, results); });
  }

  AvgPoolOp op;
  int64_t rowsSeen; // rows of x that a task reads
  Dim length;       // of a row in scratch memory
};

} // namespace

LaunchShape emitPlaneMean(const KernelEmission &kernel) {
  AvgPoolOp op = *kernel.body.getOps<AvgPoolOp>().begin();
  return PlaneMeanKernel(kernel.e, op, *windowOf(op), kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
