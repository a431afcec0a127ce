// Products of i32 whose operands are bytes less a zero point, as those of quantised models, become products of bytes,
// which GPUs compute on tensor cores. With x and w for the bytes, a and b for the numbers added to them:
//   (x + a) * (w + b) = x * w + a * (sum of the columns of w) + b * (sum of the rows of x + a).
// Arithmetic of i32 wraps, so the results are the same bits.
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/OpFacts.h"
#include "passes/lower/contractions/Pack.h"
#include <algorithm>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_NARROWINTEGERPRODUCTSPASS
#include "passes/Passes.h.inc"

namespace {

bool isByte(DType type) { return type == DType::i8 || type == DType::u8; }

/// A number that all elements share, as an i32 scalar; null is 0. `known` is its value if that is constant.
struct Offset {
  Value value;
  std::optional<int64_t> known;
};

/// An i32 tensor as bytes, in its shape, plus a number.
struct Narrow {
  Value bytes;
  Offset offset;
};

std::vector<int64_t> elementsOf(ConstantOp constant) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
  ArrayRef<int32_t> numbers(reinterpret_cast<const int32_t *>(bytes.data()), bytes.size() / sizeof(int32_t));
  return {numbers.begin(), numbers.end()};
}

class Narrowing {
public:
  explicit Narrowing(ContractOp op) : b(op), g(b, op.getLoc()), op(op) {}

  bool run() {
    auto pack = op.getRhs().getDefiningOp<PackOp>();
    if (!pack || op.getTail() || op.getTerms() || dtypeOf(op.getLhs()) != DType::i32)
      return false;
    auto lhs = narrow(op.getLhs()), rhs = narrow(pack.getX());
    if (!lhs || !rhs || (rhs->offset.value && !isMatrixProduct()))
      return false;
    std::vector<int64_t> padding(op.getPadding());
    if (!padding.empty() && lhs->offset.value) {
      if (!padWindows(*lhs))
        return false;
      padding.clear();
    }
    Value panels = columnPanels(b, op.getLoc(), rhs->bytes);
    Value sums = g.op<ContractOp>({lhs->bytes, panels, {}, {}}, {{"batch", int64_t(op.getBatch())},
                                                                 {"columns", Shape{shapeOf(op.getResult()).back()}},
                                                                 {"kernel", std::vector<int64_t>(op.getKernel())},
                                                                 {"strides", std::vector<int64_t>(op.getStrides())},
                                                                 {"padding", padding},
                                                                 {"dilations", std::vector<int64_t>(op.getDilations())},
                                                                 {"wide", true}});
    const Shape shape = shapeOf(sums);
    if (Value number = lhs->offset.value) {
      const int64_t depth = int64_t(shapeOf(rhs->bytes).size()) - 2;
      Shape columns(shape.size(), Dim(1));
      std::copy_n(shape.begin(), op.getBatch(), columns.begin());
      columns.back() = shape.back();
      addProduct(sums, number, g.reshape(sumOf(rhs->bytes, depth), columns));
    }
    if (Value number = rhs->offset.value)
      addProduct(sums, number, sumOf(op.getLhs(), int64_t(shape.size()) - 1));
    op.replaceAllUsesWith(sums);
    return true;
  }

private:
  bool isMatrixProduct() {
    auto all = [](ArrayRef<int64_t> values, int64_t x) {
      return llvm::all_of(values, [&](int64_t v) { return v == x; });
    };
    return all(op.getKernel(), 1) && all(op.getStrides(), 1) && all(op.getPadding(), 0);
  }

  /// Sums along an axis, which stays, as i32.
  Value sumOf(Value x, int64_t axis) { return g.cast(g.reduce<ReduceSumOp>(x, {axis}), DType::i32); }
  void addProduct(Value &sums, Value number, Value factors) {
    Value product = g.mul(factors, g.broadcastLike(number, factors));
    sums = g.add(sums, g.broadcastLike(product, sums));
  }

  /// The only element of `v`, which may be repeated.
  std::optional<Offset> numberOf(Value v) {
    auto isOne = [](Value x) { return elements(shapeOf(x)) == Dim(1); };
    for (Operation *op = v.getDefiningOp(); factsOf(op).rearranges && (!isOne(v) || isOne(op->getOperand(0)));
         op = v.getDefiningOp())
      v = op->getOperand(0);
    if (!isOne(v))
      return std::nullopt;
    std::optional<int64_t> known;
    if (auto constant = v.getDefiningOp<ConstantOp>())
      known = elementsOf(constant)[0];
    return Offset{g.reshape(v, {}), known};
  }

  Offset numbered(int64_t n) { return n ? Offset{g.full({}, double(n), DType::i32), n} : Offset{{}, 0}; }
  Offset difference(const Offset &x, const Offset &y) {
    if (x.known && y.known)
      return numbered(*x.known - *y.known);
    if (!y.value)
      return x;
    return {g.sub(x.value ? x.value : g.full({}, 0, DType::i32), y.value), std::nullopt};
  }

  std::optional<Narrow> narrow(Value v) {
    Operation *from = v.getDefiningOp();
    if (!from || dtypeOf(v) != DType::i32)
      return std::nullopt;
    if (auto cast = dyn_cast<CastOp>(from))
      return isByte(dtypeOf(cast.getX())) ? std::optional(Narrow{cast.getX(), {{}, 0}}) : std::nullopt;
    if (auto constant = dyn_cast<ConstantOp>(from))
      return narrowConstant(constant);
    if (!isa<SubOp, ReshapeOp, TransposeOp>(from))
      return std::nullopt;
    auto inner = narrow(from->getOperand(0));
    if (!inner)
      return std::nullopt;
    if (auto transpose = dyn_cast<TransposeOp>(from))
      return Narrow{g.transpose(inner->bytes, std::vector<int64_t>(transpose.getPerm())), inner->offset};
    if (isa<ReshapeOp>(from))
      return Narrow{g.reshape(inner->bytes, shapeOf(v)), inner->offset};
    auto number = numberOf(from->getOperand(1));
    return number ? std::optional(Narrow{inner->bytes, difference(inner->offset, *number)}) : std::nullopt;
  }

  /// A constant whose elements lie in 256 successive numbers.
  std::optional<Narrow> narrowConstant(ConstantOp constant) {
    std::vector<int64_t> numbers = elementsOf(constant);
    if (numbers.empty())
      return std::nullopt;
    auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    if (*high - *low > 255)
      return std::nullopt;
    const bool isSigned = *low >= -128 && *high <= 127, isUnsigned = *low >= 0 && *high <= 255;
    const int64_t offset = isSigned || isUnsigned ? 0 : *low + 128;
    auto bytes = std::make_shared<std::vector<char>>();
    for (int64_t n : numbers)
      bytes->push_back(char(n - offset));
    TensorSpec spec{isUnsigned && !isSigned ? DType::u8 : DType::i8, shapeOf(constant.getResult())};
    Value narrow = createConstant(b, constant.getLoc(), spec, *bytes, constant.getName().value_or(""), bytes);
    return Narrow{narrow, numbered(offset)};
  }

  /// Elements of padding are not added, as if they were 0: pads with the byte that stands for 0.
  bool padWindows(Narrow &lhs) {
    const DType type = dtypeOf(lhs.bytes);
    if (!lhs.offset.known)
      return false;
    const int64_t zero = -*lhs.offset.known, least = type == DType::u8 ? 0 : -128;
    if (zero < least || zero > least + 255)
      return false;
    const size_t rank = shapeOf(lhs.bytes).size(), batch = size_t(op.getBatch()), spatial = op.getKernel().size();
    std::vector<int64_t> low(rank), high(rank);
    for (size_t d = 0; d < spatial; ++d)
      low[batch + d] = op.getPadding()[d], high[batch + d] = op.getPadding()[spatial + d];
    lhs.bytes = g.op<PadOp>(
        {lhs.bytes},
        {{"low", low}, {"high", high}, {"value", double(zero)}, {"interior", std::vector<int64_t>(rank, 0)}});
    return true;
  }

  OpBuilder b;
  GraphBuilder g;
  ContractOp op;
};

struct NarrowIntegerProductsPass : impl::NarrowIntegerProductsPassBase<NarrowIntegerProductsPass> {
  void runOnOperation() override {
    SmallVector<ContractOp> ops;
    getOperation().walk([&](ContractOp op) { ops.push_back(op); });
    bool isChanged = false;
    for (ContractOp op : ops)
      isChanged |= Narrowing(op).run();
    if (isChanged) // erases what only those products used
      getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
        if (isOpTriviallyDead(op))
          op->erase();
      });
  }
};

} // namespace

} // namespace burin::passes
