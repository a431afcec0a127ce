// Average pools over planes (channels first), with the ops fused around them.
//
// The rows that a task reads are copied to scratch memory, with zeros where windows reach beyond x, so that sums need
// no masks and ops fused before the pool are computed once per element. The taps of a window are added in row-major
// order, as in other kernels.
#include "codegen/kernels/window/PlaneKernel.h"
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
    int64_t sums = kRowsOfTask * w.kernel[0] * w.kernel[1], after = kRowsOfTask * int64_t(body.getOperations().size());
    together = sums <= kMostUnrolled && after <= kMostUnrolled ? kRowsOfTask : 1;
  }

  LaunchShape emit() {
    if (w.isOpen(1))
      countColumns();
    fillRows(k.constant(0), k.constant(rowsSeen));
    Dim tasks = eachTask([&](Value from, Value to) {
      copyRows(originOf(k, w, 0, {from}).base);
      eachRun(from, to, together, [&](Value first, int64_t rows) {
        e.scoped([&] { alongRows(k.mul(k.sub(first, from), k.constant(w.strides[0])), first, rows); });
      });
    });
    return {tasks, length * Dim((rowsSeen + 1) * int64_t(byteWidth(rule.sumType)))};
  }

private:
  static constexpr int64_t kMostUnrolled = 128; // ops

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
  /// The elements of one row at the taps of the windows of a vector of columns.
  SmallVector<Value> taps(Value row, Value column) {
    Value from = k.add(k.mul(column, k.constant(w.strides[1])), k.constant(border - w.low[1]));
    SmallVector<Value> elements;
    for (int64_t tap = 0; tap < w.kernel[1]; ++tap) {
      Index position{place(row, k.add(from, k.constant(tap * w.dilations[1]))), w.strides[1]};
      elements.push_back(k.load(scratch(), position, lanes, {}));
    }
    return elements;
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
      Value count = number(0);
      for (Value tap : taps(k.constant(0), i))
        count = arith::AddFOp::create(k.b, k.loc, count, tap);
      storeLanes(place(k.constant(rowsSeen), i), arith::MaximumFOp::create(k.b, k.loc, count, number(1)));
    });
  }

  /// Copies the rows of x from `origin` on.
  void copyRows(Value origin) {
    Value first = k.minimum(k.maximum(k.sub(k.constant(0), origin), k.constant(0)), k.constant(rowsSeen));
    Value end = k.maximum(k.minimum(k.sub(k.dim(x[2]), origin), k.constant(rowsSeen)), first);
    if (w.isOpen(0)) {
      fillRows(k.constant(0), first);
      fillRows(end, k.constant(rowsSeen));
    }
    k.loop(first, end, k.constant(1), [&](Value row) {
      eachVectorOf(x[3], false, [&](Value column, Value mask) { copyVector(origin, row, column, mask); });
    });
  }

  void fillRows(Value first, Value end) {
    k.loop(k.mul(first, k.dim(length)), k.mul(end, k.dim(length)), k.constant(lanes),
           [&](Value i) { storeLanes(i, number(0)); });
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

  /// Computes `rows` rows of the result from row `y` on; `first`: the row of scratch memory where their windows begin.
  void alongRows(Value first, Value y, int64_t rows) {
    SmallVector<Value> counts;
    for (int64_t i = 0; i < rows; ++i) {
      Value origin = originOf(k, w, 0, {k.add(y, k.constant(i))}).base;
      counts.push_back(castLanes(k.b, k.loc, countRows(origin), DType::i64, rule.sumType));
    }
    eachVectorOf(result[3], true, [&](Value column, Value mask) { alongVector(first, y, counts, column, mask); });
  }

  /// Elements are loaded once for the windows of all rows. Each window adds its own in row-major order.
  void alongVector(Value first, Value y, ArrayRef<Value> counts, Value column, Value mask) {
    llvm::SaveAndRestore width(k.width, lanes);
    Value columns = w.isOpen(1) ? k.load(scratch(), {place(k.constant(rowsSeen), column), 1}, lanes, {})
                                : number(double(w.kernel[1]));
    SmallVector<Value> sums(counts.size(), number(0));
    int64_t reach = (w.kernel[0] - 1) * w.dilations[0];
    for (int64_t r = 0; r <= (int64_t(counts.size()) - 1) * w.strides[0] + reach; ++r) {
      SmallVector<size_t> users;
      for (size_t i = 0; i < counts.size(); ++i)
        if (int64_t way = r - int64_t(i) * w.strides[0]; way >= 0 && way <= reach && way % w.dilations[0] == 0)
          users.push_back(i);
      if (users.empty())
        continue;
      for (Value tap : taps(k.add(first, k.constant(r)), column))
        for (size_t i : users)
          sums[i] = arith::AddFOp::create(k.b, k.loc, sums[i], tap);
      for (size_t i : users)
        if (r == int64_t(i) * w.strides[0] + reach) {
          at[2] = {k.add(y, k.constant(int64_t(i)))};
          finish(sums[i], counts[i], columns, column, mask);
        }
    }
  }

  void finish(Value sum, Value rows, Value columns, Value column, Value mask) {
    Value count = arith::MulFOp::create(k.b, k.loc, k.broadcast(rows, lanes), columns);
    Value mean = arith::DivFOp::create(k.b, k.loc, sum, count);
    llvm::SaveAndRestore lanesMask(e.mask, mask);
    at[3] = {column, 1};
    mean = castLanes(k.b, k.loc, mean, rule.sumType, rule.type);
    e.scoped([&] { p.finish(op.getResult(), at, mean, body, results); });
  }

  AvgPoolOp op;
  int64_t rowsSeen;     // rows of x that a task reads
  int64_t together = 1; // rows of the result that are computed together
  Dim length;           // of a row in scratch memory
};

} // namespace

LaunchShape emitPlaneMean(const KernelEmission &kernel) {
  AvgPoolOp op = *kernel.body.getOps<AvgPoolOp>().begin();
  return PlaneMeanKernel(kernel.e, op, *windowOf(op), kernel.body, *kernel.space, kernel.results).emit();
}

} // namespace burin::codegen
