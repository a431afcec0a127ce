#include "passes/analysis/BatchSemantics.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

// ---- rules that op definitions name as `parts`: for each operand, whether a part of the result along dimension 0
// needs only the same part of that operand; nullopt if the result cannot be computed by parts. All operands and results
// have rank 1 or more.
using Roles = std::optional<SmallVector<bool>>;

Roles noOperands(Operation *) { return std::nullopt; }
Roles allOperands(Operation *op) { return SmallVector<bool>(op->getNumOperands(), true); }
Roles firstOperand(Operation *op) {
  SmallVector<bool> roles(op->getNumOperands(), false);
  roles[0] = true;
  return roles;
}
Roles when(bool possible, Roles roles) { return possible ? roles : std::nullopt; }

bool isFirst(ArrayRef<int64_t> axes) { return llvm::is_contained(axes, 0); }
int64_t rankOf(Value v) { return int64_t(shapeOf(v).size()); }
const Dim &leading(const Shape &shape) { return shape.front(); }
int64_t axisOf(Operation *op) { return op->getAttrOfType<IntegerAttr>("axis").getInt(); }
ArrayRef<int64_t> listOf(Operation *op, StringRef name) {
  return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
}

Roles unlessReduced(Operation *op) {
  SmallVector<int64_t> axes = reducedAxes(op);
  return when(!axes.empty() && !isFirst(axes), allOperands(op));
}

Roles unlessRepeated(Operation *op) {
  Shape from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  return SmallVector<bool>{from.size() == to.size() && leading(from) == leading(to)};
}

/// Windows along dimension 0 stay within a part only if they have one element and stride 1.
Roles contractOperands(Operation *op) {
  auto contract = cast<ContractOp>(op);
  if (contract.getBatch() > 0)
    return allOperands(op);
  bool alone = contract.getKernel()[0] == 1 && contract.getStrides()[0] == 1;
  ArrayRef<int64_t> padding = contract.getPadding();
  return when(alone && (padding.empty() || (padding[0] == 0 && padding[padding.size() / 2] == 0)), firstOperand(op));
}

Roles attentionOperands(Operation *op) {
  Value query = cast<ScaledDotProductAttentionOp>(op).getQuery();
  Roles roles = allOperands(op);
  Dim batch = leading(shapeOf(query));
  for (auto [role, operand] : llvm::zip(*roles, op->getOperands())) {
    Shape shape = shapeOf(operand);
    role = shape.size() == shapeOf(query).size() && leading(shape) == batch;
  }
  bool keys = (*roles)[1] && (*roles)[2];
  return when(keys && rankOf(query) > 2, roles);
}

/// Only slices that keep dimension 0 whole.
Roles unlessCut(Operation *op) {
  auto slice = cast<SliceOp>(op);
  Attr starts = *fromMlir(slice.getStartsAttr(), AttrKind::Shape);
  bool whole =
      std::get<Shape>(starts)[0] == Dim(0) && leading(shapeOf(slice.getX())) == leading(shapeOf(slice.getResult()));
  return when(whole, allOperands(op));
}

Roles takeOperands(Operation *op) {
  if (axisOf(op) > 0)
    return firstOperand(op);
  return SmallVector<bool>{false, true}; // the table is whole, the indices are split
}

Roles unlessResized(Operation *op) {
  ArrayRef<int64_t> axes = listOf(op, "axes");
  return when(!axes.empty() && !isFirst(axes), allOperands(op));
}
Roles unlessAlongBatch(Operation *op) { return when(axisOf(op) > 0, allOperands(op)); }
Roles firstUnlessAlongBatch(Operation *op) { return when(axisOf(op) > 0, firstOperand(op)); }
Roles unlessPermuted(Operation *op) {
  ArrayRef<int64_t> perm = listOf(op, "perm");
  return when(!perm.empty() && perm[0] == 0, allOperands(op));
}
Roles unlessFlipped(Operation *op) { return when(!isFirst(listOf(op, "axes")), allOperands(op)); }
Roles unlessPadded(Operation *op) {
  return when(listOf(op, "low")[0] == 0 && listOf(op, "high")[0] == 0, allOperands(op));
}
Roles ofMatrices(Operation *op) { return when(rankOf(op->getOperand(0)) > 2, allOperands(op)); }
Roles ofImages(Operation *op) {
  return when(rankOf(op->getOperand(0)) == int64_t(listOf(op, "kernel").size()) + 2, allOperands(op));
}

constexpr Roles (*rules[])(Operation *) = {
#define OP_RULE(op, rule) rule,
#include "passes/analysis/PartRules.inc"
};

Roles rolesOf(Operation *op) {
  std::optional<size_t> index = tableIndexOf(op);
  return index ? rules[*index](op) : std::nullopt;
}

} // namespace

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
