#include "passes/analysis/BatchSemantics.h"
#include "passes/analysis/IterationSpace.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

using Roles = std::optional<SmallVector<bool>>;

Roles all(Operation *op) { return SmallVector<bool>(op->getNumOperands(), true); }
Roles firstOnly(Operation *op) {
  SmallVector<bool> roles(op->getNumOperands(), false);
  roles[0] = true;
  return roles;
}
Roles when(bool possible, Roles roles) { return possible ? roles : std::nullopt; }

bool isFirst(ArrayRef<int64_t> axes) { return llvm::is_contained(axes, 0); }
int64_t rankOf(Value v) { return int64_t(shapeOf(v).size()); }
const Dim &leading(const Shape &shape) { return shape.front(); }

Roles broadcast(BroadcastToOp op) {
  Shape from = shapeOf(op.getX()), to = shapeOf(op.getResult());
  return SmallVector<bool>{from.size() == to.size() && leading(from) == leading(to)};
}

/// Whether windows along dimension 0 stay within a part: only windows of one element with stride 1 do.
Roles contract(ContractOp op) {
  if (op.getBatch() > 0)
    return all(op);
  bool alone = op.getKernel()[0] == 1 && op.getStrides()[0] == 1;
  ArrayRef<int64_t> padding = op.getPadding();
  return when(alone && (padding.empty() || (padding[0] == 0 && padding[padding.size() / 2] == 0)), firstOnly(op));
}

Roles attention(ScaledDotProductAttentionOp op) {
  Roles roles = all(op);
  Dim batch = leading(shapeOf(op.getQuery()));
  for (auto [role, operand] : llvm::zip(*roles, op->getOperands())) {
    Shape shape = shapeOf(operand);
    role = shape.size() == shapeOf(op.getQuery()).size() && leading(shape) == batch;
  }
  bool keys = (*roles)[1] && (*roles)[2];
  return when(keys && rankOf(op.getQuery()) > 2, roles);
}

/// Only slices that keep all of dimension 0.
Roles slice(SliceOp op) {
  Attr starts = *fromMlir(op.getStartsAttr(), AttrKind::Shape);
  bool whole = std::get<Shape>(starts)[0] == Dim(0) && leading(shapeOf(op.getX())) == leading(shapeOf(op.getResult()));
  return when(whole, all(op));
}

Roles take(TakeOp op) {
  if (op.getAxis() > 0)
    return firstOnly(op);
  return SmallVector<bool>{false, true}; // the table is whole, the indices are split
}

Roles rolesOf(Operation *op) {
  if (op->hasTrait<ir::Elementwise>())
    return all(op);
  if (SmallVector<int64_t> axes = reducedAxes(op); !axes.empty())
    return when(!isFirst(axes), all(op));
  return TypeSwitch<Operation *, Roles>(op)
      .Case<BroadcastToOp>(broadcast)
      .Case<ContractOp>(contract)
      .Case<ScaledDotProductAttentionOp>(attention)
      .Case<SliceOp>(slice)
      .Case<TakeOp>(take)
      .Case<ReshapeOp, FullOp>([](auto op) { return all(op); })
      .Case<SqueezeOp, UnsqueezeOp>(
          [](auto op) { return when(!op.getAxes().empty() && !isFirst(op.getAxes()), all(op)); })
      .Case<IotaOp, ConcatOp, StackOp, SplitOp, GatherOp, CumsumOp>(
          [](auto op) { return when(op.getAxis() > 0, all(op)); })
      .Case<SoftmaxOp, LogSoftmaxOp, LayerNormOp, RmsNormOp>(
          [](auto op) { return when(op.getAxis() > 0, firstOnly(op)); })
      .Case<TransposeOp>([](auto op) { return when(!op.getPerm().empty() && op.getPerm()[0] == 0, all(op)); })
      .Case<FlipOp>([](auto op) { return when(!isFirst(op.getAxes()), all(op)); })
      .Case<PadOp>([](auto op) { return when(op.getLow()[0] == 0 && op.getHigh()[0] == 0, all(op)); })
      .Case<PackOp, TrilOp, TriuOp>([](auto op) { return when(rankOf(op.getX()) > 2, all(op)); })
      .Case<MaxPoolOp, AvgPoolOp>(
          [](auto op) { return when(rankOf(op.getX()) == int64_t(op.getKernel().size()) + 2, all(op)); })
      .Case<ConvOp>([](auto op) { return firstOnly(op); })
      .Default(std::nullopt);
}

} // namespace

bool isFree(Operation *op) { return isa<BroadcastToOp, FullOp, IotaOp, ReshapeOp, SqueezeOp, UnsqueezeOp>(op); }

bool hasParts(Value v, const Dim &parts) {
  Shape shape = shapeOf(v);
  return !shape.empty() && floordiv(shape[0], parts) * parts == shape[0];
}

std::optional<SmallVector<bool>> slicedOperands(Operation *op, const Dim &parts) {
  if (!llvm::all_of(op->getResults(), [&](Value v) { return hasParts(v, parts); }))
    return std::nullopt;
  Roles roles = rolesOf(op);
  if (roles)
    for (auto [sliced, operand] : llvm::zip(*roles, op->getOperands()))
      if (sliced && !hasParts(operand, parts))
        return std::nullopt;
  return roles;
}

Type partType(Value whole, const Dim &parts) {
  TensorSpec spec = specOf(whole);
  spec.shape[0] = floordiv(spec.shape[0], parts);
  return tensorType(whole.getContext(), spec);
}

Operation *createPart(OpBuilder &b, Operation *op, ValueRange operands, const Dim &parts) {
  SmallVector<Type> types = llvm::map_to_vector(op->getResults(), [&](Value v) { return partType(v, parts); });
  OperationState state(op->getLoc(), op->getName(), operands, types, op->getAttrs());
  // Attributes that contain the size of dimension 0 of the result.
  for (StringRef name : {"shape", "stops"})
    if (Attribute sizes = op->getAttr(name)) {
      Shape shape = std::get<Shape>(*fromMlir(sizes, AttrKind::Shape));
      shape[0] = specOf(types[0]).shape[0];
      state.attributes.set(name, toMlir(op->getContext(), Attr(shape)));
    }
  return b.create(state);
}

} // namespace burin::passes
