// Bounds inference: rows and columns that no window reads are not computed. Where a pooling layer does not read the
// last rows of a convolution, the convolution leaves them out, and needs less of its own input in turn.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_SHRINKTODEMANDPASS
#include "passes/Passes.h.inc"

namespace {

bool isPool(Operation *op) { return isa_and_nonnull<MaxPoolOp, AvgPoolOp>(op); }

/// The windows of a pooling layer or contraction. They slide along the dimensions of its input from `first` on: along
/// `first` by strides[0], and so on.
struct Windows {
  size_t first;
  ArrayRef<int64_t> kernel, strides, dilations, padding;

  static std::optional<Windows> of(Operation *op) {
    auto pool = [](auto op) -> std::optional<Windows> {
      if (op.getCeilMode() || op.getLayout() != "nhwc")
        return std::nullopt; // these pools read all of their input
      return Windows{1, op.getKernel(), op.getStrides(), op.getDilations(), op.getPadding()};
    };
    return llvm::TypeSwitch<Operation *, std::optional<Windows>>(op)
        .Case<MaxPoolOp, AvgPoolOp>(pool)
        .Case([](ContractOp op) {
          return Windows{size_t(op.getBatch()), op.getKernel(), op.getStrides(), op.getDilations(), op.getPadding()};
        })
        .Default(std::nullopt);
  }

  int64_t low(size_t i) const { return padding.empty() ? 0 : padding[i]; }
  /// How many elements of the input, from its first in a dimension, the windows of `count` results cover; more than it
  /// has if they reach into the padding at its end.
  int64_t reach(size_t i, int64_t count) const {
    return (count - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - low(i);
  }
  /// The shape of the part of `input` that results of shape `result` need.
  Shape partRead(Shape input, const Shape &result) const {
    for (size_t i = 0; i < kernel.size(); ++i) {
      Dim &size = input[first + i];
      const Dim &count = result[first + i];
      if (size.isStatic() && count.isStatic() && count.value() > 0 && reach(i, count.value()) > 0)
        size = std::min(size.value(), reach(i, count.value()));
    }
    return input;
  }
  /// The padding with which an input of shape `input` gives results of shape `result`.
  SmallVector<int64_t> paddingFor(const Shape &input, const Shape &result) const {
    SmallVector<int64_t> fitting(padding);
    fitting.resize(2 * kernel.size(), 0);
    for (size_t i = 0; i < kernel.size(); ++i)
      if (input[first + i].isStatic() && result[first + i].isStatic() && result[first + i].value() > 0)
        fitting[kernel.size() + i] = reach(i, result[first + i].value()) - input[first + i].value();
    return fitting;
  }
};

class Cropper {
public:
  explicit Cropper(func::FuncOp function) : function(function) {}

  void run() {
    SmallVector<Operation *> pools;
    for (Operation &op : function.getBody().getOps())
      if (isPool(&op))
        pools.push_back(&op);
    for (Operation *op : llvm::reverse(pools))
      cropInput(op);
    for (Operation *op : replaced)
      op->dropAllReferences();
    for (Operation *op : replaced)
      op->erase();
    for (Operation *op : broadcasts)
      if (op->use_empty())
        op->erase();
  }

private:
  /// Crops the input of a window op to the elements that it reads, if the op is the input's only user.
  void cropInput(Operation *op) {
    std::optional<Windows> windows = Windows::of(op);
    if (!windows)
      return;
    Value input = op->getOperand(0);
    Shape needed = windows->partRead(shapeOf(input), shapeOf(op->getResult(0)));
    if (needed == shapeOf(input) || !canCrop(input, needed))
      return;
    op->setAttr("padding",
                DenseI64ArrayAttr::get(op->getContext(), windows->paddingFor(needed, shapeOf(op->getResult(0)))));
    op->setOperand(0, cropped(input, needed));
  }

  /// Whether a smaller `v` can be computed, and some contraction does less work then.
  bool canCrop(Value v, const Shape &to) {
    Operation *op = v.getDefiningOp();
    if (!op || !hasOneUser(v))
      return false;
    if (auto contract = dyn_cast<ContractOp>(op))
      return shapeOf(v).back() == to.back();
    if (isPool(op)) {
      std::optional<Windows> windows = Windows::of(op);
      Value input = op->getOperand(0);
      return windows && canCrop(input, windows->partRead(shapeOf(input), to));
    }
    if (!op->hasTrait<ir::Elementwise>())
      return false;
    bool hasContraction = false; // each operand is visited once: its own operands are, too
    for (Value x : op->getOperands())
      if (canCrop(x, to))
        hasContraction = true;
      else if (!isBroadcast(x, to))
        return false;
    return hasContraction;
  }

  /// Ops that have been replaced are not counted.
  bool hasOneUser(Value v) {
    llvm::SmallPtrSet<Operation *, 4> users(v.user_begin(), v.user_end());
    return llvm::count_if(users, [&](Operation *user) { return !replaced.contains(user); }) == 1;
  }

  /// Whether `v` is a broadcast along all cropped dimensions.
  bool isBroadcast(Value v, const Shape &to) {
    if (v.getDefiningOp<FullOp>())
      return true;
    auto broadcast = v.getDefiningOp<BroadcastToOp>();
    if (!broadcast)
      return false;
    Shape from = shapeOf(broadcast.getX()), all = shapeOf(v);
    for (size_t d = 0; d < all.size(); ++d)
      if (size_t added = all.size() - from.size(); all[d] != to[d] && d >= added && from[d - added] != Dim(1))
        return false;
    return true;
  }

  Value cropped(Value v, const Shape &to) {
    Operation *op = v.getDefiningOp();
    if (Value known = done.lookup(v))
      return known;
    OpBuilder b(op);
    SmallVector<Value> operands(op->getOperands());
    if (op->hasTrait<ir::Elementwise>())
      for (Value &x : operands)
        x = cropped(x, to);
    OperationState state(op->getLoc(), op->getName(), operands, {tensorType(op->getContext(), {dtypeOf(v), to})},
                         op->getAttrs());
    if (op->hasAttr("shape"))
      state.attributes.set("shape", toMlir(op->getContext(), Attr(to)));
    if (std::optional<Windows> windows = Windows::of(op))
      state.attributes.set("padding", b.getDenseI64ArrayAttr(windows->paddingFor(shapeOf(operands[0]), to)));
    Operation *smaller = b.create(state);
    (isa<BroadcastToOp, FullOp>(op) ? broadcasts : replaced).insert(op);
    cropInput(smaller);
    return done[v] = smaller->getResult(0);
  }

  func::FuncOp function;
  llvm::SetVector<Operation *> replaced;   // ops whose only user has got a smaller one
  llvm::SetVector<Operation *> broadcasts; // broadcasts and constants that have got a smaller one; may have other users
  llvm::DenseMap<Value, Value> done;
};

struct ShrinkToDemandPass : impl::ShrinkToDemandPassBase<ShrinkToDemandPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        Cropper(function).run();
  }
};

} // namespace

} // namespace burin::passes
