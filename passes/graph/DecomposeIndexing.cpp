// Ops that choose by position, in terms of running sums, scattering and taking.
#include "passes/analysis/GraphBuilder.h"
#include "passes/graph/Decompose.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// The places where `flags` (bool, one dimension) is true, in order, and then anything: i64 of the same shape.
Value compacted(GraphBuilder &g, Value flags) {
  Shape shape = shapeOf(flags);
  constexpr double kNowhere = 0x1p60; // scatter leaves out what is not in range
  Value target =
      g.sub(g.op<CumsumOp>({g.cast(flags, DType::i64)}, {{"axis", int64_t(0)}}), g.full(shape, 1, DType::i64));
  target = g.where(flags, target, g.full(shape, kNowhere, DType::i64));
  return g.op<ScatterOp>({g.full(shape, 0, DType::i64), target, g.iota(shape, 0, DType::i64)},
                         {{"axis", int64_t(0)}, {"reduction", std::string("set")}});
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
      if (shape.size() > 1) // how far along this axis every place of x is: computed where it is taken
        coordinates =
            g.op<TakeOp>({g.reshape(g.iota(shape, int64_t(axis), DType::i64), flat), places}, {{"axis", int64_t(0)}});
      columns.push_back(g.reshape(coordinates, {*newSizeOf(op), 1}));
    }
    rewriter.replaceOp(op, columns.size() == 1 ? columns[0] : g.op<ConcatOp>(columns, {{"axis", int64_t(1)}}));
    return success();
  }
};

} // namespace

void populateIndexDecompositions(RewritePatternSet &patterns) { patterns.add<Nonzero>(patterns.getContext()); }

} // namespace burin::passes
