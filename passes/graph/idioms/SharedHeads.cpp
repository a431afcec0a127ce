// Attention whose heads share keys and values in groups (grouped-query attention): programs repeat the keys and merge
// the groups into heads. Attention of [..., shared heads, group, rows, columns] reads the keys without copies of them.
#include "passes/analysis/GraphBuilder.h"
#include "passes/graph/Simplify.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// x [..., n, 1, S, E] repeated to [..., n, group, S, E], and reshaped to [..., n * group, S, E].
struct Repeated {
  Value all; // before the reshape
  Dim heads, group;
};

std::optional<Repeated> repeatedHeads(Value v) {
  auto reshape = v.getDefiningOp<ReshapeOp>();
  auto broadcast = reshape ? reshape.getX().getDefiningOp<BroadcastToOp>() : BroadcastToOp();
  if (!broadcast)
    return std::nullopt;
  Shape merged = shapeOf(v), all = shapeOf(broadcast.getResult()), one = shapeOf(broadcast.getX());
  const size_t rank = all.size();
  if (rank < 4 || one.size() != rank || merged.size() + 1 != rank)
    return std::nullopt;
  one[rank - 3] = all[rank - 3];
  Shape joined(all.begin(), all.end() - 4);
  joined.push_back(all[rank - 4] * all[rank - 3]);
  joined.insert(joined.end(), all.end() - 2, all.end());
  if (one != all || joined != merged)
    return std::nullopt;
  return Repeated{broadcast.getResult(), all[rank - 4], all[rank - 3]};
}

class SharedHeads : public OpRewritePattern<ScaledDotProductAttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaledDotProductAttentionOp op, PatternRewriter &rewriter) const override {
    std::optional<Repeated> key = repeatedHeads(op.getKey()), value = repeatedHeads(op.getValue());
    if (!key || !value || key->heads != value->heads || key->group != value->group)
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    // [..., heads, x, y] with heads in groups; a mask may have one head, or no heads.
    auto grouped = [&](Value v) {
      Shape shape = shapeOf(v);
      if (shape.size() < 3)
        return v;
      const Shape both = shape[shape.size() - 3] == Dim(1) ? Shape{1, 1} : Shape{key->heads, key->group};
      shape.erase(shape.end() - 3);
      shape.insert(shape.end() - 2, both.begin(), both.end());
      return g.reshape(v, shape);
    };
    Value mask = op.getMask() ? grouped(op.getMask()) : Value();
    Value mixed = g.op<ScaledDotProductAttentionOp>(
        {grouped(op.getQuery()), key->all, value->all, mask},
        {{"is_causal", op.getIsCausal()}, {"scale", op.getScale().convertToDouble()}});
    rewriter.replaceOp(op, g.reshape(mixed, shapeOf(op.getResult())));
    return success();
  }
};

} // namespace

void populateSharedHeads(RewritePatternSet &patterns) { patterns.add<SharedHeads>(patterns.getContext()); }

} // namespace burin::passes
