// Products of bf16 for processors with an instruction that adds the products of two neighbouring bf16 to an f32 sum
// (AVX512-BF16). The right side is packed from i32 of two neighbouring rows each; the left side is read as it lies in
// memory. Code without the instruction reads the same panels, so that all CPU targets share a plan and its weights, and
// adds in the same order.
#include "ir/dialect/Contract.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_PAIRBF16PRODUCTSPASS
#include "passes/Passes.h.inc"

namespace {

/// Must not depend on sizes that are static in one graph and symbolic in another: the order of the sum depends on it.
bool isPairable(ContractOp op) {
  return dtypeOf(op.getLhs()) == DType::bf16 && dtypeOf(op.getRhs()) == DType::bf16 && !op.getTail();
}

/// Of a matrix [batch…, K, N] that is a transposed one, perhaps with its leading dimensions joined: that transpose, if
/// K is contiguous in its operand.
TransposeOp transposeBehind(Value matrix) {
  auto transpose = matrix.getDefiningOp<TransposeOp>();
  if (auto reshape = matrix.getDefiningOp<ReshapeOp>()) {
    Shape from = shapeOf(reshape.getX()), to = shapeOf(matrix);
    if (from.size() < 2 || from.back() != to.back() || from[from.size() - 2] != to[to.size() - 2])
      return {};
    transpose = reshape.getX().getDefiningOp<TransposeOp>();
  }
  ArrayRef<int64_t> perm = transpose ? transpose.getPerm() : ArrayRef<int64_t>();
  return perm.size() >= 2 && perm[perm.size() - 2] == int64_t(perm.size()) - 1 ? transpose : TransposeOp();
}

/// Pairs of the matrix [batch…, taps * channels, N]: [batch…, taps * ceil(channels / 2), N].
Value pairsOf(GraphBuilder &g, Value matrix, int64_t taps, const Dim &channels) {
  Shape shape = shapeOf(matrix);
  const size_t rows = shape.size() - 2;
  if (taps == 1) {
    shape[rows] = ceildiv(channels, 2);
    TransposeOp transpose = transposeBehind(matrix);
    if (!transpose)
      return g.op<Bf16PairsOp>({matrix}, {{"axis", int64_t(2)}});
    Value pairs = g.op<Bf16PairsOp>({transpose.getX()}, {{"axis", int64_t(1)}});
    return g.reshape(g.transpose(pairs, std::vector<int64_t>(transpose.getPerm())), shape);
  }
  Shape byTaps = shape;
  byTaps[rows] = channels;
  byTaps.insert(byTaps.begin() + int64_t(rows), Dim(taps));
  shape[rows] = ceildiv(channels, 2) * Dim(taps);
  return g.reshape(g.op<Bf16PairsOp>({g.reshape(matrix, byTaps)}, {{"axis", int64_t(2)}}), shape);
}

struct PairBf16ProductsPass : impl::PairBf16ProductsPassBase<PairBf16ProductsPass> {
  void runOnOperation() override {
    SmallVector<ContractOp> ops;
    getOperation().walk([&](ContractOp op) { ops.push_back(op); });
    for (ContractOp op : ops) {
      auto pack = op.getRhs().getDefiningOp<PackOp>();
      if (!pack || !isPairable(op))
        continue;
      OpBuilder b(pack);
      GraphBuilder g(b, pack.getLoc());
      int64_t taps = 1;
      for (int64_t size : op.getKernel())
        taps *= size;
      Value pairs = pairsOf(g, pack.getX(), taps, shapeOf(op.getLhs()).back());
      op.getRhsMutable().assign(g.op<PackOp>({pairs}, {{"width", int64_t(pack.getWidth())}}));
      if (pack.use_empty())
        pack.erase();
    }
  }
};

} // namespace

} // namespace burin::passes
