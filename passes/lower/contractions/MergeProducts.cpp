// Merges products of one left operand with constant matrices, such as those of queries, keys and values in attention,
// into one product with the matrices side by side. On a GPU a small product leaves most multiprocessors idle, and each
// kernel costs its launch.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MERGEPRODUCTSPASS
#include "passes/Passes.h.inc"

namespace {

/// A product with a constant matrix, and the addition of a constant bias that alone uses it, or null.
struct Product {
  MatmulOp matmul;
  AddOp sum;
  ConstantOp bias;
};

/// The constant matrix [K, N] that the product multiplies by, repeated over its leading dimensions; null otherwise.
ConstantOp matrixOf(MatmulOp op) {
  auto broadcast = op.getRhs().getDefiningOp<BroadcastToOp>();
  auto matrix = (broadcast ? broadcast.getX() : op.getRhs()).getDefiningOp<ConstantOp>();
  return matrix && matrix->getBlock() == op->getBlock() && shapeOf(matrix.getResult()).size() == 2 ? matrix
                                                                                                   : ConstantOp();
}

/// Whether the product is small, and its columns in the merged result begin at multiples of 16 bytes, which kernels
/// load and store at once.
bool isWorthMerging(MatmulOp op) {
  constexpr int64_t kTile = 64, kMostTiles = 264, kPieceBytes = 16; // two tiles per multiprocessor of an H200
  const Shape shape = shapeOf(op.getResult());
  int64_t rows = 1;
  for (const Dim &d : ArrayRef(shape).drop_back()) {
    if (!d.isStatic())
      return false;
    rows *= d.value();
  }
  const int64_t columns = shape.back().value();
  return columns * int64_t(byteWidth(dtypeOf(op.getResult()))) % kPieceBytes == 0 &&
         (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile) < kMostTiles;
}

Product productOf(MatmulOp op) {
  Product product{op, {}, {}};
  auto sum = op.getResult().hasOneUse() ? dyn_cast<AddOp>(*op.getResult().user_begin()) : AddOp();
  if (!sum)
    return product;
  Value other = sum->getOperand(sum->getOperand(0) == op.getResult() ? 1 : 0);
  auto broadcast = other.getDefiningOp<BroadcastToOp>();
  auto bias = broadcast ? broadcast.getX().getDefiningOp<ConstantOp>() : ConstantOp();
  if (bias && bias->getBlock() == op->getBlock() && shapeOf(bias.getResult()) == Shape{shapeOf(op.getRhs()).back()})
    product.sum = sum, product.bias = bias;
  return product;
}

void merge(ArrayRef<Product> products) {
  MatmulOp first = products[0].matmul;
  const bool haveBias = llvm::all_of(products, [](const Product &p) { return p.bias; });
  SmallVector<Value> matrices, biases;
  auto take = [&](ConstantOp constant, SmallVector<Value> &into) {
    if (!constant->isBeforeInBlock(first))
      constant->moveBefore(first);
    into.push_back(constant.getResult());
  };
  for (const Product &p : products) {
    take(matrixOf(p.matmul), matrices);
    if (haveBias)
      take(p.bias, biases);
  }
  OpBuilder b(first);
  GraphBuilder g(b, first.getLoc());
  Value matrix = g.op<ConcatOp>(matrices, {{"axis", int64_t(1)}});
  Shape repeated = shapeOf(first.getRhs());
  repeated.back() = shapeOf(matrix).back();
  Value all = g.op<MatmulOp>({first.getLhs(), g.broadcast(matrix, repeated)});
  if (haveBias)
    all = g.add(all, g.broadcastLike(g.op<ConcatOp>(biases, {{"axis", int64_t(0)}}), all));
  Shape starts(shapeOf(all).size(), Dim(0)), stops = shapeOf(all);
  Dim column = 0;
  for (Product p : products) {
    starts.back() = column;
    column = column + shapeOf(p.matmul.getResult()).back();
    stops.back() = column;
    Value part = g.slice(all, starts, stops);
    (haveBias ? p.sum->getResult(0) : p.matmul->getResult(0)).replaceAllUsesWith(part);
  }
  for (Product p : products) {
    if (haveBias)
      p.sum.erase();
    p.matmul.erase();
  }
}

struct MergeProductsPass : impl::MergeProductsPassBase<MergeProductsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::MapVector<std::pair<Value, DType>, SmallVector<Product>> byLeft;
      function.walk([&](MatmulOp op) {
        if (matrixOf(op) && isWorthMerging(op))
          byLeft[{op.getLhs(), dtypeOf(op.getRhs())}].push_back(productOf(op));
      });
      for (const auto &[left, products] : byLeft)
        if (products.size() > 1 &&
            llvm::all_equal(llvm::map_range(products, [](const Product &p) { return p.matmul->getBlock(); })))
          merge(products);
    }
  }
};

} // namespace

} // namespace burin::passes
