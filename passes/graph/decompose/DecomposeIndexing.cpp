// Decomposes ops that select by position into running sums, scatters and takes.
#include "passes/analysis/GraphBuilder.h"
#include "passes/graph/decompose/Decompose.h"
#include <cstring>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// The positions at which `flags` (bool, one dimension) is true, in order; the remaining elements are unspecified. i64,
/// same shape.
Value compacted(GraphBuilder &g, Value flags) {
  Shape shape = shapeOf(flags);
  constexpr double kNowhere = 0x1p60;
  Value target =
      g.sub(g.op<CumsumOp>({g.cast(flags, DType::i64)}, {{"axis", int64_t(0)}}), g.full(shape, 1, DType::i64));
  target = g.where(flags, target, g.full(shape, kNowhere, DType::i64));
  return g.op<ScatterOp>({g.full(shape, 0, DType::i64), target, g.iota(shape, 0, DType::i64)},
                         {{"axis", int64_t(0)}, {"reduction", std::string("set")}, {"drop", true}});
}

class Nonzero : public OpRewritePattern<NonzeroOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NonzeroOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    Value x = op.getX();
    Shape shape = shapeOf(x), flat{elements(shape)};
    Value flags = g.reshape(g.op<NeOp>({x, g.fullLike(x, 0)}), flat);
    Value count = g.op<ReduceSumOp>({flags}, {{"axes", std::vector<int64_t>{0}}, {"keepdims", false}});
    Value places = g.op<PrefixOp>({compacted(g, flags), count}, {{"size", Shape{*newSizeOf(op)}}});
    std::vector<Value> columns;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      Value coordinates = places;
      if (shape.size() > 1) // coordinate along this axis of every position of x; computed only where it is taken
        coordinates =
            g.op<TakeOp>({g.reshape(g.iota(shape, int64_t(axis), DType::i64), flat), places}, {{"axis", int64_t(0)}});
      columns.push_back(g.reshape(coordinates, {*newSizeOf(op), 1}));
    }
    rewriter.replaceOp(op, columns.size() == 1 ? columns[0] : g.op<ConcatOp>(columns, {{"axis", int64_t(1)}}));
    return success();
  }
};

/// Indices first, first + step, first + 2 * step, …, each repeated `times` times; the last one may be repeated less
/// often.
struct RegularIndices {
  int64_t first, step, times, count;
};

std::optional<RegularIndices> regularIndices(Value v, int64_t size) {
  auto constant = v.getDefiningOp<ConstantOp>();
  if (!constant || shapeOf(v).size() != 1 || dtypeOf(v) != DType::i64)
    return std::nullopt;
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  std::vector<int64_t> indices(bytes.size() / sizeof(int64_t));
  if (indices.size() < 2)
    return std::nullopt;
  std::memcpy(indices.data(), bytes.data(), bytes.size());
  size_t times = 1;
  while (times < indices.size() && indices[times] == indices[0])
    ++times;
  RegularIndices regular{indices[0], 0, int64_t(times), int64_t(indices.size())};
  if (times < indices.size())
    regular.step = indices[times] - indices[0];
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != regular.first + int64_t(i / times) * regular.step || indices[i] < 0 || indices[i] >= size)
      return std::nullopt;
  return regular.step >= 0 ? std::optional(regular) : std::nullopt;
}

/// A take with regular indices (a nearest-neighbour resize) becomes a slice whose elements are repeated: kernels know
/// its positions and load vectors.
class RegularTake : public OpRewritePattern<TakeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TakeOp op, PatternRewriter &rewriter) const override {
    const Shape shape = shapeOf(op.getX());
    const size_t axis = op.getAxis(), rank = shape.size();
    auto regular = shape[axis].isStatic() ? regularIndices(op.getIndices(), shape[axis].value()) : std::nullopt;
    if (!regular)
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    auto sliced = [&](Value x, int64_t start, int64_t stop, int64_t step) {
      Shape starts(rank, Dim(0)), stops = shapeOf(x);
      std::vector<int64_t> steps(rank, 1);
      starts[axis] = start, stops[axis] = stop, steps[axis] = step;
      return g.op<SliceOp>({x}, {{"starts", starts}, {"stops", stops}, {"steps", steps}});
    };
    const int64_t runs = (regular->count + regular->times - 1) / regular->times,
                  step = std::max<int64_t>(regular->step, 1);
    Value x = sliced(op.getX(), regular->first, regular->first + (runs - 1) * step + 1, step);
    if (regular->times > 1) {
      Shape one = shapeOf(x), wide, all = one;
      one.insert(one.begin() + axis + 1, Dim(1));
      wide = one;
      wide[axis + 1] = regular->times;
      all[axis] = runs * regular->times;
      x = sliced(g.reshape(g.broadcast(g.reshape(x, one), wide), all), 0, regular->count, 1);
    }
    rewriter.replaceOp(op, x);
    return success();
  }
};

} // namespace

void populateIndexDecompositions(RewritePatternSet &patterns) {
  patterns.add<Nonzero, RegularTake>(patterns.getContext());
}

} // namespace burin::passes
